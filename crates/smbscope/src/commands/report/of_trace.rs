//! `smbscope report` of a trace of processors.

use anyhow::Context as _;
use smbscope_report::{Meta, TextOptions};
use smbscope_store::source::Source;

use super::WIDTH;
use crate::cli::Report;
use crate::exit::Failure;
use crate::format::TextFormat;
use crate::options::Verbosity;
use crate::output::Output;
use crate::{pipeline, terminal};

/// Shows the report of a trace.
pub(super) fn run(
    args: &Report,
    source: &mut Source,
    mut meta: Meta,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    if !args.prediction.changes.is_empty() || args.step.is_some() {
        return Err(Failure::usage(
            "a trace of processors has no SMB operations: --change and --step do not apply to it",
        ));
    }
    args.filter.apply_to_trace(source, &verbosity)?;
    meta.period = source.filter().map(|filter| filter.words(false));
    let html = args.html.as_deref().map(Output::file).transpose()?;
    let report = pipeline::processors::processors(source, args.trace.limits(), &verbosity)?;
    if let Some(mut output) = html {
        output.text(&smbscope_report::processors_html(&report, &meta))?;
        output.finish()?;
        if args.format.is_none() {
            return Ok(());
        }
    }
    let mut output = Output::stdout();
    match args.format.unwrap_or_default() {
        TextFormat::Text => {
            let options = TextOptions::new(terminal::width().unwrap_or(WIDTH), args.all);
            output.text(&smbscope_report::processors_text(&report, &meta, &options))?;
        }
        TextFormat::Json => {
            let value = smbscope_report::processors_json(&report, &meta);
            output.text(&format!("{:#}\n", value.context("report to JSON")?))?;
        }
    }
    output.finish()
}
