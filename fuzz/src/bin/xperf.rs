//! Any bytes as text of `xperf -a dpcisr`.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use smbscope_tables::Part;
use smbscope_trace::xperf::Text;
use smbscope_trace::{HEAD_BYTES, Reader, TABLES, recognise};

const HEAD: &[u8] =
    b"DPC Info\nCPU Usage from 0 us to 9 us:\nCPU 0 Usage, CPU 1 Usage,\nusec %, Module\n";

fuzz_target!(|bytes: &[u8]| {
    recognise(&bytes[..bytes.len().min(HEAD_BYTES)]);
    check(bytes);
    check(&[HEAD, bytes].concat());
});

fn check(bytes: &[u8]) {
    let mut reader = Reader::new(Box::new(Text::new(Cursor::new(bytes.to_vec()))), "fuzz", 16);
    let (mut totals, mut traces) = (0, Vec::new());
    while let Some(part) = reader.next_part().expect("memory can be read") {
        assert!(TABLES.contains(&part.table()));
        part.to_batch().expect("rows fit their schema");
        match part {
            Part::InterruptTotals(rows) => {
                assert!(rows.iter().all(|row| row.duration_ns.is_none_or(|time| time >= 0)));
                totals += rows.len() as u64;
            }
            Part::Traces(rows) => traces = rows,
            _ => {}
        }
    }
    assert_eq!((traces.len(), traces[0].events), (1, totals));
    assert_eq!(traces[0].file_bytes, bytes.len() as u64);
}
