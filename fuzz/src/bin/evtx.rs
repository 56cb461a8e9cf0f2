//! Any bytes as an event log of Windows: as they are, and behind a good header.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_trace::event::EventReader as _;
use smbscope_trace::evtx::Reader;

fuzz_target!(|bytes: &[u8]| {
    check(bytes.to_vec());
    // The header of a file with one chunk; a chunk has 64 KiB.
    let mut log = vec![0; 4_096];
    log[..8].copy_from_slice(b"ElfFile\0");
    log[24] = 1;
    log[32] = 128;
    log[36..44].copy_from_slice(&[1, 0, 3, 0, 0, 16, 1, 0]);
    log.extend_from_slice(b"ElfChnk\0");
    log.extend_from_slice(bytes);
    log.resize(4_096 + 65_536, 0);
    check(log);
});

fn check(log: Vec<u8>) {
    let Ok(mut reader) = Reader::from_bytes(log, "fuzz") else { return };
    while reader.step(&mut |_| ()).expect("nothing can fail in memory") {}
    assert!(!reader.take_parts().is_empty(), "the coverage comes");
}
