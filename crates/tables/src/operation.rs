//! The operation row: one SMB operation, from any source.
//!
//! [`Operation`] is the row before it becomes Arrow: plain integers and a bit per column that says
//! whether the value is known, so that a row takes a few hundred bytes and no allocation. Text is
//! a number in the batch's [`Pool`](crate::pool::Pool)s or a code that
//! [`code`] names. [`OperationBuilder`](crate::builder::OperationBuilder) turns rows
//! into Arrow. The columns are listed once, below; names follow MS-SMB2, Wireshark and Zeek.

pub mod code;
pub(crate) mod values;

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Schema, SchemaRef};

use values::{Bits, Codes, GROUP, Uniform, Values};

use crate::column::{ColumnSpec, Sensitivity, Unit, text_type};

macro_rules! storage {
    (name) => {
        u32
    };
    (code) => {
        u64
    };
    (bytes16) => {
        [u8; 16]
    };
    ($plain:ident) => {
        $plain
    };
}

macro_rules! arrow_type {
    (u64) => {
        DataType::UInt64
    };
    (u32) => {
        DataType::UInt32
    };
    (u16) => {
        DataType::UInt16
    };
    (u8) => {
        DataType::UInt8
    };
    (i64) => {
        DataType::Int64
    };
    (bool) => {
        DataType::Boolean
    };
    (bytes16) => {
        DataType::FixedSizeBinary(16)
    };
    (name) => {
        text_type()
    };
    (code) => {
        text_type()
    };
}

macro_rules! empty_values {
    (u64 $column:expr) => {
        Values::U64(Vec::new())
    };
    (u32 $column:expr) => {
        Values::U32(Vec::new())
    };
    (u16 $column:expr) => {
        Values::U16(Vec::new())
    };
    (u8 $column:expr) => {
        Values::U8(Vec::new())
    };
    (i64 $column:expr) => {
        Values::I64(Vec::new())
    };
    (bytes16 $column:expr) => {
        Values::Bytes16(Vec::new())
    };
    (name $column:expr) => {
        Values::Name(Uniform::default())
    };
    (bool $column:expr) => {
        Values::Bool(Bits::default())
    };
    (code $column:expr) => {
        Values::Code(Box::new(Codes::new($column)))
    };
}

macro_rules! append_values {
    (u64 $args:tt) => { append_values!(@ U64 $args) };
    (u32 $args:tt) => { append_values!(@ U32 $args) };
    (u16 $args:tt) => { append_values!(@ U16 $args) };
    (u8 $args:tt) => { append_values!(@ U8 $args) };
    (i64 $args:tt) => { append_values!(@ I64 $args) };
    (bytes16 $args:tt) => { append_values!(@ Bytes16 $args) };
    (bool ($out:ident, $rows:ident, $known:ident, $field:ident)) => {
        if let Values::Bool(bits) = $out {
            for group in $rows.chunks(GROUP) {
                let word = group.iter().enumerate().fold(0, |word, (place, row)| {
                    word | u64::from(row.as_ref().$field) << place
                });
                bits.push(word, group.len());
            }
        }
    };
    (name ($out:ident, $rows:ident, $known:ident, $field:ident)) => {
        if let Values::Name(keys) = $out {
            for (group, &known) in $rows.chunks(GROUP).zip($known) {
                keys.extend(group.iter().map(|row| row.as_ref().$field), known, |key| key as i32);
            }
        }
    };
    (code ($out:ident, $rows:ident, $known:ident, $field:ident)) => {
        if let Values::Code(codes) = $out {
            for (group, &known) in $rows.chunks(GROUP).zip($known) {
                codes.extend(group.iter().map(|row| row.as_ref().$field), known);
            }
        }
    };
    (@ $variant:ident ($out:ident, $rows:ident, $known:ident, $field:ident)) => {
        if let Values::$variant(values) = $out {
            values.extend($rows.iter().map(|row| row.as_ref().$field));
        }
    };
}

