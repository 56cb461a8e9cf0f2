//! Any bytes as `perf.data`: as they are, as changes of a good file, and as records behind good ones.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use smbscope_fuzz::traces::{changed, check};
use smbscope_trace::perf::{self, Reader};

const GOOD: &[u8] = include_bytes!("../../../tests/traces/loopback.perf.data");

fuzz_target!(|bytes: &[u8]| {
    if perf::is_perf(bytes) {
        read(bytes.to_vec());
    }
    let Some((&choice, rest)) = bytes.split_first() else { return };
    match choice % 3 {
        0 => read(changed(GOOD, rest)),
        1 => read([b"PERFILE2\x10\0\0\0\0\0\0\0", rest].concat()),
        _ => {
            // The length of the records says that these belong to them, up to the end.
            let mut file = [GOOD, rest].concat();
            file[48..56].fill(0);
            read(file);
        }
    }
});

fn read(file: Vec<u8>) {
    let length = file.len() as u64;
    if let Ok(reader) = Reader::new(Cursor::new(file)) {
        let coverage = check(reader);
        assert!(coverage.read_bytes <= length);
    }
}
