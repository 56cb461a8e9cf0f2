//! The network without SMB next to SMB: `compare` of a recording and a run of `smbscope net send`.

use smbscope_report::{Meta, TextOptions};
use smbscope_tables::anonymize::Tokenizer;

use super::Compare;
use crate::exit::{Code, Failure};
use crate::filter_options::{refuse_nothing, selection};
use crate::format::RowFormat;
use crate::options::{Verbosity, input_name};
use crate::output::Output;
use crate::{local_time, pipeline, terminal};

/// Columns of a result that does not go to a terminal.
const WIDTH: usize = 100;

/// Reads all inputs as one set of tables: rates of SMB from some, of TCP alone from the others.
pub fn run(
    args: &Compare,
    tokenizer: Option<Tokenizer>,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    let format = match (args.format, &args.html, &args.out) {
        (None, Some(_), None) => None,
        (format, ..) => Some(format.unwrap_or_default()),
    };
    if !matches!(format, None | Some(RowFormat::Text | RowFormat::Json)) {
        return Err(Failure::usage(
            "--format: SMB next to the network is written as text or json only",
        ));
    }
    let inputs: Vec<String> = [&args.a, &args.b].into_iter().chain(&args.more).cloned().collect();
    let mut source = args.reading.open(&inputs, tokenizer.clone())?;
    args.filter.apply(&mut source, &verbosity)?;
    let html = args.html.as_deref().map(Output::file).transpose()?;
    let found = pipeline::net::with_smb(&source, &verbosity)?;
    let net = found.ok_or_else(|| {
        Failure::new(Code::Runtime, "no test of the network is left: nothing to compare")
    })?;
    // Without SMB, the tests are next to each other, and a filter has nothing to keep.
    if !net.ratios.is_empty() {
        refuse_nothing(&source)?;
    }
    let start = net.tests.first().map(|test| test.started_at);
    let json = serde_json::to_value(&net)?;
    let report = pipeline::net::report(Some(net));
    let meta = Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: inputs.iter().map(|input| input_name(input, tokenizer.as_ref())).collect(),
        selection: selection(&source),
        clock: local_time::clock(args.utc, start),
        ..Meta::default()
    };
    if let Some(mut output) = html {
        output.text(&smbscope_report::html(&report, &meta))?;
        output.finish()?;
    }
    let Some(format) = format else { return Ok(()) };
    let mut output = Output::open(args.out.as_ref())?;
    match format {
        RowFormat::Json => output.text(&format!("{json:#}\n"))?,
        _ => {
            let options = TextOptions::new(terminal::width().unwrap_or(WIDTH), true);
            output.text(&smbscope_report::text(&report, &meta, &options))?;
        }
    }
    output.finish()
}
