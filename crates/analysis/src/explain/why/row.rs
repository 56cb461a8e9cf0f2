//! Rows of the operations table as `--why` reads them: the columns of a batch, and the row of the
//! explained operation by itself.

use std::sync::LazyLock;

use arrow::array::RecordBatch;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use smbscope_tables::command_class::CommandClass;
use smbscope_tables::slice::Kind;

use super::data::Brief;
use crate::rows::columns::{Text, numbers};

crate::rows::columns::columns! {
    recording: text,
    capture_file: text,
    operation: u64,
    handle: u64,
    compound: u64,
    compound_index: u16,
    compound_size: u16,
    connection: u64,
    client: text,
    client_port: u16,
    server: text,
    server_port: u16,
    user: text,
    share: text,
    protocol: u8,
    command: text,
    detail: text,
    status: u32,
    status_name: text,
    file_id: bytes16,
    path: text,
    oplock_granted: text,
    lease_key: bytes16,
    lease_requested: text,
    lease_granted: text,
    offset_bytes: u64,
    requested_bytes: u64,
    transferred_bytes: u64,
    request_start: i64,
    request_end: i64,
    pending_at: i64,
    response_start: i64,
    response_end: i64,
    elapsed_ns: i64,
    request_transfer_ns: i64,
    turnaround_ns: i64,
    response_transfer_ns: i64,
    server_ns: i64,
    server_error_ns: i64,
    recovery_ns: i64,
    waits: bool,
    encrypted: bool,
    request_frame: u64,
    response_frame: u64,
    pending_frame: u64,
}

/// Times and durations beyond these limits come from damaged files.
const DURATION_MAX_NS: i64 = 1_000_000_000_000_000;
const TIME_MAX_NS: i64 = 4_000_000_000_000_000_000;

/// The columns that an explanation reads, those of the slices included.
pub fn columns() -> &'static [&'static str] {
    static ALL: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let slices = Kind::ALL.iter().map(|kind| kind.column_name());
        COLUMNS.iter().copied().chain(slices).collect()
    });
    &ALL
}

pub(super) fn duration(ns: i64) -> i64 {
    ns.clamp(0, DURATION_MAX_NS)
}

fn time(ns: i64) -> i64 {
    ns.clamp(-TIME_MAX_NS, TIME_MAX_NS)
}

fn owned(column: &Text, row: usize) -> Option<String> {
    column.get(row).map(str::to_owned)
}

impl Columns {
    pub(super) fn start(&self, row: usize) -> Option<i64> {
        self.request_start.get(row).map(time)
    }

    pub(super) fn end(&self, row: usize) -> Option<i64> {
        self.response_end.get(row).or_else(|| self.response_start.get(row)).map(time)
    }

    /// When the operation was first seen: its request, or its reply if that is all there is.
    pub(super) fn seen(&self, row: usize) -> Option<i64> {
        self.start(row).or_else(|| self.response_start.get(row).map(time))
    }

    pub(super) fn class(&self, row: usize) -> CommandClass {
        match self.command.get(row).map_or(CommandClass::Other, CommandClass::from_command) {
            CommandClass::Transaction => {
                self.detail.get(row).map_or(CommandClass::Other, CommandClass::of_subcommand)
            }
            class => class,
        }
    }

    /// Whether the row is of this recording.
    pub(super) fn is_of(&self, row: usize, recording: Option<&str>) -> bool {
        self.recording.get(row) == recording
    }

    /// The row in short, with times counted from `zero`.
    pub(super) fn brief(&self, row: usize, zero: i64) -> Brief {
        Brief {
            recording: owned(&self.recording, row),
            capture_file: owned(&self.capture_file, row),
            operation: self.operation.get(row),
            connection: self.connection.get(row),
            client: owned(&self.client, row),
            command: owned(&self.command, row),
            detail: owned(&self.detail, row),
            path: owned(&self.path, row),
            offset_bytes: self.offset_bytes.get(row),
            bytes: self.transferred_bytes.get(row).or_else(|| self.requested_bytes.get(row)),
            status: self.status(row),
            at_ns: self.seen(row).map(|start| start.saturating_sub(zero)),
            elapsed_ns: self.elapsed_ns.get(row).map(duration),
            waits: self.waits.is_set(row),
            request_frame: self.request_frame.get(row),
            response_frame: self.response_frame.get(row),
        }
    }

    /// The name of the status, or its number.
    pub(super) fn status(&self, row: usize) -> Option<String> {
        owned(&self.status_name, row).or_else(|| Some(format!("0x{:08x}", self.status.get(row)?)))
    }
}

