//! `smbscope explain` of a CPU trace.

use smbscope_report::Meta;
use smbscope_report::cpu::CpuExplanation;
use smbscope_store::source::Source;

use super::Args;
use crate::answer::{meta, show};
use crate::exit::Failure;
use crate::options::Verbosity;
use crate::pipeline;

/// Explains what holds the CPUs.
pub(super) fn run(args: &Args, source: &mut Source, verbosity: Verbosity) -> anyhow::Result<()> {
    if args.why.is_some() {
        return Err(Failure::usage(
            "a CPU trace has no SMB operations: --why does not apply to it",
        ));
    }
    args.filter.apply_to_trace(source, &verbosity)?;
    let report = pipeline::processors::processors(source, args.trace.limits(), &verbosity)?;
    let meta = Meta {
        period: args.filter.words(source),
        ..meta(&args.decode.inputs, source.options().tokenizer.as_ref())
    };
    let answer = CpuExplanation { report: &report, meta: &meta };
    show(&answer, args.format, args.out.as_ref(), args.all)?;
    args.fail_on.map_or(Ok(()), |fail_on| fail_on.findings(&report.findings))
}
