//! NTLMSSP messages: the user and workstation of a logon, and the server's names.
//!
//! MS-NLMP section 2.2.1 (NEGOTIATE, CHALLENGE, AUTHENTICATE), 2.2.2.1 (AV_PAIR), 2.2.2.5 (flags),
//! 2.2.2.10 (VERSION). Responses are given as they are; `secrets` verifies them.

use crate::read::{array_at, slice_at, u8_at, u16_at, u32_at};
use crate::text::{push_oem, utf16le};

pub(crate) const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";

/// Which of the three messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u32);

#[allow(missing_docs)]
impl Kind {
    pub const NEGOTIATE: Kind = Kind(1);
    pub const CHALLENGE: Kind = Kind(2);
    pub const AUTHENTICATE: Kind = Kind(3);
}

/// Negotiate flags (MS-NLMP section 2.2.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u32);

#[allow(missing_docs)]
impl Flags {
    pub const UNICODE: Flags = Flags(0x0000_0001);
    pub const OEM: Flags = Flags(0x0000_0002);
    pub const REQUEST_TARGET: Flags = Flags(0x0000_0004);
    pub const SIGN: Flags = Flags(0x0000_0010);
    pub const SEAL: Flags = Flags(0x0000_0020);
    pub const LM_KEY: Flags = Flags(0x0000_0080);
    pub const NTLM: Flags = Flags(0x0000_0200);
    pub const ANONYMOUS: Flags = Flags(0x0000_0800);
    pub const ALWAYS_SIGN: Flags = Flags(0x0000_8000);
    pub const TARGET_TYPE_DOMAIN: Flags = Flags(0x0001_0000);
    pub const TARGET_TYPE_SERVER: Flags = Flags(0x0002_0000);
    pub const EXTENDED_SESSION_SECURITY: Flags = Flags(0x0008_0000);
    pub const TARGET_INFO: Flags = Flags(0x0080_0000);
    pub const VERSION: Flags = Flags(0x0200_0000);
    pub const KEY_128: Flags = Flags(0x2000_0000);
    pub const KEY_EXCHANGE: Flags = Flags(0x4000_0000);
    pub const KEY_56: Flags = Flags(0x8000_0000);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The operating system's version that a message carries "for debugging" (section 2.2.2.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Major version, 10 for Windows 10 and later.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
    /// Build, 20348 for Windows Server 2022.
    pub build: u16,
}

/// One attribute of the target information (section 2.2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvPair<'a> {
    /// What it is.
    pub id: AvId,
    /// Its bytes: UTF-16LE for the names.
    pub value: &'a [u8],
}

/// Which attribute of the target information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvId(pub u16);

#[allow(missing_docs)]
impl AvId {
    pub const EOL: AvId = AvId(0);
    pub const NB_COMPUTER_NAME: AvId = AvId(1);
    pub const NB_DOMAIN_NAME: AvId = AvId(2);
    pub const DNS_COMPUTER_NAME: AvId = AvId(3);
    pub const DNS_DOMAIN_NAME: AvId = AvId(4);
    pub const DNS_TREE_NAME: AvId = AvId(5);
    pub const FLAGS: AvId = AvId(6);
    pub const TIMESTAMP: AvId = AvId(7);
    pub const TARGET_NAME: AvId = AvId(9);
}

