//! The network without SMB next to SMB: `compare` of a recording and a run of `smbscope net send`.

use smbscope_report::Meta;
use smbscope_report::recording::{NetAnswer, RecordingAnswer};
use smbscope_tables::anonymize::Tokenizer;

use super::{Compare, text_only};
use crate::answer::meta;
use crate::exit::{Code, Failure};
use crate::options::Verbosity;
use crate::pipeline;

/// Reads all inputs as one set of tables: rates of SMB from some, of TCP alone from the others.
pub fn run(
    args: &Compare,
    tokenizer: Option<Tokenizer>,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    let options =
        text_only(args, "--format: SMB next to the network is written as text or json only")?;
    let inputs: Vec<String> = [&args.a, &args.b].into_iter().chain(&args.more).cloned().collect();
    let mut source = args.reading.open(&inputs, tokenizer.clone())?;
    args.filter.apply(&mut source, &verbosity)?;
    let destination = options.open()?;
    let found = pipeline::net::with_smb(&source, &verbosity)?;
    let net = found.ok_or_else(|| {
        Failure::new(Code::Runtime, "no test of the network is left: nothing to compare")
    })?;
    // Without SMB, the tests are next to each other, and a filter has nothing to keep.
    if !net.ratios.is_empty() {
        args.filter.refuse_nothing(&source)?;
    }
    let start = net.tests.first().map(|test| test.started_at);
    let report = pipeline::net::report(Some(net));
    let meta = Meta {
        selection: args.filter.selection(&source),
        clock: args.filter.clock(start),
        ..meta(&inputs, tokenizer.as_ref())
    };
    destination.show(&NetAnswer(RecordingAnswer { report: &report, meta: &meta }), true)
}
