//! Any bytes as a text trace of Linux: lines, pairs of interrupts, stacks, rows.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use smbscope_tables::Part;
use smbscope_tables::tables::Interrupt;
use smbscope_trace::ftrace::Text;
use smbscope_trace::{HEAD_BYTES, Reader, TABLES, recognise};

fuzz_target!(|bytes: &[u8]| {
    recognise(&bytes[..bytes.len().min(HEAD_BYTES)]);
    let mut reader = Reader::new(Box::new(Text::new(Cursor::new(bytes.to_vec()))), "fuzz", 16);
    let (mut interrupts, mut traces) = (0, Vec::new());
    while let Some(part) = reader.next_part().expect("memory can be read") {
        assert!(TABLES.contains(&part.table()));
        part.to_batch().expect("rows fit their schema");
        match part {
            Part::Interrupts(batch) => {
                for row in Interrupt::from_batch(&batch) {
                    interrupts += 1;
                    assert!(row.duration_ns.is_none_or(|duration| duration >= 0));
                    assert!(row.delay_ns.is_none_or(|delay| delay >= 0));
                    let (part, whole) = (row.exclusive_ns, row.duration_ns);
                    assert!(part <= whole && part.is_none_or(|part| part >= 0));
                }
            }
            Part::Traces(rows) => traces = rows,
            _ => {}
        }
    }
    assert_eq!(traces.len(), 1, "one row for each trace");
    let trace = &traces[0];
    assert_eq!((trace.interrupts, trace.file_bytes), (interrupts, bytes.len() as u64));
    assert!(trace.events_other + trace.samples + trace.switches <= trace.events);
});