macro_rules! operation_columns {
    ($($name:ident, $set:ident: $kind:ident, $unit:ident, $sensitivity:ident, $doc:literal;)*) => {
        /// The columns, in the schema's order.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Column {
            $(#[doc = $doc] $name,)*
        }

        impl Column {
            /// Every column, in the schema's order.
            pub const ALL: &'static [Column] = &[$(Column::$name,)*];

            /// Its place in [`Operation::present`].
            #[inline]
            fn bit(self) -> (usize, u8) {
                (self as usize / 8, 1 << (self as usize % 8))
            }

            /// Offset of its value in [`Operation`].
            pub(crate) fn offset(self) -> usize {
                match self { $(Column::$name => std::mem::offset_of!(Operation, $name),)* }
            }

            pub(crate) fn empty(self) -> Values {
                match self { $(Column::$name => empty_values!($kind self),)* }
            }

            /// Appends the column's value of every row of a group, known or not; `known` has a bit
            /// for each row.
            pub(crate) fn append<R: AsRef<Operation>>(
                self,
                rows: &[R],
                known: &[u64],
                out: &mut Values,
            ) {
                match self { $(Column::$name => append_values!($kind (out, rows, known, $name)),)* }
            }
        }

        /// Type, unit, sensitivity and meaning of every column, in the schema's order.
        pub fn specs() -> Vec<ColumnSpec> {
            vec![$(ColumnSpec {
                name: stringify!($name),
                data_type: arrow_type!($kind),
                nullable: true,
                unit: Unit::$unit,
                sensitivity: Sensitivity::$sensitivity,
                doc: $doc,
            },)*]
        }

        /// One operation. A value that was not set is null.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct Operation {
            /// A bit for each column, in bytes: bits are set and tested one by one, and reading a word
            /// just after writing one of its bytes stalls the CPU.
            pub(crate) present: [u8; 16],
            $($name: storage!($kind),)*
        }

        impl Operation {
            $(
                #[doc = $doc]
                #[inline]
                pub fn $name(&self) -> Option<storage!($kind)> {
                    self.has(Column::$name).then_some(self.$name)
                }

                #[doc = concat!("Sets `", stringify!($name), "`.")]
                #[inline]
                pub fn $set(&mut self, value: storage!($kind)) {
                    self.$name = value;
                    let (byte, bit) = Column::$name.bit();
                    self.present[byte] |= bit;
                }
            )*
        }
    };
}

