//! `smbscope record`: what happens on a server now, to a dataset that is valid whenever it ends.
//!
//! Owns the loop from a [`source`] to the dataset. How packets are received is `capture::live`.

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

/// How often rows go to the dataset, which completes its parts every ten seconds.
const PARTS_EVERY: Duration = Duration::from_secs(1);

const DROPPED: &str = "packets were dropped, so operations are missing or have no reply: record one interface, with a larger --buffer (beyond net.core.rmem_max for root only) or a smaller --snaplen";

/// Records.
pub fn run(args: &Record, talk: Talk) -> anyhow::Result<()> {
    keep_private();
    let tokenizer = args.anonymize.tokenizer()?;
    let mut seed = ManifestSeed::now(Kind::Record, Vec::new());
    let recording = name(&args.interface, seed.created_at);
    let mut source: Box<dyn Source> = Box::new(Wire::open(&recording, &options(args))?);
    // The format stands there when the coverage came.
    seed.inputs = vec![InputFile { name: recording, ..InputFile::default() }];
    let options = WriteOptions { overwrite: args.force, tokenizer, ..WriteOptions::default() };
    let mut writer =
        DatasetWriter::create(&args.out, seed, options).with_context(|| cannot(&args.out))?;
    close_to_others(&args.out)?;
    talk.say(&beginning(args));
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
        talk.say(DROPPED);
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
            seen.packets = coverage.frames;
            seen.bytes = coverage.wire_bytes;
            seen.dropped = coverage.frames_dropped.unwrap_or(0);
        }
        writer.part(part).with_context(|| cannot(out))?;
    }
    Ok(seen)
}

fn options(args: &Record) -> live::Options {
    live::Options {
        interface: args.interface.clone(),
        ports: args.ports.clone(),
        head_bytes: args.snaplen as usize,
        buffer_bytes: usize::try_from(args.buffer).unwrap_or(usize::MAX),
        pcap: args.pcap.clone(),
        overwrite: args.force,
    }
}

/// Two recordings that are read together need two names.
fn name(interface: &str, time: i64) -> String {
    let time = format::time(time);
    let digits = time.chars().filter(char::is_ascii_digit).take(14);
    format!("{interface}-{}", digits.collect::<String>())
}

fn beginning(args: &Record) -> String {
    let ports: Vec<String> = args.ports.iter().map(u16::to_string).collect();
    let until = match args.duration {
        Some(duration) => {
            format::duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)) + " long"
        }
        None => "until Ctrl-C".to_owned(),
    };
    format!(
        "recording TCP port {} on {} to {}, {until}",
        ports.join(", "),
        args.interface,
        args.out.display()
    )
}

fn summary(out: &Path, manifest: &Manifest, seen: &Seen, took: Duration) -> String {
    format!(
        "{} from {} packets ({}) in {:.1} s, {} dropped",
        written(out, manifest),
        format::count(seen.packets),
        format::bytes(seen.bytes),
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
}
