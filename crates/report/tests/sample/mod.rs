//! Summaries of synthetic operations: small ones for golden files, large ones for viewing.

// A helper of tests that clippy does not recognize.
#![allow(clippy::unwrap_used)]

pub mod channels;
pub mod cores;
pub mod diagnosis;
pub mod forecast;
pub mod load;
pub mod namespace;
pub mod replication;
pub mod server;
pub mod why;

use smbscope_analysis::summary::{Options, Report, Summary};
use smbscope_tables::builder::{OperationBuilder, extension_of};
use smbscope_tables::code;
use smbscope_tables::operation::{Column, Operation};
use smbscope_tables::tables::{Connection, Coverage, Handle, ServerEvent, Session, Tree};

/// 2026-01-05 09:00 UTC.
const START: i64 = 1_767_603_600_000_000_000;
const COMMANDS: [u16; 12] = [5, 16, 8, 8, 8, 9, 6, 14, 11, 17, 15, 18];

/// Paths and names that try to escape from their container.
pub const HOSTILE: &str = "x\u{1b}[2J<script>alert('1')</script>\"&\u{202e}.txt";

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The summary of the given number of operations; always the same.
pub fn report(operations: u64) -> Report {
    let mut random = Random(7);
    let mut builder = OperationBuilder::new(None).unwrap();
    let mut summary = Summary::new(Options::default());
    for number in 0..operations {
        let row = operation(&mut random, &mut builder, number);
        builder.append(&[row]);
        if builder.len() == 4096 {
            summary.operations(&builder.finish().unwrap()).unwrap();
        }
    }
    summary.operations(&builder.finish().unwrap()).unwrap();
    let end = START + operations as i64 * 2_000_000;
    summary.coverage(&coverage(operations, end));
    tables(&mut summary, &mut random, end, operations);
    summary.finish()
}

fn operation(random: &mut Random, builder: &mut OperationBuilder, number: u64) -> Operation {
    let names = &mut builder.names;
    let mut row = Operation::default();
    let command = COMMANDS[random.below(if number.is_multiple_of(50) { 12 } else { 10 }) as usize];
    let user = random.below(6);
    row.set_recording(names.recording.intern("monday.pcapng"));
    row.set_operation(number + 1);
    row.set_connection(user + 1);
    row.set_client(names.client.intern(&format!("10.0.0.{}", 10 + user)));
    row.set_client_port(50_000 + user as u16);
    row.set_server(names.server.intern("10.0.0.1"));
    row.set_server_port(445);
    row.set_user(names.user.intern(&format!("EXAMPLE\\user{user}")));
    row.set_dialect(0x311);
    row.set_protocol(2);
    row.set_command(code::command(2, command));
    row.set_message_id(number + 10);
    row.set_status(0);
    row.set_status_name(0);
    let share = if random.below(4) == 0 { "\\\\files\\projects" } else { "\\\\files\\homes" };
    row.set_share(names.share.intern(share));
    let spread = 1 + random.below(40);
    let file = random.below(spread);
    let path = match file {
        3 => HOSTILE.to_owned(),
        _ => format!(
            "user{user}\\documents\\file{file}.{}",
            ["docx", "xlsx", "pdf", "txt"][file as usize % 4]
        ),
    };
    row.set_path(names.path.intern(&path));
    if let Some(extension) = extension_of(&path) {
        row.set_extension(names.extension.intern(extension));
    }
    if matches!(command, 8 | 9) {
        let size = [4_096, 65_536, 65_536, 1_048_576, 512][random.below(5) as usize];
        row.set_requested_bytes(size);
        row.set_transferred_bytes(size - random.below(2) * (size / 3));
    }
    row.set_request_wire_bytes(200);
    row.set_response_wire_bytes(300 + row.transferred_bytes().unwrap_or(0));
    row.set_credit_charge(1);
    row.set_credits_requested(16);
    row.set_credits_granted(1 + random.below(16) as u16);
    row.set_outstanding(random.below(6) as u32);
    row.set_signed(true);
    row.set_encrypted(user == 5);
    row.set_request_frame(number * 2 + 1);
    row.set_response_frame(number * 2 + 2);
    // The load oscillates, with one stall in the middle.
    let slow = if number % 5_000 > 4_800 { 8 } else { 1 };
    let start = START + number as i64 * 2_000_000 + random.below(900_000) as i64;
    let server =
        (60_000 + random.below(400_000) * (1 + random.below(8)) * u64::from(command)) as i64 / 8
            * slow;
    row.set_request_start(start);
    row.set_request_end(start + if command == 9 { 400_000 } else { 2_000 });
    row.set_response_start(start + 402_000 + server);
    row.set_response_end(start + 402_000 + server + if command == 8 { 700_000 } else { 1_000 });
    row.derive_durations();
    row.set_server_ns(server - 20_000);
    row.set_server_error_ns(5_000);
    row.set_busy_ns(server / 2 + 10_000);
    special(random, &mut row, command, number);
    row
}

