//! What holds for every binary trace of Linux, and changes of a good one.

use std::collections::HashSet;

use smbscope_trace::event::{Coverage, Event, EventReader};

/// Reads a trace to its end.
pub fn check(mut reader: impl EventReader) -> Coverage {
    let (mut stacks, mut others) = (HashSet::new(), 0_u64);
    let mut sink = |event| match event {
        Event::Stack { id, .. } => assert!(stacks.insert(id), "a stack comes once"),
        Event::Sample(sample) => {
            assert!(sample.stack.is_none_or(|id| stacks.contains(&id)));
            others += 1;
        }
        Event::Interrupt(one) => {
            assert!(one.start_ns <= Some(one.end_ns));
            assert!(one.raised_ns <= one.start_ns);
            others += 1;
        }
        Event::Switch(_) => others += 1,
        _ => {}
    };
    let mut before = 0;
    while reader.step(&mut sink).expect("memory can be read") {
        assert!(reader.read_bytes() >= before, "progress does not go back");
        before = reader.read_bytes();
    }
    let coverage = reader.coverage();
    assert!(others <= coverage.events, "each event becomes at most one row");
    assert_eq!(coverage.damaged > 0, coverage.first_damaged.is_some());
    coverage
}

/// A good file with changes: each is a place (two bytes, and one for files beyond 64 KiB), and a byte.
pub fn changed(good: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for change in changes.chunks_exact(4) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize % good.len();
        bytes[place] = change[3];
    }
    bytes
}
