//! Records the processors of this machine: interrupts, softirqs, polls of network devices, and samples
//! with stacks of the kernel. Linux only, by eBPF.
//!
//! Owns the path from the kernel's rings to rows. Memory is fixed (the rings, and limits of names and
//! stacks), nothing waits for anything in the kernel, and what is lost is counted for each processor.
//! When the recorder itself needs too much time, it samples less (`cost`).

mod convert;
mod cost;
mod devices;
mod interrupts;
mod loader;
pub mod quiet;
mod ring_event;
pub mod system;
mod topology;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use arrow::error::ArrowError;
use rustix::time::{ClockId, clock_gettime};
use smbscope_tables::Part;

use crate::event::{Coverage, Cpu, Event};
use crate::rows::Rows;
use crate::symbols::KernelFunctions;

use convert::Convert;
use cost::{Cost, Less, Spent};
use devices::Devices;
use loader::Programs;
use ring_event::RingEvent;

pub use loader::LoadError;

/// Rows that are held before they should be taken.
const ROWS_HELD: usize = 65_536;
/// An event can arrive after a later one of the same processor, which interrupted it while it was
/// sent: so late at most.
const LATE: Duration = Duration::from_millis(1);
/// What the clock of the rows is.
const CLOCK: &str = "CLOCK_MONOTONIC, as time of day";

/// What to record.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of the rings of all processors together.
    pub buffer_bytes: u64,
    /// Samples each second on each processor; 0 for none.
    pub hz: u32,
    /// Whether context switches are recorded.
    pub switches: bool,
}

/// Why recording failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can be recorded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Rows could not be converted.
    #[error("rows could not be converted: {0}")]
    Arrow(#[from] ArrowError),
}

/// What was recorded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    pub events: u64,
    pub lost: u64,
    /// What the recorder used: a share of one processor, BPF programs included.
    pub share: f64,
}

/// Records.
pub struct Recorder {
    programs: Programs,
    convert: Convert,
    cost: Cost,
    rows: Rows,
    cpus: Vec<Cpu>,
    hz: u32,
    pending: Vec<RingEvent>,
    events: u64,
    started: u64,
    /// Do not read, so that the kernel's side drops and counts events.
    drops: bool,
}

impl Recorder {
    /// Starts to record all processors. Rows have the name `recording`.
    ///
    /// # Errors
    ///
    /// The kernel's, with what to do about it. Kinds of events that it lacks are named, not errors:
    /// [`Recorder::missing`].
    pub fn start(recording: &str, options: Options) -> Result<Recorder, Error> {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpus = topology::read(Path::new("/sys/devices/system/cpu"), &text("/proc/cpuinfo"));
        let numbers: Vec<u32> = cpus.iter().map(|cpu| cpu.cpu).collect();
        let Options { buffer_bytes, hz, switches } = options;
        let programs = Programs::attach(&numbers, loader::What { buffer_bytes, hz, switches })?;
        let started = now();
        // After the programs were loaded, which are functions, too.
        let functions = File::open("/proc/kallsyms")
            .and_then(|file| KernelFunctions::read(BufReader::with_capacity(1 << 16, file)));
        let devices = Devices::read(&text("/proc/interrupts"), Path::new("/sys/class"));
        let convert = Convert::new(offset_ns(), hz, devices, functions.unwrap_or_default());
        let mut recorder = Recorder {
            cost: Cost::new(Spent { now: now(), own: own(), kernel: 0 }, switches),
            programs,
            convert,
            rows: Rows::new(recording, ROWS_HELD),
            cpus,
            hz,
            pending: Vec::new(),
            events: 0,
            started,
            drops: false,
        };
        recorder.place();
        Ok(recorder)
    }

    /// What this kernel cannot record.
    pub fn missing(&self) -> &[String] {
        &self.programs.missing
    }

    /// Bytes of the rings together.
    pub fn buffer_bytes(&self) -> u64 {
        u64::from(self.programs.ring_bytes) * self.cpus.len() as u64
    }

