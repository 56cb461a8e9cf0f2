//! `smbscope explain` of a trace of processors.

use anyhow::Context as _;
use smbscope_analysis::explain::Confidence;
use smbscope_report::{Meta, TextOptions};
use smbscope_store::source::Source;

use super::{Args, WIDTH};
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::options::{Verbosity, input_name};
use crate::output::Output;
use crate::{pipeline, terminal};

/// Explains what holds the processors.
pub(super) fn run(args: &Args, source: &mut Source, verbosity: Verbosity) -> anyhow::Result<()> {
    if args.why.is_some() {
        return Err(Failure::usage(
            "a trace of processors has no SMB operations: --why does not apply to it",
        ));
    }
    args.filter.apply_to_trace(source, &verbosity)?;
    let report = pipeline::processors::processors(source, args.trace.limits(), &verbosity)?;
    let tokenizer = source.options().tokenizer.as_ref();
    let meta = Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: args.decode.inputs.iter().map(|input| input_name(input, tokenizer)).collect(),
        period: source.filter().map(|filter| filter.words(false)),
        ..Meta::default()
    };
    let mut output = Output::open(args.out.as_ref())?;
    match args.format {
        TextFormat::Text => {
            let options = TextOptions::new(terminal::width().unwrap_or(WIDTH), args.all);
            output.text(&smbscope_report::processors_explain_text(&report, &meta, &options))?;
        }
        TextFormat::Json => {
            let value = smbscope_report::processors_explain_json(&report, &meta);
            output.text(&format!("{:#}\n", value.context("findings to JSON")?))?;
        }
    }
    output.finish()?;
    let least = args.fail_on.map(Confidence::from);
    let sure = |confidence: Confidence| least.is_some_and(|least| confidence >= least);
    match report.findings.iter().find(|found| sure(found.confidence)) {
        Some(found) => {
            Err(Failure::new(Code::Found, format!("found: {}", found.trouble.title())).into())
        }
        None => Ok(()),
    }
}
