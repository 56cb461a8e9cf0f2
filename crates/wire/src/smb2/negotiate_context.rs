//! The contexts behind a 3.1.1 NEGOTIATE (MS-SMB2 sections 2.2.3.1 and 2.2.4.1).
//!
//! Owns the list and the typed content of each kind. Unknown kinds keep their number and bytes.

use super::HEADER_BYTES;
use super::view::{Field, codes};
use crate::read::{array_at, slice_at, u16_at, u32_at};

codes! {
    /// What a negotiate context is about.
    NegotiateContextType(u16) {
        PREAUTH_INTEGRITY_CAPABILITIES = 0x0001 => "PREAUTH_INTEGRITY_CAPABILITIES",
        ENCRYPTION_CAPABILITIES = 0x0002 => "ENCRYPTION_CAPABILITIES",
        COMPRESSION_CAPABILITIES = 0x0003 => "COMPRESSION_CAPABILITIES",
        NETNAME_NEGOTIATE_CONTEXT_ID = 0x0005 => "NETNAME_NEGOTIATE_CONTEXT_ID",
        TRANSPORT_CAPABILITIES = 0x0006 => "TRANSPORT_CAPABILITIES",
        RDMA_TRANSFORM_CAPABILITIES = 0x0007 => "RDMA_TRANSFORM_CAPABILITIES",
        SIGNING_CAPABILITIES = 0x0008 => "SIGNING_CAPABILITIES",
        POSIX_EXTENSIONS_AVAILABLE = 0x0100 => "POSIX_EXTENSIONS_AVAILABLE",
    }
}

codes! {
    /// The hash of the preauthentication integrity.
    HashId(u16) {
        SHA_512 = 1 => "SHA-512",
    }
}

codes! {
    /// An encryption cipher.
    CipherId(u16) {
        AES_128_CCM = 1 => "AES-128-CCM",
        AES_128_GCM = 2 => "AES-128-GCM",
        AES_256_CCM = 3 => "AES-256-CCM",
        AES_256_GCM = 4 => "AES-256-GCM",
    }
}

codes! {
    /// A signing algorithm.
    SigningId(u16) {
        HMAC_SHA256 = 0 => "HMAC-SHA256",
        AES_CMAC = 1 => "AES-CMAC",
        AES_GMAC = 2 => "AES-GMAC",
    }
}

/// One negotiate context, its data captured whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateContext<'a> {
    /// What it is about.
    pub kind: NegotiateContextType,
    /// Its bytes.
    pub data: &'a [u8],
}

/// A list of 16-bit codes inside a negotiate context.
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a>(&'a [u8]);

impl Iterator for Codes<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        let code = u16_at(self.0, 0)?;
        self.0 = self.0.get(2..).unwrap_or_default();
        Some(code)
    }
}

/// The decoded content of a negotiate context.
#[derive(Clone, Copy, Debug)]
pub enum NegotiateContextData<'a> {
    /// Hashes offered ([`HashId`]) and the salt.
    PreauthIntegrity {
        /// Hash algorithms.
        hashes: Codes<'a>,
        /// Random bytes.
        salt: &'a [u8],
    },
    /// Ciphers offered or chosen ([`CipherId`]; 0 in a response means none in common).
    Encryption(Codes<'a>),
    /// Compression algorithms offered or chosen.
    Compression {
        /// Bit 0: chained compression.
        flags: u32,
        /// Algorithms.
        algorithms: Codes<'a>,
    },
    /// The server name that the client used, UTF-16LE.
    Netname(&'a [u8]),
    /// Bit 0: encryption is left to the transport (QUIC).
    Transport(u32),
    /// RDMA transforms (encryption, signing) offered or chosen.
    Rdma(Codes<'a>),
    /// Signing algorithms offered or chosen ([`SigningId`]).
    Signing(Codes<'a>),
    /// The GUID of the POSIX extensions.
    Posix(&'a [u8; 16]),
    /// A kind that is not known, or content that is too short for its kind.
    Unknown,
}

impl<'a> NegotiateContext<'a> {
    /// Decodes the content.
    pub fn decode(self) -> NegotiateContextData<'a> {
        self.known().unwrap_or(NegotiateContextData::Unknown)
    }

    fn known(self) -> Option<NegotiateContextData<'a>> {
        let data = self.data;
        Some(match self.kind {
            NegotiateContextType::PREAUTH_INTEGRITY_CAPABILITIES => {
                let hashes = self.codes(4)?;
                let salt_length = usize::from(u16_at(data, 2)?);
                NegotiateContextData::PreauthIntegrity {
                    salt: slice_at(data, 4 + hashes.0.len(), salt_length)?,
                    hashes,
                }
            }
            NegotiateContextType::ENCRYPTION_CAPABILITIES => {
                NegotiateContextData::Encryption(self.codes(2)?)
            }
            NegotiateContextType::COMPRESSION_CAPABILITIES => NegotiateContextData::Compression {
                flags: u32_at(data, 4)?,
                algorithms: self.codes(8)?,
            },
            NegotiateContextType::NETNAME_NEGOTIATE_CONTEXT_ID => {
                NegotiateContextData::Netname(data)
            }
            NegotiateContextType::TRANSPORT_CAPABILITIES => {
                NegotiateContextData::Transport(u32_at(data, 0)?)
            }
            NegotiateContextType::RDMA_TRANSFORM_CAPABILITIES => {
                NegotiateContextData::Rdma(self.codes(8)?)
            }
            NegotiateContextType::SIGNING_CAPABILITIES => {
                NegotiateContextData::Signing(self.codes(2)?)
            }
            NegotiateContextType::POSIX_EXTENSIONS_AVAILABLE => {
                NegotiateContextData::Posix(array_at(data, 0)?)
            }
            _ => return None,
        })
    }

    /// The codes at `offset`, whose count is the first field of the data.
    fn codes(self, offset: usize) -> Option<Codes<'a>> {
        let count = usize::from(u16_at(self.data, 0)?);
        slice_at(self.data, offset, count * 2).map(Codes)
    }
}

/// The negotiate contexts of a message, in their order; ends where the bytes end.
#[derive(Clone, Debug)]
pub struct NegotiateContexts<'a> {
    message: &'a [u8],
    at: usize,
    left: u16,
}

