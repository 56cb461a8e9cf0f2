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
use super::load::target::shell_word;
use crate::exit::Failure;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::record::amended::AmendedSource;
use crate::pipeline::record::collector::{Collector, Recordings};
use crate::pipeline::record::folder::{About, RecordingFolder, keep_private};
use crate::pipeline::record::machine::MachineCounters;
use crate::pipeline::record::ring::Ring;
use crate::pipeline::record::{self, Recorded};
use args::Record;
use display::Display;

/// The folders of `--last` begin with this.
const SEGMENT: &str = "part";

/// Records, or prints how to.
pub fn run(args: &Record, verbosity: Verbosity) -> anyhow::Result<()> {
    let Some(out) = &args.out else {
        return Err(Failure::usage(
            r"--print-windows-script needs --to: the folder of the Windows machine that the script writes to, for example --to S:\temp",
        ));
    };
    if !args.print_windows_script && !args.windows {
        return record_to(out, args, verbosity);
    }
    let (what, node, duration, wait_dpc) = (args.what, args.node, args.duration, args.wait_dpc);
    let script = windows::Script { what, node, duration, wait_dpc };
    let script = windows::script(script, &out.to_string_lossy())?;
    if args.windows {
        windows::run(&script, out)?;
        verbosity.say(&format!("recorded in {}: `smbscope report` reads it", out.display()));
        return Ok(());
    }
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
    let Opened { mut source, from, what, filter, mut memory } =
        args.listen.metered(opened, tokenizer.as_ref(), verbosity)?;
    let of_samba = from.iter().any(|from| from == live::SAMBA);
    // Which processes are smbd only root may ask.
    let smbd = if of_samba { Some(args.listen.smbd()?) } else { None };
    let counted = record::name(live::SAMBA, created_at);
    let filter = filter.map(|filter| filter.words(tokenizer.is_some(), 0));
    let inputs = record::inputs(&from, created_at);
    let about = About { inputs, created_at, filter: filter.clone() };
    RecordingFolder::create_folder(out, args.force)?;
    drop_rights(out, args, verbosity);
    if let Some(smbd) = smbd {
        source = Box::new(AmendedSource::counted(source, MachineCounters::start(&counted, &smbd)?));
    }
    if let Some(last) = args.last {
        let recordings = Recordings { from, filter, out: Some(out.join(SEGMENT)), made: 0 };
        let collector = Collector::new(source, memory, recordings, tokenizer);
        return keep_last(last, out, args, collector, verbosity);
    }
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

/// Everything that needs rights is open. The thread that writes the folder inherits what is left.
fn drop_rights(out: &Path, args: &Record, verbosity: Verbosity) {
    let pcap = args.pcap.as_deref().map(|pcap| match pcap.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    });
    live::drop_capabilities(out, pcap, verbosity);
}

/// Records, and keeps what was last.
fn keep_last(
    last: Duration,
    out: &Path,
    args: &Record,
    mut collector: Collector,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    let ring = Ring { last, when: args.when.clone(), duration: args.duration };
    let until = if args.when.is_some() { "--when holds" } else { "Ctrl-C" };
    let kept = format::duration(i64::try_from(last.as_nanos()).unwrap_or(i64::MAX));
    verbosity
        .say(&format!("recording to {} until {until}; the last {kept} are kept", out.display()));
    let display = Display::begin(verbosity);
    let recorded = ring.record(&mut collector, &display, &|line| verbosity.say(line));
    display.end();
    let recorded = recorded?;
    live::losses(&collector.received(), collector.memory())
        .iter()
        .for_each(|line| verbosity.say(line));
    if let (None, Some(_)) = (&recorded.found, &args.when) {
        verbosity.say("--when did not hold until the end");
    }
    let paths: Vec<_> =
        recorded.paths.iter().map(|path| shell_word(&path.display().to_string())).collect();
    verbosity.say(&format!("try: smbscope report {}", paths.join(" ")));
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
