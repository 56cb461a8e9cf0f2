//! The summary of synthetic batches with known answers.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod batches;
mod groups;
mod latency;
mod tables;

use arrow::array::RecordBatch;
use smbscope_analysis::summary::{Options, Report, Summary};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;

const MS: i64 = 1_000_000;
const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const NEGOTIATE: u16 = 0;
const READ: u16 = 8;
const WRITE: u16 = 9;
const CANCEL: u16 = 12;
const QUERY_DIRECTORY: u16 = 14;
const NOTIFY: u16 = 15;
const BREAK: u16 = 18;

/// A row with names, for the builder's pools.
#[derive(Clone, Debug, Default)]
struct Row {
    operation: Operation,
    names: [Option<String>; 5],
}

fn row(command: u16, start: i64, elapsed: i64) -> Row {
    let mut operation = Operation::default();
    operation.set_protocol(2);
    operation.set_command(code::command(2, command));
    operation.set_status(0);
    operation.set_status_name(0);
    operation.set_connection(1);
    operation.set_client_port(50_123);
    operation.set_message_id(17);
    operation.set_request_frame(3);
    operation.set_response_frame(4);
    operation.set_request_start(start);
    operation.set_request_end(start);
    operation.set_response_start(start + elapsed);
    operation.set_response_end(start + elapsed);
    operation.derive_durations();
    operation.set_busy_ns(elapsed);
    Row { operation, names: Default::default() }
}

impl Row {
    fn with(mut self, set: impl FnOnce(&mut Operation)) -> Row {
        set(&mut self.operation);
        self
    }

    fn at(mut self, share: &str, path: &str) -> Row {
        self.names[0] = Some(share.to_owned());
        self.names[1] = Some(path.to_owned());
        self.names[2] = smbscope_tables::builder::extension_of(path).map(str::to_owned);
        self
    }

    fn by(mut self, client: &str, user: &str) -> Row {
        self.names[3] = Some(client.to_owned());
        self.names[4] = Some(user.to_owned());
        self
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for row in rows {
        let mut operation = row.operation;
        let [share, path, extension, client, user] = &row.names;
        let names = &mut builder.names;
        operation.set_recording(names.recording.intern("a.pcap"));
        if let Some(share) = share {
            operation.set_share(names.share.intern(share));
        }
        if let Some(path) = path {
            operation.set_path(names.path.intern(path));
        }
        if let Some(extension) = extension {
            operation.set_extension(names.extension.intern(extension));
        }
        if let Some(client) = client {
            operation.set_client(names.client.intern(client));
        }
        if let Some(user) = user {
            operation.set_user(names.user.intern(user));
        }
        builder.append(&[operation]);
    }
    builder.finish().unwrap()
}

fn report(rows: &[Row]) -> Report {
    let mut summary = Summary::new(Options::default());
    summary.operations(&batch(rows)).unwrap();
    summary.finish()
}
