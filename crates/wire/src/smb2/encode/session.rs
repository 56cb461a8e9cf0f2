//! NEGOTIATE, SESSION_SETUP, LOGOFF, TREE_CONNECT and TREE_DISCONNECT requests (MS-SMB2 sections
//! 2.2.3, 2.2.5, 2.2.7, 2.2.9, 2.2.11).

use super::{Body, Writer};
use crate::smb2::negotiate::{Capabilities, SecurityMode};
use crate::smb2::negotiate_context::{CipherId, HashId, NegotiateContextType, SigningId};
use crate::smb2::session::{SessionSecurityMode, SessionSetupFlags};
use crate::smb2::{Command, Dialect};

/// A negotiate request.
#[derive(Clone, Copy, Debug)]
pub struct Negotiate<'a> {
    /// Dialects offered, in rising order.
    pub dialects: &'a [Dialect],
    /// Signing enabled, required.
    pub security_mode: SecurityMode,
    /// What the client can do; ignored by the server before 3.0.
    pub capabilities: Capabilities,
    /// Identifies the client over its connections.
    pub client_guid: [u8; 16],
    /// What 3.1.1 adds; needed exactly when that dialect is offered.
    pub contexts: Option<NegotiateContexts<'a>>,
}

/// The contexts of a 3.1.1 negotiate request. The only hash there is, SHA-512, is offered always.
#[derive(Clone, Copy, Debug)]
pub struct NegotiateContexts<'a> {
    /// Random bytes.
    pub salt: &'a [u8],
    /// Ciphers in the order of preference; the context is left out when there is none.
    pub ciphers: &'a [CipherId],
    /// Signing algorithms in the order of preference; left out when there is none.
    pub signing: &'a [SigningId],
    /// The server's name as the client knows it.
    pub server_name: &'a str,
}

impl Body for Negotiate<'_> {
    const COMMAND: Command = Command::NEGOTIATE;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(36);
        out.u16(self.dialects.len() as u16);
        out.u16(self.security_mode.0);
        out.u16(0);
        out.u32(self.capabilities.0);
        out.bytes(&self.client_guid);
        let place = out.offset();
        out.zeros(8);
        for dialect in self.dialects {
            out.u16(dialect.0);
        }
        if let Some(contexts) = &self.contexts {
            out.align(8);
            out.set_u32(place, out.offset() as u32);
            let count = contexts.write(out);
            out.set_u16(place + 4, count);
        }
    }
}

impl NegotiateContexts<'_> {
    fn write(&self, out: &mut Writer<'_>) -> u16 {
        let mut count = 0;
        let mut context = |out: &mut Writer<'_>, kind: NegotiateContextType, data: &[u8]| {
            out.align(8);
            out.u16(kind.0);
            out.u16(data.len() as u16);
            out.u32(0);
            out.bytes(data);
            count += 1;
        };
        let mut integrity = vec![1, 0];
        integrity.extend((self.salt.len() as u16).to_le_bytes());
        integrity.extend(HashId::SHA_512.0.to_le_bytes());
        integrity.extend(self.salt);
        context(out, NegotiateContextType::PREAUTH_INTEGRITY_CAPABILITIES, &integrity);
        if !self.ciphers.is_empty() {
            let list = codes(self.ciphers.iter().map(|cipher| cipher.0));
            context(out, NegotiateContextType::ENCRYPTION_CAPABILITIES, &list);
        }
        if !self.signing.is_empty() {
            let list = codes(self.signing.iter().map(|signing| signing.0));
            context(out, NegotiateContextType::SIGNING_CAPABILITIES, &list);
        }
        let name: Vec<u8> = self.server_name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        context(out, NegotiateContextType::NETNAME_NEGOTIATE_CONTEXT_ID, &name);
        count
    }
}

/// A count and that many 16-bit codes.
fn codes(codes: impl ExactSizeIterator<Item = u16>) -> Vec<u8> {
    let count = codes.len() as u16;
    std::iter::once(count).chain(codes).flat_map(u16::to_le_bytes).collect()
}

/// A session setup request.
#[derive(Clone, Copy, Debug)]
pub struct SessionSetup<'a> {
    /// Binding of another channel.
    pub flags: SessionSetupFlags,
    /// Signing enabled, required.
    pub security_mode: SessionSecurityMode,
    /// DFS only.
    pub capabilities: Capabilities,
    /// The session that this one takes the place of, 0 for none.
    pub previous_session_id: u64,
    /// The mechanism's token.
    pub blob: &'a [u8],
}

