//! Where an answer goes and in which form: the options that commands have in common, and how an answer is shown.

use std::path::PathBuf;

use anyhow::Context as _;
use arrow::array::RecordBatch;
use clap::{Args, ValueEnum};
use smbscope_report::{Answer, Meta, TextOptions};
use smbscope_tables::anonymize::Tokenizer;

use crate::format::{JsonNulls, RowFormat, TextFormat, row_writer};
use crate::options::input_name;
use crate::output::{self, Output};
use crate::terminal;

/// The version that answers name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where an answer goes, and in which form.
#[derive(Clone, Debug, Default, Args)]
pub struct AnswerOptions<F = TextFormat>
where
    F: ValueEnum + Send + Sync + 'static,
{
    /// Write a self-contained HTML page to this file instead of text to standard output.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Output format [default: text; with --html no output].
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<F>,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl<F: ValueEnum + Copy + Default + Send + Sync> AnswerOptions<F> {
    /// The format of what is written besides a page; none if only a page is.
    pub fn format(&self) -> Option<F> {
        match (self.format, &self.html, &self.out) {
            (None, Some(_), None) => None,
            (format, ..) => Some(format.unwrap_or_default()),
        }
    }

    /// Opens the page, if there is one: a file that cannot be written should fail before the work.
    pub fn open(&self) -> anyhow::Result<Destination<F>> {
        let page =
            self.html.as_deref().map(|path| anyhow::Ok((Output::file(path)?, path.to_owned())));
        Ok(Destination { page: page.transpose()?, format: self.format(), out: self.out.clone() })
    }
}

/// An answer's page and output, before the work.
pub struct Destination<F> {
    page: Option<(Output, PathBuf)>,
    format: Option<F>,
    out: Option<PathBuf>,
}

impl<F> Destination<F> {
    fn write_page(&mut self, answer: &dyn Answer) -> anyhow::Result<()> {
        let Some((mut page, path)) = self.page.take() else { return Ok(()) };
        page.text(&smbscope_report::html(answer))?;
        page.finish()?;
        output::say(&format!("The page is in {}", path.display()));
        Ok(())
    }
}

impl Destination<TextFormat> {
    /// Shows an answer; `all` of its text, or what fits.
    pub fn show(mut self, answer: &dyn Answer, all: bool) -> anyhow::Result<()> {
        self.write_page(answer)?;
        self.format.map_or(Ok(()), |format| show(answer, format, self.out.as_ref(), all))
    }
}

impl Destination<RowFormat> {
    /// Shows an answer that programs read as rows; `all` of its text, or what fits.
    pub fn show_rows(
        mut self,
        answer: &dyn Answer,
        nulls: JsonNulls,
        all: bool,
        rows: impl FnOnce() -> anyhow::Result<RecordBatch>,
    ) -> anyhow::Result<()> {
        self.write_page(answer)?;
        let Some(format) = self.format else { return Ok(()) };
        if format == RowFormat::Text {
            return show(answer, TextFormat::Text, self.out.as_ref(), all);
        }
        let batch = rows()?;
        let output = Output::open(self.out.as_ref())?;
        let mut writer = row_writer(format, nulls, false, &batch.schema(), output)?;
        writer.write(&batch)?;
        writer.finish()
    }
}

/// Writes an answer to a file or to standard output.
pub fn show(
    answer: &dyn Answer,
    format: TextFormat,
    out: Option<&PathBuf>,
    all: bool,
) -> anyhow::Result<()> {
    let mut output = Output::open(out)?;
    let text = match format {
        TextFormat::Text => {
            // One line remains for the prompt.
            let height = terminal::height().map(|lines| lines.saturating_sub(1));
            let (width, bold) = (terminal::width(), output.bold());
            smbscope_report::text(answer, &TextOptions { width, height, bold, all })
        }
        TextFormat::Json => {
            smbscope_report::json_text(&smbscope_report::json(answer).context("answer to JSON")?)
        }
    };
    output.text(&text)?;
    output.finish()
}

/// What an answer says about its inputs.
pub fn meta(inputs: &[String], tokenizer: Option<&Tokenizer>) -> Meta {
    Meta { version: VERSION.to_owned(), inputs: names(inputs, tokenizer), ..Meta::default() }
}

/// Inputs as they were given, or as tokens.
pub fn names(inputs: &[String], tokenizer: Option<&Tokenizer>) -> Vec<String> {
    inputs.iter().map(|input| input_name(input, tokenizer)).collect()
}