    /// Reads what happened; returns whether enough rows are held that they should be taken. Never
    /// waits.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn receive(&mut self) -> Result<bool, Error> {
        if !self.drops {
            let begin = now();
            self.programs.read(&mut self.pending)?;
            self.give(begin.saturating_sub(LATE.as_nanos() as u64));
        }
        let spent = self.spent();
        match self.cost.judge(spent, self.hz) {
            Some(Less::SampleEvery(every)) => self.programs.sample_every(every),
            Some(Less::NoSwitches) => self.programs.no_switches(),
            None => {}
        }
        Ok(self.rows.is_full())
    }

    /// Takes the rows so far.
    ///
    /// # Errors
    ///
    /// Arrow's, for rows that contradict the schema.
    pub fn parts(&mut self) -> Result<Vec<Part>, Error> {
        Ok(self.rows.take()?)
    }

    /// Starts or stops dropping (and counting) new events.
    pub fn set_dropping(&mut self, drops: bool) {
        self.drops = drops;
    }

    /// What was recorded so far.
    pub fn counted(&self) -> Counted {
        let lost = self.counters().map(|counters| counters.lost).sum();
        Counted { events: self.events, lost, share: self.cost.share(self.spent()) }
    }

    /// Until when all events have arrived, ns since 1970.
    pub fn until(&self) -> i64 {
        self.convert.time(now().saturating_sub(LATE.as_nanos() as u64))
    }

    /// Stops, and returns the last rows, with the processors and what was recorded.
    ///
    /// # Errors
    ///
    /// As [`Recorder::receive`] and [`Recorder::parts`].
    pub fn stop(mut self) -> Result<Vec<Part>, Error> {
        let ended = now();
        let spent = self.spent();
        self.programs.detach();
        let mut parts = Vec::new();
        while self.programs.read(&mut self.pending)? {
            self.give(0);
            if self.rows.is_full() {
                parts.extend(self.rows.take()?);
            }
        }
        self.give(u64::MAX);
        self.place();
        let coverage = self.coverage(ended, spent);
        parts.extend(self.rows.finish(coverage)?);
        Ok(parts)
    }

    /// Gives the events up to a time to the rows, in the order of time.
    fn give(&mut self, until: u64) {
        // Almost in order: each processor's are.
        self.pending.sort_by_key(RingEvent::time);
        let ready = self.pending.partition_point(|event| event.time() <= until);
        let rows = &mut self.rows;
        for event in self.pending.drain(..ready) {
            self.events += u64::from(!matches!(event, RingEvent::Name(_)));
            self.convert.event(event, &mut |event| rows.event(event));
        }
    }

    /// Where the processors are, and what each lost.
    fn place(&mut self) {
        for cpu in &self.cpus {
            let lost = self.programs.counters(cpu.cpu).lost;
            self.rows.event(Event::Cpu(Cpu { events_lost: Some(lost), ..cpu.clone() }));
        }
    }

    fn counters(&self) -> impl Iterator<Item = loader::CpuCounters> {
        self.cpus.iter().map(|cpu| self.programs.counters(cpu.cpu))
    }

    fn spent(&self) -> Spent {
        let kernel = self.counters().map(|counters| counters.cost_ns).sum();
        Spent { now: now(), own: own(), kernel }
    }

    fn coverage(&self, ended: u64, spent: Spent) -> Coverage {
        let sum = |of: fn(&loader::CpuCounters) -> u64| self.counters().map(|c| of(&c)).sum();
        let mut notes = vec![format!(
            "the recorder used {:.2} % of a CPU, BPF programs included",
            self.cost.share(spent) * 100.0
        )];
        notes.extend(self.cost.note().map(str::to_owned));
        if !self.programs.missing.is_empty() {
            notes.push(format!("this kernel has no {}", self.programs.missing.join(", ")));
        }
        if self.hz > 0 && !self.convert.knows_functions() {
            notes.push("functions of the kernel have no names (kernel.kptr_restrict)".to_owned());
        }
        let lost: u64 = sum(|counters| counters.lost);
        Coverage {
            format: "smbscope record --cpu".to_owned(),
            clock: Some(CLOCK.to_owned()),
            start_ns: Some(self.convert.time(self.started)),
            end_ns: Some(self.convert.time(ended)),
            events: self.events,
            events_lost: Some(lost + self.programs.beyond()),
            starts_unmatched: sum(|counters| counters.starts_unmatched),
            ends_unmatched: sum(|counters| counters.ends_unmatched),
            stacks_discarded: self.convert.stacks_discarded,
            names_discarded: self.convert.names_discarded(),
            notes: Some(notes.join("; ")),
            ..Coverage::default()
        }
    }
}

/// `CLOCK_MONOTONIC`, which the BPF programs read.
fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Time of this process on processors.
fn own() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// Time of day when `CLOCK_MONOTONIC` was 0. It stays the same if the time of day is set meanwhile, so
/// that times keep their distances.
fn offset_ns() -> i64 {
    let before = now();
    let day = nanoseconds(ClockId::Realtime);
    let between = before.midpoint(now());
    i64::try_from(i128::from(day) - i128::from(between)).unwrap_or(0)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + rest
}
