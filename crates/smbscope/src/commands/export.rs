//! `smbscope export`: operations, or interrupts of CPUs, for other programs: Perfetto (ui.perfetto.dev), Prometheus.

use std::path::PathBuf;

use smbscope_report::export::perfetto::PerfettoTrace;
use smbscope_store::source::Source;

use crate::exit::{Code, Failure};
use crate::filter_options::FilterOptions;
use crate::options::{Anonymize, Decode, Verbosity};
use crate::output::Output;
use crate::pipeline;

/// Export operations to the format of another program.
///
/// --perfetto writes a trace for ui.perfetto.dev (drop the file on the page; it is not uploaded). Each
/// connection is a track and each operation a slice, from the first byte of the request to the last
/// byte of the reply; operations in flight at the same time are shown below each other. Select an
/// operation to see its path, status, bytes and so on. In a recording from inside a server, the server's
/// slices are nested in the operation. An operation without request or reply is shown as an instant. An
/// operation that is not the first of a compound has no times of its own; it is shown only if it has
/// server slices. The number of omitted operations is reported at the end.
///
/// For a CPU trace, each CPU has a track of handlers of interrupts and one of deferred work.
///
/// --prometheus writes the counters and histograms of --prometheus of `smbscope record` over all
/// operations, as OpenMetrics text: for the textfile collector of node_exporter, or to compare recordings.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope export --perfetto recording/ --out recording.pftrace
  smbscope export --perfetto recording/ --from 14:05 --to 14:06 --client 10.1.2.3 --out minute.pftrace
  smbscope export --perfetto flood.etl --from 2s --to 3s --out flood.pftrace
  smbscope export --perfetto capture.pcapng --anonymize > capture.pftrace
  smbscope export --prometheus run/ --out /var/lib/node_exporter/smb.prom")]
pub struct Export {
    /// Write a Perfetto trace (protobuf).
    #[arg(long, required_unless_present = "prometheus")]
    pub perfetto: bool,
    /// Write metrics for Prometheus (OpenMetrics text).
    #[arg(long, conflicts_with = "perfetto")]
    pub prometheus: bool,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub filter: FilterOptions,
    #[command(flatten)]
    pub decode: Decode,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Writes the trace.
pub fn run(args: &Export, verbosity: Verbosity) -> anyhow::Result<()> {
    Output::check(args.out.as_ref(), true)?;
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.decode.reading.open(&args.decode.inputs, tokenizer)?;
    if args.prometheus {
        return to_prometheus(args, &mut source, verbosity);
    }
    if source.is_trace() {
        args.filter.apply_to_trace(&mut source, &verbosity)?;
        let output = Output::open(args.out.as_ref())?;
        let watch = output.watch();
        let mut trace = PerfettoTrace::new(output);
        let sums = pipeline::export::processors_to_perfetto(&source, &mut trace, &verbosity)
            .map_err(|error| watch.explain(error))?;
        let (output, counts) = trace.finish();
        if counts.interrupts == 0 {
            let what = match sums {
                0 => "no interrupts and no deferred work",
                _ => "sums, not single interrupts and deferred work",
            };
            let message = format!("the input has {what}: there is nothing to export");
            return Err(Failure::new(Code::Runtime, message).into());
        }
        output.finish()?;
        verbosity.say(&counts.text_of_trace());
        return Ok(());
    }
    args.filter.apply(&mut source, &verbosity)?;
    let output = Output::open(args.out.as_ref())?;
    let watch = output.watch();
    let mut trace = PerfettoTrace::new(output);
    let exported = pipeline::export::to_perfetto(&source, &mut trace, &verbosity);
    let orphans = exported.map_err(|error| watch.explain(error))?;
    let (output, counts) = trace.finish();
    output.finish()?;
    verbosity.say(&counts.text(orphans));
    args.filter.selections(&source).iter().for_each(|text| verbosity.say(text));
    args.filter.refuse_nothing(&source)?;
    Ok(())
}

/// Writes metrics.
fn to_prometheus(args: &Export, source: &mut Source, verbosity: Verbosity) -> anyhow::Result<()> {
    args.filter.apply(source, &verbosity)?;
    let metrics = pipeline::export::metrics(source, &verbosity)?;
    args.filter.refuse_nothing(source)?;
    let mut output = Output::open(args.out.as_ref())?;
    output.text(&metrics.text(None))?;
    output.finish()?;
    args.filter.selections(source).iter().for_each(|text| verbosity.say(text));
    Ok(())
}
