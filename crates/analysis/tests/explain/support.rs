//! Synthetic operations, and their diagnosis.

use arrow::array::RecordBatch;
use smbscope_analysis::explain::{Diagnosis, Explain, Finding, FindingKind};
use smbscope_findings::Owner;
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::{Column, Operation};
use smbscope_tables::tables::Connection;

pub const TREE_DISCONNECT: u16 = 4;
pub const CREATE: u16 = 5;
pub const CLOSE: u16 = 6;
pub const FLUSH: u16 = 7;
pub const READ: u16 = 8;
pub const WRITE: u16 = 9;
pub const LOCK: u16 = 10;
pub const IOCTL: u16 = 11;
pub const ECHO: u16 = 13;
pub const QUERY_DIRECTORY: u16 = 14;
pub const QUERY_INFO: u16 = 16;
pub const SET_INFO: u16 = 17;
pub const NEGOTIATE: u16 = 0;
pub const SESSION_SETUP: u16 = 1;
pub const OPLOCK_BREAK: u16 = 18;
pub const MS: i64 = 1_000_000;
pub const NO_HANDLE: u64 = u64::MAX;
pub const NOT_FOUND: u32 = 0xc000_0034;

/// One operation to create: its command, the server's time, its open and its path.
#[derive(Clone)]
pub struct Act {
    pub command: u16,
    pub server_ns: i64,
    pub handle: u64,
    pub path: &'static str,
    pub client: &'static str,
    pub gap_ns: i64,
    pub rtt_ns: i64,
    pub set: fn(&mut Operation),
}

pub fn act(command: u16, handle: u64, path: &'static str) -> Act {
    let client = "10.0.0.1";
    Act {
        command,
        server_ns: MS / 10,
        handle,
        path,
        client,
        gap_ns: 0,
        rtt_ns: 5 * MS,
        set: |_| (),
    }
}

/// The break of an oplock that the server sends: it has no request.
pub fn notification(path: &'static str) -> Act {
    let set = |row: &mut Operation| {
        row.clear(Column::request_start);
        row.clear(Column::request_end);
        row.clear(Column::elapsed_ns);
        row.clear(Column::busy_ns);
    };
    Act { rtt_ns: 0, server_ns: 0, set, ..act(OPLOCK_BREAK, NO_HANDLE, path) }
}

/// The diagnosis of operations one after the other, each sent when the previous one is answered.
pub fn explain(acts: &[Act]) -> Diagnosis {
    explain_on(acts, Connection::default())
}

/// The same on a connection with these facts.
pub fn explain_on(acts: &[Act], connection: Connection) -> Diagnosis {
    explain_of(acts, vec![Connection { connection: 1, ..connection }])
}

/// The same on a share for pipes.
pub fn explain_of_pipe(acts: &[Act]) -> Diagnosis {
    explain_at(acts, vec![Connection { connection: 1, ..Connection::default() }], |_| {
        ("10.0.0.2", "\\\\server\\IPC$")
    })
}

/// The same with a proxy at 10.0.0.5, whose own client is the server's.
pub fn explain_between(acts: &[Act]) -> Diagnosis {
    explain_at(acts, Vec::new(), |act| match act.client {
        "10.0.0.5" => ("10.0.0.2", "\\\\server\\share"),
        _ => ("10.0.0.5", "\\\\server\\share"),
    })
}

/// The same on connections with these facts.
pub fn explain_of(acts: &[Act], connections: Vec<Connection>) -> Diagnosis {
    explain_at(acts, connections, |_| ("10.0.0.2", "\\\\server\\share"))
}

/// The same added to a diagnosis that has begun.
pub fn explain_with(explain: Explain, acts: &[Act], connections: Vec<Connection>) -> Diagnosis {
    finish(explain, acts, connections, |_| ("10.0.0.2", "\\\\server\\share"))
}

/// The same with a server and a share for each operation.
fn explain_at(
    acts: &[Act],
    connections: Vec<Connection>,
    place: fn(&Act) -> (&'static str, &'static str),
) -> Diagnosis {
    finish(Explain::with_gains(), acts, connections, place)
}

fn finish(
    mut explain: Explain,
    acts: &[Act],
    mut connections: Vec<Connection>,
    place: fn(&Act) -> (&'static str, &'static str),
) -> Diagnosis {
    explain.operations(&batch(acts, place)).unwrap();
    connections.iter_mut().for_each(|row| row.recording = "run".into());
    explain.connections(&connections);
    explain.finish().unwrap()
}

