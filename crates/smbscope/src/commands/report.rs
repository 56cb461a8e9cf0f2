//! `smbscope report`: one pass over the inputs, summed up and shown as text, JSON or HTML.

use anyhow::Context as _;
use smbscope_event::anonymize::Tokenizer;
use smbscope_event::column::Sensitivity;
use smbscope_event::operation;
use smbscope_model::summary::{COLUMNS, Options, Summary};
use smbscope_report::Meta;
use smbscope_store::Part;
use smbscope_store::source::{Request, Source};

use crate::cli::Report;
use crate::format::TextFormat;
use crate::options::Talk;
use crate::output::Output;
use crate::progress::Shown;
use crate::{interrupt, terminal};

/// Columns of a report that does not go to a terminal.
const WIDTH: usize = 100;

/// Shows the report.
pub fn run(args: &Report, talk: Talk) -> anyhow::Result<()> {
    let tokenizer = args.anonymize.tokenizer()?;
    let source = args.decode.reading.open(&args.decode.inputs, tokenizer.clone())?;
    let meta = meta(&args.decode.inputs, tokenizer.as_ref());
    // A file that cannot be written is better known before the work.
    let html = args.html.as_deref().map(Output::file).transpose()?;
    let report = summarize(&source, talk)?;
    if let Some(mut output) = html {
        output.text(&smbscope_report::html(&report, &meta))?;
        output.finish()?;
    }
    let format = match (args.format, &args.html) {
        (None, Some(_)) => return Ok(()),
        (format, _) => format.unwrap_or_default(),
    };
    let mut output = Output::stdout();
    match format {
        TextFormat::Text => {
            let width = terminal::width().unwrap_or(WIDTH);
            output.text(&smbscope_report::text(&report, &meta, width))?;
        }
        TextFormat::Json => {
            let value = smbscope_report::json(&report, &meta).context("report to JSON")?;
            output.text(&format!("{value:#}\n"))?;
        }
    }
    output.finish()
}

fn summarize(source: &Source, talk: Talk) -> anyhow::Result<smbscope_report::Report> {
    let schema = operation::schema();
    let places = COLUMNS.iter().map(|name| schema.index_of(name)).collect::<Result<_, _>>()?;
    let parts = source.parts(&Request { projection: Some(places), ..Request::all() })?;
    let _shown = Shown::begin(talk, parts.progress());
    let mut summary = Summary::new(Options::default());
    for part in parts {
        match part? {
            Part::Operations(batch) => summary.operations(&batch)?,
            Part::Connections(rows) => summary.connections(&rows),
            Part::Sessions(rows) => summary.sessions(&rows),
            Part::Trees(rows) => summary.trees(&rows),
            Part::Handles(rows) => summary.handles(&rows),
            Part::Coverage(row) => summary.coverage(&row),
            // The report says nothing about single referrals.
            Part::Referrals(_) | Part::Scenarios(_) | Part::Steps(_) | Part::Counters(_) => {}
        }
        // A report of a part would be read as one of the whole.
        interrupt::check()?;
    }
    Ok(summary.finish())
}

fn meta(inputs: &[String], tokenizer: Option<&Tokenizer>) -> Meta {
    let name = |input: &String| match tokenizer {
        Some(tokenizer) => tokenizer.text("recording", Sensitivity::Machine, input),
        None => input.clone(),
    };
    Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: inputs.iter().map(name).collect(),
    }
}
