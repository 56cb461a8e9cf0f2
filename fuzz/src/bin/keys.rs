//! Any text as a list of keys.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_wire::crypto::{parse_key, parse_key_list};

fuzz_target!(|text: &str| {
    match parse_key_list(text) {
        Ok(entries) => assert!(entries.len() <= text.lines().count()),
        Err(error) => {
            let _ = (error.line.expect("a line"), error.to_string());
        }
    }
    let _ = parse_key(text).map_err(|error| error.to_string());
});
