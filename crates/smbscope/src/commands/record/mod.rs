//! `smbscope record`: what happens on a server now, to a dataset that is valid whenever it ends.
//!
//! Owns the loop from a [`source`] to the dataset. How packets are received is `capture::live`'s, how
//! Samba is looked into `probe`'s.

pub mod args;
mod display;
mod source;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use smbscope_capture::live;
use smbscope_event::manifest::{InputFile, Kind, Manifest};
use smbscope_report::format;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};

use super::dataset::{cannot, hint, written};
use crate::interrupt;
use crate::options::Talk;
use args::Record;
use display::Display;
use source::{Seen, Source, Wire};

/// Ports of SMB.
const WIRE_PORTS: [u16; 2] = [445, 139];
/// Bytes of the ring buffer, least and most.
#[cfg(feature = "probe")]
const RING_BYTES: (u64, u64) = (1 << 20, 128 << 20);
/// By how much this program steps back behind the server.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;
/// How often rows go to the dataset, which completes its parts every ten seconds.
const PARTS_EVERY: Duration = Duration::from_secs(1);

const EVENTS_DROPPED: &str = "events were dropped, so operations are missing or have no slices: record with a larger --buffer, or give smbscope more processor time (--cpus)";

const PACKETS_DROPPED: &str = "packets were dropped, so operations are missing or have no reply: record one interface, with a larger --buffer (beyond net.core.rmem_max for root only) or a smaller --snaplen";

/// Records.
pub fn run(args: &Record, talk: Talk) -> anyhow::Result<()> {
    keep_private();
    let tokenizer = args.anonymize.tokenizer()?;
    let mut seed = ManifestSeed::now(Kind::Record, Vec::new());
    keep_back(args)?;
    let from = args.interface.as_deref().unwrap_or("samba");
    let recording = name(from, seed.created_at);
    let (mut source, what) = match &args.interface {
        Some(interface) => wire(args, interface, &recording)?,
        None => inside(args, &recording, talk)?,
    };
    // The format stands there when the coverage came.
    seed.inputs = vec![InputFile { name: recording, ..InputFile::default() }];
    let options = WriteOptions { overwrite: args.force, tokenizer, ..WriteOptions::default() };
    let mut writer =
        DatasetWriter::create(&args.out, seed, options).with_context(|| cannot(&args.out))?;
    close_to_others(&args.out)?;
    talk.say(&beginning(args, &what));
    let begin = Instant::now();
    let display = Display::begin(talk);
    let recorded = record(&mut *source, &mut writer, args, &display);
    display.end();
    let took = begin.elapsed();
    let ended = end(source, &mut writer, &args.out);
    let manifest = writer.finish(recorded.is_ok() && ended.is_ok());
    recorded?;
    let seen = ended?;
    let manifest = manifest.with_context(|| cannot(&args.out))?;
    talk.say(&summary(&args.out, &manifest, &seen, took));
    if seen.dropped > 0 {
        talk.say(if args.interface.is_some() { PACKETS_DROPPED } else { EVENTS_DROPPED });
    }
    talk.say(&hint(&args.out));
    Ok(())
}

/// Until the time is over or the user asks to end.
fn record(
    source: &mut dyn Source,
    writer: &mut DatasetWriter,
    args: &Record,
    display: &Display,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut taken = begin;
    loop {
        let is_full = source.receive()?;
        let is_over = args.duration.is_some_and(|duration| begin.elapsed() >= duration);
        if is_over || interrupt::asked() {
            return Ok(());
        }
        if is_full || taken.elapsed() >= PARTS_EVERY {
            taken = Instant::now();
            for part in source.parts()? {
                writer.part(part).with_context(|| cannot(&args.out))?;
            }
            display.tell(&source.seen());
        }
    }
}

/// The rest, also after an error: what was seen until then stays.
fn end(
    mut source: Box<dyn Source>,
    writer: &mut DatasetWriter,
    out: &Path,
) -> anyhow::Result<Seen> {
    let mut seen = source.seen();
    for part in source.end()? {
        if let smbscope_capture::Part::Coverage(coverage) = &part {
            seen.dropped = coverage.frames_dropped.unwrap_or(0);
            if let source::Taken::Packets { count, bytes } = &mut seen.taken {
                (*count, *bytes) = (coverage.frames, coverage.wire_bytes);
            }
        }
        writer.part(part).with_context(|| cannot(out))?;
    }
    Ok(seen)
}

