//! Pieces: the rows of a part that is still written, in files that readers see at once.
//!
//! `part-000003-00.parquet` holds the first rows of `part-000003.parquet`, `part-000003-01.parquet` the next. Pieces are not in
//! the manifest, and the writer does not wait for the disk: they outlive the writer, not the machine. As soon as their part has its
//! name, readers ignore them ([`is_piece_of_present`]); they are deleted when the next part is complete, so that a reader
//! who has found them can still open them.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;

use super::UNFINISHED;
use super::folder::new_file;
use super::properties::piece_properties;
use crate::Table;
use crate::error::{Error, Result};

/// The pieces of one part.
#[derive(Default)]
pub(super) struct Pieces {
    /// Rows that no piece has yet.
    recent: Vec<RecordBatch>,
    files: Vec<PathBuf>,
}

impl Pieces {
    /// Takes rows for the next piece.
    pub(super) fn add(&mut self, rows: RecordBatch) {
        self.recent.push(rows);
    }

    /// Writes the next piece of `part`, if there are rows for it.
    pub(super) fn write(&mut self, table: Table, schema: &SchemaRef, part: &Path) -> Result<()> {
        if self.recent.is_empty() {
            return Ok(());
        }
        let stem = part.file_stem().unwrap_or_default().to_string_lossy();
        let path = part.with_file_name(format!("{stem}-{:02}.parquet", self.files.len()));
        let unfinished = path.with_extension(UNFINISHED);
        let file = new_file(&unfinished).map_err(Error::io(&unfinished))?;
        encode(file, table, schema, &self.recent).map_err(Error::parquet(&unfinished))?;
        std::fs::rename(&unfinished, &path).map_err(Error::io(&path))?;
        self.recent.clear();
        self.files.push(path);
        Ok(())
    }

    /// Its files, when the part is complete.
    pub(super) fn into_files(self) -> Vec<PathBuf> {
        self.files
    }
}

fn encode(
    file: File,
    table: Table,
    schema: &SchemaRef,
    rows: &[RecordBatch],
) -> parquet::errors::Result<()> {
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(piece_properties(table)))?;
    for batch in rows {
        writer.write(batch)?;
    }
    writer.close().map(drop)
}

/// Whether a file is a piece of a part that is there as a whole.
pub(super) fn is_piece_of_present(path: &Path, files: &[PathBuf]) -> bool {
    let part = || -> Option<PathBuf> {
        let (part, number) = path.file_stem()?.to_str()?.rsplit_once('-')?;
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_piece = digits(number) && part.strip_prefix("part-").is_some_and(digits);
        is_piece.then(|| path.with_file_name(format!("{part}.parquet")))
    };
    part().is_some_and(|part| files.binary_search(&part).is_ok())
}