/// Unusual rows: errors, chains, waits, incomplete and encrypted ones.
fn special(random: &mut Random, row: &mut Operation, command: u16, number: u64) {
    let status = |row: &mut Operation, status: u32| {
        row.set_status(status);
        row.set_status_name(code::status_name(status));
    };
    match (command, random.below(12)) {
        (5, 0) => status(row, 0xc000_0034),
        (5, 1) => status(row, 0xc000_0022),
        (14, 0..5) => status(row, 0x8000_0006),
        _ => {}
    }
    if command == 5 {
        row.set_lease_granted(code::lease(if number.is_multiple_of(3) { 3 } else { 7 }));
        row.set_oplock_granted(code::oplock(0xff));
    }
    if command == 15 {
        row.set_waits(true);
        row.clear(Column::busy_ns);
    }
    if command == 18 {
        for column in [
            Column::request_start,
            Column::request_end,
            Column::request_frame,
            Column::elapsed_ns,
            Column::turnaround_ns,
            Column::request_transfer_ns,
            Column::server_ns,
            Column::busy_ns,
            Column::status,
        ] {
            row.clear(column);
        }
        row.set_detail(code::detail(code::Detail::Break, 1));
        row.set_lease_requested(code::lease(7));
        row.set_lease_granted(code::lease(3));
    }
    if number % 97 == 13 {
        for column in [
            Column::response_start,
            Column::response_end,
            Column::response_frame,
            Column::elapsed_ns,
            Column::turnaround_ns,
            Column::response_transfer_ns,
            Column::server_ns,
            Column::busy_ns,
            Column::status,
        ] {
            row.clear(column);
        }
    }
    if number % 83 == 5 {
        row.clear(Column::command);
        row.clear(Column::message_id);
        row.set_encrypted(true);
    }
    if number % 20 < 3 {
        row.set_compound(number / 20);
        row.set_compound_index((number % 20) as u16);
        row.set_compound_size(3);
        row.set_related(!number.is_multiple_of(20));
        if !number.is_multiple_of(20) {
            for column in [
                Column::request_start,
                Column::request_end,
                Column::response_start,
                Column::response_end,
                Column::elapsed_ns,
                Column::request_transfer_ns,
                Column::turnaround_ns,
                Column::response_transfer_ns,
                Column::server_ns,
                Column::busy_ns,
            ] {
                row.clear(column);
            }
        }
    }
}

fn coverage(operations: u64, end: i64) -> Coverage {
    Coverage {
        recording: "monday.pcapng".into(),
        format: "pcapng".into(),
        vantage: Some("server".into()),
        vantage_reason: "the server side of the handshake takes 21 µs, the client side 380 µs"
            .into(),
        resolution_ns: Some(1_000),
        start: Some(START),
        end: Some(end),
        frames: operations * 2 + 40,
        file_bytes: operations * 900,
        wire_bytes: operations * 1_400,
        frames_dropped: Some(3),
        frames_cut: 2,
        gaps: 1,
        gap_bytes: 1_448,
        retransmissions: 5,
        connections: 6,
        connections_mid_stream: 2,
        messages: (operations * 2).saturating_sub(8),
        messages_encrypted: 12,
        operations,
        operations_unanswered: operations / 97,
        ..Coverage::default()
    }
}

fn tables(summary: &mut Summary, random: &mut Random, end: i64, operations: u64) {
    for user in 0..6u64 {
        summary.connections(&[Connection {
            recording: "monday.pcapng".into(),
            connection: user + 1,
            client: format!("10.0.0.{}", 10 + user),
            client_port: 50_000 + user,
            server: "10.0.0.1".into(),
            server_port: 445,
            dialect: Some("3.1.1".into()),
            start: START,
            end,
            handshake_seen: user > 1,
            end_reason: "end of the capture".into(),
            vantage: Some("server".into()),
            vantage_reason: "handshake".into(),
            server_rtt_ns: Some(21_000),
            server_rtt_samples: 40,
            client_rtt_ns: Some(380_000 + user as i64 * 1_000),
            client_rtt_samples: 38,
            client_window_max: Some(4 << 20),
            server_window_max: Some(2 << 20),
            packets_to_server: operations / 6,
            packets_to_client: operations / 6,
            bytes_to_server: operations * 33,
            bytes_to_client: operations * 200,
            retransmissions_to_client: user,
            zero_windows_to_client: u64::from(user == 3),
            operations: operations / 6 + user,
            outstanding_max: 5,
            signed: operations / 6,
            encrypted: if user == 5 { operations / 6 } else { 0 },
            compounds: operations / 60,
            breaks: user,
            credits_max: 512,
            credits_min: Some(1 + user),
            max_read_bytes: Some(1 << 20),
            max_write_bytes: Some(1 << 20),
            signing_algorithm: Some("AES-CMAC".into()),
            cipher: Some("AES-128-GCM".into()),
            ..Connection::default()
        }]);
        summary.sessions(&[Session {
            mechanism: Some(if user == 0 { "Kerberos" } else { "NTLMSSP" }.into()),
            channels: 1,
            ..Session::default()
        }]);
        summary.trees(&[Tree { continuous_availability: Some(user == 1), ..Tree::default() }]);
    }
    let handles: Vec<_> = (0..operations / 10)
        .map(|number| {
            let opened = START + number as i64 * 20_000_000;
            Handle {
                handle: number,
                opened_at: (number % 11 != 3).then_some(opened),
                closed_at: (number % 7 != 3)
                    .then_some(opened + 30_000_000_000_i64.min(random.below(9_000_000_000) as i64)),
                operations: 2 + random.below(4),
                lease: Some("RHW".into()),
                oplock: Some("Lease".into()),
                directory: Some(number % 4 == 0),
                ..Handle::default()
            }
        })
        .filter(|handle| handle.closed_at.is_none_or(|at| at < end))
        .collect();
    summary.handles(&handles);
    summary.logged(&[ServerEvent {
        kind: "slow_file_system".into(),
        time: end,
        command: Some("Write".into()),
        client: Some("<b>pc7\u{1b}[2J".into()),
        share: Some("\\\\*\\home".into()),
        duration_ns: Some(31_000_000_000),
        threshold_ns: Some(15_000_000_000),
        status: Some(0xc000_00b5),
        ..ServerEvent::default()
    }]);
}
