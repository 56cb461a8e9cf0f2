//! A running recording: the probe, the ring buffer's reader, and the offset between the kernel's
//! monotonic clock and the rows' epoch. `rows` interprets the events.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use smbscope_capture::{Options, Tables, live};
use smbscope_tables::Part;
use smbscope_tables::tables::Coverage;

use crate::assemble::Losses;
use crate::check::{Fact, obstacle};
use crate::find::{Choice, FindError, Found, find};
use crate::join::WireRows;
use crate::loader::{LoadError, LoadOptions, Probe};
use crate::ring_event::Counted;
use crate::rows::RowMaker;

/// Parts are handed over at least this often, unless configured otherwise.
const PARTS_EVERY: Duration = Duration::from_secs(1);
/// Interval at which the two clocks are compared.
const CLOCKS_EVERY: Duration = Duration::from_secs(10);

/// Messages that become known this late are still put in order.
const ORDER_WITHIN_NS: u64 = 100_000_000;
/// Packets of an interface that are taken before the probe's events are read again, in batches.
const PACKETS_AT_ONCE: usize = 256;
/// If this many events were read at once, the reader is behind, and more may be waiting.
const EVENTS_MANY: usize = 4096;

/// Why a recording cannot begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The machine does not permit it.
    #[error("{}: {}", .0.found, .0.remedy.as_deref().unwrap_or_default())]
    Machine(Fact),
    /// There is no smbd.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The probe cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The interface cannot be listened to.
    #[error(transparent)]
    Wire(#[from] live::Error),
    /// Rows cannot be built.
    #[error(transparent)]
    Decode(#[from] smbscope_capture::Error),
}

/// The progress of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Operations in the parts so far.
    pub operations: u64,
    /// Events from the kernel.
    pub events: u64,
    /// The counters of the kernel's side.
    pub counted: Counted,
    /// The losses on this side.
    pub losses: Losses,
    /// Operations without slices: they were in flight when the recording began, or lost.
    pub without_slices: u64,
    /// Packets of the interface, if there is one.
    pub wire: Option<live::Counters>,
    /// Operations that only the interface showed; known at the end.
    pub wire_only: u64,
    /// Whether the recorded processes have ended, and no service was started instead.
    pub is_alone: bool,
}

/// A running recording.
pub struct Recording {
    probe: Probe,
    found: Found,
    rows: RowMaker,
    wire: Option<live::Recorder>,
    interface: String,
    /// All messages before this time were fed, ns since 1970.
    until: i64,
    parts_every: Duration,
    parted: Instant,
    compared: Instant,
    events: u64,
    /// The counters of the kernel's side when the recording began, if it began later than the probe.
    before: Counted,
    /// Whether events are dropped here, and how many were dropped.
    drops: bool,
    shed: u64,
}

impl Recording {
    /// Finds smbd, attaches to it and begins; also listens to an interface if one is given, on smbd's
    /// ports if it names none.
    pub fn begin(
        name: &str,
        choice: &Choice,
        load: LoadOptions,
        decode: &Options,
        interface: Option<live::Options>,
    ) -> Result<Recording, RecordError> {
        if let Some(fact) = obstacle() {
            return Err(RecordError::Machine(fact));
        }
        let found = find(choice)?;
        let mut rows = RowMaker::new(name, offset(), decode)?;
        let mut interface_name = String::new();
        let wire = match interface {
            Some(mut options) => {
                if options.ports.is_empty() {
                    options.ports = found.ports.iter().copied().collect();
                }
                interface_name.clone_from(&options.interface);
                rows.join(WireRows::new(options.pcap.is_some()));
                // Its rows are joined, not kept.
                let tables = Tables {
                    operations: false,
                    sessions: false,
                    trees: false,
                    handles: false,
                    referrals: false,
                    channels: false,
                    interfaces: false,
                    ..Tables::ALL
                };
                Some(live::Recorder::open(name, &options, &Options { tables, ..decode.clone() })?)
            }
            None => None,
        };
        // A restarted service is the same one, unless processes were chosen otherwise.
        let follow_new = choice.is_any();
        let probe = Probe::attach(&found, LoadOptions { follow_new, ..load })?;
        rows.measures(load.off_cpu, load.disk);
        if probe.without_functions.is_some() {
            rows.without_functions();
        }
        rows.began(clock(ClockId::Realtime));
        let now = Instant::now();
        let mut recording = Recording {
            probe,
            found,
            rows,
            wire,
            interface: interface_name,
            until: 0,
            parts_every: PARTS_EVERY,
            parted: now,
            compared: now,
            events: 0,
            before: Counted::default(),
            drops: false,
            shed: 0,
        };
        // Packets were captured while the probe was attached, which takes seconds.
        recording.hear()?;
        if let Some(wire) = recording.rows.wire() {
            wire.begin();
        }
        Ok(recording)
    }

