//! Rows of captures and of logs, as texts that can be compared.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{Array as _, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use smbscope_capture::file::{Limits, LinkType, Reader as CaptureReader};
use smbscope_capture::{Decoder, Input, Options};
use smbscope_tables::Part;
use smbscope_tables::slice::Slice;
use smbscope_tables::tables::{Channel, Connection, Coverage, Handle, ServerEvent, Session, Tree};
use smbscope_testing::windows_log::Frame;
use smbscope_trace::{Format, Reader, Symbols, Wanted, contents};

/// One row: its columns that are not null.
pub type Row = BTreeMap<String, String>;

/// What an input becomes.
#[derive(Default)]
pub struct Decoded {
    pub operations: Vec<Row>,
    pub slices: Vec<Slice>,
    pub connections: Vec<Connection>,
    pub sessions: Vec<Session>,
    pub trees: Vec<Tree>,
    pub handles: Vec<Handle>,
    pub channels: Vec<Channel>,
    pub events: Vec<ServerEvent>,
    pub coverage: Option<Coverage>,
}

impl Decoded {
    fn add(&mut self, part: Part) {
        match part {
            Part::Operations(batch) => self.operations.extend(rows(&batch)),
            Part::Slices(batch) => self.slices.extend(Slice::from_batch(&batch)),
            Part::Connections(rows) => self.connections.extend(rows),
            Part::Sessions(rows) => self.sessions.extend(rows),
            Part::Trees(rows) => self.trees.extend(rows),
            Part::Handles(rows) => self.handles.extend(rows),
            Part::Channels(rows) => self.channels.extend(rows),
            Part::ServerEvents(rows) => self.events.extend(rows),
            Part::Coverage(row) => self.coverage = Some(*row),
            _ => {}
        }
    }

    /// The operations with some of their columns.
    pub fn with(&self, columns: &[&str]) -> Vec<Row> {
        self.kept(|name| columns.contains(&name))
    }

    /// The operations without some of their columns.
    pub fn without(&self, columns: &[&str]) -> Vec<Row> {
        self.kept(|name| !columns.contains(&name))
    }

    fn kept(&self, keep: impl Fn(&str) -> bool) -> Vec<Row> {
        let kept = |row: &Row| -> Row {
            row.iter().filter(|(name, _)| keep(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
        };
        self.operations.iter().map(kept).collect()
    }
}

fn rows(batch: &RecordBatch) -> Vec<Row> {
    let options = FormatOptions::default();
    let schema = batch.schema();
    let columns: Vec<_> = (schema.fields().iter().zip(batch.columns()))
        .map(|(field, array)| {
            (field.name(), array, ArrayFormatter::try_new(array, &options).unwrap())
        })
        .collect();
    let row = |row: usize| -> Row {
        let known = columns.iter().filter(|(_, array, _)| array.is_valid(row));
        known.map(|(name, _, values)| ((*name).clone(), values.value(row).to_string())).collect()
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The rows of a capture with these frames.
pub fn of_frames(frames: &[Frame]) -> Decoded {
    let mut pcap = [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 262_144, 1].map(u32::to_le_bytes).concat();
    for Frame { time_ns, bytes } in frames {
        let (seconds, rest) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let length = bytes.len() as u32;
        let head = [seconds as u32, rest as u32, length, length];
        pcap.extend(head.map(u32::to_le_bytes).concat());
        pcap.extend(bytes);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pcap).unwrap();
    of_capture(file.path())
}

fn of_capture(path: &Path) -> Decoded {
    let options = Options { threads: 1, ..Options::default() };
    let mut decoded = Decoded::default();
    for part in Decoder::open(vec![Input::Path(path.into())], options).unwrap() {
        decoded.add(part.unwrap());
    }
    decoded
}

/// The rows of a log.
pub fn of_log(log: &[u8]) -> Decoded {
    of_logs(log, None)
}

/// The rows of a log that another one is joined to.
pub fn of_logs(log: &[u8], other: Option<&[u8]>) -> Decoded {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, log: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, log).unwrap();
        path
    };
    let (path, companion) = (write("log", log), other.map(|log| write("other", log)));
    if let Some(other) = &companion {
        let contents = |path| contents(path, Format::Etl).unwrap().log.unwrap();
        let (log, other) = (contents(&path), contents(other));
        assert!(log.has_packets_in(&other) && !other.has_packets_in(&log));
        assert!(!log.has_packets_in(&log) && !other.has_packets_in(&other));
    }
    let wanted = Wanted { processors: false, operations: Some(Options::default()), companion };
    let mut reader =
        Reader::open_as(&path, "log", Format::Etl, &Symbols::default(), 1_000, wanted).unwrap();
    let mut decoded = Decoded::default();
    while let Some(part) = reader.next_part().unwrap() {
        decoded.add(part);
    }
    decoded
}

/// The frames of a capture with Ethernet, with times in units of 100 ns, as logs have them.
pub fn frames(path: &Path) -> Vec<Frame> {
    let mut reader = CaptureReader::open(path, Limits::default()).unwrap();
    let mut frames = Vec::new();
    while let Some(chunk) = reader.next_chunk(None).unwrap() {
        for frame in &chunk.frames {
            let time_ns = frame.time_ns / 100 * 100;
            let bytes = chunk.frame(frame);
            let bytes = match frame.link {
                LinkType::ETHERNET => bytes.to_vec(),
                // Four bytes with the family, here always that of IPv4.
                LinkType::NULL => [&[0; 12][..], &[8, 0], &bytes[4..]].concat(),
                other => panic!("{} has {other}", path.display()),
            };
            frames.push(Frame { time_ns, bytes });
        }
    }
    frames
}
