//! The keys of a session from its session key.
//!
//! MS-SMB2 section 3.1.4.2: NIST SP800-108 in counter mode with HMAC-SHA256, a 32-bit counter
//! before the label and a 32-bit length in bits behind the context; labels and constant contexts
//! include their terminating zero. One round gives all 256 bits that are ever needed.

use super::{Cipher, Key, PreauthIntegrity};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The keys of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionKeys {
    /// Encrypts and decrypts what the client sends.
    pub client_to_server: Key,
    /// Encrypts and decrypts what the server sends.
    pub server_to_client: Key,
    /// Signs in both directions on the session's first connection.
    pub signing: Key,
}

/// Derives the keys of a session from its full session key, as GSS-API gave it out.
///
/// `preauth` is the session's hash, used from dialect 3.1.1 on. `None` when the dialect has no
/// derived keys (before 3.0), when 3.1.1 lacks the hash, or when the cipher is not known.
pub fn derive_session_keys(
    dialect: u16,
    cipher: Cipher,
    session_key: &Key,
    preauth: Option<&PreauthIntegrity>,
) -> Option<SessionKeys> {
    let key_bytes = cipher.key_bytes()?;
    let short_key = session_key.first_16();
    let encryption_key = match key_bytes {
        32 => session_key,
        _ => &short_key,
    };
    let encryption = |label, context| kdf(encryption_key, label, context, key_bytes);
    let signing = derive_signing_key(dialect, session_key, preauth)?;
    match dialect {
        0x0300 | 0x0302 => Some(SessionKeys {
            client_to_server: encryption(b"SMB2AESCCM\0", b"ServerIn \0")?,
            server_to_client: encryption(b"SMB2AESCCM\0", b"ServerOut\0")?,
            signing,
        }),
        0x0311 => {
            let context = preauth?.value();
            Some(SessionKeys {
                client_to_server: encryption(b"SMBC2SCipherKey\0", context)?,
                server_to_client: encryption(b"SMBS2CCipherKey\0", context)?,
                signing,
            })
        }
        _ => None,
    }
}

/// Derives the key that signs a session's messages on a connection, 16 bytes, for every dialect:
/// before 3.0 the start of the session key itself, with 3.0 and later a key made of it.
///
/// For another channel of a session, `session_key` is the one that authenticating this channel
/// gave out, and `preauth` this channel's hash. `None` when the dialect is not known or 3.1.1
/// lacks the hash.
pub fn derive_signing_key(
    dialect: u16,
    session_key: &Key,
    preauth: Option<&PreauthIntegrity>,
) -> Option<Key> {
    let key = session_key.first_16();
    match dialect {
        0x0202 | 0x0210 => Some(key),
        0x0300 | 0x0302 => kdf(&key, b"SMB2AESCMAC\0", b"SmbSign\0", 16),
        0x0311 => kdf(&key, b"SMBSigningKey\0", preauth?.value(), 16),
        _ => None,
    }
}

fn kdf(key: &Key, label: &[u8], context: &[u8], length: usize) -> Option<Key> {
    let bits = u32::try_from(length * 8).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).ok()?;
    mac.update(&1u32.to_be_bytes());
    mac.update(label);
    mac.update(&[0]);
    mac.update(context);
    mac.update(&bits.to_be_bytes());
    Key::new(mac.finalize().into_bytes().get(..length)?)
}

#[cfg(test)]
mod tests {
    use super::super::key_list::tests::{hex, key};
    use super::*;

    /// The vectors that Microsoft published in "SMB 3.1.1 Encryption in Windows 10".
    #[test]
    fn published_keys_of_3_1_1() {
        let hash = hex(concat!(
            "b23f3cbfd69487d9832b79b1594a367cdd950909b774c3a4c412b4fcea9edddb",
            "a7db256ba2ea30e977f11f9b113247578e0e915c6d2a513b8f2fca5707dc8770"
        ));
        let hash = PreauthIntegrity::from(<[u8; 64]>::try_from(hash).unwrap());
        let session_key = key("419fddf34c1e001909d362ae7fb6af79");
        let cipher = Cipher::AES_128_GCM;
        let keys = derive_session_keys(0x0311, cipher, &session_key, Some(&hash)).unwrap();
        let expected = key("a2f5e80e5d59103034f32e52f698e5ec");
        assert_eq!(keys.client_to_server, expected);
        let expected = key("748c50868c90f302962a5c35f5f9a8bf");
        assert_eq!(keys.server_to_client, expected);
        assert_eq!(derive_session_keys(0x0311, cipher, &session_key, None), None);
    }

