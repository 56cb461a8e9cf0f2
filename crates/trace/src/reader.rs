//! A trace as parts of tables, whatever its format.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use arrow::error::ArrowError;
use smbscope_tables::{Part, Table};

use crate::counter_log;
use crate::ctf;
use crate::etl::{self, Contents};
use crate::event::EventReader;
#[cfg(feature = "evtx")]
use crate::evtx;
use crate::ftrace::{self, Text};
use crate::perf;
use crate::rows::Rows;
use crate::symbols::Symbols;
use crate::trace_dat;
use crate::xperf;

/// Bytes that are enough to recognise a format.
pub const HEAD_BYTES: usize = 16_384;

/// The first bytes of an event log of Windows.
const EVTX_MAGIC: &[u8] = b"ElfFile\0";

/// The tables that a trace has.
pub const TABLES: [Table; 10] = [
    Table::Interrupts,
    Table::InterruptTotals,
    Table::Samples,
    Table::Stacks,
    Table::Switches,
    Table::Cpus,
    Table::Devices,
    Table::Power,
    Table::Images,
    Table::Traces,
];

/// The tables that a trace with packets or events of SMB, or with counters, has.
pub const OPERATION_TABLES: [Table; 13] = [
    Table::Operations,
    Table::Slices,
    Table::Connections,
    Table::Sessions,
    Table::Trees,
    Table::Handles,
    Table::Channels,
    Table::Interfaces,
    Table::Waits,
    Table::Referrals,
    Table::ServerEvents,
    Table::Counters,
    Table::Coverage,
];

/// Which rows of a trace are wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Rows of the tables of CPUs.
    pub processors: bool,
    /// Rows of operations, and how packets are decoded.
    pub operations: Option<smbscope_capture::Options>,
    /// Another log of the same machine and time whose packets are about the same operations.
    pub companion: Option<PathBuf>,
}

impl Wanted {
    /// CPUs only.
    pub const PROCESSORS: Wanted = Wanted { processors: true, operations: None, companion: None };
}

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text of tracefs, `trace-cmd report` or `perf script`.
    LinuxText,
    /// `perf.data` of Linux.
    Perf,
    /// `trace.dat` of trace-cmd.
    TraceDat,
    /// A folder of LTTng, in the Common Trace Format.
    Ctf,
    /// Event trace log of Windows.
    Etl,
    /// Text of `xperf -a dpcisr`.
    XperfText,
    /// Event log of Windows.
    Evtx,
    /// Counter log of Windows, as text.
    CounterLog,
}

impl Format {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Format::LinuxText => "Linux trace text",
            Format::Perf => "perf.data",
            Format::TraceDat => "trace.dat",
            Format::Ctf => "Common Trace Format",
            Format::Etl => "Windows event trace log",
            Format::XperfText => "sums of xperf",
            Format::Evtx => "Windows event log",
            Format::CounterLog => "Windows counter log",
        }
    }
}

