//! Windows' event trace logs (`.etl`) of the kernel logger, on any system.
//!
//! A file is a sequence of buffers, each filled by one CPU. [`buffer`] reads their headers and
//! decompresses them, [`log_header`] reads the first record, [`record`] the headers of events,
//! [`times`] knows which times can be, [`merge`] puts the events of all CPUs in the order of their times, [`kernel`] knows the
//! layouts of the kernel's events, [`survey`] collects what events refer to (images, threads,
//! stacks), and [`convert`] makes [`Event`]s.
//!
//! The file is read twice: images and the dictionary of stacks are often written when the recording
//! stops, but they are needed before the events with their addresses.
//!
//! Sources: the structures of `evntrace.h` and `evntcons.h` (Windows SDK) and the MOF classes of
//! MSNT_SystemTrace in Microsoft's ETW documentation; the buffer header and the compact event
//! headers are described by Geoff Chappell (WMI_BUFFER_HEADER) and were compared with real files.

mod buffer;
pub(crate) mod clock;
mod convert;
mod index;
mod kernel;
mod log_header;
mod merge;
pub(crate) mod record;
pub mod shape;
mod stacks;
mod survey;
mod times;

pub use clock::ClockKind;
pub use kernel::config::{InterruptLine, NetworkAdapter};
pub use record::Origin;

use crate::event::{Coverage, Event, EventReader};
use crate::windows::{self, Machine, Operations};
use convert::Converter;
use log_header::LogHeader;
use merge::Merge;
use smbscope_capture::Options;
use smbscope_tables::Part;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek};
use survey::{Found, Reading};

/// Why a file cannot be read at all. Everything else is in the coverage.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The source cannot be read.
    Io(std::io::Error),
    /// It does not begin with the header of an event trace log.
    NotEtl(&'static str),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Io(error) => write!(f, "cannot read the event trace log: {error}"),
            Error::NotEtl(what) => write!(f, "not an event trace log (.etl): {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::Io(error)
    }
}

/// What a log contains in addition to its events.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub coverage: Coverage,
    pub clock: Option<ClockKind>,
    /// CPUs by the header.
    pub cpus: u32,
    /// Buffers in the file, those of them that were compressed, and those that could not be read.
    pub buffers: u64,
    pub buffers_compressed: u64,
    pub buffers_damaged: u64,
    /// Buffers before which the recorder lost events or buffers.
    pub buffers_after_loss: u64,
    /// Events that were older than the one before them after sorting.
    pub out_of_order: u64,
    /// Number of events of each kind, read or skipped.
    pub counts: BTreeMap<Origin, u64>,
    /// Stacks of events that are not samples.
    pub stacks_of_others: u64,
    /// Interval of the samples at the end of the recording.
    pub sample_interval_ns: Option<i64>,
    pub adapters: Vec<NetworkAdapter>,
    pub interrupt_lines: Vec<InterruptLine>,
}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> std::io::Error {
        match error {
            Error::Io(error) => error,
            Error::NotEtl(_) => std::io::Error::new(std::io::ErrorKind::InvalidData, error),
        }
    }
}

impl Log {
    /// Counts something that could not be read. `place` is kept for the first one only; an event of
    /// the kernel is named by its group and opcode.
    fn damaged(&mut self, place: impl FnOnce() -> String) {
        self.coverage.damaged += 1;
        self.coverage.first_damaged.get_or_insert_with(place);
    }
}

/// Whether a file that begins with `head` (at least 512 bytes of it) is an event trace log.
pub fn is_etl(head: &[u8]) -> bool {
    log_header::LogHeader::of_first_buffer(head).is_some()
}

/// What a log is about, as far as its records say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// It has interrupts, samples or switches of CPUs.
    pub processors: bool,
    /// It has packets, or messages or events of SMB.
    pub operations: bool,
    /// Which of them, and of which machine and time.
    pub log: Option<LogContents>,
}

/// Packets or events of SMB in a log, and of which machine and time they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogContents {
    found: windows::Found,
    /// When the machine was started, ns since 1970.
    boot_ns: Option<i64>,
    /// CPUs, and frequency of the performance counter.
    machine: (u32, i64),
    /// Times of the first and the last record, ns since 1970.
    start_ns: i64,
    end_ns: i64,
}

