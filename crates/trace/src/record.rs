//! Records the CPUs of this machine: interrupts, softirqs, polls of network devices, and samples
//! with stacks of the kernel. Linux only, by eBPF, or by tracefs where the kernel refuses that.
//!
//! Owns the path from the kernel's rings to rows. Memory is fixed (the rings, and limits of names and
//! stacks), nothing waits for anything in the kernel, and what is lost is counted for each CPU.
//! When the recorder itself needs too much time, it samples less (`cost`).

mod clocks;
mod convert;
mod cost;
mod devices;
mod ebpf;
mod interrupts;
mod loader;
pub mod quiet;
mod ring_event;
pub mod system;
mod topology;
mod tracefs;

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

use cost::{Cost, Less, Spent};
use ebpf::Ebpf;
use tracefs::Tracefs;

pub use loader::LoadError;
pub use tracefs::TracefsError;

/// Rows that are held before they should be taken.
const ROWS_HELD: usize = 65_536;
/// An event can arrive after a later one of the same CPU, which interrupted it while it was
/// sent: so late at most.
const LATE: Duration = Duration::from_millis(1);
/// What the clock of the rows is.
const CLOCK: &str = "CLOCK_MONOTONIC, as time of day";

/// What the kernel records with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracer {
    /// eBPF, or tracefs if the kernel or its configuration does not allow that.
    #[default]
    Auto,
    Ebpf,
    /// The kernel's own ring buffers of tracepoints.
    Tracefs,
}

/// What to record.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of the rings of all CPUs together.
    pub buffer_bytes: u64,
    /// Samples each second on each CPU; 0 for none.
    pub hz: u32,
    /// Whether context switches are recorded.
    pub switches: bool,
    pub tracer: Tracer,
}

/// Why recording failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can be recorded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Nothing can be recorded by tracefs.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// Neither way works.
    #[error("{0}; tracefs: {1}")]
    Both(LoadError, TracefsError),
    /// Rows could not be converted.
    #[error("rows could not be converted: {0}")]
    Arrow(#[from] ArrowError),
}

/// What was recorded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    pub events: u64,
    pub lost: u64,
    /// What the recorder used: a share of one CPU, BPF programs included.
    pub share: f64,
}

/// Where events come from.
enum Source {
    Ebpf(Box<Ebpf>),
    Tracefs(Box<Tracefs>),
}

/// Records.
pub struct Recorder {
    source: Source,
    cost: Cost,
    rows: Rows,
    cpus: Vec<Cpu>,
    hz: u32,
    /// Why it is not eBPF, although that was preferred.
    instead: Option<String>,
    offset_ns: i64,
    events: u64,
    /// When all programs were attached, and when they were detached: what is outside is not counted.
    started: u64,
    ended: Option<u64>,
    /// Do not read, so that the kernel's side drops and counts events.
    drops: bool,
}

impl Recorder {
    /// Starts to record all CPUs. Rows have the name `recording`.
    ///
    /// # Errors
    ///
    /// The kernel's, with what to do about it. Kinds of events that it lacks are named, not errors:
    /// [`Recorder::missing`].
    pub fn start(recording: &str, options: Options) -> Result<Recorder, Error> {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpus = topology::read(Path::new("/sys/devices/system/cpu"), &text("/proc/cpuinfo"));
        let numbers: Vec<u32> = cpus.iter().map(|cpu| cpu.cpu).collect();
        let offset_ns = offset_ns();
        let (source, instead) = open(&numbers, options, offset_ns)?;
        let (hz, started) = match &source {
            Source::Ebpf(ebpf) => (options.hz, ebpf.started()),
            Source::Tracefs(tracefs) => (tracefs.hz(), now()),
        };
        let mut recorder = Recorder {
            cost: Cost::new(Spent { now: now(), own: own(), kernel: 0 }, options.switches),
            source,
            rows: Rows::new(recording, ROWS_HELD),
            cpus,
            hz,
            instead,
            offset_ns,
            events: 0,
            started,
            ended: None,
            drops: false,
        };
        recorder.place();
        Ok(recorder)
    }

