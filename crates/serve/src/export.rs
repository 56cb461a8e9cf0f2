//! A table as a file: CSV, Parquet or Arrow, all groups of it, as the statement gives them.

use arrow::array::RecordBatch;
use arrow::csv::WriterBuilder;
use arrow::ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;

use crate::data::Loaded;
use crate::error::{Error, Result};

/// Most rows of a file.
const ROWS_MAX: usize = 1_000_000;

/// A file for download.
pub struct File {
    pub bytes: Vec<u8>,
    pub media_type: &'static str,
    pub name: &'static str,
}

/// The rows of a statement as a file.
///
/// # Errors
///
/// Those of the query, if there are too many rows, and if the format is unknown.
pub fn file(sql: &str, format: &str, loaded: &Loaded) -> Result<File> {
    let rows = loaded.query(&format!("{sql}\nLIMIT {}", ROWS_MAX + 1))?;
    if rows.iter().map(RecordBatch::num_rows).sum::<usize>() > ROWS_MAX {
        return Err(Error::request(format!(
            "more than {ROWS_MAX} rows: run the SQL by `smbscope query` with --format parquet"
        )));
    }
    let written = |error: &dyn std::fmt::Display| Error::Write(error.to_string());
    let schema = rows.first().map(RecordBatch::schema);
    let schema = schema.ok_or_else(|| Error::request("the table has no rows"))?;
    let mut bytes = Vec::new();
    let (media_type, name) = match format {
        "csv" => {
            let mut writer = WriterBuilder::new().with_header(true).build(&mut bytes);
            rows.iter()
                .try_for_each(|batch| writer.write(batch))
                .map_err(|error| written(&error))?;
            drop(writer);
            ("text/csv; charset=utf-8", "smbscope.csv")
        }
        "parquet" => {
            let mut writer =
                ArrowWriter::try_new(&mut bytes, schema, None).map_err(|error| written(&error))?;
            rows.iter()
                .try_for_each(|batch| writer.write(batch))
                .map_err(|error| written(&error))?;
            writer.close().map_err(|error| written(&error))?;
            ("application/vnd.apache.parquet", "smbscope.parquet")
        }
        // The file format allows one dictionary for each column, and batches have their own.
        "arrow" => {
            let mut writer =
                StreamWriter::try_new(&mut bytes, &schema).map_err(|error| written(&error))?;
            rows.iter()
                .try_for_each(|batch| writer.write(batch))
                .map_err(|error| written(&error))?;
            writer.finish().map_err(|error| written(&error))?;
            drop(writer);
            ("application/vnd.apache.arrow.stream", "smbscope.arrow")
        }
        _ => {
            return Err(Error::request(format!(
                "there is no format {format}: csv, parquet or arrow"
            )));
        }
    };
    Ok(File { bytes, media_type, name })
}