impl Body for SessionSetup<'_> {
    const COMMAND: Command = Command::SESSION_SETUP;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(25);
        out.u8(self.flags.0);
        out.u8(self.security_mode.0);
        out.u32(self.capabilities.0);
        out.u32(0);
        out.u16(out.offset() as u16 + 12);
        out.u16(self.blob.len() as u16);
        out.u64(self.previous_session_id);
        out.bytes(self.blob);
    }
}

/// A logoff request.
#[derive(Clone, Copy, Debug)]
pub struct Logoff;

impl Body for Logoff {
    const COMMAND: Command = Command::LOGOFF;

    fn write(&self, out: &mut Writer<'_>) {
        out.u32(4);
    }
}

/// A tree connect request.
#[derive(Clone, Copy, Debug)]
pub struct TreeConnect<'a> {
    /// The share as `\\server\share`.
    pub path: &'a str,
}

impl Body for TreeConnect<'_> {
    const COMMAND: Command = Command::TREE_CONNECT;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(9);
        out.u16(0);
        out.u16(out.offset() as u16 + 4);
        let place = out.offset();
        out.u16(0);
        let length = out.utf16(self.path);
        out.set_u16(place, length as u16);
    }
}

/// A tree disconnect request.
#[derive(Clone, Copy, Debug)]
pub struct TreeDisconnect;

impl Body for TreeDisconnect {
    const COMMAND: Command = Command::TREE_DISCONNECT;

    fn write(&self, out: &mut Writer<'_>) {
        out.u32(4);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message;
    use super::*;
    use crate::smb2::negotiate::NegotiateRequest;
    use crate::smb2::negotiate_context::NegotiateContextData;
    use crate::smb2::session::SessionSetupRequest;
    use crate::smb2::tree::TreeConnectRequest;

    #[test]
    fn a_negotiate_reads_back() {
        let bytes = message(&Negotiate {
            dialects: &[Dialect::SMB_2_1, Dialect::SMB_3_1_1],
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::LEASING,
            client_guid: [7; 16],
            contexts: Some(NegotiateContexts {
                salt: &[1; 32],
                ciphers: &[CipherId::AES_128_GCM, CipherId::AES_128_CCM],
                signing: &[SigningId::AES_GMAC],
                server_name: "fs",
            }),
        });
        let view = NegotiateRequest(&bytes);
        assert_eq!(view.structure_size(), Some(36));
        let dialects: Vec<_> = view.dialects().collect();
        assert_eq!(dialects, [Dialect::SMB_2_1, Dialect::SMB_3_1_1]);
        assert_eq!(view.client_guid(), Some([7; 16]));
        let contexts: Vec<_> = view.contexts().collect();
        assert_eq!(contexts.len(), 4);
        let NegotiateContextData::PreauthIntegrity { hashes, salt } = contexts[0].decode() else {
            panic!("{contexts:?}")
        };
        assert_eq!((hashes.collect::<Vec<_>>(), salt), (vec![1], &[1; 32][..]));
        let NegotiateContextData::Encryption(ciphers) = contexts[1].decode() else { panic!() };
        assert_eq!(ciphers.collect::<Vec<_>>(), [2, 1]);
        let NegotiateContextData::Signing(signing) = contexts[2].decode() else { panic!() };
        assert_eq!(signing.collect::<Vec<_>>(), [2]);
        let NegotiateContextData::Netname(name) = contexts[3].decode() else { panic!() };
        assert_eq!(name, b"f\0s\0");
    }

    #[test]
    fn session_and_tree_read_back() {
        let bytes = message(&SessionSetup {
            flags: SessionSetupFlags::BINDING,
            security_mode: SessionSecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities(0),
            previous_session_id: 9,
            blob: b"token",
        });
        let view = SessionSetupRequest(&bytes);
        assert_eq!(view.security_blob(), Some(&b"token"[..]));
        assert_eq!((view.previous_session_id(), view.is_binding()), (Some(9), Some(true)));
        let bytes = message(&TreeConnect { path: "\\\\s\\a" });
        assert_eq!(TreeConnectRequest(&bytes).path(), Some(&b"\\\0\\\0s\0\\\0a\0"[..]));
    }
}
