//! `smbscope explain`: what makes a share slow, the most costly cause first.
//!
//! Owns the command and its exit code. `smbscope_analysis::explain` finds the causes,
//! `smbscope_report::diagnosis` renders them. With `--why` it explains a single operation.

mod cpu_trace;

use std::path::PathBuf;

use smbscope_analysis::explain::Diagnosis;
use smbscope_analysis::explain::why::{Miss, Which};
use smbscope_report::diagnosis::DiagnosisAnswer;
use smbscope_report::why::WhyAnswer;
use smbscope_store::source::Source;

use crate::answer::{self, show};
use crate::exit::{Code, Failure};
use crate::fail_on::{FailOn, Noticed};
use crate::filter_options::{FilterOptions, recorded};
use crate::format::TextFormat;
use crate::options::{Anonymize, Decode, Verbosity};
use crate::pipeline::diagnose::diagnose;
use crate::pipeline::processors::cpu_report_for_operations;
use crate::pipeline::why::why;
use crate::settings;
use crate::trace_options::TraceOptions;

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
/// For a CPU trace (`.etl`, ftrace, perf), it names what keeps the CPUs busy: drivers with long deferred work,
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
  smbscope explain flood.etl                              # a trace of the CPUs
  smbscope explain flood.etl flood.pcapng                 # and the operations of that time
  smbscope explain ring*.pcap --format json | jq '.findings[0]'
  smbscope explain - --fail-on slow < capture.pcap || mail -s 'share is slow' admin")]
pub struct Args {
    /// Show all findings, including those that explain less than 5 %, with all remedies.
    #[arg(long)]
    pub all: bool,
    /// Explain one operation instead: what it waited for, its neighbours on the connection, the
    /// history of its open, and how unusual it is. WHICH is a frame of the capture (of the request
    /// or the reply), op:NUMBER for the operation's number, or FILE:FRAME with several inputs.
    #[arg(long, value_name = "WHICH", conflicts_with_all = ["all", "fail_on"])]
    pub why: Option<Which>,
    /// Exit with code 7 if a finding of at least this confidence explains 5 % of the time or more, or if the state
    /// of the share is this or worse.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// From which time on users notice that they wait: what decides between healthy and slow
    /// [default: `slow` in smbscope.toml, or 1s].
    #[arg(long, value_name = "DURATION")]
    pub noticed: Option<Noticed>,
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

/// Explains.
pub fn run(args: &Args, verbosity: Verbosity) -> anyhow::Result<()> {
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.decode.reading.open(&args.decode.inputs, tokenizer)?;
    args.trace.choose(&mut source)?;
    if source.is_trace() {
        return cpu_trace::run(args, &mut source, verbosity);
    }
    args.filter.apply(&mut source, &verbosity)?;
    if let Some(which) = &args.why {
        return explain_one(args, &mut source, which, verbosity);
    }
    if source.has_traces() {
        source.spool()?;
    }
    let diagnosis = diagnose(&source, settings::get().noticed(args.noticed).0, &verbosity)?;
    args.filter.refuse_nothing(&source)?;
    let cpu = if source.has_traces() {
        Some(cpu_report_for_operations(&mut source, args.trace.limits(), &verbosity)?)
    } else {
        None
    };
    let answer = DiagnosisAnswer {
        diagnosis: &diagnosis,
        inputs: names(args, &source),
        cpu: cpu.as_ref().map(|(report, waiting)| (report, waiting.as_ref())),
        selection: args.filter.selection(&source),
        recorded: recorded(&source),
        clock: args.filter.clock(first_time(&diagnosis)),
    };
    show(&answer, args.format, args.out.as_ref(), args.all)?;
    args.fail_on.map_or(Ok(()), |fail_on| fail_on.diagnosis(&diagnosis))
}

/// The first of the times that a diagnosis names, ns since 1970.
fn first_time(diagnosis: &Diagnosis) -> Option<i64> {
    let change = diagnosis.change.as_ref().map(|change| change.at_ns);
    diagnosis.findings.iter().filter_map(|found| found.first_ns).chain(change).min()
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
            args.filter.refuse_nothing(source)?;
            let code = match miss {
                Miss::Ambiguous { .. } => Code::Usage,
                Miss::Missing { .. } => Code::NoMatch,
            };
            let is_part = source.filter().is_some();
            let message = smbscope_report::why::why_miss(which, &miss, is_part);
            return Err(Failure::new(code, message).into());
        }
    };
    let brief = &explanation.operation.brief;
    let file = brief.capture_file.as_ref().or(brief.recording.as_ref());
    let inputs = match (args.decode.inputs.len(), file) {
        (2.., Some(file)) => args.filter.with_selection(file, source),
        _ => names(args, source),
    };
    let answer = WhyAnswer {
        explanation: &explanation,
        inputs,
        selection: args.filter.selection(source),
        recorded: recorded(source),
        clock: args.filter.clock(explanation.operation.start_ns),
    };
    show(&answer, args.format, args.out.as_ref(), args.all)
}

/// The inputs, and which part of them is explained.
fn names(args: &Args, source: &Source) -> String {
    let names = answer::names(&args.decode.inputs, source.options().tokenizer.as_ref());
    args.filter.with_selection(&names.join(", "), source)
}
