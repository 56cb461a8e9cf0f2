//! Rows for programs: arrow's and parquet's own writers over an [`Output`].

use std::io::Write as _;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, DictionaryArray, RecordBatch, StringArray};
use arrow::datatypes::{Int32Type, SchemaRef};
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
    writer: JsonWriter<Vec<u8>, LineDelimited>,
    output: Output,
    watch: Watch,
}

impl Json {
    pub fn new(nulls: JsonNulls, output: Output) -> Json {
        let watch = output.watch();
        let builder = JsonBuilder::new().with_explicit_nulls(nulls == JsonNulls::Explicit);
        Json { writer: builder.build(Vec::new()), output, watch }
    }

    /// Writes what arrow's writer has made.
    fn pass_on(&mut self) -> anyhow::Result<()> {
        let made = String::from_utf8(std::mem::take(self.writer.get_mut()));
        let text = self.watch.check(made)?;
        self.output.text(&smbscope_report::escaped_json(text))
    }
}

impl RowWriter for Json {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let written = self.writer.write(batch);
        self.watch.check(written)?;
        self.pass_on()?;
        let flushed = self.output.flush();
        self.watch.check(flushed)
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        let finished = self.writer.finish();
        self.watch.check(finished)?;
        self.pass_on()?;
        self.output.finish()
    }
}

/// A text that a spreadsheet takes as text, not as a formula: those that would begin one get an apostrophe.
fn inert(text: &str) -> Option<String> {
    text.starts_with(['=', '+', '-', '@', '\t', '\r']).then(|| format!("'{text}"))
}

/// A column whose texts are [`inert`].
fn inert_column(column: &ArrayRef) -> ArrayRef {
    let change = |texts: &StringArray| -> Option<StringArray> {
        texts.iter().flatten().find_map(inert)?;
        let changed = texts.iter().map(|text| text.map(|text| inert(text).unwrap_or(text.into())));
        Some(changed.collect())
    };
    if let Some(texts) = column.as_string_opt::<i32>() {
        return change(texts).map_or_else(|| column.clone(), |texts| Arc::new(texts));
    }
    let changed = column.as_dictionary_opt::<Int32Type>().and_then(|dictionary| {
        let texts = change(dictionary.values().as_string_opt::<i32>()?)?;
        DictionaryArray::try_new(dictionary.keys().clone(), Arc::new(texts)).ok()
    });
    changed.map_or_else(|| column.clone(), |dictionary| Arc::new(dictionary))
}

/// Comma-separated values, for programs and for spreadsheets.
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
        let columns = batch.columns().iter().map(inert_column).collect();
        let batch = self.watch.check(RecordBatch::try_new(batch.schema(), columns))?;
        let written = self.writer.write(&batch);
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

#[cfg(test)]
mod tests {
    use arrow::array::Array as _;

    use super::*;

    #[test]
    fn texts_that_begin_a_formula_are_texts_in_a_spreadsheet() {
        let texts = StringArray::from(vec![
            Some("=cmd|' /C calc'!A0"),
            Some("+1"),
            Some("-1"),
            Some("@SUM(A1)"),
            Some("\tx"),
            Some("docs\\a=b"),
            None,
        ]);
        let expected = ["'=cmd|' /C calc'!A0", "'+1", "'-1", "'@SUM(A1)", "'\tx", "docs\\a=b"];
        let plain: ArrayRef = Arc::new(texts);
        let shared = arrow::compute::cast(&plain, &smbscope_tables::column::text_type()).unwrap();
        for column in [plain, shared] {
            let changed = inert_column(&column);
            assert_eq!(changed.data_type(), column.data_type());
            let texts = arrow::compute::cast(&changed, &arrow::datatypes::DataType::Utf8).unwrap();
            let texts: Vec<_> = texts.as_string::<i32>().iter().flatten().collect();
            assert_eq!(texts, expected);
        }
        let numbers: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![-1]));
        assert_eq!(&inert_column(&numbers), &numbers);
    }
}