    /// Why tracefs is used although eBPF was preferred.
    pub fn instead(&self) -> Option<&str> {
        self.instead.as_deref()
    }

    /// What this kernel cannot record.
    pub fn missing(&self) -> &[String] {
        match &self.source {
            Source::Ebpf(ebpf) => ebpf.missing(),
            Source::Tracefs(tracefs) => tracefs.missing(),
        }
    }

    /// Bytes of the rings together.
    pub fn buffer_bytes(&self) -> u64 {
        match &self.source {
            Source::Ebpf(ebpf) => ebpf.ring_bytes() * self.cpus.len() as u64,
            Source::Tracefs(tracefs) => tracefs.buffer_bytes(),
        }
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
            self.read(begin.saturating_sub(LATE.as_nanos() as u64))?;
        }
        let spent = self.spent();
        let less = self.cost.judge(spent, self.hz);
        match (&mut self.source, less) {
            (Source::Ebpf(ebpf), Some(Less::SampleEvery(every))) => ebpf.sample_every(every),
            (Source::Ebpf(ebpf), Some(Less::NoSwitches)) => ebpf.no_switches(),
            (Source::Tracefs(tracefs), Some(Less::SampleEvery(every))) => {
                tracefs.sample_every(every);
            }
            (Source::Tracefs(tracefs), Some(Less::NoSwitches)) => tracefs.no_switches(),
            (_, None) => {}
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
        let lost = self.cpus.iter().map(|cpu| self.lost(cpu.cpu)).sum();
        Counted { events: self.events, lost, share: self.cost.share(self.spent()) }
    }

    /// Until when all events have arrived, ns since 1970.
    pub fn until(&self) -> i64 {
        self.time(now().saturating_sub(LATE.as_nanos() as u64))
    }

    /// Stops, and returns the last rows, with the CPUs and what was recorded.
    ///
    /// # Errors
    ///
    /// As [`Recorder::receive`] and [`Recorder::parts`].
    pub fn stop(mut self) -> Result<Vec<Part>, Error> {
        let ended = now();
        self.ended = Some(ended);
        let spent = self.spent();
        match &mut self.source {
            Source::Ebpf(ebpf) => ebpf.detach(),
            Source::Tracefs(tracefs) => tracefs.stop(),
        }
        let mut parts = Vec::new();
        while self.read(0)? {
            if self.rows.is_full() {
                parts.extend(self.rows.take()?);
            }
        }
        self.read(u64::MAX)?;
        self.place();
        let coverage = self.coverage(ended, spent);
        parts.extend(self.rows.finish(coverage)?);
        Ok(parts)
    }

    /// Gives the events up to a time to the rows, in the order of time; returns whether there may be more.
    fn read(&mut self, until: u64) -> Result<bool, Error> {
        let started = self.time(self.started);
        let ended = self.ended.map_or(i64::MAX, |ended| self.time(ended));
        let (rows, mut outside) = (&mut self.rows, 0);
        let mut sink = |event| {
            if is_within(&event, started, ended) { rows.event(event) } else { outside += 1 }
        };
        let (events, more) = match &mut self.source {
            Source::Ebpf(ebpf) => ebpf.read(until, &mut sink)?,
            Source::Tracefs(tracefs) => tracefs.read(&mut sink)?,
        };
        self.events += events.saturating_sub(outside);
        Ok(more)
    }

    /// Where the CPUs are, and what each lost.
    fn place(&mut self) {
        for place in 0..self.cpus.len() {
            let Some(cpu) = self.cpus.get(place) else { continue };
            let cpu = Cpu { events_lost: Some(self.lost(cpu.cpu)), ..cpu.clone() };
            self.rows.event(Event::Cpu(cpu));
        }
        for device in devices::interfaces(Path::new("/sys/class")) {
            self.rows.event(Event::Device(device));
        }
    }

    /// Events that a CPU lost.
    fn lost(&self, cpu: u32) -> u64 {
        match &self.source {
            Source::Ebpf(ebpf) => ebpf.counters(cpu).lost,
            Source::Tracefs(tracefs) => tracefs.lost(cpu),
        }
    }