impl LogContents {
    /// Whether this log has events of the server, and `other` the packets of the same machine and time: both show the
    /// same operations.
    pub fn has_packets_in(&self, other: &LogContents) -> bool {
        // Windows corrects the time of its start with its clock.
        const TOLERANCE_NS: u64 = 10_000_000_000;
        let starts = self.boot_ns.zip(other.boot_ns);
        let is_same = starts.is_some_and(|(a, b)| a.abs_diff(b) <= TOLERANCE_NS);
        let is_of_packets = |found: &windows::Found| found.packets > 0 && found.responses == 0;
        self.found.responses > 0
            && self.found.packets == 0
            && self.found.messages == 0
            && is_of_packets(&other.found)
            && other.found.messages == 0
            && is_same
            && self.machine == other.machine
            && self.start_ns.max(other.start_ns) <= self.end_ns.min(other.end_ns)
    }
}

impl Contents {
    /// What traces of Linux are about.
    pub const PROCESSORS: Contents = Contents { processors: true, operations: false, log: None };
}

/// Finds out what a log is about. Reads until both are known, at most the whole log.
///
/// # Errors
///
/// [`Error::NotEtl`] if the source does not begin like a log, and those of the operating system.
pub fn contents<R: Read + Seek>(mut source: R) -> Result<Contents, Error> {
    let header = index::log_header(&mut source)?;
    let mut buffers = index::Buffers::new(header);
    let mut contents = Contents::default();
    let mut found = windows::Found::default();
    let mut times: Option<(i64, i64)> = None;
    while let Some(buffer) = buffers.next(&mut source)? {
        let mut position = record::Position::default();
        while let record::Next::Record(record) = position.next(&buffers.records, buffer.header.cpu)
        {
            match record.origin {
                Origin::Kernel { group, opcode } => {
                    contents.processors |= kernel::is_event(group, opcode);
                }
                Origin::Manifest { .. } => {
                    contents.operations |= windows::event_of(&record)
                        .is_some_and(|(provider, id)| found.count(provider, id));
                }
                _ => {}
            }
            if record.ticks != 0 {
                let (first, last) = times.unwrap_or((record.ticks, record.ticks));
                times = Some((first.min(record.ticks), last.max(record.ticks)));
            }
        }
        if contents.processors && contents.operations {
            break;
        }
    }
    let log = times.map(|(first, last)| LogContents {
        found,
        boot_ns: header.boot_ns,
        machine: (header.cpus, header.ticks_per_second),
        start_ns: header.clock.time_ns(first),
        end_ns: header.clock.time_ns(last),
    });
    Ok(Contents { log: log.filter(|_| contents.operations), ..contents })
}

/// Reads a log, calls `sink` with each event, and says what else is in the log.
///
/// # Errors
///
/// [`Error::NotEtl`] if the source does not begin like a log, and those of the operating system.
pub fn read<R: Read + Seek>(source: R, mut sink: impl FnMut(Event)) -> Result<Log, Error> {
    let mut reader = Reader::new(source)?;
    while reader.step(&mut sink)? {}
    Ok(reader.log)
}

/// Reads a log piece by piece.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    header: LogHeader,
    log: Log,
    state: State,
    /// Name of the recording and how to decode, if operations are wanted.
    wanted: Option<(String, Options)>,
    operations: Option<Box<Operations>>,
    companion: Option<Companion<R>>,
    parts: Vec<Part>,
}

/// Another log of the same machine and time, of which only packets and events of SMB are wanted.
#[derive(Debug)]
struct Companion<R> {
    name: String,
    source: R,
    header: LogHeader,
    log: Log,
}

#[derive(Debug)]
enum State {
    First(Box<Reading>),
    /// The first reading of the companion, and what that of the log itself found.
    Companion(Box<(Reading, Found)>),
    Second(Box<Second>),
    Ended,
}

/// The second reading while it runs.
#[derive(Debug)]
struct Second {
    merge: Merge,
    converter: Converter,
    of_companion: Option<Merge>,
}

