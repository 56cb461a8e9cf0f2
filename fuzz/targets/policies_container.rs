//! Any bytes as a .zip or a .cab of policies.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_plan::baseline::read::{NamedBytes, read};

fuzz_target!(|bytes: &[u8]| {
    let _ = black_box(read(&[NamedBytes { name: "in", bytes }]));
});
