//! Negotiate: the dialects offered and what the server chose.
//!
//! MS-CIFS section 2.2.4.52, MS-SMB section 2.2.4.5 (extended security). A client that also
//! speaks SMB2 offers `SMB 2.002` and `SMB 2.???` here and is answered by an SMB2 message.

use super::block::view;
use super::strings::{Strings, Text};
use super::{Block, Flags2};
use crate::read::slice_at;

/// Capabilities of server or client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u32);

#[allow(missing_docs)]
impl Capabilities {
    pub const RAW_MODE: Capabilities = Capabilities(0x0000_0001);
    pub const MPX_MODE: Capabilities = Capabilities(0x0000_0002);
    pub const UNICODE: Capabilities = Capabilities(0x0000_0004);
    pub const LARGE_FILES: Capabilities = Capabilities(0x0000_0008);
    pub const NT_SMBS: Capabilities = Capabilities(0x0000_0010);
    pub const RPC_REMOTE_APIS: Capabilities = Capabilities(0x0000_0020);
    pub const STATUS32: Capabilities = Capabilities(0x0000_0040);
    pub const LEVEL_II_OPLOCKS: Capabilities = Capabilities(0x0000_0080);
    pub const LOCK_AND_READ: Capabilities = Capabilities(0x0000_0100);
    pub const NT_FIND: Capabilities = Capabilities(0x0000_0200);
    pub const BULK_TRANSFER: Capabilities = Capabilities(0x0000_0400);
    pub const COMPRESSED_DATA: Capabilities = Capabilities(0x0000_0800);
    pub const DFS: Capabilities = Capabilities(0x0000_1000);
    pub const QUADWORD_ALIGNED: Capabilities = Capabilities(0x0000_2000);
    pub const LARGE_READ_X: Capabilities = Capabilities(0x0000_4000);
    pub const LARGE_WRITE_X: Capabilities = Capabilities(0x0000_8000);
    pub const LWIO: Capabilities = Capabilities(0x0001_0000);
    pub const UNIX: Capabilities = Capabilities(0x0080_0000);
    pub const DYNAMIC_REAUTH: Capabilities = Capabilities(0x2000_0000);
    pub const EXTENDED_SECURITY: Capabilities = Capabilities(0x8000_0000);

    /// Whether all bits of `flag` are set.
    pub fn has(self, flag: Capabilities) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// SecurityMode of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecurityMode(pub u16);

#[allow(missing_docs)]
impl SecurityMode {
    pub const USER_SECURITY: SecurityMode = SecurityMode(0x01);
    pub const ENCRYPT_PASSWORDS: SecurityMode = SecurityMode(0x02);
    pub const SIGNATURES_ENABLED: SecurityMode = SecurityMode(0x04);
    pub const SIGNATURES_REQUIRED: SecurityMode = SecurityMode(0x08);

    /// Whether all bits of `flag` are set.
    pub fn has(self, flag: SecurityMode) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// DialectIndex when the server speaks none of the dialects.
pub const NO_DIALECT: u16 = 0xffff;

view! {
    /// Request: the dialects that the client speaks, none of them preferred.
    NegotiateRequest(Block.word) {}
    also { second_dialect }
}

impl<'a> NegotiateRequest<'a> {
    /// The dialect strings in order, as far as captured.
    pub fn dialects(&self) -> impl Iterator<Item = Text<'a>> + use<'a> {
        let mut strings = self.base.strings(0);
        std::iter::from_fn(move || strings.as_mut()?.oem_formatted())
    }

    /// The dialect with the index that a response gives.
    pub fn dialect(&self, index: u16) -> Option<Text<'a>> {
        self.dialects().nth(usize::from(index))
    }

    #[cfg(test)]
    fn second_dialect(&self) -> Option<Text<'a>> {
        self.dialect(1)
    }
}

