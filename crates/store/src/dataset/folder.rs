//! Writes the files of a run folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::{max, min};
use arrow::datatypes::{DataType, Int64Type, SchemaRef};
use parquet::arrow::ArrowWriter;
use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::description::RunDescription;
use smbscope_tables::manifest::{Clock, FILE_NAME, Manifest, PartFile};
use smbscope_tables::tables::Coverage;

use super::UNFINISHED;
use super::pieces::Pieces;
use super::properties::properties;
use super::stored::{stored, stored_schema};
use super::writer::WriteOptions;
use crate::error::{Error, Result};
use crate::{Part, Table};

/// A run folder that is being written.
pub(super) struct Folder {
    dir: PathBuf,
    manifest: Manifest,
    tokenizer: Option<Tokenizer>,
    row_group_rows: usize,
    open: BTreeMap<Table, OpenPart>,
    /// Whether rows are kept for pieces.
    has_pieces: bool,
    /// Pieces of the latest complete parts, which a reader may still want to open.
    stale: Vec<PathBuf>,
}

struct OpenPart {
    writer: ArrowWriter<File>,
    columns: usize,
    schema: SchemaRef,
    unfinished: PathBuf,
    path: PathBuf,
    entry: PartFile,
    pieces: Pieces,
}

impl Folder {
    pub(super) fn new(dir: &Path, manifest: Manifest, options: &WriteOptions) -> Folder {
        Folder {
            dir: dir.to_owned(),
            manifest,
            tokenizer: options.tokenizer.clone(),
            row_group_rows: options.row_group_rows,
            open: BTreeMap::new(),
            has_pieces: options.visible.is_some(),
            stale: Vec::new(),
        }
    }

    /// Encodes rows into their table's open part.
    pub(super) fn add(&mut self, part: Part) -> Result<()> {
        let part = match &self.tokenizer {
            Some(tokenizer) => part.anonymize(tokenizer)?,
            None => part,
        };
        if let Part::Coverage(coverage) = &part {
            self.note(coverage);
        }
        let (table, batch) = (part.table(), part.to_batch()?);
        let has_pieces = self.has_pieces;
        let open = self.open_part(table)?;
        if batch.num_columns() != open.columns {
            return Err(Error::Internal("rows to be stored have missing columns"));
        }
        let rows = stored(&batch, &open.schema)?;
        open.writer.write(&rows).map_err(Error::parquet(&open.unfinished))?;
        open.entry.rows += batch.num_rows() as u64;
        let (least, greatest) = times(&batch, table.time_column());
        let entry = &mut open.entry;
        entry.time_min = entry.time_min.into_iter().chain(least).min();
        entry.time_max = entry.time_max.into_iter().chain(greatest).max();
        if has_pieces {
            open.pieces.add(rows);
        }
        Ok(())
    }

    /// Sets the description of a load run in the manifest.
    pub(super) fn describe(&mut self, mut run: RunDescription) {
        if let Some(tokenizer) = &self.tokenizer {
            run.anonymize(tokenizer);
        }
        self.manifest.describe(run);
    }

    /// Maximum number of rows of one table that are not in a complete part.
    pub(super) fn rows_open(&self) -> u64 {
        let rows = self.open.values().map(|open| open.entry.rows);
        rows.max().unwrap_or(0)
    }

    /// Makes the rows visible that arrived since the last time.
    pub(super) fn write_pieces(&mut self) -> Result<()> {
        self.open
            .iter_mut()
            .try_for_each(|(&table, open)| open.pieces.write(table, &open.schema, &open.path))
    }

