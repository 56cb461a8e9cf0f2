//! Recording what happens now: a live source, through a memory limit, to a run folder.
//!
//! Owns the loop of `record` ([`record`]) and that of `top`, which records now and then ([`collector`]). How packets
//! are received is `capture::live`'s, how Samba is observed `samba`'s.

pub mod amended;
pub mod collector;
pub mod folder;
pub mod known_names;
pub mod machine;
pub mod memory;
pub mod metered;
#[cfg(feature = "probe")]
pub mod processors;
pub mod ring;
pub mod source;

use std::time::{Duration, Instant, SystemTime};

use smbscope_report::format;
use smbscope_tables::manifest::Manifest;

use folder::RecordingFolder;
use memory::MemoryLimit;
use source::{LiveSource, Received};

/// How often rows go to the dataset, which makes them visible at once and completes its parts every ten seconds.
const PARTS_EVERY: Duration = Duration::from_secs(1);

/// Watches a recording on behalf of the front end.
pub trait RecordMonitor {
    /// Called about once a second.
    fn progress(&self, received: &Received);

    /// Whether the user asked to stop.
    fn is_stopping(&self) -> bool;
}

/// What a recording wrote.
pub struct Recorded {
    pub manifest: Manifest,
    pub received: Received,
    pub took: Duration,
}

/// Records until the time is over or the monitor stops it.
///
/// After an error the rows that arrived before it are kept, and the folder is marked as incomplete.
pub fn record(
    mut source: Box<dyn LiveSource>,
    mut folder: RecordingFolder,
    duration: Option<Duration>,
    memory: &mut MemoryLimit,
    monitor: &dyn RecordMonitor,
) -> anyhow::Result<Recorded> {
    let begin = Instant::now();
    let recorded = take_rows(&mut *source, &mut folder, duration, memory, monitor);
    let took = begin.elapsed();
    let closed = close(source, &mut folder);
    let manifest = folder.finish(recorded.is_ok() && closed.is_ok());
    recorded?;
    Ok(Recorded { received: closed?, manifest: manifest?, took })
}

fn take_rows(
    source: &mut dyn LiveSource,
    folder: &mut RecordingFolder,
    duration: Option<Duration>,
    memory: &mut MemoryLimit,
    monitor: &dyn RecordMonitor,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut taken = begin;
    loop {
        let is_full = source.receive()?;
        let is_scarce = memory.watch(source);
        let is_over = duration.is_some_and(|duration| begin.elapsed() >= duration);
        if is_over || monitor.is_stopping() {
            return Ok(());
        }
        if is_full || is_scarce || taken.elapsed() >= PARTS_EVERY {
            taken = Instant::now();
            for part in source.parts()? {
                folder.part(part)?;
            }
            if is_scarce {
                folder.complete_parts()?;
            }
            monitor.progress(&source.received());
        }
    }
}

/// Writes the last rows, also after an error.
fn close(source: Box<dyn LiveSource>, folder: &mut RecordingFolder) -> anyhow::Result<Received> {
    let (parts, received) = source.close()?;
    for part in parts {
        folder.part(part)?;
    }
    Ok(received)
}

/// Names of the inputs of a recording that begins at `time`: its own, and those of other sources.
pub fn inputs(from: &[String], time: i64) -> Vec<String> {
    let own = from.first().map(|from| name(from, time));
    own.into_iter().chain(from.iter().skip(1).cloned()).collect()
}

/// The name of a recording. It contains the time, so that two recordings can be read together.
pub fn name(from: &str, time: i64) -> String {
    format!("{from}-{}", stamp(time))
}

/// A time as digits: year, month, day, hour, minute, second.
pub fn stamp(time: i64) -> String {
    format::time(time).chars().filter(char::is_ascii_digit).take(14).collect()
}

/// Nanoseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_named_after_its_interface_and_time() {
        assert_eq!(name("eth0", 1_767_603_600 * 1_000_000_000), "eth0-20260105090000");
    }
}