/// An NTLMSSP message as far as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    /// Takes bytes that start with the NTLMSSP signature; `None` for others.
    pub fn parse(bytes: &'a [u8]) -> Option<Message<'a>> {
        (array_at(bytes, 0)? == SIGNATURE).then_some(Message(bytes))
    }

    /// Which message it is.
    pub fn kind(&self) -> Option<Kind> {
        u32_at(self.0, 8).map(Kind)
    }

    /// The negotiate flags; `None` too for an AUTHENTICATE of the oldest form, which has none.
    pub fn flags(&self) -> Option<Flags> {
        let offset = match self.kind()? {
            Kind::NEGOTIATE => 12,
            Kind::CHALLENGE => 20,
            Kind::AUTHENTICATE if self.payload_start()? >= 64 => 60,
            _ => return None,
        };
        u32_at(self.0, offset).map(Flags)
    }

    /// AUTHENTICATE: the user's domain (empty for a local account or a name with `@`).
    pub fn domain(&self) -> Option<String> {
        self.authenticate_text(28)
    }

    /// AUTHENTICATE: the user's name, empty when anonymous.
    pub fn user(&self) -> Option<String> {
        self.authenticate_text(36)
    }

    /// AUTHENTICATE: the client's NetBIOS name.
    pub fn workstation(&self) -> Option<String> {
        self.authenticate_text(44)
    }

    /// AUTHENTICATE: whether it asks for an anonymous logon (section 3.2.5.1.2).
    pub fn is_anonymous(&self) -> Option<bool> {
        if self.kind()? != Kind::AUTHENTICATE {
            return None;
        }
        let (lm_length, nt_length) = (u16_at(self.0, 12)?, u16_at(self.0, 20)?);
        if u16_at(self.0, 36)? == 0 && nt_length == 0 && lm_length <= 1 {
            return Some(true);
        }
        let has_flags = self.payload_start()? >= 64;
        Some(has_flags && self.flags()?.contains(Flags::ANONYMOUS))
    }

    /// CHALLENGE: the server's nonce (ServerChallenge).
    pub fn server_challenge(&self) -> Option<&'a [u8; 8]> {
        self.is(Kind::CHALLENGE).then(|| array_at(self.0, 24))?
    }

    /// AUTHENTICATE: the response by the LM hash (or what NTLMv2 puts in its place).
    pub fn lm_response(&self) -> Option<&'a [u8]> {
        self.authenticate_bytes(12)
    }

    /// AUTHENTICATE: the response by the NT hash.
    pub fn nt_response(&self) -> Option<&'a [u8]> {
        self.authenticate_bytes(20)
    }

    /// AUTHENTICATE: the client's random session key, encrypted; empty without key exchange.
    pub fn encrypted_session_key(&self) -> Option<&'a [u8]> {
        self.authenticate_bytes(52)
    }

    /// AUTHENTICATE: whether the response is NTLMv2 (longer than the 24 bytes of NTLMv1); `None`
    /// without a response.
    pub fn is_ntlm_v2(&self) -> Option<bool> {
        if self.kind()? != Kind::AUTHENTICATE {
            return None;
        }
        let length = u16_at(self.0, 20)?;
        (length != 0).then_some(length > 24)
    }

    /// CHALLENGE: the server's domain, or its own name when it is in none.
    pub fn target_name(&self) -> Option<String> {
        self.is(Kind::CHALLENGE).then(|| self.text(12))?
    }

    /// CHALLENGE: the target information; empty when there is none.
    pub fn target_info(&self) -> AvPairs<'a> {
        let has_it = self.is(Kind::CHALLENGE)
            && self.flags().is_some_and(|flags| flags.contains(Flags::TARGET_INFO));
        AvPairs(match self.field(40) {
            Some((offset, length)) if has_it => {
                let bytes = self.0.get(offset..).unwrap_or(&[]);
                bytes.get(..length).unwrap_or(bytes)
            }
            _ => &[],
        })
    }

    /// CHALLENGE: a name of the target information, as text.
    pub fn target_attribute(&self, id: AvId) -> Option<String> {
        let pair = self.target_info().find(|pair| pair.id == id)?;
        Some(utf16le(pair.value))
    }

    /// The sender's operating system, when the flags say that it is there.
    pub fn version(&self) -> Option<Version> {
        if !self.flags()?.contains(Flags::VERSION) {
            return None;
        }
        let offset = match self.kind()? {
            Kind::NEGOTIATE => 32,
            Kind::CHALLENGE => 48,
            Kind::AUTHENTICATE if self.payload_start()? >= 72 => 64,
            _ => return None,
        };
        Some(Version {
            major: u8_at(self.0, offset)?,
            minor: u8_at(self.0, offset + 1)?,
            build: u16_at(self.0, offset + 2)?,
        })
    }

    fn is(&self, kind: Kind) -> bool {
        self.kind() == Some(kind)
    }

    /// A field of an AUTHENTICATE, if captured whole.
    fn authenticate_bytes(&self, descriptor: usize) -> Option<&'a [u8]> {
        let (offset, length) = self.field(descriptor)?;
        self.is(Kind::AUTHENTICATE).then(|| match length {
            0 => Some(&[][..]),
            length => slice_at(self.0, offset, length),
        })?
    }

    fn authenticate_text(&self, descriptor: usize) -> Option<String> {
        self.is(Kind::AUTHENTICATE).then(|| self.text(descriptor))?
    }

    /// Where the payload of an AUTHENTICATE starts: the lowest offset of a field that has bytes.
    fn payload_start(&self) -> Option<usize> {
        let mut start = usize::MAX;
        for descriptor in [12, 20, 28, 36, 44] {
            let (offset, length) = self.field(descriptor)?;
            if length != 0 {
                start = start.min(offset);
            }
        }
        Some(start)
    }

    /// Offset and length of the field that is described at `descriptor` (length, room, offset).
    fn field(&self, descriptor: usize) -> Option<(usize, usize)> {
        let length = usize::from(u16_at(self.0, descriptor)?);
        let offset = usize::try_from(u32_at(self.0, descriptor + 4)?).ok()?;
        Some((offset, length))
    }

    fn text(&self, descriptor: usize) -> Option<String> {
        let (offset, length) = self.field(descriptor)?;
        if length == 0 {
            return Some(String::new());
        }
        let bytes = slice_at(self.0, offset, length)?;
        let is_unicode = match self.flags() {
            Some(flags) => flags.contains(Flags::UNICODE),
            None => looks_like_utf16le(bytes),
        };
        if is_unicode {
            return Some(utf16le(bytes));
        }
        let mut text = String::with_capacity(bytes.len());
        push_oem(&mut text, bytes);
        Some(text)
    }
}

