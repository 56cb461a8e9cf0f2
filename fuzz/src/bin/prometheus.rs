//! Any bytes as the text of a Prometheus endpoint, and what becomes of its samples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_counters::metrics::map::Map;
use smbscope_counters::metrics::text::parse;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut map = Map::default();
    let prefixes = ["smb_".to_owned()];
    let mut samples = 0;
    let parsed = parse(&text, |sample| {
        samples += 1;
        sample.label("device");
        map.sample(&sample, &prefixes);
    });
    assert_eq!(parsed.samples, samples);
    assert!(map.readings().iter().all(|reading| reading.value.is_finite()), "a reading is a number");
});
