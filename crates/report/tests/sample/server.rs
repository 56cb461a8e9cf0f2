//! A synthetic recording from inside a server, for tests and for viewing: opens that wait for the file
//! system, reads that wait for an I/O thread, a stall of the queue in the middle.

use smbscope_analysis::summary::{Options, Report, Summary};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::slice::{Kind, Slice};
use smbscope_tables::tables::Coverage;

use super::{HOSTILE, Random, START};

const RECORDING: &str = "fs1";
const COMMANDS: [u16; 10] = [5, 16, 16, 8, 8, 9, 6, 14, 7, 15];
const SHARES: [&str; 2] = ["\\\\fs1\\homes", "\\\\fs1\\projects"];

/// The summary of the given number of operations; always the same.
pub fn report(operations: u64) -> Report {
    let mut random = Random(11);
    let mut builder = OperationBuilder::new(None).unwrap();
    let mut summary = Summary::new(Options::default());
    let mut slices = Vec::new();
    for number in 1..=operations {
        let row = operation(&mut random, &mut builder, number, &mut slices);
        builder.append(&[row]);
    }
    summary.operations(&builder.finish().unwrap()).unwrap();
    summary.slices(&slices);
    summary.coverage(&Coverage {
        recording: RECORDING.into(),
        format: "probe".into(),
        vantage: Some("inside".into()),
        vantage_reason: "recorded in the server".into(),
        start: Some(START),
        operations,
        ..Coverage::default()
    });
    summary.finish()
}

/// The time of a command, in microseconds at most, kind by kind.
fn spends(command: u16) -> &'static [(Kind, u64)] {
    use Kind::*;
    match command {
        5 => &[
            (Queue, 300),
            (CryptoIn, 9),
            (Parse, 8),
            (Processing, 120),
            (Filesystem, 4_000),
            (CryptoOut, 8),
            (Send, 30),
        ],
        8 => &[
            (Queue, 150),
            (CryptoIn, 6),
            (Parse, 5),
            (Processing, 30),
            (IoWait, 900),
            (Io, 9_000),
            (CryptoOut, 60),
            (Send, 90),
        ],
        9 => &[
            (Queue, 180),
            (CryptoIn, 60),
            (Parse, 5),
            (Processing, 30),
            (IoWait, 300),
            (Io, 900),
            (CryptoOut, 6),
            (Send, 30),
        ],
        7 => &[
            (Queue, 90),
            (CryptoIn, 5),
            (Parse, 4),
            (Processing, 20),
            (IoWait, 200),
            (Flush, 7_000),
            (CryptoOut, 5),
            (Send, 25),
        ],
        6 => {
            &[(Queue, 100), (CryptoIn, 5), (Parse, 4), (Processing, 60), (LockWait, 40), (Send, 25)]
        }
        _ => &[
            (Queue, 120),
            (CryptoIn, 5),
            (Parse, 6),
            (Processing, 70),
            (Filesystem, 200),
            (CryptoOut, 6),
            (Send, 30),
        ],
    }
}

fn operation(
    random: &mut Random,
    builder: &mut OperationBuilder,
    number: u64,
    slices: &mut Vec<Slice>,
) -> Operation {
    let names = &mut builder.names;
    let mut row = Operation::default();
    let command = COMMANDS[random.below(10) as usize];
    let user = random.below(5);
    row.set_recording(names.recording.intern(RECORDING));
    row.set_operation(number);
    row.set_connection(user + 1);
    row.set_client(names.client.intern(&format!("10.0.0.{}", 10 + user)));
    row.set_client_port(50_000 + user as u16);
    row.set_user(names.user.intern(&format!("EXAMPLE\\user{user}")));
    row.set_share(names.share.intern(SHARES[usize::from(user == 4)]));
    let path = match random.below(30) {
        0 => HOSTILE.to_owned(),
        file => format!("user{user}\\documents\\file{file}.docx"),
    };
    row.set_path(names.path.intern(&path));
    row.set_protocol(2);
    row.set_command(code::command(2, command));
    row.set_status(0);
    row.set_status_name(0);
    row.set_source(code::Source::Probe as u64);
    row.set_vantage(code::Vantage::Inside as u64);
    row.set_waits(command == 15);
    let start = START + number as i64 * 3_000_000;
    let end = start + 20_000;
    let stalled = (450..500).contains(&(number % 1_000));
    let mut at = end;
    for &(kind, most) in spends(command) {
        let mut ns = (random.below(most * 1_000) * random.below(100) / 100) as i64 + 500;
        // Most answers of a file system come from its cache.
        if matches!(kind, Kind::Filesystem | Kind::Io) && random.below(5) > 0 {
            ns /= 40;
        }
        if kind == Kind::Queue && stalled {
            ns += 5_000_000;
        }
        let slice = |kind: Kind, start, duration_ns| Slice {
            recording: RECORDING.into(),
            operation: number,
            kind: kind.name().into(),
            start,
            duration_ns,
            ..Slice::default()
        };
        slices.push(slice(kind, at, ns));
        if kind == Kind::Io {
            slices.push(slice(Kind::Disk, at + ns / 10, ns / 2));
            row.set_disk_ns(ns / 2);
        }
        set(&mut row, kind, ns);
        at += ns + 300;
    }
    row.set_request_start(start);
    row.set_request_end(end);
    row.set_response_start(at);
    row.set_response_end(at + if command == 8 { 400_000 } else { 5_000 });
    row.derive_durations();
    row.set_server_ns(at - end);
    row.set_busy_ns(at - end);
    row
}

fn set(row: &mut Operation, kind: Kind, ns: i64) {
    kind.set(row, ns);
}