operation_columns! {
    recording, set_recording: name, None, Machine, "The recording that the row belongs to, part of every key: the name of a run or of a file. Files that continue each other share the name of the first one.";
    operation, set_operation: u64, None, Public, "Number of the operation, unique in its recording, in the order in which operations ended.";
    scenario_run, set_scenario_run: u64, None, Public, "Scenario execution that the operation belongs to (table scenarios, load runs).";
    handle, set_handle: u64, None, Public, "Number of the open that the operation uses (table handles).";
    compound, set_compound: u64, None, Public, "Number of the compound chain; null if the message has a single operation.";
    compound_index, set_compound_index: u16, None, Public, "Position in the compound chain, 0 for the first operation.";
    compound_size, set_compound_size: u16, Count, Public, "Operations in the compound chain; null if its end was not captured.";
    related, set_related: bool, None, Public, "Whether the operation takes session, tree and file from the operation before it in the chain (SMB2_FLAGS_RELATED_OPERATIONS).";

    connection, set_connection: u64, None, Public, "Number of the TCP connection (table connections).";
    channel, set_channel: u32, None, Public, "Index of the connection among the channels of its session, 0 for the first.";
    client, set_client: name, None, Machine, "The client's address.";
    client_port, set_client_port: u16, None, Public, "The client's TCP port.";
    server, set_server: name, None, Machine, "The server's address.";
    server_port, set_server_port: u16, None, Public, "The server's TCP port.";
    session_id, set_session_id: u64, None, Public, "SMB2 SessionId, or SMB1 UID.";
    user, set_user: name, None, Person, "User of the session: DOMAIN\\name, or name@REALM for Kerberos if the capture shows a KDC (port 88) issuing the ticket.";
    tree_id, set_tree_id: u32, None, Public, "TreeId (SMB1: TID).";
    share, set_share: name, None, Path, "The share, as \\\\server\\share; null for requests for DFS referrals, whose path belongs to a namespace.";
    dialect, set_dialect: code, None, Public, "Negotiated dialect: 2.0.2, 2.1, 3.0, 3.0.2, 3.1.1, or the name of an SMB1 dialect.";
    pid, set_pid: u32, None, Public, "Process that served the operation (probe).";
    tid, set_tid: u32, None, Public, "Thread that served the operation (probe).";
    cpu, set_cpu: u32, None, Public, "CPU that began to serve the operation (probe).";

    protocol, set_protocol: u8, None, Public, "1 for SMB1, 2 for SMB2 and SMB3.";
    command, set_command: code, None, Public, "Command; null when the message was encrypted and not decrypted.";
    detail, set_detail: code, None, Public, "Details of the command: information class, FSCTL, create disposition, transaction.";
    message_id, set_message_id: u64, None, Public, "MessageId (SMB1: MID), unique only on its connection.";
    async_id, set_async_id: u64, None, Public, "AsyncId of an operation with an interim response (STATUS_PENDING).";
    status, set_status: u32, None, Public, "NTSTATUS of the final response; null without a response.";
    status_name, set_status_name: code, None, Public, "Name of the status.";

    file_id, set_file_id: bytes16, None, Public, "FileId (persistent and volatile, as on the wire; SMB1: FID in the first two bytes).";
    path, set_path: name, None, Path, "File or directory, relative to the share; for requests for DFS referrals the path in the namespace, with a leading backslash.";
    extension, set_extension: name, None, Extension, "File extension after the last dot, in lower case.";
    desired_access, set_desired_access: u32, None, Public, "Create: DesiredAccess.";
    share_access, set_share_access: u32, None, Public, "Create: ShareAccess.";
    create_options, set_create_options: u32, None, Public, "Create: CreateOptions.";
    oplock_requested, set_oplock_requested: code, None, Public, "Create: requested oplock level.";
    oplock_granted, set_oplock_granted: code, None, Public, "Create: granted oplock level. OplockBreak: the new level.";
    lease_key, set_lease_key: bytes16, None, Public, "Lease key of an open or of a lease break.";
    parent_lease_key, set_parent_lease_key: bytes16, None, Public, "Key of the parent directory's lease.";
    lease_requested, set_lease_requested: code, None, Public, "Requested lease state: R read, H handle, W write. Lease break: the state before.";
    lease_granted, set_lease_granted: code, None, Public, "Granted lease state. Lease break: the new state.";

    offset_bytes, set_offset_bytes: u64, Bytes, Public, "Read, Write, Lock, and FSCTLs that work on a part of the file: offset of the (first) range.";
    requested_bytes, set_requested_bytes: u64, Bytes, Public, "Bytes that the client asked to read, write or lock, or that the server was asked to copy, share, release or search itself (FSCTL_SRV_COPYCHUNK, FSCTL_DUPLICATE_EXTENTS_TO_FILE, FSCTL_FILE_LEVEL_TRIM ...); for other commands the longest response that the client accepts.";
    transferred_bytes, set_transferred_bytes: u64, Bytes, Public, "Bytes of file or response data that were actually transferred, or that the server copied, shared or released itself.";
    request_wire_bytes, set_request_wire_bytes: u64, Bytes, Public, "Bytes of the request with its NetBIOS header; for a compound, all bytes are on its first operation. Over SMB Direct: without the headers of RDMA, and without what RDMA moved.";
    response_wire_bytes, set_response_wire_bytes: u64, Bytes, Public, "Bytes of the final and interim responses with their NetBIOS headers; for a compound, all bytes are on its first operation. Over SMB Direct: without the headers of RDMA, and without what RDMA moved.";
    write_through, set_write_through: bool, None, Public, "Whether the write or the open requests stable storage.";
    unbuffered, set_unbuffered: bool, None, Public, "Whether the read or write requests to bypass the cache.";

    credit_charge, set_credit_charge: u16, Count, Public, "CreditCharge of the request.";
    credits_requested, set_credits_requested: u16, Count, Public, "Credits that the client requested.";
    credits_granted, set_credits_granted: u16, Count, Public, "Credits that the server granted, including the interim response.";
    outstanding, set_outstanding: u32, Count, Public, "Operations in flight on the connection when this one was sent, without itself. Pending notifications, blocked locks and SMB1 requests whose remaining data the server has requested are not counted.";

    scheduled_at, set_scheduled_at: i64, Time, Public, "When a simulated user was scheduled to send the operation.";
    request_start, set_request_start: i64, Time, Public, "First byte of the request.";
    request_end, set_request_end: i64, Time, Public, "Last byte of the request.";
    pending_at, set_pending_at: i64, Time, Public, "Interim response (STATUS_PENDING).";
    response_start, set_response_start: i64, Time, Public, "First byte of the final response.";
    response_end, set_response_end: i64, Time, Public, "Last byte of the final response.";

    elapsed_ns, set_elapsed_ns: i64, Nanoseconds, Public, "First byte of the request to last byte of the response.";
    request_transfer_ns, set_request_transfer_ns: i64, Nanoseconds, Public, "First to last byte of the request.";
    turnaround_ns, set_turnaround_ns: i64, Nanoseconds, Public, "Last byte of the request to first byte of the final response, as captured.";
    response_transfer_ns, set_response_transfer_ns: i64, Nanoseconds, Public, "First to last byte of the final response.";
    server_ns, set_server_ns: i64, Nanoseconds, Public, "Turnaround minus the round trip between the capture point and the server; null if that is unknown. Not clamped at zero.";
    server_error_ns, set_server_error_ns: i64, Nanoseconds, Public, "Uncertainty of server_ns.";
    client_gap_ns, set_client_gap_ns: i64, Nanoseconds, Public, "Think time: end of the last response to this request while nothing was in flight on the connection, minus the round trip between the capture point and the client.";
    busy_ns, set_busy_ns: i64, Nanoseconds, Public, "The operation's share of its connection's busy time: at any time, the time is divided among the operations in flight, so that shares add up. If the response was not captured, the share up to the point where that became known.";
    recovery_ns, set_recovery_ns: i64, Nanoseconds, Public, "Time within the operation in which TCP recovered lost segments; null if there was none.";
    waits, set_waits: bool, None, Public, "Whether the operation waits by design (change notification, blocked lock): its time is not latency.";

    queue_ns, set_queue_ns: i64, Nanoseconds, Public, "Server: arrival to start of processing (probe).";
    parse_ns, set_parse_ns: i64, Nanoseconds, Public, "Server: parsing (probe).";
    processing_ns, set_processing_ns: i64, Nanoseconds, Public, "Server: protocol processing (probe).";
    filesystem_ns, set_filesystem_ns: i64, Nanoseconds, Public, "Server: file-system calls on the main thread (probe).";
    io_wait_ns, set_io_wait_ns: i64, Nanoseconds, Public, "Server: waiting for an I/O thread (probe).";
    io_ns, set_io_ns: i64, Nanoseconds, Public, "Server: I/O system calls (probe).";
    flush_ns, set_flush_ns: i64, Nanoseconds, Public, "Server: flushing to stable storage (probe).";
    lock_wait_ns, set_lock_wait_ns: i64, Nanoseconds, Public, "Server: waiting for locks and breaks (probe).";
    crypto_in_ns, set_crypto_in_ns: i64, Nanoseconds, Public, "Server: verifying and decrypting (probe).";
    crypto_out_ns, set_crypto_out_ns: i64, Nanoseconds, Public, "Server: signing and encrypting (probe).";
    send_ns, set_send_ns: i64, Nanoseconds, Public, "Server: sending (probe).";
    disk_ns, set_disk_ns: i64, Nanoseconds, Public, "Server: block device (probe).";
    offcpu_ns, set_offcpu_ns: i64, Nanoseconds, Public, "Server: off the CPU (probe).";

    signed, set_signed: bool, None, Public, "Whether the request was signed.";
    encrypted, set_encrypted: bool, None, Public, "Whether the request was encrypted.";
    compressed, set_compressed: bool, None, Public, "Whether the request or the response was compressed.";

    source, set_source: code, None, Public, "What produced the row: capture, probe, load, or events (of Windows' server).";
    vantage, set_vantage: code, None, Public, "Where the row was recorded: client, server, between, inside.";
    capture_file, set_capture_file: name, None, Machine, "The capture file in which the operation ended; differs from recording if files continue each other.";
    request_frame, set_request_frame: u64, None, Public, "Frame of the request's first byte, counted from 1 in its file (which may be the file before capture_file).";
    response_frame, set_response_frame: u64, None, Public, "Frame of the final response's first byte.";
    tcp_sequence, set_tcp_sequence: u32, None, Public, "TCP sequence number of the request's first byte (its NetBIOS header); null over SMB Direct.";
    pending_frame, set_pending_frame: u64, None, Public, "Frame of the interim response (STATUS_PENDING).";

    filesystem_slow_ns, set_filesystem_slow_ns: i64, Nanoseconds, Public, "Server: file-system calls that did not return at once (Windows' events: FileSystemSlow).";
    transport_ns, set_transport_ns: i64, Nanoseconds, Public, "Server: calls of the transport (Windows' events: TransportFast).";
    transport_slow_ns, set_transport_slow_ns: i64, Nanoseconds, Public, "Server: calls of the transport that did not return at once (Windows' events: TransportSlow).";
    transport_direct_ns, set_transport_direct_ns: i64, Nanoseconds, Public, "Server: direct placement by RDMA (Windows' events: TransportDP).";
    security_ns, set_security_ns: i64, Nanoseconds, Public, "Server: signing, verifying, encrypting and decrypting together (Windows' events: Security).";
}

