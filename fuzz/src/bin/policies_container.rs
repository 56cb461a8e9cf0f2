//! Any bytes behind the beginning of a .zip or a .cab of policies.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_plan::baseline::read::{NamedBytes, read};

fuzz_target!(|bytes: &[u8]| {
    // What begins otherwise is for the target `baseline`.
    let mut bytes = bytes.to_vec();
    let is_cabinet = bytes.first().is_some_and(|first| *first != b'P');
    if let Some(magic) = bytes.first_chunk_mut() {
        *magic = if is_cabinet { *b"MSCF" } else { *b"PK\x03\x04" };
    }
    let _ = black_box(read(&[NamedBytes { name: "in", bytes: &bytes }]));
});
