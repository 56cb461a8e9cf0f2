//! Any bytes as an encrypted message, opened with keys that come from the input too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_wire::crypto::{Cipher, Decryptor, Key, PreauthIntegrity, derive_session_keys};
use smbscope_wire::smb2::transform::{Protocol, Transform};

fuzz_target!(|bytes: &[u8]| {
    let Some((key, message)) = bytes.split_at_checked(32) else { return };
    let view = Transform(message);
    let _ = (Protocol::from_message(message), view.signature(), view.nonce(), view.original_message_size());
    let _ = (view.flags_or_algorithm(), view.session_id(), view.authenticated());
    let _ = view.ciphertext();
    let mut out = Vec::new();
    let mut hash = PreauthIntegrity::new();
    hash.update(message);
    for cipher in 0..6 {
        let cipher = Cipher(cipher);
        let direct = Key::new(key.get(..cipher.key_bytes().unwrap_or(5)).unwrap_or(key));
        let derived = Key::new(key)
            .and_then(|key| derive_session_keys(0x0311, cipher, &key, Some(&hash)))
            .map(|keys| keys.client_to_server);
        for key in [direct, derived].into_iter().flatten() {
            let Some(decryptor) = Decryptor::new(cipher, &key) else { continue };
            let opened = decryptor.decrypt(message, &mut out);
            assert!(opened.is_ok() || out.is_empty());
            let _ = decryptor.decrypt_prefix(message, &mut out);
            assert!(out.len() <= message.len());
        }
    }
});
