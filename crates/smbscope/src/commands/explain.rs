//! `smbscope explain`: what makes a share slow, the most costly cause first.
//!
//! Owns the command and its exit code. `smbscope_analysis::explain` finds the causes,
//! `smbscope_report::explain` renders them. With `--why` it explains a single operation.

mod of_trace;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::ValueEnum;
use serde_json::Value;
use smbscope_analysis::explain::Confidence;
use smbscope_analysis::explain::why::{Miss, Which};
use smbscope_report::TextOptions;
use smbscope_store::source::Source;

use crate::exit::{Code, Failure};
use crate::filter_options::{FilterOptions, recorded, refuse_nothing, selection, with_selection};
use crate::format::TextFormat;
use crate::options::{Anonymize, Decode, Verbosity, input_name};
use crate::output::Output;
use crate::pipeline::diagnose::diagnose;
use crate::pipeline::processors::beside_operations;
use crate::pipeline::why::why;
use crate::terminal;
use crate::trace_options::TraceOptions;

/// Columns and lines of a diagnosis that does not go to a terminal.
const WIDTH: usize = 100;
const HEIGHT: usize = 40;

/// Explain what makes a share slow, the most costly cause first.
///
/// Each finding shows the share of the waiting that it explains, the time that would be saved without
/// it, the side that is responsible, the clients, users and files concerned, example operations, the reasons for its
/// confidence, and remedies on server and client. Clients' pauses are shown apart from findings. If a
/// remedy can be predicted, its gain is shown, computed by replaying the first 100,000
/// operations. Findings can overlap.
///
/// By default the first three findings that explain 5 % or more are shown, shortened to fit the
/// screen. If there are none, the output says so.
///
/// Of a trace of processors (`.etl`, ftrace, perf) it names what holds the CPUs: drivers with long deferred work,
/// filters and teams in the path of received packets, receive work on too few CPUs. With a trace and
/// operations of the same time (a capture and an `.etl` of one server) it also says which operations
/// waited while CPUs were held.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope explain capture.pcapng
  smbscope explain run/ --all
  smbscope explain run/ --from 'last 5m' --user alice
  smbscope explain capture.pcapng --why 8                 # frame 8: what did it wait for?
  smbscope explain run/ --why op:120
  smbscope explain flood.etl                              # a trace of the processors
  smbscope explain flood.etl flood.pcapng                 # and the operations of that time
  smbscope explain ring*.pcap --format json | jq '.findings[0]'
  smbscope explain - --fail-on high < capture.pcap || mail -s 'share is slow' admin")]
