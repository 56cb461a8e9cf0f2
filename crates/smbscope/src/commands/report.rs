//! `smbscope report`: one pass over the inputs, summed up and shown as text, JSON or HTML. Traces of
//! processors have a report of their own.

mod of_trace;

use anyhow::Context as _;
use smbscope_analysis::explain::Explain;
use smbscope_analysis::summary::{Counted, Options};
use smbscope_report::{FINDINGS_SHOWN, Meta, TextOptions};
use smbscope_tables::anonymize::Tokenizer;

use crate::cli::{PhaseCounted, Report};
use crate::exit::Failure;
use crate::filter_options::{recorded, refuse_nothing, selection};
use crate::format::TextFormat;
use crate::local_time;
use crate::options::{Verbosity, input_name};
use crate::output::Output;
use crate::pipeline::forecast::forecast;
use crate::pipeline::summarize::summarize;
use crate::terminal;

/// Columns of a report that does not go to a terminal.
const WIDTH: usize = 100;

/// Shows the report.
pub fn run(args: &Report, verbosity: Verbosity) -> anyhow::Result<()> {
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.decode.reading.open(&args.decode.inputs, tokenizer.clone())?;
    args.trace.choose(&mut source)?;
    if source.is_trace() {
        let meta = meta(&args.decode.inputs, tokenizer.as_ref());
        return of_trace::run(args, &mut source, meta, verbosity);
    }
    args.filter.apply(&mut source, &verbosity)?;
    let mut meta = meta(&args.decode.inputs, tokenizer.as_ref());
    // What cannot be predicted is said before anything is written.
    if !args.prediction.changes.is_empty() {
        let request = args.prediction.request(false)?;
        let recorded = forecast(&mut source, request, &verbosity);
        refuse_nothing(&source)?;
        let recorded = recorded?;
        meta.forecast = Some(smbscope_report::Forecast::new(&recorded));
    }
    // A file that cannot be written is better known before the work.
    let html = args.html.as_deref().map(Output::file).transpose()?;
    let counted = match (args.step, args.phase) {
        (Some(step), _) => Counted::Step(step),
        (None, PhaseCounted::Measured) => Counted::Measured,
        (None, PhaseCounted::All) => Counted::All,
    };
    let options = Options { counted, ..Options::default() };
    let format = match (args.format, &args.html) {
        (None, Some(_)) => None,
        (format, _) => Some(format.unwrap_or_default()),
    };
    // The page and the text begin with the diagnosis. A short text shows little of it.
    let explain = match (&html, format) {
        (None, Some(TextFormat::Text)) if !args.all => {
            Some(Explain::with_first_gains(FINDINGS_SHOWN))
        }
        (None, Some(TextFormat::Json) | None) => None,
        _ => Some(Explain::with_gains()),
    };
    let (report, diagnosis) = summarize(&source, options, explain, &verbosity)?;
    refuse_nothing(&source)?;
    meta.selection = selection(&source);
    meta.recorded = recorded(&source);
    meta.has_processors = source.has_traces();
    meta.diagnosis = diagnosis;
    meta.clock = local_time::clock(args.utc, report.start_ns);
    if let Some(step) = args.step {
        has_step(&report, step)?;
    }
    if let Some(mut output) = html {
        output.text(&smbscope_report::html(&report, &meta))?;
        output.finish()?;
    }
    let Some(format) = format else { return Ok(()) };
    let mut output = Output::stdout();
    match format {
        TextFormat::Text => {
            let width = terminal::width().unwrap_or(WIDTH);
            let options = TextOptions::new(width, args.all);
            output.text(&smbscope_report::text(&report, &meta, &options))?;
        }
        TextFormat::Json => {
            let value = smbscope_report::json(&report, &meta).context("report to JSON")?;
            output.text(&format!("{value:#}\n"))?;
        }
    }
    output.finish()
}

/// A report of a step that is not there would be empty without a word.
fn has_step(report: &smbscope_report::Report, step: u64) -> anyhow::Result<()> {
    let steps = report.load.as_ref().map_or(&[][..], |load| &load.steps);
    if steps.iter().any(|row| row.step == step) {
        return Ok(());
    }
    let numbers = || steps.iter().map(|row| row.step);
    Err(match (numbers().min(), numbers().max()) {
        (Some(first), Some(last)) => Failure::usage(format!(
            "--step {step}: the inputs have no such step; they have steps {first} to {last}"
        )),
        _ => Failure::usage(format!("--step {step}: the inputs hold no steps of a load run")),
    })
}

fn meta(inputs: &[String], tokenizer: Option<&Tokenizer>) -> Meta {
    Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: inputs.iter().map(|input| input_name(input, tokenizer)).collect(),
        ..Meta::default()
    }
}