/// A network interface, and what is said of it.
fn wire(
    args: &Record,
    interface: &str,
    recording: &str,
) -> anyhow::Result<(Box<dyn Source>, String)> {
    let ports = if args.ports.is_empty() { WIRE_PORTS.to_vec() } else { args.ports.clone() };
    let what = format!("{} on {interface}", ports_text(&ports));
    let options = live::Options {
        interface: interface.to_owned(),
        ports,
        head_bytes: args.snaplen as usize,
        buffer_bytes: usize::try_from(args.buffer).unwrap_or(usize::MAX),
        pcap: args.pcap.clone(),
        overwrite: args.force,
    };
    Ok((Box::new(Wire::open(recording, &options)?), what))
}

/// The running Samba, and what is said of it.
#[cfg(feature = "probe")]
fn inside(args: &Record, recording: &str, talk: Talk) -> anyhow::Result<(Box<dyn Source>, String)> {
    use smbscope_probe::find::Choice;
    use smbscope_probe::loader::LoadOptions;
    let choice = Choice {
        processes: args.processes.clone(),
        ports: args.ports.clone(),
        cgroup: args.cgroup.clone(),
    };
    let ring = args.buffer.clamp(RING_BYTES.0, RING_BYTES.1).next_power_of_two();
    let ring_bytes = u32::try_from(ring).unwrap_or(u32::MAX / 2 + 1);
    let load = LoadOptions { ring_bytes, ..LoadOptions::default() };
    let source = source::Inside::open(recording, &choice, load)?;
    if let Some(line) = expensive(source.expensive()) {
        talk.say(&line);
    }
    let found = source.found();
    let ports: Vec<u16> = found.ports.iter().copied().collect();
    let count = found.processes.len();
    let what = format!("{count} processes of smbd on {}", ports_text(&ports));
    Ok((Box::new(source), what))
}

/// What recording costs more than it should, if anything: whoever runs it decides.
#[cfg(feature = "probe")]
fn expensive<'a>(functions: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = functions.into_iter().collect();
    let list = names.join(", ");
    let one =
        "this Samba is compiled so that a probe costs some 10 us instead of 1 at each call of";
    (!names.is_empty()).then(|| format!("{one} {list} (docs/probe.md)"))
}

/// This build has no probe.
#[cfg(not(feature = "probe"))]
fn inside(_: &Record, _: &str, _: Talk) -> anyhow::Result<(Box<dyn Source>, String)> {
    Err(crate::exit::Failure::usage(
        "this smbscope was built without its probe (it needs Linux, clang and libelf, and cargo's --features probe): record the wire with --interface",
    ))
}

fn ports_text(ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("TCP port {}", ports.join(", "))
}

/// The server comes first: it gets the processor before this program does, and `--cpus` keeps this
/// off the others.
fn keep_back(args: &Record) -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    {
        // Where it may not, it records all the same.
        let _ = rustix::process::nice(NICE);
        if !args.cpus.is_empty() {
            let mut cpus = rustix::thread::CpuSet::new();
            for &cpu in args.cpus.iter().filter(|&&cpu| cpu < rustix::thread::CpuSet::MAX_CPU) {
                cpus.set(cpu);
            }
            rustix::thread::sched_setaffinity(None, &cpus).map_err(|error| {
                let asked: Vec<String> = args.cpus.iter().map(usize::to_string).collect();
                let message =
                    format!("--cpus {}: {error}: is there such a processor?", asked.join(","));
                crate::exit::Failure::usage(message)
            })?;
        }
    }
    Ok(())
}

/// Two recordings that are read together need two names.
fn name(interface: &str, time: i64) -> String {
    let time = format::time(time);
    let digits = time.chars().filter(char::is_ascii_digit).take(14);
    format!("{interface}-{}", digits.collect::<String>())
}

fn beginning(args: &Record, what: &str) -> String {
    let until = match args.duration {
        Some(duration) => {
            format::duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)) + " long"
        }
        None => "until Ctrl-C".to_owned(),
    };
    format!("recording {what} to {}, {until}", args.out.display())
}

fn summary(out: &Path, manifest: &Manifest, seen: &Seen, took: Duration) -> String {
    format!(
        "{} from {} in {:.1} s, {} dropped",
        written(out, manifest),
        seen.text(),
        took.as_secs_f64(),
        format::count(seen.dropped),
    )
}

/// What this process writes from now on its owner alone can read: a recording names persons and
/// their files.
fn keep_private() {
    #[cfg(target_os = "linux")]
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
}

/// The same of a folder that was there before.
fn close_to_others(out: &Path) -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let closed = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(out, closed).with_context(|| cannot(out))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_called_by_interface_and_time() {
        assert_eq!(name("eth0", 1_767_603_600 * 1_000_000_000), "eth0-20260105090000");
    }

    #[cfg(feature = "probe")]
    #[test]
    fn what_is_expensive_is_said_in_a_line() {
        assert_eq!(expensive([]), None);
        let line = expensive(["one", "two"]).unwrap();
        assert!(line.contains("one, two") && !line.contains('\n'), "{line}");
    }
}