view! {
    /// Response: 1 word (no common dialect, or Core), 13 (LAN Manager) or 17 (NT LM 0.12).
    NegotiateResponse(Block.word) {
        /// Index in the request's list, [`NO_DIALECT`] for none.
        dialect_index: u16 = 0,
    }
    also {
        security_mode, max_buffer_size, max_mpx_count, max_raw_size, session_key, capabilities,
        system_time, server_time_zone, server_guid, domain_name, server_name,
    }
}

impl<'a> NegotiateResponse<'a> {
    /// Access control and signing.
    pub fn security_mode(&self) -> Option<SecurityMode> {
        match self.base.word_count()? {
            13 => self.base.word::<u16>(2).map(SecurityMode),
            17 => self.base.word::<u8>(2).map(|mode| SecurityMode(mode.into())),
            _ => None,
        }
    }

    /// The largest message in bytes that the server receives, apart from raw and large forms.
    pub fn max_buffer_size(&self) -> Option<u32> {
        match self.base.word_count()? {
            13 => self.base.word::<u16>(4).map(u32::from),
            17 => self.base.word(7),
            _ => None,
        }
    }

    /// The most requests that may be outstanding: SMB1's counterpart of credits.
    pub fn max_mpx_count(&self) -> Option<u16> {
        match self.base.word_count()? {
            13 => self.base.word(6),
            17 => self.base.word(3),
            _ => None,
        }
    }

    /// The most bytes of one raw read or write.
    pub fn max_raw_size(&self) -> Option<u32> {
        self.nt()?.word(11)
    }

    /// Names the virtual circuit in a session setup.
    pub fn session_key(&self) -> Option<u32> {
        match self.base.word_count()? {
            13 => self.base.word(12),
            17 => self.base.word(15),
            _ => None,
        }
    }

    /// Capabilities. A LAN Manager server's RawMode word is given as RAW_MODE when both raw
    /// reads and raw writes are supported.
    pub fn capabilities(&self) -> Option<Capabilities> {
        match self.base.word_count()? {
            13 => Some(match self.base.word::<u16>(10)? & 3 {
                3 => Capabilities::RAW_MODE,
                _ => Capabilities(0),
            }),
            17 => self.base.word(19).map(Capabilities),
            _ => None,
        }
    }

    /// The server's clock as FILETIME (100 ns since 1601, UTC).
    pub fn system_time(&self) -> Option<u64> {
        self.nt()?.word(23)
    }

    /// Minutes that the server's local time is behind UTC.
    pub fn server_time_zone(&self) -> Option<i16> {
        match self.base.word_count()? {
            13 => self.base.word(20),
            17 => self.base.word(31),
            _ => None,
        }
    }

    /// The server's GUID, with extended security.
    pub fn server_guid(&self) -> Option<[u8; 16]> {
        self.extended()?;
        slice_at(self.base.bytes()?, 0, 16)?.try_into().ok()
    }