    /// The recorded processes and ports.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Everything before this time is in the parts that were returned, or in the next ones; ns since 1970.
    pub fn until(&self) -> i64 {
        self.until
    }

    /// Drops and counts everything from now on, or stops doing so: dropping takes no memory.
    pub fn shed(&mut self, drops: bool) {
        self.drops = drops;
    }

    /// Sets the interval at which parts are handed over.
    pub fn parts_every(&mut self, time: Duration) {
        self.parts_every = time;
    }

    /// Functions at which a probe costs ten times as much as elsewhere.
    pub fn expensive(&self) -> BTreeSet<&str> {
        self.probe.expensive.iter().map(String::as_str).collect()
    }

    /// Why Samba's functions are not probed, but only its system calls; `None` if they are.
    pub fn without_functions(&self) -> Option<&str> {
        self.probe.without_functions.as_deref()
    }

    /// Processes the events since the last call; returns, now and then, everything that ended, and
    /// whether little was waiting. Call it some fifty times per second.
    pub fn poll(&mut self) -> Result<(Option<Vec<Part>>, bool), RecordError> {
        if self.compared.elapsed() >= CLOCKS_EVERY {
            self.compared = Instant::now();
            self.rows.set_offset(offset());
        }
        if self.drops {
            // The kernel drops and counts the packets that are not read.
            self.shed += self.probe.read(|_| ())? as u64;
            return Ok((Some(self.rows.parts()?), true));
        }
        let mut until = monotonic();
        if let Some(heard) = self.hear()? {
            until = until.min(heard);
        }
        let rows = &mut self.rows;
        let read = self.probe.read(|event| rows.event(event))?;
        self.events += read as u64;
        let few = read < EVENTS_MANY;
        if !few {
            until = until.min(rows.seen());
        }
        let until = until.saturating_sub(ORDER_WITHIN_NS);
        rows.feed_until(until);
        self.until = self.until.max(until as i64 + rows.offset());
        if !rows.wants_out() && self.parted.elapsed() < self.parts_every {
            return Ok((None, few));
        }
        self.parted = Instant::now();
        Ok((Some(self.rows.parts()?), few))
    }

    /// The progress.
    pub fn progress(&mut self) -> Progress {
        Progress {
            operations: self.rows.operations(),
            events: self.events,
            counted: self.counted_so_far(),
            losses: self.rows.losses(),
            without_slices: self.rows.without_slices(),
            wire: self.wire.as_mut().map(live::Recorder::counters),
            wire_only: 0,
            is_alone: self.probe.is_alone(),
        }
    }

    /// Processes the packets; returns the time until which they are complete, CLOCK_MONOTONIC ns.
    /// `None` without an interface.
    fn hear(&mut self) -> Result<Option<u64>, RecordError> {
        let Recording { wire: Some(recorder), rows, .. } = self else { return Ok(None) };
        for _ in 0..PACKETS_AT_ONCE {
            if !recorder.receive_now()? || recorder.wants_out() {
                break;
            }
        }
        if let Some(wire) = rows.wire() {
            let parts = recorder.parts(&mut |row, ends| wire.row(row, ends))?;
            keep_connections(wire, parts);
        }
        Ok(Some(recorder.until().saturating_sub(rows.offset()).max(0) as u64))
    }

    /// Begins a recording mid-stream: returns parts of what ended until now. Rows have the given name
    /// from now on and the coverage counts again, but knowledge about sessions, trees and opens stays.
    pub fn rename(&mut self, name: &str) -> Result<Vec<Part>, RecordError> {
        self.hear()?;
        self.before = self.counted_so_far();
        self.parted = Instant::now();
        if let (Some(recorder), Some(wire)) = (&mut self.wire, self.rows.wire()) {
            let parts = recorder.begin(name, &mut |row, ends| wire.row(row, ends))?;
            keep_connections(wire, parts);
        }
        let parts = self.rows.begin(name)?;
        self.rows.began(clock(ClockId::Realtime));
        Ok(parts)
    }

