//! `smbscope export --perfetto`: the trace read back, packet by packet.

use std::collections::BTreeMap;
use std::path::Path;

use smbscope_store::Part;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::manifest::Kind;
use smbscope_tables::operation::Operation;
use smbscope_tables::slice::{self, Slice};

use super::{OPERATIONS, answer, capture, complaint, folder, smbscope};

const START: i64 = 1_767_603_600_000_000_000;
const READ: u16 = 8;

/// A recording from inside a server: two parallel reads on one connection, of which the second ends
/// first, a third after them, and one on another connection.
fn recording(path: &Path) -> String {
    let seed = ManifestSeed::now(Kind::Record, Vec::new());
    let mut writer = DatasetWriter::create(path, seed, WriteOptions::default()).unwrap();
    let mut builder = OperationBuilder::new(None).unwrap();
    for (number, connection, from, to) in
        [(1, 7, 50, 80), (2, 7, 0, 100), (3, 7, 100, 130), (4, 8, 0, 140)]
    {
        let mut row = Operation::default();
        row.set_recording(builder.names.recording.intern("fs1"));
        row.set_operation(number);
        row.set_connection(connection);
        row.set_client(builder.names.client.intern("10.0.0.9"));
        row.set_client_port(50_000 + connection as u16);
        row.set_server(builder.names.server.intern("10.0.0.1"));
        row.set_server_port(445);
        row.set_share(builder.names.share.intern("\\\\fs1\\home"));
        row.set_path(builder.names.path.intern("alice\\salary.xlsx"));
        row.set_protocol(2);
        row.set_command(code::command(2, READ));
        row.set_request_start(START + from);
        row.set_request_end(START + from);
        row.set_response_start(START + to);
        row.set_response_end(START + to);
        row.derive_durations();
        row.set_queue_ns(10);
        row.set_io_ns(20);
        builder.append(&[row]);
    }
    // Members of a compound have no time of their own; the second one has slices.
    for number in [5, 6] {
        let mut member = Operation::default();
        member.set_recording(builder.names.recording.intern("fs1"));
        member.set_connection(8);
        member.set_operation(number);
        builder.append(&[member]);
    }
    writer.part(Part::Operations(builder.finish().unwrap())).unwrap();
    let slice = |operation, kind: slice::Kind, from: i64, duration_ns| Slice {
        recording: "fs1".into(),
        operation,
        kind: kind.name().into(),
        start: START + from,
        duration_ns,
        ..Slice::default()
    };
    // Not quite in order, the inner slice before the outer, one that continues after the operation, and
    // one of a missing operation.
    let slices = vec![
        slice(2, slice::Kind::Queue, 0, 10),
        slice(1, slice::Kind::Queue, 50, 10),
        slice(1, slice::Kind::Disk, 62, 5),
        slice(1, slice::Kind::Io, 60, 20),
        slice(3, slice::Kind::Io, 110, 50),
        slice(6, slice::Kind::Processing, 150, 10),
        slice(6, slice::Kind::Send, 160, 5),
        slice(99, slice::Kind::Io, 110, 50),
    ];
    writer.part(Part::Slices(Slice::to_batch(&slices).unwrap())).unwrap();
    writer.finish(true).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A field of a protobuf message.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0.. {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (place * 7);
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        fields.push((
            key >> 3,
            match key & 7 {
                0 => Field::Number(value),
                2 => {
                    let (head, rest) = bytes.split_at(value as usize);
                    bytes = rest;
                    Field::Bytes(head.to_vec())
                }
                other => panic!("wire type {other}"),
            },
        ));
    }
    fields
}

fn number(fields: &[(u64, Field)], wanted: u64) -> Option<u64> {
    fields.iter().find_map(|(field, value)| match value {
        Field::Number(value) if *field == wanted => Some(*value),
        _ => None,
    })
}

fn bytes(fields: &[(u64, Field)], wanted: u64) -> Option<Vec<u8>> {
    fields.iter().find_map(|(field, value)| match value {
        Field::Bytes(value) if *field == wanted => Some(value.clone()),
        _ => None,
    })
}

fn text(fields: &[(u64, Field)], wanted: u64) -> Option<String> {
    bytes(fields, wanted).map(|bytes| String::from_utf8(bytes).unwrap())
}

/// The contents of a trace: on each track slices with depth, begin and end, and instants.
#[derive(Debug, Default)]
struct Trace {
    /// Name and parent.
    tracks: BTreeMap<u64, (String, Option<u64>)>,
    slices: Vec<(u64, String, usize, i64, i64)>,
    moments: usize,
}