    /// Completes the open parts and adds them to the manifest.
    pub(super) fn complete_parts(&mut self) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        self.remove_stale();
        for (table, mut open) in std::mem::take(&mut self.open) {
            let pieces = std::mem::take(&mut open.pieces);
            let entry = open.complete()?;
            self.stale.extend(pieces.into_files());
            let parts = self.manifest.tables.entry(table.name().to_owned());
            parts.or_default().push(entry);
        }
        self.write_manifest()
    }

    /// Completes all parts. Tables without rows get an empty part, so that a reader of plain files
    /// finds every table.
    pub(super) fn finish(mut self, complete: bool) -> Result<Manifest> {
        for table in Table::ALL {
            if !self.manifest.tables.contains_key(table.name()) {
                self.open_part(table)?;
            }
        }
        self.complete_parts()?;
        self.remove_stale();
        self.manifest.complete = complete;
        self.write_manifest()?;
        Ok(self.manifest)
    }

    /// Deletes pieces whose parts are complete. One that stays is ignored.
    fn remove_stale(&mut self) {
        self.stale.drain(..).for_each(|piece| drop(std::fs::remove_file(piece)));
    }

    /// Deletes incomplete parts; their pieces stay.
    pub(super) fn abandon(self) {
        for open in self.open.into_values() {
            drop(open.writer);
            let _ = std::fs::remove_file(&open.unfinished);
        }
    }

    /// Replaces the manifest as a whole.
    pub(super) fn write_manifest(&self) -> Result<()> {
        let path = self.dir.join(FILE_NAME);
        let unfinished = path.with_extension(UNFINISHED);
        let text = self
            .manifest
            .to_json()
            .map_err(|error| Error::Manifest { path: path.clone(), error })?;
        let write = || -> std::io::Result<()> {
            let mut file = new_file(&unfinished)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&unfinished, &path)?;
            sync_folder(&self.dir)
        };
        write().map_err(Error::io(&path))
    }

    fn open_part(&mut self, table: Table) -> Result<&mut OpenPart> {
        match self.open.entry(table) {
            std::collections::btree_map::Entry::Occupied(open) => Ok(open.into_mut()),
            std::collections::btree_map::Entry::Vacant(vacant) => {
                let parts = self.manifest.tables.get(table.name());
                let number = parts.map_or(0, Vec::len);
                Ok(vacant.insert(OpenPart::create(&self.dir, table, number, self.row_group_rows)?))
            }
        }
    }

    /// Copies the input's format, its clock and its coverage to the manifest.
    fn note(&mut self, coverage: &Coverage) {
        let name = coverage.capture_file.as_ref().unwrap_or(&coverage.recording);
        for input in &mut self.manifest.inputs {
            let file = Path::new(&input.name).file_name();
            if &input.name == name || file.is_some_and(|file| file == name.as_str()) {
                input.format.clone_from(&coverage.format);
            }
        }
        if !self.manifest.clocks.iter().any(|clock| &clock.name == name) {
            self.manifest.clocks.push(Clock {
                name: name.clone(),
                resolution_ns: coverage.resolution_ns,
                ..Clock::default()
            });
        }
        self.manifest.coverage.push(coverage.clone());
    }
}

impl OpenPart {
    fn create(dir: &Path, table: Table, number: usize, row_group_rows: usize) -> Result<OpenPart> {
        let folder = dir.join(table.name());
        create_folder(&folder).map_err(Error::io(&folder))?;
        let name = format!("part-{number:06}.parquet");
        let path = folder.join(&name);
        let unfinished = folder.join(format!("{name}.{UNFINISHED}"));
        let file = new_file(&unfinished).map_err(Error::io(&unfinished))?;
        let schema = stored_schema(&table.schema());
        let columns = schema.fields().len();
        let writer = properties(table, &schema, row_group_rows)
            .and_then(|properties| ArrowWriter::try_new(file, schema.clone(), Some(properties)))
            .map_err(Error::parquet(&unfinished))?;
        let entry = PartFile { file: format!("{}/{name}", table.name()), ..PartFile::default() };
        Ok(OpenPart { writer, columns, schema, unfinished, path, entry, pieces: Pieces::default() })
    }

    /// Writes the footer, waits for the disk, then gives the file its final name.
    fn complete(self) -> Result<PartFile> {
        let OpenPart { writer, unfinished, path, mut entry, .. } = self;
        let file = writer.into_inner().map_err(Error::parquet(&unfinished))?;
        let finish = || -> std::io::Result<u64> {
            file.sync_all()?;
            let size = file.metadata()?.len();
            std::fs::rename(&unfinished, &path)?;
            path.parent().map_or(Ok(()), sync_folder)?;
            Ok(size)
        };
        entry.size_bytes = finish().map_err(Error::io(&path))?;
        Ok(entry)
    }
}

/// Creates a file for its owner only; a leftover of that name goes, a link among them: it is not followed.
pub(super) fn new_file(path: &Path) -> std::io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a folder for its owner only, unless it is there. A link to a folder is not one.
pub(super) fn create_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    if std::fs::symlink_metadata(path)?.is_symlink() {
        return Err(std::io::Error::other("it is a symbolic link, which is not followed"));
    }
    Ok(())
}

/// Makes a rename in `folder` durable.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Other systems keep the order of renames and cannot open a folder.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Minimum and maximum of a time column.
fn times(batch: &RecordBatch, column: Option<&str>) -> (Option<i64>, Option<i64>) {
    match column.and_then(|column| batch.column_by_name(column)) {
        Some(column) if column.data_type() == &DataType::Int64 => {
            let times = column.as_primitive::<Int64Type>();
            (min(times), max(times))
        }
        _ => (None, None),
    }
}
