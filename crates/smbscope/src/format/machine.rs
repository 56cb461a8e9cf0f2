//! Rows for programs: arrow's and parquet's own writers over an [`Output`].

use std::io::Write as _;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;
use arrow::json::WriterBuilder as JsonBuilder;
use arrow::json::writer::{LineDelimited, Writer as JsonWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::{JsonNulls, RowWriter};
use crate::output::{Output, Watch};

/// One JSON object per line.
pub struct Json {
    writer: JsonWriter<Output, LineDelimited>,
    watch: Watch,
}

impl Json {
    pub fn new(nulls: JsonNulls, output: Output) -> Json {
        let watch = output.watch();
        let builder = JsonBuilder::new().with_explicit_nulls(nulls == JsonNulls::Explicit);
        Json { writer: builder.build(output), watch }
    }
}

impl RowWriter for Json {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let written = self.writer.write(batch);
        self.watch.check(written)?;
        let flushed = self.writer.get_mut().flush();
        self.watch.check(flushed)
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        let finished = self.writer.finish();
        self.watch.check(finished)?;
        self.writer.into_inner().finish()
    }
}

/// Comma-separated values.
pub struct Csv {
    writer: arrow::csv::Writer<Output>,
    watch: Watch,
}

impl Csv {
    pub fn begin(schema: &SchemaRef, output: Output) -> anyhow::Result<Box<dyn RowWriter>> {
        let watch = output.watch();
        let mut csv = Csv { writer: arrow::csv::Writer::new(output), watch };
        // The header is written even if no row follows.
        let header = csv.writer.write(&RecordBatch::new_empty(schema.clone()));
        csv.watch.check(header)?;
        Ok(Box::new(csv))
    }
}

impl RowWriter for Csv {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let written = self.writer.write(batch);
        self.watch.check(written)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        self.writer.into_inner().finish()
    }
}

/// A Parquet file.
pub struct Parquet {
    writer: ArrowWriter<Output>,
    watch: Watch,
}

impl Parquet {
    pub fn begin(schema: &SchemaRef, output: Output) -> anyhow::Result<Box<dyn RowWriter>> {
        let watch = output.watch();
        let level = watch.check(ZstdLevel::try_new(1))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(64 * 1024))
            .build();
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties));
        Ok(Box::new(Parquet { writer: watch.check(writer)?, watch }))
    }
}

impl RowWriter for Parquet {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let written = self.writer.write(batch);
        self.watch.check(written)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        let output = self.writer.into_inner();
        self.watch.check(output)?.finish()
    }
}

/// An Arrow IPC stream.
pub struct Arrow {
    writer: StreamWriter<Output>,
    watch: Watch,
}

impl Arrow {
    pub fn begin(schema: &SchemaRef, output: Output) -> anyhow::Result<Box<dyn RowWriter>> {
        let watch = output.watch();
        let writer = StreamWriter::try_new(output, schema);
        Ok(Box::new(Arrow { writer: watch.check(writer)?, watch }))
    }
}

impl RowWriter for Arrow {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let written = self.writer.write(batch);
        self.watch.check(written)?;
        let flushed = self.writer.flush();
        self.watch.check(flushed)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        let output = self.writer.into_inner();
        self.watch.check(output)?.finish()
    }
}
