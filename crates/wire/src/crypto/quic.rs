//! The first packets of QUIC, which anyone who sees them can read.
//!
//! Owns the long header and the protection of a client's Initial packets, whose keys are derived
//! from the connection id in the packet itself (RFC 9001 section 5.2, RFC 9369 section 3.3): enough
//! to see which protocol a connection is for. Packets behind the handshake stay closed. It does not
//! own frames, TLS, nor connections (`capture`).

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit as _};
use aws_lc_rs::aead::{AES_128_GCM, Aad, Nonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::aead::gcm;

/// QUIC versions 1 and 2.
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
const SALT_1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
const SALT_2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];
/// The longest connection id of these versions.
const CONNECTION_ID_MAX: usize = 20;

/// A packet with a long header: one of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongHeader<'a> {
    /// The version; 0 is a negotiation of it.
    pub version: u32,
    /// Whether it is an Initial packet of a version that is known.
    pub is_initial: bool,
    /// The receiver's connection id.
    pub destination: &'a [u8],
    /// The sender's connection id.
    pub source: &'a [u8],
    /// Where the version's own fields begin.
    rest: usize,
}

impl<'a> LongHeader<'a> {
    /// Reads the part that all versions share (RFC 8999 section 5.1).
    pub fn parse(packet: &'a [u8]) -> Option<LongHeader<'a>> {
        let &[first, v3, v2, v1, v0, destination_len] = packet.first_chunk()?;
        if first & 0x80 == 0 {
            return None;
        }
        let version = u32::from_be_bytes([v3, v2, v1, v0]);
        let kind = first >> 4 & 3;
        let is_initial = matches!((version, kind), (VERSION_1, 0) | (VERSION_2, 1));
        // The fixed bit.
        if is_initial && first & 0x40 == 0 {
            return None;
        }
        let end = 6 + usize::from(destination_len);
        let destination = packet.get(6..end)?;
        let source_len = usize::from(*packet.get(end)?);
        let source = packet.get(end + 1..end + 1 + source_len)?;
        if is_initial && destination.len().max(source.len()) > CONNECTION_ID_MAX {
            return None;
        }
        Some(LongHeader { version, is_initial, destination, source, rest: end + 1 + source_len })
    }
}

/// Decrypts the Initial packet at the beginning of a client's datagram: its frames. The keys come
/// from `connection_id`, which is the destination of the client's first packet. `None` if the packet
/// was not captured whole, or is not the client's.
pub fn open_client_initial(packet: &[u8], connection_id: &[u8]) -> Option<Vec<u8>> {
    let header = LongHeader::parse(packet).filter(|header| header.is_initial)?;
    let (token_len, at) = variable(packet, header.rest)?;
    let (length, number_at) = variable(packet, at.checked_add(usize::try_from(token_len).ok()?)?)?;
    let end = number_at.checked_add(usize::try_from(length).ok()?)?;
    let mut packet = packet.get(..end)?.to_vec();
    let keys = Keys::of_client(header.version, connection_id)?;
    // The sample begins four bytes behind the packet number's start.
    let sample: [u8; 16] = *packet.get(number_at + 4..)?.first_chunk()?;
    let mut mask = sample.into();
    keys.header.encrypt_block(&mut mask);
    let first = packet.first_mut()?;
    *first ^= mask.first()? & 0x0f;
    let number_len = usize::from(*first & 3) + 1;
    let mut nonce = keys.iv;
    for place in 0..number_len {
        let byte = packet.get_mut(number_at + place)?;
        *byte ^= mask.get(1 + place)?;
        *nonce.get_mut(12 - number_len + place)? ^= *byte;
    }
    let (clear, sealed) = packet.split_at_mut_checked(number_at + number_len)?;
    let nonce = Nonce::assume_unique_for_key(nonce);
    let opened = keys.payload.open_in_place(nonce, Aad::from(&*clear), sealed).ok()?;
    Some(opened.to_vec())
}

/// A number of variable length (RFC 9000 section 16), and where the next field begins.
pub fn variable(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    let length = 1usize << (first >> 6);
    let rest = bytes.get(at + 1..at + length)?;
    let value = rest.iter().fold(u64::from(first & 0x3f), |sum, byte| sum << 8 | u64::from(*byte));
    Some((value, at + length))
}

struct Keys {
    payload: aws_lc_rs::aead::LessSafeKey,
    iv: [u8; 12],
    header: Aes128,
}

impl Keys {
    fn of_client(version: u32, connection_id: &[u8]) -> Option<Keys> {
        let (salt, labels) = match version {
            VERSION_2 => (SALT_2, ["quicv2 key", "quicv2 iv", "quicv2 hp"]),
            _ => (SALT_1, ["quic key", "quic iv", "quic hp"]),
        };
        let initial = hmac(&salt, &[connection_id])?;
        let client: [u8; 32] = expand(&initial, "client in")?;
        let [key, iv, header] = labels;
        let key: [u8; 16] = expand(&client, key)?;
        let header: [u8; 16] = expand(&client, header)?;
        Some(Keys {
            payload: gcm(&AES_128_GCM, &key)?,
            iv: expand(&client, iv)?,
            header: Aes128::new_from_slice(&header).ok()?,
        })
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Option<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    parts.iter().for_each(|part| mac.update(part));
    Some(mac.finalize().into_bytes().into())
}

/// HKDF-Expand-Label without a context, at most 32 bytes (RFC 8446 section 7.1).
fn expand<const N: usize>(secret: &[u8; 32], label: &str) -> Option<[u8; N]> {
    const { assert!(N <= 32) };
    let label_len = u8::try_from(6 + label.len()).ok()?;
    let length = [0, N as u8, label_len];
    let block = hmac(secret, &[&length, b"tls13 ", label.as_bytes(), &[0, 1]])?;
    block.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::super::key_list::tests::hex;
    use super::*;

    /// RFC 9001 appendix A.1.
    #[test]
    fn keys_of_the_standards_example() {
        let id = hex("8394c8f03e515708");
        let initial = hmac(&SALT_1, &[&id]).unwrap();
        let client: [u8; 32] = expand(&initial, "client in").unwrap();
        assert_eq!(
            client.to_vec(),
            hex("c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea")
        );
        let key: [u8; 16] = expand(&client, "quic key").unwrap();
        assert_eq!(key.to_vec(), hex("1f369613dd76d5467730efcbe3b1a22d"));
        let iv: [u8; 12] = expand(&client, "quic iv").unwrap();
        assert_eq!(iv.to_vec(), hex("fa044b2f42a3fd3b46fb255c"));
        let header: [u8; 16] = expand(&client, "quic hp").unwrap();
        assert_eq!(header.to_vec(), hex("9f50449e04a0e810283a1e9933adedd2"));
    }

    #[test]
    fn numbers_of_variable_length_are_read() {
        for (bytes, value) in [
            ("25", 37),
            ("7bbd", 15_293),
            ("9d7f3e7d", 494_878_333),
            ("c2197c5eff14e88c", 151_288_809_941_952_652),
        ] {
            let bytes = hex(bytes);
            assert_eq!(variable(&bytes, 0), Some((value, bytes.len())));
            assert_eq!(variable(&bytes[..bytes.len() - 1], 0), None);
        }
    }

    #[test]
    fn damaged_packets_are_refused() {
        let mut packet = vec![0xc0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x40, 40];
        packet.resize(58, 7);
        let header = LongHeader::parse(&packet).unwrap();
        assert!(header.is_initial && header.destination == [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(open_client_initial(&packet, header.destination), None);
        for cut in 0..packet.len() {
            assert_eq!(open_client_initial(&packet[..cut], &[1]), None);
            for value in [0, 0x40, 0x80, 0xff] {
                let mut changed = packet.clone();
                changed[cut] = value;
                assert_eq!(open_client_initial(&changed, &[1]), None);
            }
        }
    }
}
