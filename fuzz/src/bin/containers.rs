//! Any bytes as a file of each container of plain records: the first byte chooses the container,
//! whose beginning is put in front of the rest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_fuzz::{decode, small_limits};

const BEGINNINGS: [&[u8]; 8] = [
    b"RTSS\x01\x01\x01\0",
    b"GMBU\x00\x02\x01\0",
    b"GMBU\x03\x02\x01\0",
    b"snoop\0\0\0\0\0\0\x02\0\0\0\x04",
    b"TRSNIFF data    \x1a\x01\0\x12\0\0\0\x04\0\0\0\0\0\xc6\x54\x04\x01\x01\x01\0\0\0\0\0\0",
    b"XCP\x00001.100\0\0\0\0\0\x02\0\0\0\0\0\0\0\x80\0\0\0\0\x40\0\0",
    b"XCP\x00002.001\0\0\0\0\0\x02\0\0\0\0\0\0\0\x80\0\0\0\0\x40\0\0",
    // ERF has none: a record that makes it recognised.
    b"\0\0\0\0\x4f\xf4\x9d\x62\x02\x04\0\x20\0\0\0\x0e\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let beginning = BEGINNINGS[usize::from(choice) % BEGINNINGS.len()];
    decode(&[beginning, rest].concat(), small_limits(), 1);
});
