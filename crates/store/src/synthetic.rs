//! Synthetic operations for tests and measurements: a metadata workload (opens, closes, queries, some
//! reads and writes).

pub mod load;
pub mod rest;
pub mod server;

use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;

/// Time of the first row.
pub const START: i64 = 1_700_000_000_000_000_000;

/// Batches of synthetic operations, in the order of `response_end`.
pub struct Synthetic {
    builder: OperationBuilder,
    next: u64,
    rows: u64,
    batch_rows: u64,
    random: u64,
}

impl Synthetic {
    /// `rows` operations in batches of `batch_rows`.
    pub fn new(rows: u64, batch_rows: u64, projection: Option<&[usize]>) -> Synthetic {
        Synthetic {
            builder: OperationBuilder::new(projection).unwrap(),
            next: 0,
            rows,
            batch_rows,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn row(&mut self, number: u64) -> Operation {
        const COMMANDS: [u16; 10] = [5, 6, 16, 14, 5, 16, 6, 8, 9, 17];
        let command = COMMANDS[(number % 10) as usize];
        let connection = number % 7;
        let handle = number / 5;
        // One popular file, and many others.
        let file =
            if handle.is_multiple_of(4) { 7 } else { handle.wrapping_mul(2_654_435_761) % 5000 };
        let names = &mut self.builder.names;
        let path = format!("home\\user{:03}\\documents\\file-{file}.docx", file % 100);
        let (path, extension) = (names.path.intern(&path), names.extension.intern("docx"));
        let mut row = Operation::default();
        row.set_recording(names.recording.intern("synthetic.pcap"));
        row.set_client(names.client.intern(&format!("10.0.0.{connection}")));
        row.set_server(names.server.intern("10.0.1.1"));
        row.set_user(names.user.intern(&format!("EXAMPLE\\user{connection}")));
        row.set_share(names.share.intern("\\\\server\\home"));
        row.set_path(path);
        row.set_extension(extension);
        row.set_operation(number);
        row.set_handle(handle);
        row.set_connection(connection);
        row.set_channel(0);
        row.set_client_port(50_000 + connection as u16);
        row.set_server_port(445);
        row.set_session_id(0x1_0000_0001 + connection);
        row.set_tree_id(5);
        row.set_dialect(0x0311);
        row.set_protocol(2);
        row.set_command(code::command(2, command));
        row.set_message_id(number / 7);
        let status = if command == 5 && number.is_multiple_of(30) { 0xc000_0034 } else { 0 };
        row.set_status(status);
        row.set_status_name(code::status_name(status));
        let mut id = [0; 16];
        id[..8].copy_from_slice(&handle.to_le_bytes());
        id[8..].copy_from_slice(&(handle * 7).to_le_bytes());
        row.set_file_id(id);
        if command == 5 {
            row.set_detail(code::detail(code::Detail::Disposition, 1));
            row.set_desired_access(0x12_0089);
            row.set_share_access(7);
            row.set_create_options(0x40);
            row.set_oplock_requested(code::oplock(0xff));
            row.set_oplock_granted(code::oplock(0xff));
            row.set_lease_key(id);
            row.set_lease_requested(code::lease(7));
            row.set_lease_granted(code::lease(3));
        }
        if command == 8 || command == 9 {
            row.set_offset_bytes((number % 64) * 4096);
            row.set_requested_bytes(4096);
            row.set_transferred_bytes(4096);
            row.set_unbuffered(false);
            row.set_write_through(number.is_multiple_of(100));
        }
        row.set_request_wire_bytes(120 + self.random(200));
        row.set_response_wire_bytes(76 + self.random(300));
        row.set_credit_charge(1);
        row.set_credits_requested(31);
        row.set_credits_granted(1 + (number % 2) as u16);
        row.set_outstanding(self.random(4) as u32);
        let start = START + number as i64 * 20_000 + self.random(5000) as i64;
        row.set_request_start(start);
        row.set_request_end(start + self.random(2) as i64 * 1000);
        let turnaround = 20_000 + self.random(300_000) as i64;
        let end = START + number as i64 * 20_000 + 400_000;
        row.set_response_start(end - 500 - turnaround % 100);
        row.set_response_end(end);
        row.derive_durations();
        row.set_server_ns(turnaround);
        row.set_server_error_ns(2500);
        if number.is_multiple_of(4) {
            row.set_client_gap_ns(self.random(1_000_000) as i64);
        }
        row.set_busy_ns(turnaround / 2);
        row.set_waits(false);
        row.set_signed(number.is_multiple_of(2));
        row.set_encrypted(false);
        row.set_compressed(false);
        row.set_source(code::Source::Capture as u64);
        row.set_vantage(code::Vantage::Client as u64);
        row.set_request_frame(number * 2 + 1);
        row.set_response_frame(number * 2 + 2);
        row.set_tcp_sequence((number * 300) as u32);
        row
    }
}

impl Iterator for Synthetic {
    type Item = arrow::array::RecordBatch;

    fn next(&mut self) -> Option<Self::Item> {
        let until = (self.next + self.batch_rows).min(self.rows);
        if self.next >= until {
            return None;
        }
        for number in self.next..until {
            let row = self.row(number);
            self.builder.append(&[row]);
        }
        self.next = until;
        Some(self.builder.finish().unwrap())
    }
}