/// Why a trace could not be read.
#[derive(Debug)]
pub enum Error {
    /// An error of the operating system.
    Io(PathBuf, std::io::Error),
    /// Rows could not be converted.
    Arrow(ArrowError),
    /// A file with symbols that cannot be used, and why.
    Symbols(PathBuf, &'static str),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Arrow(error) => write!(f, "rows could not be converted: {error}"),
            Error::Symbols(path, what) => write!(f, "{}: {what}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Error {
        Error::Arrow(error)
    }
}

/// The format of a file by its first [`HEAD_BYTES`]; `None` if it is not a trace.
pub fn recognise(head: &[u8]) -> Option<Format> {
    if etl::is_etl(head) {
        return Some(Format::Etl);
    }
    if head.starts_with(EVTX_MAGIC) {
        return Some(Format::Evtx);
    }
    if perf::is_perf(head) {
        return Some(Format::Perf);
    }
    if trace_dat::is_trace_dat(head) {
        return Some(Format::TraceDat);
    }
    if head.contains(&0) {
        return None;
    }
    // The head can end within a character.
    let head = String::from_utf8_lossy(head);
    if counter_log::is_counter_log(&head) {
        return Some(Format::CounterLog);
    }
    if xperf::is_text(&head) {
        return Some(Format::XperfText);
    }
    ftrace::is_trace(&head).then_some(Format::LinuxText)
}

/// What a trace is about; an event trace log is read for that.
///
/// # Errors
///
/// Those of the operating system.
pub fn contents(path: &Path, format: Format) -> Result<Contents, Error> {
    if matches!(format, Format::Evtx | Format::CounterLog) {
        return Ok(Contents { operations: true, ..Contents::default() });
    }
    if format != Format::Etl {
        return Ok(Contents::PROCESSORS);
    }
    let failed = |error: io::Error| Error::Io(path.to_owned(), error);
    etl::contents(File::open(path).map_err(failed)?).map_err(|error| failed(error.into()))
}

/// Format and size of a folder; `None` if it is not a trace.
pub fn recognise_folder(path: &Path) -> Option<(Format, u64)> {
    let folder = ctf::Folder::open(path).ok()?;
    Some((Format::Ctf, folder.size_bytes()))
}

/// Reads a trace.
pub struct Reader {
    events: Box<dyn EventReader + Send>,
    path: PathBuf,
    rows: Rows,
    ready: VecDeque<Part>,
    ended: bool,
    is_about_processors: bool,
}

impl Reader {
    /// Opens a file or folder of a format that [`recognise`] or [`recognise_folder`] found. Its name
    /// is that of the recording. Functions that the trace does not name come from `symbols`.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn open(
        path: &Path,
        format: Format,
        symbols: &Symbols,
        batch_rows: usize,
    ) -> Result<Reader, Error> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Reader::open_as(path, &name, format, symbols, batch_rows, Wanted::PROCESSORS)
    }

    /// The same for a recording with another name than its file.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn open_as(
        path: &Path,
        recording: &str,
        format: Format,
        symbols: &Symbols,
        batch_rows: usize,
        wanted: Wanted,
    ) -> Result<Reader, Error> {
        let processors = wanted.processors;
        let events = open(path, recording, format, wanted);
        let events = events.map_err(|error| Error::Io(path.to_owned(), error))?;
        let mut reader = Reader::new(events, recording, batch_rows);
        reader.is_about_processors = processors;
        path.clone_into(&mut reader.path);
        reader.rows.use_symbols(symbols.clone(), format == Format::Etl);
        Ok(reader)
    }

    /// Rows of the events of a reader, in batches of about `batch_rows`.
    pub fn new(events: Box<dyn EventReader + Send>, recording: &str, batch_rows: usize) -> Reader {
        Reader {
            events,
            path: recording.into(),
            rows: Rows::new(recording, batch_rows),
            ready: VecDeque::new(),
            ended: false,
            is_about_processors: true,
        }
    }

    /// Bytes read so far.
    pub fn read_bytes(&self) -> u64 {
        self.events.read_bytes()
    }

    /// The next rows; `None` at the end. The table `traces` comes last.
    ///
    /// # Errors
    ///
    /// Those of the operating system. Damaged records are not errors: they are counted.
    pub fn next_part(&mut self) -> Result<Option<Part>, Error> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(Some(part));
            }
            if self.ended {
                return Ok(None);
            }
            let rows = &mut self.rows;
            let is_wanted = self.is_about_processors;
            let step = self.events.step(&mut |event| {
                if is_wanted {
                    rows.event(event);
                }
            });
            self.ended = !step.map_err(|error| Error::Io(self.path.clone(), error))?;
            self.ready.extend(self.events.take_parts());
            self.ready.extend(match self.ended {
                _ if !is_wanted => Vec::new(),
                true => self.rows.finish(self.events.coverage())?,
                false if self.rows.is_full() => self.rows.take()?,
                false => Vec::new(),
            });
        }
    }
}