    /// The vectors that Microsoft published in "Encryption in SMB 3.0: A protocol perspective".
    #[test]
    fn published_keys_of_3_0() {
        let session_key = key("b4546771b515f766a86735532dd6c4f0");
        let cipher = Cipher::AES_128_CCM;
        let keys = derive_session_keys(0x0302, cipher, &session_key, None).unwrap();
        let expected = key("261b72350558f2e9dcf613070383edbf");
        assert_eq!(keys.client_to_server, expected);
        let expected = key("8fe2b57ec34d2db5b1a9727f526bbdb5");
        assert_eq!(keys.server_to_client, expected);
        assert_eq!(derive_session_keys(0x0210, cipher, &session_key, None), None);
    }

    #[test]
    fn a_256_bit_cipher_uses_the_full_session_key_and_signing_its_first_16_bytes() {
        let long = Key::new(&[9; 32]).unwrap();
        let short = Key::new(&[9; 16]).unwrap();
        let hash = PreauthIntegrity::new();
        let of = |cipher, key| derive_session_keys(0x0311, cipher, key, Some(&hash)).unwrap();
        let wide = of(Cipher::AES_256_GCM, &long);
        assert_eq!(wide.client_to_server.as_bytes().len(), 32);
        assert_ne!(wide.client_to_server, of(Cipher::AES_256_GCM, &short).client_to_server);
        assert_eq!(of(Cipher::AES_128_GCM, &long), of(Cipher::AES_128_GCM, &short));
        assert_eq!(wide.signing, of(Cipher::AES_128_GCM, &short).signing);
    }

    /// From Microsoft's "SMB 2 and SMB 3 security in Windows 10: the anatomy of signing and
    /// cryptographic keys": the sessions and the second channels of its examples.
    #[test]
    fn published_signing_keys() {
        let signing = |dialect, session_key, hash: Option<&str>| {
            let hash = hash.map(|hash| {
                PreauthIntegrity::from(<[u8; 64]>::try_from(hex(hash).as_slice()).unwrap())
            });
            derive_signing_key(dialect, &key(session_key), hash.as_ref()).unwrap()
        };
        let session = "7cd451825d0450d235424e44ba6e78cc";
        assert_eq!(signing(0x0300, session, None), key("0b7e9c5cac36c0f6ea9ab275298cedce"));
        let channel = "4e01a2b313bcf660cc250bef021aede6";
        assert_eq!(signing(0x0302, channel, None), key("ba1a17dbbfec349bca105563d598952f"));
        let (session, hash) = (
            "270e1ba896585eeb7af3472d3b4c75a7",
            concat!(
                "0dd13628cc3ed218ef9df9772d436d0887ab9814bfae63a80aa845f36909db79",
                "28622dddad522d9751640a459762c5a9d6bb084cbb3ce6bdadef5d5bce3c6c01"
            ),
        );
        assert_eq!(signing(0x0311, session, Some(hash)), key("73fe7a9a77bef0bde49c650d8ccb5f76"));
        let (channel, hash) = (
            "84b9dbb730116a8fa6e9889555c265f9",
            concat!(
                "ea3bf912b11cbfec5b1889e8209614218687f82fa5294521ad3063425e49e88a",
                "10bd022124ce25123bc9111f52d9566ba88bf46344e6063dc5e3ff0389026f6c"
            ),
        );
        assert_eq!(signing(0x0311, channel, Some(hash)), key("c962bca1a9dd1697b030644199705431"));
        let short = derive_signing_key(0x0210, &Key::new(&[1; 4]).unwrap(), None).unwrap();
        assert_eq!(short, key("01010101000000000000000000000000"));
        assert_eq!(derive_signing_key(0x0311, &short, None), None);
        assert_eq!(derive_signing_key(0x02ff, &short, None), None);
    }
}