/// Reads a trace as Perfetto does: events in the order of time, a slice ends the innermost.
fn read(trace: &[u8]) -> Trace {
    let mut out = Trace::default();
    let mut events = Vec::new();
    for (field, packet) in fields(trace) {
        let Field::Bytes(packet) = packet else { panic!("{field}") };
        let packet = fields(&packet);
        assert_eq!((field, number(&packet, 10)), (1, Some(1)));
        if let Some(track) = bytes(&packet, 60) {
            let track = fields(&track);
            let name = text(&track, 2).unwrap();
            out.tracks.insert(number(&track, 1).unwrap(), (name, number(&track, 5)));
        }
        if let Some(event) = bytes(&packet, 11) {
            let event = fields(&event);
            let kind = number(&event, 9).unwrap();
            let at = number(&packet, 8).unwrap() as i64 - START;
            events.push((at, number(&event, 11).unwrap(), kind, text(&event, 23)));
        }
    }
    events.sort_by_key(|event| event.0);
    let mut open: BTreeMap<u64, Vec<(String, i64)>> = BTreeMap::new();
    for (at, track, kind, name) in events {
        assert!(out.tracks.contains_key(&track));
        let stack = open.entry(track).or_default();
        match kind {
            1 => stack.push((name.unwrap(), at)),
            2 => {
                let (name, from) = stack.pop().unwrap();
                out.slices.push((track, name, stack.len(), from, at));
            }
            _ => out.moments += 1,
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    out.slices.sort_by_key(|slice| (slice.0, slice.3, slice.2));
    out
}

#[test]
fn slices_are_nested_in_operations_on_connection_tracks() {
    let (_guard, dir) = folder();
    let run = recording(&dir.join("run"));
    let out = dir.join("trace");
    let arguments = ["export", "--perfetto", &run, "--out", out.to_str().unwrap()];
    let assert = smbscope(arguments).assert().success();
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    let expected = "operations: 5; slices within them: 7; \
                    operations without times of their own, left out: 1; \
                    slices without an operation, left out: 1\n";
    assert_eq!(said, expected);
    let trace = read(&std::fs::read(out).unwrap());
    let name = |track: u64| trace.tracks[&track].0.as_str();
    let shown: Vec<_> = trace
        .slices
        .iter()
        .map(|(track, what, depth, from, to)| (name(*track), what.as_str(), *depth, *from, *to))
        .collect();
    let (seven, eight) = (
        "connection 7: 10.0.0.9:50007 to 10.0.0.1:445",
        "connection 8: 10.0.0.9:50008 to 10.0.0.1:445",
    );
    assert_eq!(
        shown,
        [
            (seven, "Read", 0, 50, 80),
            (seven, "queue", 1, 50, 60),
            (seven, "io", 1, 60, 80),
            (seven, "disk", 2, 62, 67),
            // On a second track of the same name: the first one is occupied from 50 to 80.
            (seven, "Read", 0, 0, 100),
            (seven, "queue", 1, 0, 10),
            (seven, "Read", 0, 100, 130),
            // Cut where its operation ends.
            (seven, "io", 1, 110, 130),
            (eight, "Read", 0, 0, 140),
            (eight, "(unknown)", 0, 150, 165),
            (eight, "processing", 1, 150, 160),
            (eight, "send", 1, 160, 165),
        ]
    );
    // All below the recording's track.
    let top = trace.tracks.iter().find(|(_, (name, _))| name == "fs1").unwrap().0;
    let parents: Vec<_> = trace.tracks.values().filter_map(|(_, parent)| *parent).collect();
    assert_eq!(parents, [*top; 3]);
}

#[test]
fn a_capture_can_be_exported_without_names() {
    let capture = capture();
    let assert = smbscope(["export", "--perfetto", &capture]).assert().success();
    let trace = read(&assert.get_output().stdout);
    assert_eq!(trace.slices.len() + trace.moments, OPERATIONS as usize);
    assert!(trace.slices.iter().any(|slice| slice.1 == "QueryDirectory"));
    let assert = smbscope(["export", "--perfetto", &capture, "--anonymize"]).assert().success();
    let bytes = &assert.get_output().stdout;
    assert_eq!(read(bytes).slices.len(), trace.slices.len());
    let text = String::from_utf8_lossy(bytes);
    for name in ["127.0.0.1", "alice", "one.txt", "smb302"] {
        assert!(!text.contains(name), "{name}");
    }
}

#[test]
fn a_recording_has_a_report_section_and_named_queries() {
    let (_guard, dir) = folder();
    let run = recording(&dir.join("run"));
    assert!(answer(["report", &run, "--all"]).contains("── INSIDE THE SERVER"));
    let json: serde_json::Value =
        serde_json::from_str(&answer(["report", &run, "--format", "json"])).unwrap();
    assert_eq!(json["server"]["operations"], 4);
    assert_eq!(json["server"]["slowest"][1]["placed"], true);
    assert!(answer(["query", &run, "--question", "server"]).contains("Read"));
}

#[test]
fn wrong_options_and_missing_inputs_set_the_exit_code() {
    assert!(complaint(2, ["export", "x"]).contains("--perfetto"));
    complaint(4, ["export", "--perfetto", "absent.pcap"]);
    let out = "/nonexistent/trace";
    complaint(5, ["export", "--perfetto", &capture(), "--out", out]);
}