/// The attributes of the target information, up to its end mark or the end of the capture.
#[derive(Clone, Copy, Debug)]
pub struct AvPairs<'a>(&'a [u8]);

impl<'a> Iterator for AvPairs<'a> {
    type Item = AvPair<'a>;

    fn next(&mut self) -> Option<AvPair<'a>> {
        let id = AvId(u16_at(self.0, 0)?);
        let length = usize::from(u16_at(self.0, 2)?);
        if id == AvId::EOL {
            return None;
        }
        let value = slice_at(self.0, 4, length)?;
        self.0 = self.0.get(4 + length..)?;
        Some(AvPair { id, value })
    }
}

/// The oldest AUTHENTICATE has no flags: every second byte zero can only be UTF-16.
fn looks_like_utf16le(bytes: &[u8]) -> bool {
    bytes.len().is_multiple_of(2) && bytes.iter().skip(1).step_by(2).all(|&byte| byte == 0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// An AUTHENTICATE with a 24-byte response, from the layout of section 2.2.1.3.
    pub fn authenticate(flags: u32, texts: [&[u8]; 3]) -> Vec<u8> {
        let mut message = b"NTLMSSP\0\x03\0\0\0".to_vec();
        let mut payload = Vec::new();
        let mut descriptors = Vec::new();
        for bytes in [&[0u8][..], &[7; 24], texts[0], texts[1], texts[2], &[]] {
            descriptors.extend((bytes.len() as u16).to_le_bytes());
            descriptors.extend((bytes.len() as u16).to_le_bytes());
            descriptors.extend((72 + payload.len() as u32).to_le_bytes());
            payload.extend_from_slice(bytes);
        }
        message.extend(descriptors);
        message.extend(flags.to_le_bytes());
        message.extend([10, 0, 0x7c, 0x4f, 0, 0, 0, 15]);
        message.extend(payload);
        message
    }

    /// A CHALLENGE with a target name and two attributes (section 2.2.1.2).
    pub fn challenge() -> Vec<u8> {
        let name = utf16("CONTOSO");
        let mut info = Vec::new();
        for (id, text) in [(2u16, "CONTOSO"), (3, "srv.contoso.example")] {
            let value = utf16(text);
            info.extend(id.to_le_bytes());
            info.extend((value.len() as u16).to_le_bytes());
            info.extend(value);
        }
        info.extend([0; 4]);
        let mut message = b"NTLMSSP\0\x02\0\0\0".to_vec();
        message.extend((name.len() as u16).to_le_bytes());
        message.extend((name.len() as u16).to_le_bytes());
        message.extend(56u32.to_le_bytes());
        message.extend(0xe28a_8215u32.to_le_bytes());
        message.extend([1; 8]);
        message.extend([0; 8]);
        message.extend((info.len() as u16).to_le_bytes());
        message.extend((info.len() as u16).to_le_bytes());
        message.extend((56 + name.len() as u32).to_le_bytes());
        message.extend([10, 0, 0x7c, 0x4f, 0, 0, 0, 15]);
        message.extend(name);
        message.extend(info);
        message
    }

    #[test]
    fn reads_the_user() {
        let bytes = authenticate(0xe288_8215, [&utf16("DOM"), &utf16("Jörg"), &utf16("PC-1")]);
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.kind(), Some(Kind::AUTHENTICATE));
        assert_eq!(message.domain().as_deref(), Some("DOM"));
        assert_eq!(message.user().as_deref(), Some("Jörg"));
        assert_eq!(message.workstation().as_deref(), Some("PC-1"));
        assert_eq!(message.is_anonymous(), Some(false));
        assert_eq!(message.is_ntlm_v2(), Some(false));
        assert_eq!(message.target_name(), None);
        let version = Version { major: 10, minor: 0, build: 20348 };
        assert_eq!(message.version(), Some(version));
    }

    #[test]
    fn reads_oem_names_and_the_anonymous_flag() {
        let bytes = authenticate(0x0000_0a02, [b"DOM", b"joe", b""]);
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.user().as_deref(), Some("joe"));
        assert_eq!(message.workstation().as_deref(), Some(""));
        assert_eq!(message.is_anonymous(), Some(true));
        assert_eq!(message.version(), None);
    }

    #[test]
    fn the_encoding_of_an_authenticate_without_flags_is_guessed() {
        let mut bytes = b"NTLMSSP\0\x03\0\0\0".to_vec();
        let user = utf16("OLD");
        for (length, offset) in [(1u16, 58u32), (0, 58), (0, 58), (6, 52), (0, 52)] {
            bytes.extend(length.to_le_bytes());
            bytes.extend(length.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
        }
        bytes.extend(user);
        bytes.push(0);
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.flags(), None);
        assert_eq!(message.user().as_deref(), Some("OLD"));
        assert_eq!(message.is_anonymous(), Some(false));
    }

    #[test]
    fn no_names_and_no_response_is_anonymous_without_the_flag() {
        let mut bytes = authenticate(0x0000_0201, [b"", b"", b""]);
        bytes[20..24].fill(0);
        assert_eq!(Message::parse(&bytes).unwrap().is_anonymous(), Some(true));
    }

    #[test]
    fn reads_the_servers_names() {
        let bytes = challenge();
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.target_name().as_deref(), Some("CONTOSO"));
        assert_eq!(
            message.target_attribute(AvId::DNS_COMPUTER_NAME).as_deref(),
            Some("srv.contoso.example")
        );
        assert_eq!(message.target_attribute(AvId::DNS_TREE_NAME), None);
        assert_eq!(message.target_info().count(), 2);
        assert_eq!(message.version().unwrap().build, 20348);
        assert_eq!(message.user(), None);
    }
}
