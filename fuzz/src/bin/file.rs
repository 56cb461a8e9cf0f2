//! Any bytes as a capture file: pcap, pcapng, gzip, zstd, and what lies in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_fuzz::{decode, small_limits};

fuzz_target!(|bytes: &[u8]| {
    decode(bytes, small_limits(), 1);
});