/// The name of the format, with the build of Windows where the header has it.
fn format_of(build: u32) -> String {
    match build {
        0 => "Windows event trace log".to_owned(),
        build => format!("Windows event trace log, build {build}"),
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads the header of the log.
    ///
    /// # Errors
    ///
    /// [`Error::NotEtl`] if the source does not begin like a log, and those of the operating system.
    pub fn new(mut source: R) -> Result<Reader<R>, Error> {
        let header = index::log_header(&mut source)?;
        let coverage = Coverage {
            format: format_of(header.build),
            clock: header.clock_kind.map(|kind| kind.name().to_owned()),
            events_lost: Some(u64::from(header.events_lost)),
            buffers_lost: Some(u64::from(header.buffers_lost)),
            ..Coverage::default()
        };
        let (clock, cpus) = (header.clock_kind, header.cpus);
        let mut log = Log { coverage, clock, cpus, ..Log::default() };
        if let Some(what) = header.damaged {
            log.damaged(|| what.to_owned());
        }
        let state = State::First(Box::new(Reading::new(header, None)));
        let (wanted, operations, parts) = (None, None, Vec::new());
        Ok(Reader { source, header, log, state, wanted, operations, companion: None, parts })
    }

    /// Makes rows of operations, too, if the log has packets or events of SMB.
    #[must_use]
    pub fn with_operations(mut self, recording: &str, options: Options) -> Reader<R> {
        self.state = State::First(Box::new(Reading::new(self.header, Some(Box::default()))));
        self.wanted = Some((recording.to_owned(), options));
        self
    }

    /// Joins another log of the same machine and time ([`LogContents::has_packets_in`]), named `name`: the packets of one
    /// and the events of the other become the same rows. Nothing else of it is read.
    ///
    /// # Errors
    ///
    /// Those of [`Reader::new`].
    pub fn with_companion(mut self, name: &str, source: R) -> Result<Reader<R>, Error> {
        let Reader { source, header, log, .. } = Reader::new(source)?;
        self.companion = Some(Companion { name: name.to_owned(), source, header, log });
        Ok(self)
    }

    /// What both logs contained.
    fn coverage_of_both(&self) -> Coverage {
        let mut coverage = self.log.coverage.clone();
        let Some(Companion { name, log, .. }) = &self.companion else { return coverage };
        let other = &log.coverage;
        let sum = |a: Option<u64>, b: Option<u64>| Some(a.unwrap_or(0).saturating_add(b?)).or(a);
        coverage.read_bytes = coverage.read_bytes.saturating_add(other.read_bytes);
        coverage.events_lost = sum(coverage.events_lost, other.events_lost);
        coverage.buffers_lost = sum(coverage.buffers_lost, other.buffers_lost);
        coverage.damaged = coverage.damaged.saturating_add(other.damaged);
        let first = other.first_damaged.as_ref().map(|first| format!("{first} of {name}"));
        coverage.first_damaged = coverage.first_damaged.or(first);
        coverage
    }

    /// Begins the second reading.
    fn second(
        &mut self,
        Found { entries, bounds, survey, windows }: Found,
        others: Option<Found>,
        sink: &mut dyn FnMut(Event),
    ) -> io::Result<()> {
        if let Some(((recording, options), windows)) = self.wanted.take().zip(windows) {
            let machine = Machine {
                build: self.header.build,
                cpu_mhz: survey.mhz.unwrap_or(self.header.cpu_mhz),
                ticks_per_second: self.header.ticks_per_second,
            };
            let made = Operations::new(&recording, *windows, machine, &options);
            self.operations = made.map_err(failed)?.map(Box::new);
        }
        let mut converter = Converter::new(&self.header, survey, bounds, &mut self.log);
        converter.before_events(&self.header, sink);
        let merge = Merge::new(self.header, entries, bounds);
        let others = self.companion.as_ref().zip(others);
        let of_companion = others
            .map(|(companion, found)| Merge::new(companion.header, found.entries, found.bounds));
        self.state = State::Second(Box::new(Second { merge, converter, of_companion }));
        Ok(())
    }
}

fn failed(error: smbscope_capture::Error) -> io::Error {
    io::Error::other(error)
}

impl<R: Read + Seek> EventReader for Reader<R> {
    fn step(&mut self, sink: &mut dyn FnMut(Event)) -> io::Result<bool> {
        match &mut self.state {
            State::First(reading) => {
                if reading.step(&mut self.source, &mut self.log)? {
                    return Ok(true);
                }
                let State::First(reading) = std::mem::replace(&mut self.state, State::Ended) else {
                    return Ok(false);
                };
                let mut found = reading.finish(&mut self.log);
                match &self.companion {
                    Some(companion) => {
                        let windows = found.windows.take();
                        let reading = Reading::new(companion.header, windows);
                        self.state = State::Companion(Box::new((reading, found)));
                    }
                    None => self.second(found, None, sink)?,
                }
            }
            State::Companion(state) => {
                let Some(companion) = &mut self.companion else { return Ok(false) };
                if state.0.step(&mut companion.source, &mut companion.log)? {
                    return Ok(true);
                }
                let state = std::mem::replace(&mut self.state, State::Ended);
                let State::Companion(state) = state else { return Ok(false) };
                let (reading, mut found) = *state;
                let mut others = reading.finish(&mut companion.log);
                found.windows = others.windows.take();
                self.second(found, Some(others), sink)?;
            }
            State::Second(second) => {
                let Second { merge, converter, of_companion } = &mut **second;
                let (log, operations) = (&mut self.log, &mut self.operations);
                let clock = &self.header.clock;
                let mut other = self.companion.as_mut().zip(of_companion.as_mut());
                let mut failure = Ok(());
                let has_more = merge.step(&mut self.source, |record| {
                    let (origin, Some(operations)) = (record.origin, &mut *operations) else {
                        return converter.record(record, log, sink);
                    };
                    let time_ns = clock.time_ns(record.ticks);
                    if let Some((companion, merge)) = &mut other {
                        let clock = &companion.header.clock;
                        let until = clock.ticks_at(time_ns);
                        let result = merge.until(&mut companion.source, until, |record| {
                            operations.event(record, clock.time_ns(record.ticks));
                        });
                        failure = std::mem::replace(&mut failure, Ok(())).and(result);
                    }
                    match origin {
                        Origin::Manifest { guid, .. } if guid != kernel::power::PROVIDER.0 => {
                            operations.event(record, time_ns);
                        }
                        _ => converter.record(record, log, sink),
                    }
                })?;
                failure?;
                log.out_of_order = merge.out_of_order;
                let damaged = std::mem::take(&mut merge.damaged);
                if damaged > 0 {
                    log.coverage.damaged += damaged;
                    let what = || "times of events outside of the log or its order".to_owned();
                    log.coverage.first_damaged.get_or_insert_with(what);
                }
                let mut others_left = false;
                if let Some((companion, merge)) = other.filter(|_| !has_more)
                    && let Some(operations) = operations
                {
                    let clock = &companion.header.clock;
                    others_left = merge.step(&mut companion.source, |record| {
                        operations.event(record, clock.time_ns(record.ticks));
                    })?;
                    companion.log.coverage.damaged += std::mem::take(&mut merge.damaged);
                }
                if let Some(operations) = operations
                    && operations.wants_out()
                {
                    self.parts.extend(operations.parts().map_err(failed)?);
                }
                if !has_more && !others_left {
                    converter.finish(log, sink);
                    self.state = State::Ended;
                    if let Some(operations) = self.operations.take() {
                        let joined = self.companion.as_ref().map(|other| other.name.clone());
                        let coverage = self.coverage_of_both();
                        let parts = operations.end(&coverage, joined.as_deref()).map_err(failed)?;
                        self.parts.extend(parts);
                    }
                }
            }
            State::Ended => return Ok(false),
        }
        Ok(true)
    }

    fn coverage(&self) -> Coverage {
        self.log.coverage.clone()
    }

    fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }

    /// The log is read twice: each reading is half of the progress.
    fn read_bytes(&self) -> u64 {
        let of_companion = self.companion.as_ref().map_or(0, |other| other.log.coverage.read_bytes);
        let read_bytes = self.log.coverage.read_bytes.saturating_add(of_companion);
        match &self.state {
            State::First(_) | State::Companion(_) => read_bytes / 2,
            State::Second(second) => {
                (read_bytes as f64 * (1.0 + second.merge.share_read()) / 2.0) as u64
            }
            State::Ended => read_bytes,
        }
    }
}