    /// The SPNEGO token, with extended security, as far as captured.
    pub fn security_blob(&self) -> Option<&'a [u8]> {
        self.extended()?;
        self.base.bytes()?.get(16..)
    }

    /// The server's domain or workgroup, without extended security.
    pub fn domain_name(&self) -> Option<Text<'a>> {
        self.server_strings()?.unaligned()
    }

    /// The server's name, without extended security.
    pub fn server_name(&self) -> Option<Text<'a>> {
        let mut strings = self.server_strings()?;
        strings.unaligned()?;
        strings.unaligned()
    }

    fn nt(&self) -> Option<Block<'a>> {
        (self.base.word_count()? == 17).then_some(self.base)
    }

    fn extended(&self) -> Option<()> {
        let capabilities = Capabilities(self.nt()?.word(19)?);
        let flags2 = self.base.message().flags2()?;
        (capabilities.has(Capabilities::EXTENDED_SECURITY) && flags2.has(Flags2::EXTENDED_SECURITY))
            .then_some(())
    }

    fn server_strings(&self) -> Option<Strings<'a>> {
        let challenge_length: u8 = self.nt()?.word(33)?;
        match self.extended() {
            Some(()) => None,
            None => self.base.strings(challenge_length.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, utf16, words};
    use super::*;

    #[test]
    fn lists_dialects_in_order() {
        let bytes = message(0x72, 0xc853, &[], b"\x02PC NETWORK PROGRAM 1.0\0\x02NT LM 0.12\0");
        let request = NegotiateRequest::new(block(&bytes));
        let names: Vec<String> = request.dialects().map(|text| text.decode()).collect();
        assert_eq!(names, ["PC NETWORK PROGRAM 1.0", "NT LM 0.12"]);
        assert_eq!(request.dialect(1).unwrap().decode(), "NT LM 0.12");
        assert_eq!(request.dialect(2), None);
        truncate(&bytes);
    }

    #[test]
    fn reads_the_nt_response() {
        let fixed = words(
            34,
            &[
                (0, &[5, 0, 3, 50, 0, 1, 0]),
                (7, &16644u32.to_le_bytes()),
                (11, &65536u32.to_le_bytes()),
                (19, &0x0000_e3fdu32.to_le_bytes()),
                (23, &0x01d0_0000_0000_0001u64.to_le_bytes()),
                (31, &(-60i16).to_le_bytes()),
                (33, &[8]),
            ],
        );
        let mut bytes = b"CHALLENG".to_vec();
        bytes.extend(utf16("WORK\0SRV\0"));
        let bytes = reply(0x72, 0xc001, &fixed, &bytes);
        let response = NegotiateResponse::new(block(&bytes));
        assert_eq!(response.dialect_index(), Some(5));
        let mode = response.security_mode().unwrap();
        assert!(mode.has(SecurityMode::ENCRYPT_PASSWORDS));
        assert!(!mode.has(SecurityMode::SIGNATURES_ENABLED));
        assert_eq!(response.max_mpx_count(), Some(50));
        assert_eq!(response.max_buffer_size(), Some(16644));
        assert_eq!(response.max_raw_size(), Some(65536));
        let capabilities = response.capabilities().unwrap();
        assert!(capabilities.has(Capabilities::RAW_MODE));
        assert!(capabilities.has(Capabilities::LARGE_WRITE_X));
        assert!(!capabilities.has(Capabilities::EXTENDED_SECURITY));
        assert_eq!(response.system_time(), Some(0x01d0_0000_0000_0001));
        assert_eq!(response.server_time_zone(), Some(-60));
        assert_eq!(response.domain_name().unwrap().decode(), "WORK");
        assert_eq!(response.server_name().unwrap().decode(), "SRV");
        assert_eq!(response.security_blob(), None);
        truncate(&bytes);
    }

    #[test]
    fn reads_the_extended_and_the_old_response() {
        let fixed = words(34, &[(19, &0x8000_f3fdu32.to_le_bytes())]);
        let bytes = reply(0x72, 0xc801, &fixed, b"0123456789abcdef\x60\x48");
        let response = NegotiateResponse::new(block(&bytes));
        assert_eq!(response.server_guid(), Some(*b"0123456789abcdef"));
        assert_eq!(response.security_blob(), Some(&b"\x60\x48"[..]));
        assert_eq!(response.domain_name(), None);
        truncate(&bytes);

        let fixed = words(26, &[(0, &[2, 0, 1, 0, 0, 0x10, 4, 0, 1, 0, 3, 0])]);
        let bytes = reply(0x72, 0, &fixed, &[]);
        let response = NegotiateResponse::new(block(&bytes));
        assert_eq!(response.max_buffer_size(), Some(4096));
        assert_eq!(response.max_mpx_count(), Some(4));
        assert_eq!(response.capabilities(), Some(Capabilities::RAW_MODE));
        assert_eq!(response.max_raw_size(), None);
        truncate(&bytes);
    }
}
