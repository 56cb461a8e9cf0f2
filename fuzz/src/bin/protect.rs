//! Any bytes as a message that is signed or encrypted, and as one that somebody else protected:
//! what is written verifies and decrypts, a changed byte does not, and what works in place says the
//! same as what does not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_wire::crypto::{
    Cipher, Decryptor, Encryptor, Key, Signer, TRANSFORM_HEADER_BYTES, derive_signing_key,
};
use smbscope_wire::smb2::negotiate_context::SigningId;

fuzz_target!(|bytes: &[u8]| {
    let Some((secret, rest)) = bytes.split_first_chunk::<32>() else { return };
    let Some((at, message)) = rest.split_first_chunk::<2>() else { return };
    let at = usize::from(u16::from_le_bytes(*at));
    let short = Key::new(&secret[..16]).expect("16 bytes are a key");
    let long = Key::new(secret).expect("32 bytes are a key");
    for dialect in [0x0202, 0x0300, 0x0311] {
        let _ = derive_signing_key(dialect, &long, None);
    }
    for algorithm in 0..4 {
        if let Some(signer) = Signer::new(SigningId(algorithm), &short) {
            sign(&signer, message, at);
        }
    }
    for cipher in Cipher::ALL {
        let key = if cipher.key_bytes() == Some(16) { &short } else { &long };
        let encryptor = Encryptor::new(cipher, key).expect("the key has the cipher's length");
        let decryptor = Decryptor::new(cipher, key).expect("the key has the cipher's length");
        encrypt(&encryptor, &decryptor, message, at);
        open(&decryptor, message);
    }
});

fn sign(signer: &Signer, message: &[u8], at: usize) {
    let mut bytes = message.to_vec();
    assert_eq!(signer.verify(message), signer.verify_in_place(&mut bytes));
    assert_eq!(bytes, message, "verifying left the message as it was");
    if !signer.sign(&mut bytes) {
        assert!(message.len() < 64);
        assert_eq!(bytes, message);
        return;
    }
    assert!(signer.verify(&bytes) && signer.verify_in_place(&mut bytes));
    let at = at % bytes.len();
    bytes[at] ^= 1 << (at & 7);
    assert!(!signer.verify(&bytes) && !signer.verify_in_place(&mut bytes));
}

fn encrypt(encryptor: &Encryptor, decryptor: &Decryptor, plain: &[u8], at: usize) {
    let mut bytes = [&[0; TRANSFORM_HEADER_BYTES], plain].concat();
    encryptor.encrypt(at as u64, &mut bytes).expect("there is room");
    let mut changed = bytes.clone();
    let at = at % bytes.len();
    changed[at] ^= 1 << (at & 7);
    let mut out = Vec::new();
    assert!(decryptor.decrypt(&changed, &mut out).is_err() && out.is_empty());
    decryptor.decrypt(&bytes, &mut out).expect("it was just encrypted");
    assert_eq!(out, plain);
    open(decryptor, &bytes);
}

/// Decrypting in place and into another buffer agree on any bytes.
fn open(decryptor: &Decryptor, message: &[u8]) {
    let (mut out, mut bytes) = (Vec::new(), message.to_vec());
    let copied = decryptor.decrypt(message, &mut out);
    match decryptor.decrypt_in_place(&mut bytes) {
        Ok(range) => {
            assert_eq!(copied, Ok(()));
            assert_eq!(bytes[range.clone()], out);
            assert_eq!(bytes[..range.start], message[..range.start]);
            assert_eq!(bytes[range.end..], message[range.end..]);
        }
        Err(error) => {
            assert_eq!(copied, Err(error));
            assert_eq!(bytes.len(), message.len());
        }
    }
}