/// The row of the explained operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub(super) brief: Brief,
    pub(super) class: Option<CommandClass>,
    pub(super) handle: Option<u64>,
    /// Its chain, its place in it, and the length of the chain.
    pub(super) compound: Option<u64>,
    pub(super) compound_index: Option<u16>,
    pub(super) compound_size: Option<u16>,
    pub(super) client_port: Option<u16>,
    pub(super) server: Option<String>,
    pub(super) server_port: Option<u16>,
    pub(super) user: Option<String>,
    pub(super) share: Option<String>,
    pub(super) protocol: Option<u8>,
    pub(super) status_code: Option<u32>,
    pub(super) file_id: Option<[u8; 16]>,
    pub(super) lease_key: Option<[u8; 16]>,
    pub(super) requested_bytes: Option<u64>,
    pub(super) encrypted: bool,
    /// When its request, or without one its reply, was first seen; all other times count from here.
    pub(super) zero: Option<i64>,
    pub(super) request_start: Option<i64>,
    pub(super) request_end: Option<i64>,
    pub(super) pending_at: Option<i64>,
    pub(super) pending_frame: Option<u64>,
    pub(super) response_start: Option<i64>,
    pub(super) response_end: Option<i64>,
    pub(super) request_transfer_ns: Option<i64>,
    pub(super) turnaround_ns: Option<i64>,
    pub(super) response_transfer_ns: Option<i64>,
    pub(super) server_ns: Option<i64>,
    pub(super) server_error_ns: Option<i64>,
    pub(super) recovery_ns: Option<i64>,
    /// The sums of the slices of each kind that there are.
    pub(super) slices: Vec<(Kind, i64)>,
}

impl Row {
    pub(super) fn from_batch(
        batch: &RecordBatch,
        columns: &Columns,
        row: usize,
    ) -> Result<Row, ArrowError> {
        let ns = |value: Option<i64>| value.map(duration);
        let at = |value: Option<i64>| value.map(time);
        let zero = columns.seen(row);
        let mut slices = Vec::new();
        for kind in Kind::ALL {
            if let Some(sum) = numbers::<Int64Type>(batch, kind.column_name())?.get(row) {
                slices.push((*kind, duration(sum)));
            }
        }
        Ok(Row {
            brief: columns.brief(row, zero.unwrap_or(0)),
            class: columns.command.get(row).map(|_| columns.class(row)),
            handle: columns.handle.get(row),
            compound: columns.compound.get(row),
            compound_index: columns.compound_index.get(row),
            compound_size: columns.compound_size.get(row),
            client_port: columns.client_port.get(row),
            server: owned(&columns.server, row),
            server_port: columns.server_port.get(row),
            user: owned(&columns.user, row),
            share: owned(&columns.share, row),
            protocol: columns.protocol.get(row),
            status_code: columns.status.get(row),
            file_id: columns.file_id.get(row),
            lease_key: columns.lease_key.get(row),
            requested_bytes: columns.requested_bytes.get(row),
            encrypted: columns.encrypted.is_set(row),
            zero,
            request_start: at(columns.request_start.get(row)),
            request_end: at(columns.request_end.get(row)),
            pending_at: at(columns.pending_at.get(row)),
            pending_frame: columns.pending_frame.get(row),
            response_start: at(columns.response_start.get(row)),
            response_end: at(columns.response_end.get(row)),
            request_transfer_ns: ns(columns.request_transfer_ns.get(row)),
            turnaround_ns: ns(columns.turnaround_ns.get(row)),
            response_transfer_ns: ns(columns.response_transfer_ns.get(row)),
            server_ns: columns.server_ns.get(row),
            server_error_ns: ns(columns.server_error_ns.get(row)),
            recovery_ns: ns(columns.recovery_ns.get(row)),
            slices,
        })
    }

    /// Whether a row of a batch is this operation.
    pub(super) fn is(&self, columns: &Columns, row: usize) -> bool {
        let brief = &self.brief;
        columns.operation.get(row) == brief.operation
            && columns.request_frame.get(row) == brief.request_frame
            && columns.response_frame.get(row) == brief.response_frame
            && columns.start(row) == self.request_start
            && columns.is_of(row, brief.recording.as_deref())
    }

    /// Whether it is a break that the server sent.
    pub(super) fn is_break(&self) -> bool {
        super::breaks::is_notification(self.brief.detail.as_deref())
    }

    /// When it was over, as far as that is known: its reply, else the beginning.
    pub(super) fn end(&self) -> Option<i64> {
        self.response_end.or(self.response_start)
    }
}
