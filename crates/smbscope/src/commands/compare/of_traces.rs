//! `smbscope compare` of traces of processors.

use anyhow::Context as _;
use smbscope_analysis::processors::compare::compare;
use smbscope_report::{Meta, TextOptions};
use smbscope_store::source::Source;

use super::args::Compare;
use crate::exit::Failure;
use crate::format::RowFormat;
use crate::options::{Verbosity, input_name};
use crate::output::Output;
use crate::{pipeline, terminal};

/// Columns of a text that does not go to a terminal.
const WIDTH: usize = 100;

/// Compares the first trace with the others.
pub(super) fn run(
    args: &Compare,
    mut sources: Vec<(String, Source)>,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    let format = match (args.format, &args.html, &args.out) {
        (None, Some(_), None) => None,
        (format, ..) => Some(format.unwrap_or_default()),
    };
    if !matches!(format, None | Some(RowFormat::Text | RowFormat::Json)) {
        return Err(Failure::usage("traces of processors are compared as text or json"));
    }
    if args.by.is_some() || args.phase.is_some() {
        return Err(Failure::usage(
            "traces of processors have no SMB operations: --by and --phase do not apply to them",
        ));
    }
    let html = args.html.as_deref().map(Output::file).transpose()?;
    let mut reports = Vec::new();
    let mut meta = Meta { version: env!("CARGO_PKG_VERSION").to_owned(), ..Meta::default() };
    for (input, source) in &mut sources {
        if !source.is_trace() {
            return Err(Failure::usage(format!(
                "{input}: has SMB operations, while others are traces of processors only: --processors compares the processors of all"
            )));
        }
        args.filter.apply_to_trace(source, &verbosity)?;
        reports.push(pipeline::processors::processors(source, args.trace.limits(), &verbosity)?);
        meta.inputs.push(input_name(input, source.options().tokenizer.as_ref()));
    }
    let found = compare(&reports);
    if let Some(mut output) = html {
        output.text(&smbscope_report::processors_comparison_html(&found, &reports, &meta))?;
        output.finish()?;
    }
    let Some(format) = format else { return Ok(()) };
    let mut output = Output::open(args.out.as_ref())?;
    match format {
        RowFormat::Json => {
            let value = smbscope_report::processors_comparison_json(&found, &meta);
            output.text(&format!("{:#}\n", value.context("comparison to JSON")?))?;
        }
        _ => {
            let options = TextOptions::new(terminal::width().unwrap_or(WIDTH), false);
            output.text(&smbscope_report::processors_comparison_text(
                &found, &reports, &meta, &options,
            ))?;
        }
    }
    output.finish()
}