impl AsRef<Operation> for Operation {
    fn as_ref(&self) -> &Operation {
        self
    }
}

impl Operation {
    /// Whether the column has a value.
    #[inline]
    pub fn has(&self, column: Column) -> bool {
        let (byte, bit) = column.bit();
        self.present[byte] & bit != 0
    }

    /// Makes the column null.
    #[inline]
    pub fn clear(&mut self, column: Column) {
        let (byte, bit) = column.bit();
        self.present[byte] &= !bit;
    }

    /// Fills the durations that follow from the five times: `elapsed_ns` and its three parts.
    ///
    /// No part is negative, and `elapsed_ns` is the sum of the parts: where the clocks of the two
    /// directions differ, or a reply begins before its request ended, the later part is shorter.
    #[inline]
    pub fn derive_durations(&mut self) {
        let start = self.request_start();
        let response_end = self.response_end().map(|end| start.map_or(end, |start| end.max(start)));
        let last = response_end.unwrap_or(i64::MAX);
        let request_end =
            self.request_end().map(|end| start.map_or(end, |start| end.max(start).min(last)));
        let response_start = self
            .response_start()
            .map(|begin| request_end.map_or(begin, |end| begin.max(end)).min(last));

        let passed = |start: Option<i64>, end: Option<i64>| Some(end?.saturating_sub(start?));
        if let Some(ns) = passed(start, request_end) {
            self.set_request_transfer_ns(ns);
        }
        if let Some(ns) = passed(request_end, response_start) {
            self.set_turnaround_ns(ns);
        }
        if let Some(ns) = passed(response_start, response_end) {
            self.set_response_transfer_ns(ns);
        }
        if let Some(ns) = passed(start, response_end) {
            self.set_elapsed_ns(ns);
        }
    }
}

