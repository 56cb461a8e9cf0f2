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
mod clock;
mod convert;
mod index;
mod kernel;
mod log_header;
mod merge;
mod record;
mod stacks;
mod survey;

pub use clock::ClockKind;
pub use kernel::config::{InterruptLine, NetworkAdapter};
pub use record::Origin;

use crate::event::{Coverage, Event, EventReader};
use convert::Converter;
use log_header::LogHeader;
use merge::Merge;
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
        let state = State::First(Box::new(Reading::new(header)));
        Ok(Reader { source, header, log, state })
    }
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
                let (entries, survey) = reading.finish(log);
                let mut converter = Converter::new(self.header.clock, survey, log);
                converter.before_events(&self.header, sink);
                let merge = Merge::new(self.header, entries);
                self.state = State::Second(Box::new((merge, converter)));
            }
            State::Second(second) => {
                let (merge, converter) = &mut **second;
                let has_more = merge.step(source, |record| converter.record(record, log, sink))?;
                log.out_of_order = merge.out_of_order;
                if !has_more {
                    converter.finish(log, sink);
                    self.state = State::Ended;
                }
            }
            State::Ended => return Ok(false),
        }
        Ok(true)
    }

    fn coverage(&self) -> Coverage {
        self.log.coverage.clone()
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
