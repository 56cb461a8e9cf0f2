//! What is fed segment by segment gives what its file gives.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use smbscope_tables::code::{Source, Vantage};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::{Connection, Coverage, Handle, Session, Tree};

use super::{Endpoints, PushDecoder};
use crate::Part;
use crate::decoder::Decoder;
use crate::file::{self, Reader};
use crate::frame::dissect;
use crate::options::{Input, Options};

#[derive(Default)]
struct ReplyTimes {
    operations: Vec<RecordBatch>,
    connections: Vec<Connection>,
    sessions: Vec<Session>,
    trees: Vec<Tree>,
    handles: Vec<Handle>,
    coverage: Option<Coverage>,
}

impl ReplyTimes {
    fn take(&mut self, part: Part) {
        assert!(self.coverage.is_none(), "the coverage is the last part");
        match part {
            Part::Operations(batch) => self.operations.push(batch),
            Part::Connections(rows) => self.connections.extend(rows),
            Part::Sessions(rows) => self.sessions.extend(rows),
            Part::Trees(rows) => self.trees.extend(rows),
            Part::Handles(rows) => self.handles.extend(rows),
            Part::Coverage(row) => self.coverage = Some(*row),
            _ => {}
        }
    }

    fn rows(&self) -> RecordBatch {
        concat_batches(&self.operations[0].schema(), &self.operations).unwrap()
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

fn decoded(path: &Path, options: &Options) -> ReplyTimes {
    let mut seen = ReplyTimes::default();
    for part in Decoder::open(vec![Input::Path(path.to_owned())], options.clone()).unwrap() {
        seen.take(part.unwrap());
    }
    seen
}

/// Decodes a file and takes parts after every `every` segments.
fn fed(
    path: &Path,
    options: &Options,
    every: u64,
    amend: &mut dyn FnMut(&mut Operation, &Endpoints),
) -> ReplyTimes {
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut feed = PushDecoder::new(name, options).unwrap();
    let mut seen = ReplyTimes::default();
    let mut reader = Reader::open(path, file::Limits::default()).unwrap();
    while let Some(chunk) = reader.next_chunk(None).unwrap() {
        for frame in &chunk.frames {
            let segment = dissect(frame.link, chunk.frame(frame), frame.original).unwrap();
            feed.segment(&segment, frame.time_ns);
            if feed.frames().is_multiple_of(every) {
                feed.parts(amend).unwrap().into_iter().for_each(|part| seen.take(part));
            }
        }
    }
    let format = reader.summary().description();
    let parts = feed.end(amend, |coverage| coverage.format = format).unwrap();
    parts.into_iter().for_each(|part| seen.take(part));
    seen
}

#[test]
fn segments_give_the_same_rows_as_their_file() {
    let options = Options { threads: 1, ..Options::default() };
    for name in [
        "smb311.pcapng",
        "smb300.pcapng.gz",
        "multichannel.pcapng.gz",
        "compound-related.pcapng.gz",
        "lock-blocked.pcapng",
        "dfs.pcapng",
        "mtu-1500.pcap",
        "nt1.pcap",
        "ipv6.pcapng",
        "port-4450.pcapng",
        "durable-v2.pcapng.gz",
    ] {
        let path = fixture(name);
        let file = decoded(&path, &options);
        for every in [1, 7, u64::MAX] {
            let feed = fed(&path, &options, every, &mut |_, _| {});
            assert_eq!(feed.rows(), file.rows(), "{name}, every {every}");
            assert_eq!(feed.connections, file.connections, "{name}");
            assert_eq!(feed.sessions, file.sessions, "{name}");
            assert_eq!(feed.trees, file.trees, "{name}");
            assert_eq!(feed.handles, file.handles, "{name}");
            let file = file.coverage.as_ref().unwrap();
            let told = Coverage {
                resolution_ns: file.resolution_ns,
                file_bytes: file.file_bytes,
                wire_bytes: file.wire_bytes,
                frames_dropped: file.frames_dropped,
                frames_cut: file.frames_cut,
                cut_off: file.cut_off.clone(),
                ..feed.coverage.unwrap()
            };
            assert_eq!(&told, file, "{name}");
        }
    }
}

#[test]
fn an_amended_row_has_its_connection_and_keeps_its_changes() {
    let options = Options { threads: 1, ..Options::default() };
    let mut seen = Vec::new();
    let mut amend = |row: &mut Operation, ends: &Endpoints| {
        assert_eq!(row.source(), Some(Source::Capture as u64));
        assert_eq!(ends.server.port(), 445);
        seen.push((ends.client, row.tcp_sequence(), row.message_id(), row.compound_index()));
        row.set_source(Source::Probe as u64);
        row.set_vantage(Vantage::Inside as u64);
        row.set_queue_ns(seen.len() as i64);
    };
    let feed = fed(&fixture("compound-related.pcapng.gz"), &options, 3, &mut amend);
    let rows = feed.rows();
    assert_eq!(rows.num_rows(), seen.len());
    assert!(seen.iter().all(|&(client, sequence, ..)| client.port() > 1024 && sequence.is_some()));
    assert!(seen.iter().any(|&(.., index)| index == Some(1)), "a later member of a compound");
    let text = |name: &str| {
        let column = arrow::compute::cast(
            rows.column_by_name(name).unwrap(),
            &arrow::datatypes::DataType::Utf8,
        );
        let column = column.unwrap();
        let values: &arrow::array::StringArray = arrow::array::AsArray::as_string::<i32>(&column);
        values.iter().map(|value| value.unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert!(text("source").iter().all(|source| source == "probe"));
    assert!(text("vantage").iter().all(|vantage| vantage == "inside"));
    let numbers: Vec<String> = (1..=seen.len()).map(|number| number.to_string()).collect();
    assert_eq!(text("queue_ns"), numbers);
}

#[test]
fn the_machine_that_records_knows_which_end_it_is() {
    let mut options = Options { threads: 1, ..Options::default() };
    let path = fixture("mtu-1500.pcap");
    let plain = fed(&path, &options, 50, &mut |_, _| {});
    let (client, server) =
        (plain.connections[0].client.clone(), plain.connections[0].server.clone());
    assert_ne!(client, server);
    for (host, vantage) in [
        (vec![client.clone()], "client"),
        (vec![server.clone()], "server"),
        (vec![client, server], "server"),
    ] {
        options.host = host.iter().map(|address| address.parse().unwrap()).collect();
        let seen = fed(&path, &options, 50, &mut |_, _| {});
        assert!(seen.connections.iter().all(|row| row.vantage.as_deref() == Some(vantage)));
        assert_eq!(seen.coverage.unwrap().vantage.as_deref(), Some(vantage));
    }
}

#[test]
fn a_recording_begun_mid_stream_knows_earlier_state_and_ends_from_a_copy() {
    let options = Options { threads: 1, ..Options::default() };
    let path = fixture("smb311.pcapng");
    let whole = fed(&path, &options, u64::MAX, &mut |_, _| {});
    let nothing: &mut dyn FnMut(&mut Operation, &Endpoints) = &mut |_, _| {};
    let mut feed = PushDecoder::new("before", &options).unwrap();
    let mut reader = Reader::open(&path, file::Limits::default()).unwrap();
    let frames = whole.coverage.as_ref().unwrap().frames;
    let (mut before, mut seen, mut tail) = (0, ReplyTimes::default(), ReplyTimes::default());
    while let Some(chunk) = reader.next_chunk(None).unwrap() {
        for frame in &chunk.frames {
            let segment = dissect(frame.link, chunk.frame(frame), frame.original).unwrap();
            feed.segment(&segment, frame.time_ns);
            if feed.frames() == frames / 2 {
                for part in feed.begin("midst", nothing).unwrap() {
                    if let Part::Operations(batch) = part {
                        before += batch.num_rows();
                    }
                }
            }
            if feed.frames() == frames * 3 / 4 {
                feed.parts(nothing).unwrap().into_iter().for_each(|part| seen.take(part));
                feed.ended(nothing, |_| {}).unwrap().into_iter().for_each(|part| tail.take(part));
            }
        }
    }
    let recorded = seen.rows().num_rows();
    assert!(before > 10 && recorded > 10, "{before}, {recorded}");
    let unanswered: usize = tail.operations.iter().map(RecordBatch::num_rows).sum();
    let coverage = tail.coverage.unwrap();
    assert_eq!(coverage.recording, "midst");
    assert_eq!(coverage.operations, (recorded + unanswered) as u64);
    assert_eq!(coverage.frames, frames * 3 / 4 - frames / 2);
    // Logon and tree connect were before.
    assert_eq!(tail.sessions.len(), 1);
    assert_eq!(
        (&*tail.sessions[0].recording, &tail.sessions[0].user),
        ("midst", &whole.sessions[0].user)
    );
    assert!(tail.sessions[0].user.is_some());
    assert!(!tail.trees.is_empty() && tail.trees.iter().all(|row| row.recording == "midst"));
    assert_eq!(tail.connections.len(), 1);
    // Decoding continues as if nothing had happened.
    let mut rest = ReplyTimes::default();
    feed.end(nothing, |_| {}).unwrap().into_iter().for_each(|part| rest.take(part));
    let later = rest.rows().num_rows();
    assert_eq!(before + recorded + later, whole.rows().num_rows());
    let recording = whole.connections[0].recording.clone();
    let rest = Connection { recording, ..rest.connections[0].clone() };
    assert_eq!(rest, whole.connections[0]);
}
