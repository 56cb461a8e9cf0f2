//! Any bytes as `trace.dat`: as they are, as changes of good files, and as pages of the ring buffer.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use smbscope_fuzz::traces::{changed, check};
use smbscope_trace::trace_dat::Reader;

const VERSION_6: &[u8] = include_bytes!("../../../tests/traces/loopback.v6.dat");
const VERSION_7: &[u8] = include_bytes!("../../../tests/traces/loopback.v7.dat");
/// Pages of the first processor begin here.
const PAGES_AT: usize = 8192;

fuzz_target!(|bytes: &[u8]| {
    read(bytes.to_vec());
    let Some((&choice, rest)) = bytes.split_first() else { return };
    match choice % 3 {
        0 => read(changed(VERSION_6, rest)),
        1 => read(changed(VERSION_7, rest)),
        _ => read([&VERSION_6[..PAGES_AT], rest].concat()),
    }
});

fn read(file: Vec<u8>) {
    let length = file.len() as u64;
    let reader = Reader::new(Cursor::new(file)).expect("memory can be read");
    assert!(check(reader).read_bytes <= length);
}