fn batch(acts: &[Act], place: fn(&Act) -> (&'static str, &'static str)) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    let mut at = 1_000_000_000_000;
    for (number, act) in acts.iter().enumerate() {
        at += act.gap_ns;
        let mut row = Operation::default();
        row.set_operation(number as u64);
        row.set_recording(builder.names.recording.intern("run"));
        row.set_client(builder.names.client.intern(act.client));
        let (server, share) = place(act);
        row.set_server(builder.names.server.intern(server));
        row.set_share(builder.names.share.intern(share));
        row.set_path(builder.names.path.intern(act.path));
        row.set_connection(1);
        row.set_protocol(2);
        row.set_command(code::command(2, act.command));
        if act.command == CREATE {
            row.set_detail(code::detail(code::Detail::Disposition, 1));
            row.set_desired_access(0x81);
        }
        if act.handle != NO_HANDLE {
            row.set_handle(act.handle);
        }
        row.set_status(0);
        row.set_outstanding(0);
        row.set_request_start(at);
        row.set_request_end(at);
        row.set_response_start(at + act.rtt_ns + act.server_ns);
        row.set_response_end(at + act.rtt_ns + act.server_ns);
        row.derive_durations();
        row.set_server_ns(act.server_ns);
        row.set_busy_ns(act.rtt_ns + act.server_ns);
        if act.gap_ns > 0 {
            row.set_client_gap_ns(act.gap_ns);
        }
        (act.set)(&mut row);
        at = row.response_end().unwrap_or(at);
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

/// The finding of a kind, if it has at least 5 % of the time.
pub fn found(diagnosis: &Diagnosis, kind: FindingKind) -> Option<&Finding> {
    diagnosis.findings.iter().find(|one| one.kind == kind && one.share() >= 0.05)
}

pub fn figure(found: &Finding, name: &str) -> f64 {
    found.figure(name).unwrap()
}

pub fn owner(found: &Finding) -> &Owner {
    found.owner.as_ref().unwrap()
}

pub fn set_sequential(row: &mut Operation, bytes: u64) {
    row.set_offset_bytes(row.operation().unwrap() * bytes);
    row.set_transferred_bytes(bytes);
}

/// Opens a path, queries it, closes it.
pub fn query_file(handle: u64, path: &'static str) -> [Act; 3] {
    [act(CREATE, handle, path), act(QUERY_INFO, handle, path), act(CLOSE, handle, path)]
}

/// Opens a folder, lists it, closes it.
pub fn list_folder(handle: u64) -> [Act; 4] {
    let end = |row: &mut Operation| row.set_status(0x8000_0006);
    let act = |command| act(command, handle, "folder");
    [act(CREATE), act(QUERY_DIRECTORY), Act { set: end, ..act(QUERY_DIRECTORY) }, act(CLOSE)]
}

/// A connection between two machines with that round trip and client window.
pub fn far_connection(rtt_ms: i64, window: u64) -> Connection {
    Connection {
        client: "10.0.0.1".into(),
        server: "10.0.0.2".into(),
        server_rtt_ns: Some(rtt_ms * MS),
        client_rtt_ns: Some(0),
        client_window_max: Some(window),
        ..Connection::default()
    }
}

/// Reads of 1 MiB whose bytes arrive within the given number of milliseconds.
pub fn long_reads(of_ms: fn(u64) -> i64) -> Vec<Act> {
    let read = |number| Act {
        server_ns: MS,
        gap_ns: 0,
        rtt_ns: of_ms(number) * MS,
        set: |row| long_read(row, 1),
        ..act(READ, 1, "big.iso")
    };
    (0..40).map(read).collect()
}

/// A read of 1 MiB on that connection, whose bytes arrive between 1 ms and its end.
pub fn long_read(row: &mut Operation, connection: u64) {
    let bytes = 1 << 20;
    set_sequential(row, bytes);
    row.set_connection(connection);
    row.set_response_wire_bytes(bytes + 84);
    row.set_response_start(row.request_start().unwrap() + MS);
    row.derive_durations();
}

/// Sequential reads over a round trip of 20 ms.
pub fn far_reads(set: fn(&mut Operation)) -> Vec<Act> {
    (0..40).map(|_| Act { rtt_ns: 20 * MS, set, ..act(READ, 1, "big.iso") }).collect()
}