pub struct Args {
    /// Show all findings, including those that explain less than 5 %, with all remedies.
    #[arg(long)]
    pub all: bool,
    /// Explain one operation instead: what it waited for, its neighbours on the connection, the
    /// history of its open, and how unusual it is. WHICH is a frame of the capture (of the request
    /// or the reply), op:NUMBER for the operation's number, or FILE:FRAME with several inputs.
    #[arg(long, value_name = "WHICH", conflicts_with_all = ["all", "fail_on"])]
    pub why: Option<Which>,
    /// Exit with code 7 if a finding of at least this confidence explains 5 % of the time or more.
    #[arg(long, value_enum, value_name = "CONFIDENCE")]
    pub fail_on: Option<Sure>,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub filter: FilterOptions,
    #[command(flatten)]
    pub trace: TraceOptions,
    #[command(flatten)]
    pub decode: Decode,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Confidence of a finding, as `--fail-on` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sure {
    /// There may be another cause.
    Low,
    /// The figures agree, but some of them are estimates.
    Medium,
    /// The cause was measured.
    High,
}

impl From<Sure> for Confidence {
    fn from(sure: Sure) -> Confidence {
        match sure {
            Sure::Low => Confidence::Low,
            Sure::Medium => Confidence::Medium,
            Sure::High => Confidence::High,
        }
    }
}

/// Explains.
pub fn run(args: &Args, verbosity: Verbosity) -> anyhow::Result<()> {
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.decode.reading.open(&args.decode.inputs, tokenizer)?;
    args.trace.choose(&mut source)?;
    if source.is_trace() {
        return of_trace::run(args, &mut source, verbosity);
    }
    args.filter.apply(&mut source, &verbosity)?;
    if let Some(which) = &args.why {
        return explain_one(args, &mut source, which, verbosity);
    }
    if source.has_traces() {
        source.spool()?;
    }
    let diagnosis = diagnose(&source, &verbosity)?;
    refuse_nothing(&source)?;
    let beside = match source.has_traces() {
        true => Some(beside_operations(&mut source, args.trace.limits(), &verbosity)?),
        false => None,
    };
    let mut output = Output::open(args.out.as_ref())?;
    match args.format {
        TextFormat::Text => {
            let options = text_options(args, output.bold());
            let names = names(args, &source);
            output.text(&smbscope_report::explain_text(&diagnosis, &names, &options))?;
            if let Some((report, waiting)) = &beside {
                let text = smbscope_report::processors_beside_text(
                    report,
                    waiting.as_ref(),
                    options.width,
                );
                output.text(&text)?;
            }
        }
        TextFormat::Json => {
            let mut value = serde_json::to_value(&diagnosis).context("diagnosis to JSON")?;
            if let (Some((report, waiting)), Some(object)) = (&beside, value.as_object_mut()) {
                let beside = serde_json::json!({ "findings": report.findings, "waiting": waiting });
                object.insert("processors".to_owned(), beside);
            }
            output.text(&json(value, &source)?)?;
        }
    }
    output.finish()?;
    let least = args.fail_on.map(Confidence::from);
    let found = diagnosis
        .findings
        .iter()
        .find(|found| found.is_reported() && least.is_some_and(|least| found.confidence >= least));
    match found {
        Some(found) => {
            Err(Failure::new(Code::Found, format!("found: {}", found.trouble.title())).into())
        }
        None => Ok(()),
    }
}

/// Explains a single operation.
fn explain_one(
    args: &Args,
    source: &mut Source,
    which: &Which,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    let explanation = match why(source, which.clone(), &verbosity)? {
        Ok(explanation) => explanation,
        Err(miss) => {
            refuse_nothing(source)?;
            let code = match miss {
                Miss::Ambiguous { .. } => Code::Usage,
                Miss::Missing { .. } => Code::NoMatch,
            };
            let is_part = source.filter().is_some();
            let message = smbscope_report::why_miss(which, &miss, is_part);
            return Err(Failure::new(code, message).into());
        }
    };
    let mut output = Output::open(args.out.as_ref())?;
    match args.format {
        TextFormat::Text => {
            let options = text_options(args, output.bold());
            let brief = &explanation.operation.brief;
            let file = brief.capture_file.as_ref().or(brief.recording.as_ref());
            let names = match (args.decode.inputs.len(), file) {
                (2.., Some(file)) => with_selection(file, source),
                _ => names(args, source),
            };
            output.text(&smbscope_report::why_text(&explanation, &names, &options))?;
        }
        TextFormat::Json => {
            let value = smbscope_report::why_json(&explanation).context("explanation to JSON")?;
            output.text(&json(value, source)?)?;
        }
    }
    output.finish()
}

fn text_options(args: &Args, bold: (&'static str, &'static str)) -> TextOptions {
    TextOptions {
        width: terminal::width().unwrap_or(WIDTH),
        // One remains for the prompt.
        height: terminal::height().map_or(HEIGHT, |lines| lines.saturating_sub(1)),
        bold,
        all: args.all,
    }
}

/// The inputs, and which part of them is explained.
fn names(args: &Args, source: &Source) -> String {
    let tokenizer = source.options().tokenizer.as_ref();
    let names: Vec<_> =
        args.decode.inputs.iter().map(|input| input_name(input, tokenizer)).collect();
    with_selection(&names.join(", "), source)
}

fn json(mut value: Value, source: &Source) -> anyhow::Result<String> {
    if let Some(object) = value.as_object_mut() {
        for (name, selection) in [("selection", selection(source)), ("recorded", recorded(source))]
        {
            object.extend(selection.map(|one| (name.to_owned(), one.json())));
        }
    }
    Ok(serde_json::to_string_pretty(&value).context("result to JSON")? + "\n")
}