fn open(
    path: &Path,
    recording: &str,
    format: Format,
    Wanted { operations, companion, .. }: Wanted,
) -> io::Result<Box<dyn EventReader + Send>> {
    let file = || File::open(path);
    Ok(match format {
        Format::LinuxText => Box::new(Text::new(BufReader::with_capacity(1 << 16, file()?))),
        Format::Perf => Box::new(perf::Reader::new(file()?)?),
        Format::TraceDat => Box::new(trace_dat::Reader::new(file()?)?),
        Format::Ctf => Box::new(ctf::Reader::new(ctf::Folder::open(path)?)?),
        #[cfg(feature = "evtx")]
        Format::Evtx => Box::new(evtx::Reader::new(path, recording)?),
        #[cfg(not(feature = "evtx"))]
        Format::Evtx => {
            let why = "this build reads no event logs: build with default features \
                       (cargo build --release -p smbscope)";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Format::CounterLog => {
            let source = BufReader::with_capacity(1 << 16, file()?);
            Box::new(counter_log::Reader::new(source, recording))
        }
        Format::XperfText => Box::new(xperf::Text::new(BufReader::with_capacity(1 << 16, file()?))),
        Format::Etl => {
            let mut reader = etl::Reader::new(file()?)?;
            if let Some(options) = operations {
                reader = reader.with_operations(recording, options);
                if let Some(other) = companion {
                    let name = other.file_name().unwrap_or_default().to_string_lossy();
                    reader = reader.with_companion(&name, File::open(&other)?)?;
                }
            }
            Box::new(reader)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_tables::tables::Trace;

    fn trace(text: Vec<u8>) -> (Vec<Part>, Trace) {
        let mut reader = Reader::new(Box::new(Text::new(std::io::Cursor::new(text))), "x", 10);
        let mut parts = Vec::new();
        while let Some(part) = reader.next_part().unwrap() {
            parts.push(part);
        }
        let Some(Part::Traces(rows)) = parts.last() else { panic!("no trace") };
        let row = rows[0].clone();
        (parts, row)
    }

    #[test]
    fn lines_that_are_too_long_or_binary_are_damaged() {
        let mut text = b"a-1 [000] 1.0: x: y\r\n".to_vec();
        text.extend(vec![b'x'; 2 * ftrace::LINE_BYTES_MAX]);
        text.extend(b"\na-1 [000] 2.0: x\0: y\n\xff\xfe-1 [000] 3.0: x: y");
        let bytes = text.len() as u64;
        let (_, row) = trace(text);
        assert_eq!((row.events, row.damaged, row.file_bytes), (2, 2, bytes));
        assert_eq!(row.first_damaged.as_deref(), Some("line 2: too long, or not text"));
        assert_eq!((row.started_at, row.ended_at), (Some(1_000_000_000), Some(3_000_000_000)));
        assert_eq!(trace(Vec::new()).1.events, 0);
    }

    #[test]
    fn parts_have_about_as_many_rows_as_requested() {
        let lines = (0..100).map(|number| {
            format!(
                "a-1 [000] 1.{number:06}: local_timer_entry: vector=236\n\
                 a-1 [000] 1.{number:06}: local_timer_exit: vector=236\n"
            )
        });
        let text: String = lines.collect();
        let (parts, row) = trace(text.into_bytes());
        let rows: Vec<_> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Interrupts(batch) => Some(batch.num_rows()),
                _ => None,
            })
            .collect();
        assert_eq!((rows, row.interrupts), (vec![10; 10], 100));
        assert!(parts.iter().all(|part| TABLES.contains(&part.table())));
    }

    #[test]
    fn captures_are_not_traces() {
        assert_eq!(recognise(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]), None);
        assert_eq!(recognise(b"PAR1"), None);
        assert_eq!(recognise(b"# tracer: nop\n#\n"), Some(Format::LinuxText));
    }
}
