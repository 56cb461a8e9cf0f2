//! Any bytes as events of the probe: of a few threads and sockets, in any order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_capture::Options;
use smbscope_samba::ring_event::Counted;
use smbscope_samba::rows::RowMaker;
use smbscope_tables::Part;

/// Where an event's kind, time and identities lie (crates/samba/src/bpf/event.h).
const HEAD_BYTES: usize = 24;

fuzz_target!(|bytes: &[u8]| {
    let mut rows = RowMaker::new("fuzz", 0, &Options::default()).expect("a schema");
    let (mut rest, mut time) = (bytes, 1_000_u64);
    while let Some((&[kind, step, length, more], after)) = rest.split_first_chunk() {
        let length = usize::from(length) + 256 * usize::from(more % 16);
        let (body, after) = after.split_at(length.min(after.len()));
        rest = after;
        time += u64::from(step) * 1_000;
        let mut event = Vec::with_capacity(HEAD_BYTES + body.len());
        event.extend_from_slice(&time.to_le_bytes());
        // Few of each, so that they meet.
        event.extend_from_slice(&u32::from(kind >> 6 & 1).to_le_bytes());
        event.extend_from_slice(&u32::from(kind >> 6).to_le_bytes());
        event.extend_from_slice(&u16::from(kind % 16).to_le_bytes());
        event.extend_from_slice(&[0; 6]);
        event.extend_from_slice(body);
        rows.event(&event);
    }
    let ended = rows.end(Counted::default(), 0).expect("parts");
    let rows = ended.parts.iter().map(|part| match part {
        Part::Operations(batch) => batch.num_rows() as u64,
        _ => 0,
    });
    assert_eq!(rows.sum::<u64>(), ended.operations);
});
