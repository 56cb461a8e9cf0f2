//! `smbscope report` of a CPU trace.

use smbscope_report::Meta;
use smbscope_report::cpu::CpuAnswer;
use smbscope_store::source::Source;

use crate::cli::Report;
use crate::exit::Failure;
use crate::options::Verbosity;
use crate::pipeline;

/// Shows the report of a trace.
pub(super) fn run(
    args: &Report,
    source: &mut Source,
    mut meta: Meta,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    if !args.prediction.changes.is_empty() || args.step.is_some() {
        return Err(Failure::usage(
            "a CPU trace has no SMB operations: --change and --step do not apply to it",
        ));
    }
    args.filter.apply_to_trace(source, &verbosity)?;
    meta.period = args.filter.words(source);
    let destination = args.answer.open()?;
    let report = pipeline::processors::processors(source, args.trace.limits(), &verbosity)?;
    destination.show(&CpuAnswer { report: &report, meta: &meta }, args.all)
}
