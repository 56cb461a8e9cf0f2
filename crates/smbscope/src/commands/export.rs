//! `smbscope export`: operations for other programs to show, so far for Perfetto (ui.perfetto.dev).

use std::path::PathBuf;

use smbscope_report::export::perfetto::PerfettoTrace;

use crate::options::{Anonymize, Decode, Talk};
use crate::output::Output;
use crate::pipeline;

/// Write operations for another program.
///
/// --perfetto writes a trace that ui.perfetto.dev opens (drop the file on the page, it stays in the
/// browser): a track for each connection and a slice for each operation from the first byte of its
/// request to the last byte of its reply; operations in flight together stand below each other. What
/// is known of an operation (path, status, bytes ...) shows when it is selected. Of a recording from
/// inside a server each operation's slices are nested in it. An operation without reply or request
/// stands as a moment, and a member of a compound, whose times its lead has, only where slices tell
/// when it was; what is left out is said at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope export --perfetto recording/ --out recording.pftrace
  smbscope export --perfetto capture.pcapng --anonymize > capture.pftrace")]
pub struct Export {
    /// Write a Perfetto trace (protobuf).
    #[arg(long, required = true)]
    pub perfetto: bool,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub decode: Decode,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Writes the trace.
pub fn run(args: &Export, talk: Talk) -> anyhow::Result<()> {
    Output::check(args.out.as_ref(), true)?;
    let tokenizer = args.anonymize.tokenizer()?;
    let source = args.decode.reading.open(&args.decode.inputs, tokenizer)?;
    let output = Output::open(args.out.as_ref())?;
    let watch = output.watch();
    let mut trace = PerfettoTrace::new(output);
    let exported = pipeline::export::to_perfetto(&source, &mut trace, &talk);
    let orphans = exported.map_err(|error| watch.explain(error))?;
    let (output, counts) = trace.finish();
    output.finish()?;
    talk.say(&counts.text(orphans));
    Ok(())
}
