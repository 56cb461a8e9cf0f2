//! A synthetic recording from inside a server: opens that wait for the file system, reads by an I/O
//! thread, and a notification, which waits by design.

use std::path::Path;

use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::manifest::{Kind, Manifest};
use smbscope_tables::operation::Operation;
use smbscope_tables::slice::{self, Slice};
use smbscope_tables::tables::Coverage;

use crate::Part;
use crate::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use crate::synthetic::START;

/// Name of its rows.
pub const RECORDING: &str = "fs1.example.com";
/// Commands, one after the other: Create, Read, Close, ChangeNotify.
const COMMANDS: [u16; 4] = [5, 8, 6, 15];
const US: i64 = 1_000;

/// A finished run folder with the given number of operations.
pub fn server(dir: &Path, operations: u64, tokenizer: Option<Tokenizer>) -> Manifest {
    let seed = ManifestSeed { created_at: 1, ..ManifestSeed::now(Kind::Record, Vec::new()) };
    let options = WriteOptions { tokenizer, ..WriteOptions::default() };
    let mut writer = DatasetWriter::create(dir, seed, options).unwrap();
    let mut builder = OperationBuilder::new(None).unwrap();
    let mut slices = Vec::new();
    for number in 1..=operations {
        let row = operation(&mut builder, number, &mut slices);
        builder.append(&[row]);
    }
    writer.part(Part::Operations(builder.finish().unwrap())).unwrap();
    writer.part(Part::Slices(Slice::to_batch(&slices).unwrap())).unwrap();
    let coverage = Coverage {
        recording: RECORDING.into(),
        format: "probe".into(),
        vantage: Some("inside".into()),
        operations,
        ..Coverage::default()
    };
    writer.part(Part::Coverage(Box::new(coverage))).unwrap();
    writer.finish(true).unwrap()
}

fn operation(builder: &mut OperationBuilder, number: u64, slices: &mut Vec<Slice>) -> Operation {
    let names = &mut builder.names;
    let command = COMMANDS[(number % 4) as usize];
    let mut row = Operation::default();
    row.set_recording(names.recording.intern(RECORDING));
    row.set_operation(number);
    row.set_connection(number % 3);
    row.set_client(names.client.intern(&format!("10.0.0.{}", number % 3)));
    row.set_share(names.share.intern(["\\\\fs1\\home", "\\\\fs1\\projects"][number as usize % 2]));
    row.set_path(names.path.intern(&format!("file{number}.docx")));
    row.set_protocol(2);
    row.set_command(code::command(2, command));
    row.set_status(0);
    row.set_status_name(0);
    row.set_waits(command == 15);
    row.set_source(code::Source::Probe as u64);
    row.set_vantage(code::Vantage::Inside as u64);
    let start = START + number as i64 * 100 * US;
    row.set_request_start(start);
    row.set_request_end(start + 2 * US);
    let mut at = start + 2 * US;
    let mut add = |kind: slice::Kind, ns: i64, from: i64| {
        slices.push(Slice {
            recording: RECORDING.into(),
            operation: number,
            kind: kind.name().into(),
            start: from,
            duration_ns: ns,
            ..Slice::default()
        });
    };
    let n = number as i64;
    let queue = (10 + n % 7) * US;
    add(slice::Kind::Queue, queue, at);
    row.set_queue_ns(queue);
    at += queue;
    let processing = (5 + n % 3) * US;
    add(slice::Kind::Processing, processing, at);
    row.set_processing_ns(processing);
    at += processing;
    match command {
        5 => {
            let ns = (50 + n % 50) * US;
            add(slice::Kind::Filesystem, ns, at);
            row.set_filesystem_ns(ns);
            at += ns;
        }
        8 => {
            let ns = (200 + n % 90) * US;
            add(slice::Kind::Io, ns, at);
            add(slice::Kind::Disk, ns / 2, at + ns / 4);
            row.set_io_ns(ns);
            row.set_disk_ns(ns / 2);
            at += ns;
        }
        _ => {}
    }
    add(slice::Kind::Send, 3 * US, at);
    row.set_send_ns(3 * US);
    // A microsecond that no slice explains.
    row.set_response_start(at + 4 * US);
    row.set_response_end(at + 6 * US);
    row.derive_durations();
    row
}