impl<'a> NegotiateContexts<'a> {
    /// The `count` contexts at `offset` of a message.
    pub(super) fn new(message: &'a [u8], offset: u32, count: u16) -> Self {
        let at = offset as usize;
        NegotiateContexts { message, at, left: if at < HEADER_BYTES { 0 } else { count } }
    }
}

impl<'a> Iterator for NegotiateContexts<'a> {
    type Item = NegotiateContext<'a>;

    fn next(&mut self) -> Option<NegotiateContext<'a>> {
        self.left = self.left.checked_sub(1)?;
        let rest = self.message.get(self.at..)?;
        let length = usize::from(u16_at(rest, 2)?);
        let context = NegotiateContext {
            kind: NegotiateContextType::read(rest, 0)?,
            data: slice_at(rest, 8, length)?,
        };
        // Every context starts at a multiple of eight, counted from the header.
        self.at = (self.at + 8 + length).next_multiple_of(8);
        Some(context)
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message};
    use super::*;

    fn contexts(message: &[u8]) -> NegotiateContexts<'_> {
        NegotiateContexts::new(message, 64, 9)
    }

    fn sample() -> Vec<u8> {
        let mut body = Vec::new();
        let mut add = |kind: u16, data: &[u8]| {
            body.resize(body.len().next_multiple_of(8), 0);
            body.extend_from_slice(&kind.to_le_bytes());
            body.extend_from_slice(&(data.len() as u16).to_le_bytes());
            body.extend_from_slice(&[0; 4]);
            body.extend_from_slice(data);
        };
        add(1, &[1, 0, 3, 0, 1, 0, 7, 8, 9]);
        add(2, &[1, 0, 4, 0]);
        add(3, &[2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 4, 0]);
        add(5, b"s\0");
        add(6, &[1, 0, 0, 0]);
        add(7, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        add(8, &[2, 0, 2, 0, 1, 0]);
        add(0x100, &[3; 16]);
        add(0x7777, b"?");
        message(&body)
    }

    #[test]
    fn decodes_every_kind() {
        use NegotiateContextData as Data;
        let bytes = sample();
        let found: Vec<_> = contexts(&bytes).collect();
        assert_eq!(found.len(), 9);
        let data: Vec<_> = found.iter().map(|context| context.decode()).collect();
        assert!(
            matches!(data[0], Data::PreauthIntegrity { hashes, salt: [7, 8, 9] } if hashes.eq([1]))
        );
        assert!(matches!(data[1], Data::Encryption(codes) if codes.eq([4])));
        assert!(
            matches!(data[2], Data::Compression { flags: 1, algorithms } if algorithms.eq([1, 4]))
        );
        assert!(matches!(data[3], Data::Netname(b"s\0")));
        assert!(matches!(data[4], Data::Transport(1)));
        assert!(matches!(data[5], Data::Rdma(codes) if codes.eq([2])));
        assert!(matches!(data[6], Data::Signing(codes) if codes.eq([2, 1])));
        assert!(matches!(data[7], Data::Posix(&[3, ..])));
        assert!(matches!(data[8], Data::Unknown));
        assert_eq!(found[8].kind, NegotiateContextType(0x7777));
        assert_eq!(found[8].data, b"?");
    }

    #[test]
    fn survives_abuse() {
        abuse(&sample(), |bytes| {
            for context in contexts(bytes) {
                let _ = context.decode();
            }
            assert!(contexts(bytes).count() <= 9);
        });
        assert_eq!(NegotiateContexts::new(&sample(), 0, 9).count(), 0);
    }
}