impl Operation {
    /// The table's name in SQL and in file names.
    pub const TABLE: &'static str = "operations";

    /// The Arrow schema: see [`schema`].
    pub fn schema() -> SchemaRef {
        schema()
    }
}

/// The schema of the operations table.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let fields: Vec<_> = specs().iter().map(ColumnSpec::field).collect();
        Arc::new(Schema::new(fields))
    });
    SCHEMA.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presence_bits_hold_every_column() {
        assert!(Column::ALL.len() <= 128, "{} columns", Column::ALL.len());
        assert_eq!(specs().len(), Column::ALL.len());
    }

    #[test]
    fn durations_add_up() {
        let mut row = Operation::default();
        row.set_request_start(10);
        row.set_request_end(13);
        row.derive_durations();
        assert_eq!((row.elapsed_ns(), row.turnaround_ns()), (None, None));
        row.set_response_start(20);
        row.set_response_end(27);
        row.derive_durations();
        assert_eq!(row.elapsed_ns(), Some(17));
        let parts = [row.request_transfer_ns(), row.turnaround_ns(), row.response_transfer_ns()];
        assert_eq!(parts.into_iter().flatten().sum::<i64>(), 17);
    }

    #[test]
    fn durations_of_overlapping_messages_add_up() {
        // The times of request start and end, response start and end, and the three parts.
        let cases = [
            ([10, 30, 20, 40], [20, 0, 10]), // The reply began before the request ended.
            ([10, 50, 20, 40], [30, 0, 0]),  // ... and ended, too.
            ([10, 13, 5, 7], [0, 0, 0]),     // The clock of the replies is behind.
            ([10, 13, 5, 17], [3, 0, 4]),
        ];
        for (times, parts) in cases {
            let mut row = Operation::default();
            row.set_request_start(times[0]);
            row.set_request_end(times[1]);
            row.set_response_start(times[2]);
            row.set_response_end(times[3]);
            row.derive_durations();
            let found =
                [row.request_transfer_ns(), row.turnaround_ns(), row.response_transfer_ns()];
            assert_eq!(found, parts.map(Some), "{times:?}");
            assert_eq!(row.elapsed_ns(), Some(parts.into_iter().sum()), "{times:?}");
        }
    }
}
