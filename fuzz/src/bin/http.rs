//! Any bytes as the head of a request to the live page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_serve::http::parse;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((request, _)) = parse(bytes) {
        assert!(request.path.starts_with('/'));
        assert!(!request.path.contains(['?', ' ', '\r', '\n']), "a path is one line without parameters");
        request.header("host");
        request.parameter("token");
    }
});
