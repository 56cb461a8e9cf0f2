//! Any bytes as the stored state of a search for a setting and of a namespace's move, and every step from there.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_plan::baseline::bisect::{Speed, State, Step};
use smbscope_plan::namespace::progress::Progress;

/// Tries of a search: each halves the candidates.
const TRIES: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(mut state) = State::read(&text) {
        for number in 0..TRIES {
            black_box((state.causes(), state.tries_left()));
            let Step::Try(..) = state.step() else { break };
            let speed = if bytes[number % bytes.len()] & 1 == 0 { Speed::Slow } else { Speed::Fast };
            if state.result(speed).is_err() {
                break;
            }
        }
        let again = state.write().expect("a state is JSON");
        State::read(&again).expect("what was written can be read");
    }
    if let Ok(mut progress) = Progress::from_json(&text) {
        while let Some(id) = progress.current().map(|stage| stage.id) {
            black_box((progress.against(id, 1_800_000_000), progress.changed_at_s(id)));
            let begun = progress.begin(id, 1_800_000_000);
            if begun.is_err() || progress.done(id, 1_800_000_001, Some("fuzz")).is_err() {
                break;
            }
        }
        progress.to_json().expect("a state is JSON");
    }
});
