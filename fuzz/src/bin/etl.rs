//! Any bytes as an event trace log (`.etl`): as they are, and behind a good first buffer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_fuzz::etl::log_header;
use smbscope_trace::etl;
use smbscope_trace::event::Event;
use std::collections::HashSet;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if let Some((&choice, rest)) = bytes.split_first() {
        let log = [&log_header(choice), rest].concat();
        assert!(check(&log), "a log with a good first buffer is read");
    }
});

fn check(bytes: &[u8]) -> bool {
    let mut stacks = HashSet::new();
    let result = etl::read(Cursor::new(bytes), |event| match event {
        Event::Stack { id, .. } => assert!(stacks.insert(id), "a stack comes once"),
        Event::Sample(sample) => assert!(sample.stack.is_none_or(|id| stacks.contains(&id))),
        Event::Interrupt(one) => assert!(one.start_ns <= Some(one.end_ns)),
        _ => {}
    });
    let Ok(log) = result else { return false };
    assert!(log.coverage.read_bytes <= bytes.len() as u64);
    true
}
