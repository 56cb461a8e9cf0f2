//! Windows' event trace logs (`.etl`) of the kernel logger, on any system.
//!
//! A file is a sequence of buffers, each filled by one processor. [`buffer`] reads their headers and
//! decompresses them, [`log_header`] reads the first record, [`record`] the headers of events,
//! [`merge`] puts the events of all processors in the order of their times, [`kernel`] knows the
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
use survey::Reading;

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
    /// Processors by the header.
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
    /// It has interrupts, samples or switches of processors.
    pub processors: bool,
    /// It has packets, or messages or events of SMB.
    pub operations: bool,
}

impl Contents {
    /// What traces of Linux are about.
    pub const PROCESSORS: Contents = Contents { processors: true, operations: false };
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
        }
        if contents.processors && contents.operations {
            break;
        }
    }
    Ok(contents)
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
    parts: Vec<Part>,
}

#[derive(Debug)]
enum State {
    First(Box<Reading>),
    Second(Box<(Merge, Converter)>),
    Ended,
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
            format: "Windows event trace log".to_owned(),
            clock: header.clock_kind.map(|kind| kind.name().to_owned()),
            events_lost: Some(u64::from(header.events_lost)),
            buffers_lost: Some(u64::from(header.buffers_lost)),
            ..Coverage::default()
        };
        let (clock, cpus) = (header.clock_kind, header.cpus);
        let log = Log { coverage, clock, cpus, ..Log::default() };
        let state = State::First(Box::new(Reading::new(header, false)));
        let (wanted, operations, parts) = (None, None, Vec::new());
        Ok(Reader { source, header, log, state, wanted, operations, parts })
    }

    /// Makes rows of operations, too, if the log has packets or events of SMB.
    #[must_use]
    pub fn with_operations(mut self, recording: &str, options: Options) -> Reader<R> {
        self.state = State::First(Box::new(Reading::new(self.header, true)));
        self.wanted = Some((recording.to_owned(), options));
        self
    }
}

fn failed(error: smbscope_capture::Error) -> io::Error {
    io::Error::other(error)
}

impl<R: Read + Seek> EventReader for Reader<R> {
    fn step(&mut self, sink: &mut dyn FnMut(Event)) -> io::Result<bool> {
        let (source, log) = (&mut self.source, &mut self.log);
        match &mut self.state {
            State::First(reading) => {
                if reading.step(source, log)? {
                    return Ok(true);
                }
                let State::First(reading) = std::mem::replace(&mut self.state, State::Ended) else {
                    return Ok(false);
                };
                let (entries, survey, windows) = reading.finish(log);
                if let Some(((recording, options), windows)) = self.wanted.take().zip(windows) {
                    let machine = Machine {
                        build: self.header.build,
                        cpu_mhz: survey.mhz.unwrap_or(self.header.cpu_mhz),
                        ticks_per_second: self.header.ticks_per_second,
                    };
                    let clock = self.header.clock;
                    let made = Operations::new(&recording, *windows, clock, machine, &options);
                    self.operations = made.map_err(failed)?.map(Box::new);
                }
                let mut converter = Converter::new(&self.header, survey, log);
                converter.before_events(&self.header, sink);
                let merge = Merge::new(self.header, entries);
                self.state = State::Second(Box::new((merge, converter)));
            }
            State::Second(second) => {
                let (merge, converter) = &mut **second;
                let operations = &mut self.operations;
                let has_more =
                    merge.step(source, |record| match (record.origin, &mut *operations) {
                        (Origin::Manifest { guid, .. }, Some(operations))
                            if guid != kernel::power::PROVIDER.0 =>
                        {
                            operations.event(record);
                        }
                        _ => converter.record(record, log, sink),
                    })?;
                log.out_of_order = merge.out_of_order;
                if let Some(operations) = operations
                    && operations.wants_out()
                {
                    self.parts.extend(operations.parts().map_err(failed)?);
                }
                if !has_more {
                    converter.finish(log, sink);
                    self.state = State::Ended;
                    if let Some(operations) = self.operations.take() {
                        let file_bytes = self.log.coverage.read_bytes;
                        self.parts.extend(operations.end(file_bytes).map_err(failed)?);
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
        let read_bytes = self.log.coverage.read_bytes;
        match &self.state {
            State::First(_) => read_bytes / 2,
            State::Second(second) => {
                (read_bytes as f64 * (1.0 + second.0.share_read()) / 2.0) as u64
            }
            State::Ended => read_bytes,
        }
    }
}
