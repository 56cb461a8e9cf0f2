//! Prints CPU nanoseconds per row of `Summary::operations` over synthetic metadata traffic.

use smbscope_analysis::summary::{Options, Summary, columns};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::{Operation, schema};

const BATCHES: u64 = 120;
const ROWS: u64 = 8192;

/// Time on the CPU so far (Linux), which other work on the machine does not disturb.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn main() {
    let schema = schema();
    let places: Vec<usize> =
        columns().iter().filter_map(|name| schema.index_of(name).ok()).collect();
    let Ok(mut builder) = OperationBuilder::new(Some(&places)) else {
        return;
    };
    let mut batches = Vec::new();
    let mut random = 1u64;
    for number in 0..BATCHES * ROWS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let noise = random >> 40;
        let mut row = Operation::default();
        let user = noise % 50;
        let file = number / 4;
        row.set_recording(builder.names.recording.intern("a.pcap"));
        row.set_client(builder.names.client.intern(&format!("10.0.0.{user}")));
        row.set_user(builder.names.user.intern(&format!("DOMAIN\\user{user}")));
        row.set_share(builder.names.share.intern("\\\\server\\homes"));
        row.set_path(
            builder.names.path.intern(&format!("user{}\\documents\\file{file}.docx", file % 50)),
        );
        row.set_extension(builder.names.extension.intern("docx"));
        row.set_dialect(0x311);
        row.set_protocol(2);
        row.set_command(code::command(2, [5, 16, 8, 6][(number % 4) as usize]));
        row.set_status(if noise.is_multiple_of(10) { 0xc000_0034 } else { 0 });
        row.set_status_name(code::status_name(0));
        row.set_connection(user);
        row.set_message_id(number);
        row.set_operation(number);
        row.set_requested_bytes(4096);
        row.set_transferred_bytes(noise % 4096);
        row.set_request_wire_bytes(200);
        row.set_response_wire_bytes(300);
        row.set_credit_charge(1);
        row.set_credits_requested(1);
        row.set_credits_granted(1);
        row.set_outstanding((noise % 8) as u32);
        let start = number as i64 * 5_000;
        row.set_request_start(start);
        row.set_request_end(start + 100);
        row.set_response_start(start + 100 + noise as i64 / 50);
        row.set_response_end(start + 300 + noise as i64 / 50);
        row.derive_durations();
        row.set_server_ns(noise as i64 / 50 - 20);
        row.set_busy_ns(5_000);
        row.set_request_frame(number * 2);
        row.set_response_frame(number * 2 + 1);
        builder.append(&[row]);
        if builder.len() as u64 == ROWS {
            let Ok(batch) = builder.finish() else { return };
            batches.push(batch);
        }
    }
    for _ in 0..5 {
        let mut summary = Summary::new(Options::default());
        let start = cpu_ns();
        for batch in &batches {
            if summary.operations(batch).is_err() {
                return;
            }
        }
        let spent = cpu_ns() - start;
        let start = cpu_ns();
        let report = summary.finish();
        println!(
            "{:.0} ns/row, finish {:.1} ms, {} operations",
            spent as f64 / report.totals.tally.operations as f64,
            (cpu_ns() - start) as f64 / 1e6,
            report.totals.tally.operations
        );
    }
}
