//! Any bytes as TCP segments in both directions: lost, repeated, overlapping, on any port.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_capture::Limits;
use smbscope_fuzz::{decode, segments, small_limits};

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, input)) = bytes.split_first() else { return };
    let capture = segments::capture(input);
    let limits = if choice & 1 == 0 { Limits::default() } else { small_limits() };
    let one = decode(&capture, limits, 1).expect("a capture");
    if choice & 2 != 0 {
        let three = decode(&capture, limits, 3).expect("a capture");
        assert_eq!(one.batches, three.batches, "the number of threads changes nothing");
    }
});