    /// The result of [`Recording::end`] at this time, while recording continues; it costs a copy of the
    /// state.
    pub fn ended(&mut self) -> Result<Vec<Part>, RecordError> {
        let counted = self.counted();
        let mut rows = self.rows.clone();
        let mut of_wire = None;
        if let (Some(recorder), Some(wire)) = (&mut self.wire, rows.wire()) {
            let parts = recorder.ended(&mut |row, ends| wire.row(row, ends))?;
            of_wire = keep_connections(wire, parts);
        }
        let mut ended = rows.end(counted, clock(ClockId::Realtime))?;
        let interface = &self.interface;
        ended.parts.extend(of_wire.map(|row| of_interface(row, interface, ended.wire_only)));
        Ok(ended.parts)
    }

    /// Ends it: the last parts, and the final progress.
    pub fn end(mut self) -> Result<(Vec<Part>, Progress), RecordError> {
        let time = clock(ClockId::Realtime);
        // The probes are removed before the rest is processed: smbd is free of them, and no more events
        // arrive.
        self.probe.detach();
        let rows = &mut self.rows;
        loop {
            let read = self.probe.read(|event| rows.event(event))?;
            self.events += read as u64;
            if read == 0 {
                break;
            }
        }
        let (mut progress, counted) = (self.progress(), self.counted());
        let mut of_wire = None;
        if let (Some(recorder), Some(wire)) = (self.wire.take(), self.rows.wire()) {
            let parts = recorder.end(&mut |row, ends| wire.row(row, ends))?;
            of_wire = keep_connections(wire, parts);
        }
        let mut ended = self.rows.end(counted, time)?;
        let interface = &self.interface;
        ended.parts.extend(of_wire.map(|row| of_interface(row, interface, ended.wire_only)));
        progress.operations = ended.operations;
        progress.without_slices = ended.without_slices;
        progress.wire_only = ended.wire_only;
        Ok((ended.parts, progress))
    }

    /// The counters of the kernel's side, plus what was dropped here.
    fn counted_so_far(&self) -> Counted {
        let counted = self.probe.counted();
        Counted { dropped: counted.dropped + self.shed, ..counted }
    }

    /// The same counters since the recording began.
    fn counted(&self) -> Counted {
        let (now, before) = (self.counted_so_far(), self.before);
        Counted {
            dropped: now.dropped.saturating_sub(before.dropped),
            threads: now.threads.saturating_sub(before.threads),
            processes: now.processes.saturating_sub(before.processes),
            strange_sends: now.strange_sends.saturating_sub(before.strange_sends),
        }
    }
}

/// The coverage of the interface, as the second one of the recording.
fn of_interface(mut coverage: Box<Coverage>, interface: &str, wire_only: u64) -> Part {
    coverage.capture_file = Some(interface.to_owned());
    coverage.operations_unjoined = wire_only;
    Part::Coverage(coverage)
}

/// Passes on the connections that the wire showed; returns its coverage.
fn keep_connections(wire: &mut WireRows, parts: Vec<Part>) -> Option<Box<Coverage>> {
    let mut found = None;
    for part in parts {
        match part {
            Part::Connections(rows) => rows.into_iter().for_each(|row| wire.connection(row)),
            Part::Coverage(coverage) => found = Some(coverage),
            _ => {}
        }
    }
    found
}

fn clock(which: ClockId) -> i64 {
    let time = clock_gettime(which);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn monotonic() -> u64 {
    clock(ClockId::Monotonic).unsigned_abs()
}

/// Epoch minus CLOCK_MONOTONIC, ns: the least disturbed of several readings.
fn offset() -> i64 {
    let reading = |_| {
        let before = clock(ClockId::Monotonic);
        let epoch = clock(ClockId::Realtime);
        let after = clock(ClockId::Monotonic);
        (after - before, epoch - before - (after - before) / 2)
    };
    (0..5).map(reading).min().map_or(0, |(_, offset)| offset)
}
