//! `smbscope compare` of CPU traces.

use smbscope_analysis::processors::compare::compare;
use smbscope_report::cpu::CpuComparison;
use smbscope_store::source::Source;

use super::args::Compare;
use super::text_only;
use crate::answer::meta;
use crate::exit::Failure;
use crate::options::{Verbosity, input_name};
use crate::pipeline;

/// Compares the first trace with the others.
pub(super) fn run(
    args: &Compare,
    mut sources: Vec<(String, Source)>,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    let options = text_only(args, "CPU traces are compared as text or json")?;
    if args.by.is_some() || args.phase.is_some() {
        return Err(Failure::usage(
            "CPU traces have no SMB operations: --by and --phase do not apply to them",
        ));
    }
    let destination = options.open()?;
    let mut reports = Vec::new();
    let mut meta = meta(&[], None);
    for (input, source) in &mut sources {
        if !source.is_trace() {
            return Err(Failure::usage(format!(
                "{input}: has SMB operations, while others are CPU traces only: --cpu compares the CPUs of all"
            )));
        }
        args.filter.apply_to_trace(source, &verbosity)?;
        reports.push(pipeline::processors::processors(source, args.trace.limits(), &verbosity)?);
        meta.inputs.push(input_name(input, source.options().tokenizer.as_ref()));
    }
    let found = compare(&reports);
    destination.show(&CpuComparison { found: &found, reports: &reports, meta: &meta }, args.all)
}
