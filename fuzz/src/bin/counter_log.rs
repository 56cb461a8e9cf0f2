//! Any bytes as a counter log of Windows: as they are, and behind a good first line.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use smbscope_tables::Part;
use smbscope_trace::counter_log::{Reader, is_counter_log};
use smbscope_trace::event::EventReader as _;

const HEAD: &[u8] = b"\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\A\\Processor(_Total)\\% C2 Time\",\"\\\\A\\X(y)\\Z/sec\"\n\"11/27/2026 04:00:01.5\",\"";

fuzz_target!(|bytes: &[u8]| {
    is_counter_log(&String::from_utf8_lossy(bytes));
    check(bytes.to_vec());
    check([HEAD, bytes].concat());
});

fn check(log: Vec<u8>) {
    let length = log.len() as u64;
    let mut reader = Reader::new(Cursor::new(log), "fuzz");
    while reader.step(&mut |_| ()).expect("nothing can fail in memory") {}
    let parts = reader.take_parts();
    assert!(matches!(parts.last(), Some(Part::Coverage(_))), "the coverage comes");
    let mut rows = 0;
    for part in &parts {
        part.to_batch().expect("rows fit their schema");
        if let Part::Counters(counters) = part {
            rows += counters.len() as u64;
            assert!(counters.iter().all(|row| row.value.is_finite()));
        }
    }
    let coverage = reader.coverage();
    assert_eq!((coverage.events, coverage.read_bytes), (rows, length));
}
