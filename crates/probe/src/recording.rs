//! A running recording: the probe, the ring buffer's reader, and the clock between the kernel's
//! monotonic time and the rows' epoch. What events mean is `follow`'s.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use smbscope_capture::Options;
use smbscope_event::code::Vantage;
use smbscope_event::part::Part;
use smbscope_event::tables::Coverage;

use crate::assemble::Losses;
use crate::find::{Choice, FindError, Found, find};
use crate::follow::{Follow, INSIDE};
use crate::loader::{Counted, LoadError, LoadOptions, Probe};

/// Parts are handed over at least so often, unless it is said otherwise.
const PARTS_EVERY: Duration = Duration::from_secs(1);
/// The two clocks are compared so often.
const CLOCKS_EVERY: Duration = Duration::from_secs(10);

/// Messages that are known so late are still put in order.
const ORDER_WITHIN_NS: u64 = 100_000_000;
/// When so many events were read at once, the reader is behind, and more of this time may come.
const EVENTS_MANY: usize = 4096;

/// Why a recording does not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is no smbd.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The probe does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Rows cannot be made.
    #[error(transparent)]
    Decode(#[from] smbscope_capture::Error),
}

/// How far a recording is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Operations in the parts so far.
    pub operations: u64,
    /// Events from the kernel.
    pub events: u64,
    /// What the kernel's side counted.
    pub counted: Counted,
    /// What was given up on this side.
    pub losses: Losses,
    /// Operations without slices: they were under way when the recording began, or lost.
    pub without_slices: u64,
}

/// A running recording.
pub struct Recording {
    probe: Probe,
    found: Found,
    follow: Follow,
    parts_every: Duration,
    parted: Instant,
    compared: Instant,
    events: u64,
    /// Events that were dropped before the recording began, where it did not begin with all else.
    dropped_before: u64,
}

impl Recording {
    /// Finds smbd, attaches to it and begins.
    pub fn begin(
        name: &str,
        choice: &Choice,
        load: LoadOptions,
        decode: &Options,
    ) -> Result<Recording, RecordError> {
        let found = find(choice)?;
        let follow = Follow::new(name, offset(), decode)?;
        let probe = Probe::attach(&found, load)?;
        let now = Instant::now();
        Ok(Recording {
            probe,
            found,
            follow,
            parts_every: PARTS_EVERY,
            parted: now,
            compared: now,
            events: 0,
            dropped_before: 0,
        })
    }

    /// What is recorded.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// How often parts are handed over from now on.
    pub fn parts_every(&mut self, time: Duration) {
        self.parts_every = time;
    }

    /// Functions at which a probe costs ten times as much as elsewhere.
    pub fn expensive(&self) -> BTreeSet<&str> {
        self.probe.expensive.iter().map(String::as_str).collect()
    }

    /// Takes what happened since the last time: some parts, whether there was nothing to be taken.
    /// To be called some fifty times a second.
    pub fn poll(&mut self) -> Result<(Vec<Part>, bool), RecordError> {
        if self.compared.elapsed() >= CLOCKS_EVERY {
            self.compared = Instant::now();
            self.follow.set_offset(offset());
        }
        let follow = &mut self.follow;
        let read = self.probe.read(|event| follow.event(event))?;
        self.events += read as u64;
        let before = (read < EVENTS_MANY).then(|| monotonic().saturating_sub(ORDER_WITHIN_NS));
        follow.feed_until(before.unwrap_or(0));
        if !follow.wants_out() && self.parted.elapsed() < self.parts_every {
            return Ok((Vec::new(), read == 0));
        }
        self.parted = Instant::now();
        Ok((self.follow.parts()?, read == 0))
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress {
            operations: self.follow.operations(),
            events: self.events,
            counted: self.probe.counted(),
            losses: self.follow.losses(),
            without_slices: self.follow.without_slices(),
        }
    }

    /// A recording begins in the midst: parts of what ended until now. Rows carry that name from now
    /// on and the coverage counts anew, but what is known of sessions, trees and opens stays.
    pub fn rename(&mut self, name: &str) -> Result<Vec<Part>, RecordError> {
        self.dropped_before = self.probe.counted().dropped;
        self.parted = Instant::now();
        Ok(self.follow.begin(name)?)
    }

    /// What [`Recording::end`] would give now, while all goes on; it costs a copy of what is known.
    pub fn ended(&mut self) -> Result<Vec<Part>, RecordError> {
        let dropped = self.dropped();
        Ok(self.follow.ended(|coverage| fill(coverage, dropped))?)
    }

    /// Ends it: the last parts, and how far it came.
    pub fn end(mut self) -> Result<(Vec<Part>, Progress), RecordError> {
        // The probes go before the rest is worked on: smbd is free of them, and nothing comes after.
        self.probe.detach();
        let follow = &mut self.follow;
        while self.probe.read(|event| follow.event(event))? > 0 {}
        let mut progress = self.progress();
        let dropped = self.dropped();
        let (parts, operations, without_slices) =
            self.follow.end(|coverage| fill(coverage, dropped))?;
        progress.operations = operations;
        progress.without_slices = without_slices;
        Ok((parts, progress))
    }

    /// Events that were dropped since the recording began.
    fn dropped(&self) -> u64 {
        self.probe.counted().dropped.saturating_sub(self.dropped_before)
    }
}

fn fill(coverage: &mut Coverage, dropped: u64) {
    coverage.format = "probe inside smbd".to_owned();
    coverage.vantage = Some(Vantage::Inside.name().to_owned());
    coverage.vantage_reason = INSIDE.into();
    coverage.frames_dropped = Some(dropped);
}

fn clock(which: ClockId) -> i64 {
    let time = clock_gettime(which);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn monotonic() -> u64 {
    clock(ClockId::Monotonic).unsigned_abs()
}

/// Epoch less CLOCK_MONOTONIC, ns: the reading of several that was disturbed least.
fn offset() -> i64 {
    let reading = |_| {
        let before = clock(ClockId::Monotonic);
        let epoch = clock(ClockId::Realtime);
        let after = clock(ClockId::Monotonic);
        (after - before, epoch - before - (after - before) / 2)
    };
    (0..5).map(reading).min().map_or(0, |(_, offset)| offset)
}
