//! SessionSetupAndX: the user, in plaintext or as a security blob.
//!
//! MS-CIFS section 2.2.4.53, MS-SMB section 2.2.4.6 (extended security). LogoffAndX has no fields.
//! Blobs are read by `crate::auth`.

use super::Block;
use super::block::view;
use super::negotiate::Capabilities;
use super::strings::{Strings, Text};

/// Bit of Action: the user was logged on as guest.
pub const ACTION_GUEST: u16 = 0x0001;

view! {
    /// Request: 10 words (LAN Manager), 13 (NT LM 0.12) or 12 (extended security).
    SessionSetupAndXRequest(Block.word) {
        /// The largest message in bytes that the client receives.
        max_buffer_size: u16 = 4,
        /// The most requests that the client will have outstanding.
        max_mpx_count: u16 = 6,
        /// Number of the virtual circuit; 0 asks the server to drop the client's other ones.
        vc_number: u16 = 8,
        /// The session key of the Negotiate response.
        session_key: u32 = 10,
    }
    also { capabilities, account_name, primary_domain, native_os, native_lan_man }
}

impl<'a> SessionSetupAndXRequest<'a> {
    /// The client's capabilities.
    pub fn capabilities(&self) -> Option<Capabilities> {
        match self.base.word_count()? {
            13 => self.base.word(22).map(Capabilities),
            12 => self.base.word(20).map(Capabilities),
            _ => None,
        }
    }

    /// The SPNEGO or NTLMSSP token, as far as captured (12 words).
    pub fn security_blob(&self) -> Option<&'a [u8]> {
        match self.base.word_count()? {
            12 => self.base.blob(0, self.base.word::<u16>(14)?.into()),
            _ => None,
        }
    }

    /// The user, empty for an anonymous logon (10 and 13 words).
    pub fn account_name(&self) -> Option<Text<'a>> {
        self.name(0)
    }

    /// The user's domain (10 and 13 words).
    pub fn primary_domain(&self) -> Option<Text<'a>> {
        self.name(1)
    }

    /// The client's operating system.
    pub fn native_os(&self) -> Option<Text<'a>> {
        self.name(2)
    }

    /// The client's redirector.
    pub fn native_lan_man(&self) -> Option<Text<'a>> {
        self.name(3)
    }

    fn name(&self, index: usize) -> Option<Text<'a>> {
        let (skip, first): (u32, usize) = match self.base.word_count()? {
            10 => (self.base.word::<u16>(14)?.into(), 0),
            13 => {
                let oem = u32::from(self.base.word::<u16>(14)?);
                (oem + u32::from(self.base.word::<u16>(16)?), 0)
            }
            12 => (self.base.word::<u16>(14)?.into(), 2),
            _ => return None,
        };
        let mut strings = self.base.strings(usize::try_from(skip).ok()?)?;
        nth(&mut strings, index.checked_sub(first)?)
    }
}

view! {
    /// Response: 3 words, or 4 with extended security.
    SessionSetupAndXResponse(Block.word) {
        /// Action; see [`ACTION_GUEST`].
        action: u16 = 4,
    }
    also { is_guest, native_os, native_lan_man, primary_domain }
}

impl<'a> SessionSetupAndXResponse<'a> {
    /// Whether the user was logged on as guest.
    pub fn is_guest(&self) -> Option<bool> {
        Some(self.action()? & ACTION_GUEST != 0)
    }

    /// The SPNEGO or NTLMSSP token, as far as captured (4 words).
    pub fn security_blob(&self) -> Option<&'a [u8]> {
        match self.base.word_count()? {
            4 => self.base.blob(0, self.base.word::<u16>(6)?.into()),
            _ => None,
        }
    }

    /// The server's operating system.
    pub fn native_os(&self) -> Option<Text<'a>> {
        self.name(0)
    }

    /// The server's software.
    pub fn native_lan_man(&self) -> Option<Text<'a>> {
        self.name(1)
    }

    /// The server's domain.
    pub fn primary_domain(&self) -> Option<Text<'a>> {
        self.name(2)
    }

    fn name(&self, index: usize) -> Option<Text<'a>> {
        let skip = match self.base.word_count()? {
            3 => 0,
            4 => self.base.word::<u16>(6)?.into(),
            _ => return None,
        };
        nth(&mut self.base.strings(skip)?, index)
    }
}

fn nth<'a>(strings: &mut Strings<'a>, index: usize) -> Option<Text<'a>> {
    for _ in 0..index {
        strings.text()?;
    }
    strings.text()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, utf16, words};
    use super::*;

    #[test]
    fn reads_the_nt_form() {
        let fixed = words(26, &[(0, &[0xff]), (6, &[50]), (14, &[1, 0, 2, 0]), (22, &[0xd4])]);
        // Bytes begin at 61; three bytes of password end at 64, even.
        let mut bytes = vec![1, 2, 3];
        bytes.extend(utf16("anna\0DOM\0Unix\0Samba\0"));
        let bytes = message(0x73, 0xc001, &fixed, &bytes);
        let request = SessionSetupAndXRequest::new(block(&bytes));
        assert_eq!(request.max_mpx_count(), Some(50));
        assert_eq!(request.account_name().unwrap().decode(), "anna");
        assert_eq!(request.primary_domain().unwrap().decode(), "DOM");
        assert_eq!(request.native_os().unwrap().decode(), "Unix");
        assert_eq!(request.native_lan_man().unwrap().decode(), "Samba");
        assert_eq!(request.capabilities(), Some(Capabilities(0xd4)));
        assert_eq!(request.security_blob(), None);
        truncate(&bytes);
    }

    #[test]
    fn reads_the_old_form() {
        let fixed = words(20, &[(0, &[0xff]), (14, &[2, 0])]);
        let bytes = message(0x73, 0, &fixed, b"pwANNA\0GROUP\0OS\0LM\0");
        let request = SessionSetupAndXRequest::new(block(&bytes));
        assert_eq!(request.account_name().unwrap().decode(), "ANNA");
        assert_eq!(request.native_lan_man().unwrap().decode(), "LM");
        truncate(&bytes);
    }

    #[test]
    fn reads_the_extended_form_and_its_response() {
        let fixed = words(24, &[(0, &[0xff]), (14, &[3, 0])]);
        // Bytes begin at 59; the blob ends at 62.
        let mut bytes = b"\x60\x01\x02".to_vec();
        bytes.extend(utf16("OS\0LM\0"));
        let bytes = message(0x73, 0xc801, &fixed, &bytes);
        let request = SessionSetupAndXRequest::new(block(&bytes));
        assert_eq!(request.security_blob(), Some(&b"\x60\x01\x02"[..]));
        assert_eq!(request.account_name(), None);
        assert_eq!(request.native_os().unwrap().decode(), "OS");
        assert_eq!(request.native_lan_man().unwrap().decode(), "LM");
        truncate(&bytes);

        let fixed = words(8, &[(0, &[0xff]), (4, &[1, 0, 2, 0])]);
        // Bytes begin at 43; two bytes of blob, one of padding.
        let mut bytes = vec![0xa1, 0, 0];
        bytes.extend(utf16("A\0B\0C\0"));
        let bytes = reply(0x73, 0xc801, &fixed, &bytes);
        let response = SessionSetupAndXResponse::new(block(&bytes));
        assert_eq!(response.is_guest(), Some(true));
        assert_eq!(response.security_blob(), Some(&[0xa1, 0][..]));
        assert_eq!(response.native_os().unwrap().decode(), "A");
        assert_eq!(response.primary_domain().unwrap().decode(), "C");
        truncate(&bytes);
    }
}
