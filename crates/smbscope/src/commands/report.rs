//! `smbscope report`: one pass over the inputs, summed up and shown as text, JSON or HTML.

use anyhow::Context as _;
use smbscope_analysis::explain::{Diagnosis, Explain, columns_with_gains};
use smbscope_analysis::summary::{COLUMNS, Counted, Options, Summary};
use smbscope_report::Meta;
use smbscope_store::Part;
use smbscope_store::source::{Request, Source};
use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::operation;
use smbscope_tables::slice::Slice;

use crate::cli::{PhaseCounted, Report};
use crate::commands::predict::forecast::Forecast;
use crate::exit::Failure;
use crate::format::TextFormat;
use crate::options::{Talk, input_name};
use crate::output::Output;
use crate::progress::Shown;
use crate::{interrupt, terminal};

/// Columns of a report that does not go to a terminal.
const WIDTH: usize = 100;

/// Shows the report.
pub fn run(args: &Report, talk: Talk) -> anyhow::Result<()> {
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.decode.reading.open(&args.decode.inputs, tokenizer.clone())?;
    let mut meta = meta(&args.decode.inputs, tokenizer.as_ref());
    // What cannot be predicted is said before anything is written.
    if !args.asked.changes.is_empty() {
        let Forecast { changes, prediction, notes, warnings, .. } =
            Forecast::read(&mut source, &args.asked, false, talk)?;
        meta.forecast =
            Some(smbscope_report::Forecast::new(&prediction, &changes, notes, warnings));
    }
    // A file that cannot be written is better known before the work.
    let html = args.html.as_deref().map(Output::file).transpose()?;
    let counted = match (args.step, args.phase) {
        (Some(step), _) => Counted::Step(step),
        (None, PhaseCounted::Measured) => Counted::Measured,
        (None, PhaseCounted::All) => Counted::All,
    };
    // It stands at the top of the page.
    let explain = html.is_some().then(Explain::with_gains);
    let (report, diagnosis) = summarize(&source, counted, explain, talk)?;
    meta.diagnosis = diagnosis;
    if let Some(step) = args.step {
        has_step(&report, step)?;
    }
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

fn summarize(
    source: &Source,
    counted: Counted,
    mut explain: Option<Explain>,
    talk: Talk,
) -> anyhow::Result<(smbscope_report::Report, Option<Diagnosis>)> {
    let schema = operation::schema();
    let more = if explain.is_some() { columns_with_gains() } else { Vec::new() };
    let mut places: Vec<_> = COLUMNS
        .iter()
        .copied()
        .chain(more)
        .map(|name| schema.index_of(name))
        .collect::<Result<_, _>>()?;
    places.sort_unstable();
    places.dedup();
    let parts = source.parts(&Request { projection: Some(places), ..Request::all() })?;
    let _shown = Shown::begin(talk, parts.progress());
    let mut summary = Summary::new(Options { counted, ..Options::default() });
    for (run, complete) in source.runs() {
        summary.run(&run, complete);
    }
    for part in parts {
        let part = part?;
        if let Some(explain) = &mut explain {
            match &part {
                Part::Operations(batch) => explain.operations(batch)?,
                Part::Connections(rows) => explain.connections(rows),
                Part::Coverage(row) => explain.coverage(std::slice::from_ref(row)),
                _ => {}
            }
        }
        match part {
            Part::Operations(batch) => summary.operations(&batch)?,
            Part::Connections(rows) => summary.connections(&rows),
            Part::Sessions(rows) => summary.sessions(&rows),
            Part::Trees(rows) => summary.trees(&rows),
            Part::Handles(rows) => summary.handles(&rows),
            Part::Coverage(row) => summary.coverage(&row),
            Part::Steps(rows) => summary.steps(&rows),
            Part::Scenarios(rows) => summary.scenarios(&rows),
            Part::Counters(rows) => summary.counters(&rows),
            Part::Slices(batch) => summary.slices(&Slice::from_batch(&batch)),
            // The report does not list single referrals.
            _ => {}
        }
        // A report of a part would be read as one of the whole.
        interrupt::check()?;
    }
    let diagnosis = explain.map(Explain::finish).transpose()?;
    Ok((summary.finish(), diagnosis))
}

fn meta(inputs: &[String], tokenizer: Option<&Tokenizer>) -> Meta {
    Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: inputs.iter().map(|input| input_name(input, tokenizer)).collect(),
        forecast: None,
        diagnosis: None,
    }
}