    fn spent(&self) -> Spent {
        let kernel = match &self.source {
            Source::Ebpf(ebpf) => self.cpus.iter().map(|cpu| ebpf.counters(cpu.cpu).cost_ns).sum(),
            // The kernel does not say what its tracing takes.
            Source::Tracefs(_) => 0,
        };
        Spent { now: now(), own: own(), kernel }
    }

    fn time(&self, time: u64) -> i64 {
        time_of_day(time, self.offset_ns)
    }

    fn coverage(&self, ended: u64, spent: Spent) -> Coverage {
        let share = self.cost.share(spent) * 100.0;
        let mut coverage = match &self.source {
            Source::Ebpf(ebpf) => ebpf.coverage(&self.cpus),
            Source::Tracefs(tracefs) => tracefs.coverage(),
        };
        let mut notes = vec![match &self.source {
            Source::Ebpf(_) => {
                format!("the recorder used {share:.2} % of a CPU, BPF programs included")
            }
            Source::Tracefs(_) => format!(
                "the recorder used {share:.2} % of a CPU, without the kernel's own tracing; by tracefs"
            ),
        }];
        notes.extend(self.instead.clone());
        notes.extend(self.cost.note().map(str::to_owned));
        if !self.missing().is_empty() {
            notes.push(format!("this kernel has no {}", self.missing().join(", ")));
        }
        notes.extend(coverage.notes.take());
        let lost: u64 = self.cpus.iter().map(|cpu| self.lost(cpu.cpu)).sum();
        Coverage {
            format: "smbscope record --cpu".to_owned(),
            clock: Some(CLOCK.to_owned()),
            start_ns: Some(self.time(self.started)),
            end_ns: Some(self.time(ended)),
            events: self.events,
            events_lost: Some(lost + coverage.events_lost.unwrap_or(0)),
            notes: Some(notes.join("; ")),
            ..coverage
        }
    }
}

/// Whether an event is about the time between the start and the end of the recording. Programs are attached one after
/// the other, and events that come meanwhile would add time to that of the recording.
fn is_within(event: &Event, started: i64, ended: i64) -> bool {
    let (from, to) = match event {
        Event::Interrupt(one) => (one.start_ns.unwrap_or(one.end_ns), one.end_ns),
        Event::Sample(one) => (one.time_ns, one.time_ns),
        Event::Switch(one) => (one.time_ns, one.time_ns),
        Event::Power(one) => (one.time_ns, one.time_ns),
        _ => return true,
    };
    started <= from && to <= ended
}

/// Opens what the options ask for; why it is tracefs instead of eBPF, if eBPF was preferred.
fn open(cpus: &[u32], options: Options, offset_ns: i64) -> Result<(Source, Option<String>), Error> {
    let tracefs = || Tracefs::start(cpus, options, offset_ns);
    if options.tracer == Tracer::Tracefs {
        return Ok((Source::Tracefs(Box::new(tracefs()?)), None));
    }
    match Ebpf::start(cpus, options, offset_ns) {
        Ok(ebpf) => Ok((Source::Ebpf(Box::new(ebpf)), None)),
        Err(error) if options.tracer == Tracer::Ebpf => Err(error.into()),
        Err(error) => match tracefs() {
            Ok(tracefs) => {
                Ok((Source::Tracefs(Box::new(tracefs)), Some(format!("not by eBPF: {error}"))))
            }
            Err(other) => Err(Error::Both(error, other)),
        },
    }
}

/// The functions of this kernel; none if it hides them.
fn functions() -> KernelFunctions {
    let functions = File::open("/proc/kallsyms")
        .and_then(|file| KernelFunctions::read(BufReader::with_capacity(1 << 16, file)));
    functions.unwrap_or_default()
}

/// `CLOCK_MONOTONIC`, which the BPF programs read.
fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// A time of that clock as time of day, ns since 1970.
fn time_of_day(time: u64, offset_ns: i64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX).saturating_add(offset_ns)
}

/// Time of this process on CPUs.
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
