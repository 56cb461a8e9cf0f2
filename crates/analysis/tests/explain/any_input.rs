//! Columns, and nonsensical input.

use proptest::prelude::*;
use smbscope_analysis::explain::{COLUMNS, Explain};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::{self, Operation};

use crate::support::*;

#[test]
fn every_column_read_is_in_the_schema() {
    for name in COLUMNS {
        assert!(operation::schema().field_with_name(name).is_ok(), "{name}");
    }
}

fn any_number() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -10..10_i64, Just(i64::MAX), Just(i64::MIN)]
}

proptest! {
    #[test]
    fn random_numbers_do_not_panic(
        numbers in prop::collection::vec((any_number(), any_number(), any_number(), any_number(), 0..12_usize), 1..40),
    ) {
        let mut builder = OperationBuilder::new(None).unwrap();
        for (start, elapsed, part, bytes, kind) in numbers {
            let commands = [
                CREATE, CLOSE, FLUSH, READ, WRITE, LOCK, QUERY_DIRECTORY, QUERY_INFO, NEGOTIATE,
                OPLOCK_BREAK, 17, 11,
            ];
            let mut row = Operation::default();
            row.set_protocol(2);
            row.set_command(code::command(2, commands[kind]));
            row.set_handle(1);
            row.set_status(if bytes % 3 == 0 { NOT_FOUND } else { 0 });
            row.set_path(builder.names.path.intern("x"));
            row.set_offset_bytes(bytes as u64);
            row.set_transferred_bytes(bytes as u64);
            row.set_response_wire_bytes(bytes as u64);
            row.set_outstanding(bytes as u32);
            row.set_request_start(start);
            row.set_elapsed_ns(elapsed);
            row.set_busy_ns(elapsed);
            row.set_turnaround_ns(part);
            row.set_server_ns(part);
            row.set_response_transfer_ns(part);
            row.set_request_transfer_ns(part);
            row.set_client_gap_ns(part);
            row.set_flush_ns(part);
            row.set_queue_ns(elapsed);
            row.set_recovery_ns(part);
            row.set_credits_requested(bytes as u16);
            row.set_credits_granted(kind as u16);
            row.set_waits(part % 2 == 0);
            builder.append(&[row]);
        }
        let mut explain = Explain::with_gains();
        explain.operations(&builder.finish().unwrap()).unwrap();
        for one in explain.finish().unwrap().findings {
            prop_assert!(one.share().is_finite() && one.share() >= 0.0, "{:?}", one);
        }
    }
}
