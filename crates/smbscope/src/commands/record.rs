//! `smbscope record`: what happens on a server now, to a dataset that is valid whenever it ends.

pub mod args;
mod display;
pub mod windows;

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use smbscope_report::format;
use smbscope_store::dataset::may_write;

use super::dataset::{cannot, hint, written};
use super::live::{self, Kept, Opened};
use crate::exit::Failure;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::record::folder::{About, RecordingFolder, keep_private};
use crate::pipeline::record::{self, Recorded};
use args::Record;
use display::Display;

/// Records, or prints how to.
pub fn run(args: &Record, verbosity: Verbosity) -> anyhow::Result<()> {
    let Some(out) = &args.out else {
        return Err(Failure::usage(
            r"--print-windows-script needs --to: the folder of the Windows machine that the script writes to, for example --to S:\temp",
        ));
    };
    if !args.print_windows_script {
        return record_to(out, args, verbosity);
    }
    let (what, node, duration, wait_dpc) = (args.what, args.node, args.duration, args.wait_dpc);
    let script = windows::Script { what, node, duration, wait_dpc };
    let script = windows::script(script, &out.to_string_lossy())?;
    let mut output = Output::stdout();
    output.text(&script)?;
    output.finish()
}

fn record_to(out: &Path, args: &Record, verbosity: Verbosity) -> anyhow::Result<()> {
    keep_private();
    // Before anything is attached to the server.
    may_write(out, args.force).with_context(|| cannot(out))?;
    let tokenizer = args.anonymize.tokenizer()?;
    let created_at = record::now();
    if args.listen.no_probe && args.listen.interface.is_none() && !args.cpu {
        return Err(Failure::usage(
            "--no-probe: there is nothing to record without --interface or --cpu",
        ));
    }
    args.listen.schedule(args.cpu, verbosity)?;
    let kept = args.pcap.clone().map(|path| Kept { path, overwrite: args.force });
    let opened = open(args, created_at, kept, verbosity)?;
    let Opened { source, from, what, filter, mut memory } =
        args.listen.metered(opened, tokenizer.as_ref(), verbosity)?;
    let filter = filter.map(|filter| filter.words(tokenizer.is_some(), 0));
    let inputs = record::inputs(&from, created_at);
    let about = About { inputs, created_at, filter: filter.clone() };
    RecordingFolder::create_folder(out, args.force)?;
    // The thread that writes the folder inherits the current capabilities.
    live::drop_capabilities(out, verbosity);
    let folder = RecordingFolder::create(out, about, args.force, tokenizer)?;
    verbosity.say(&beginning(out, args.duration, &what));
    let display = Display::begin(verbosity);
    let recorded = record::record(source, folder, args.duration, &mut memory, &display);
    display.end();
    let recorded = recorded?;
    verbosity.say(&summary(out, &recorded));
    live::kept(&recorded.received, filter.as_deref()).iter().for_each(|line| verbosity.say(line));
    live::losses(&recorded.received, &memory).iter().for_each(|line| verbosity.say(line));
    verbosity.say(&hint(out, &recorded.manifest));
    Ok(())
}

/// Opens what the options name.
fn open(
    args: &Record,
    time: i64,
    kept: Option<Kept>,
    verbosity: Verbosity,
) -> anyhow::Result<Opened> {
    if !args.cpu {
        return args.listen.open(time, kept, verbosity);
    }
    #[cfg(feature = "probe")]
    {
        let what = (args.samples, args.switches, args.tracer.into());
        args.listen.open_processors(what, time, kept, verbosity)
    }
    #[cfg(not(feature = "probe"))]
    Err(Failure::usage(
        "--cpu: this smbscope was built without eBPF (it needs Linux, clang, libelf and cargo's --features probe): record with perf or trace-cmd (docs/guide/processors.md)",
    ))
}

fn beginning(out: &Path, duration: Option<Duration>, what: &str) -> String {
    let until = match duration {
        Some(duration) => {
            format::duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)) + " long"
        }
        None => "until Ctrl-C".to_owned(),
    };
    format!("recording {what} to {}, {until}", out.display())
}

fn summary(out: &Path, recorded: &Recorded) -> String {
    format!(
        "{} from {} in {:.1} s, {} dropped",
        written(out, &recorded.manifest),
        recorded.received.text(),
        recorded.took.as_secs_f64(),
        format::count(recorded.received.dropped()),
    )
}
