//! Any bytes as a compressed message, whole and with a low limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_wire::compression::{Header, decompress};

const LIMIT: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let (mut whole, mut short) = (Vec::new(), Vec::new());
    for flags in [None, Some(0_u8), Some(1)] {
        let mut message = bytes.to_vec();
        if let (Some(flags), true) = (flags, message.len() >= 16) {
            // Spares the fuzzer the magic and the choice between the two forms.
            message[..4].copy_from_slice(b"\xfcSMB");
            message[10] = flags;
        }
        let result = decompress(&message, LIMIT, &mut whole);
        assert!(whole.len() <= LIMIT);
        let header = Header::parse(&message);
        if result.is_ok() {
            assert_eq!(Some(whole.len() as u64), header.map(|header| header.message_bytes()));
        }
        let _ = decompress(&message, 96, &mut short);
        assert!(short.len() <= 96);
        assert!(whole.starts_with(&short), "a lower limit gives the beginning of the same");
    }
});
