//! `smbscope report`: one pass over the inputs, summed up and shown as text, JSON or HTML. Traces of
//! CPUs have a report of their own.

mod cpu_trace;

use smbscope_analysis::explain::Explain;
use smbscope_analysis::summary::{Counted, Options};
use smbscope_report::FINDINGS_SHOWN;
use smbscope_report::recording::RecordingAnswer;

use crate::answer::meta;
use crate::cli::{PhaseCounted, Report};
use crate::exit::Failure;
use crate::filter_options::recorded;
use crate::format::TextFormat;
use crate::options::Verbosity;
use crate::pipeline::forecast::forecast;
use crate::pipeline::summarize::summarize;
use crate::settings;

/// Shows the report.
pub fn run(args: &Report, verbosity: Verbosity) -> anyhow::Result<()> {
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.decode.reading.open(&args.decode.inputs, tokenizer.clone())?;
    args.trace.choose(&mut source)?;
    if source.is_trace() {
        let meta = meta(&args.decode.inputs, tokenizer.as_ref());
        return cpu_trace::run(args, &mut source, meta, verbosity);
    }
    args.filter.apply(&mut source, &verbosity)?;
    let mut meta = meta(&args.decode.inputs, tokenizer.as_ref());
    // What cannot be predicted is said before anything is written.
    if !args.prediction.changes.is_empty() {
        let request = args.prediction.request(false)?;
        let recorded = forecast(&mut source, request, &verbosity);
        args.filter.refuse_nothing(&source)?;
        let recorded = recorded?;
        meta.forecast = Some(smbscope_report::prediction::Forecast::new(&recorded));
    }
    let destination = args.answer.open()?;
    let counted = match (args.step, args.phase) {
        (Some(step), _) => Counted::Step(step),
        (None, PhaseCounted::Measured) => Counted::Measured,
        (None, PhaseCounted::All) => Counted::All,
    };
    let options = Options { counted, ..Options::default() };
    // The page and the text begin with the diagnosis. A short text shows little of it.
    let explain = match (&args.answer.html, args.answer.format()) {
        (None, Some(TextFormat::Text)) if !args.all => {
            Some(Explain::with_first_gains(FINDINGS_SHOWN))
        }
        (None, Some(TextFormat::Json) | None) => args.fail_on.map(|_| Explain::new()),
        _ => Some(Explain::with_gains()),
    };
    let noticed = settings::get().noticed(args.noticed);
    let explain = explain.map(|explain| explain.noticing(noticed.0));
    let (report, diagnosis) = summarize(&source, options, explain, &verbosity)?;
    args.filter.refuse_nothing(&source)?;
    meta.selection = args.filter.selection(&source);
    meta.recorded = recorded(&source);
    meta.has_processors = source.has_traces();
    meta.diagnosis = diagnosis;
    meta.clock = args.filter.clock(report.start_ns);
    if let Some(step) = args.step {
        has_step(&report, step)?;
    }
    destination.show(&RecordingAnswer { report: &report, meta: &meta }, args.all)?;
    match (args.fail_on, &meta.diagnosis) {
        (Some(fail_on), Some(diagnosis)) => fail_on.diagnosis(diagnosis),
        _ => Ok(()),
    }
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
