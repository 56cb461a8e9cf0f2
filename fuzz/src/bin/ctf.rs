//! Any bytes as a trace of LTTng: as metadata, as streams of good metadata, and as changes of both.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_fuzz::traces::{changed, check};
use smbscope_trace::ctf::{Memory, Reader};

const METADATA: &[u8] = include_bytes!("../../../tests/traces/loopback.ctf/metadata");
const METADATA_2: &[u8] = include_bytes!("../../../tests/traces/loopback.ctf2.metadata");
const STREAM: &[u8] = include_bytes!("../../../tests/traces/loopback.ctf/channel0_0");

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let (metadata, stream) = match choice % 8 {
        0 => (rest.to_vec(), STREAM.to_vec()),
        1 => (METADATA.to_vec(), rest.to_vec()),
        2 => (changed(METADATA, rest), STREAM.to_vec()),
        3 => (METADATA.to_vec(), changed(STREAM, rest)),
        4 => (changed(METADATA_2, rest), STREAM.to_vec()),
        5 => (METADATA_2.to_vec(), changed(STREAM, rest)),
        6 => (METADATA_2.to_vec(), rest.to_vec()),
        // A good packet, and others behind it.
        _ => (METADATA.to_vec(), [STREAM, rest].concat()),
    };
    let length = stream.len() as u64;
    let reader = Reader::new(Memory { metadata, streams: vec![stream] });
    let coverage = check(reader.expect("memory can be read"));
    assert!(coverage.read_bytes <= length);
});
