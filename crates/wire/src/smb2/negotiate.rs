//! NEGOTIATE request and response (MS-SMB2 sections 2.2.3 and 2.2.4).
//!
//! The negotiate contexts of 3.1.1 are decoded in `negotiate_context`; the security blob
//! (SPNEGO) belongs to `auth`.

use super::Dialect;
use super::negotiate_context::NegotiateContexts;
use super::view::{buffer, buffer_part, flags, u16_list, view};

flags! {
    /// Whether signing is possible or demanded.
    SecurityMode(u16) {
        SIGNING_ENABLED = 0x0001,
        SIGNING_REQUIRED = 0x0002,
    }
}

flags! {
    /// What client or server can do.
    Capabilities(u32) {
        DFS = 0x0000_0001,
        LEASING = 0x0000_0002,
        LARGE_MTU = 0x0000_0004,
        MULTI_CHANNEL = 0x0000_0008,
        PERSISTENT_HANDLES = 0x0000_0010,
        DIRECTORY_LEASING = 0x0000_0020,
        ENCRYPTION = 0x0000_0040,
        NOTIFICATIONS = 0x0000_0080,
    }
}

view! {
    /// A negotiate request, from its SMB2 header.
    NegotiateRequest {
        /// Number of dialects offered.
        dialect_count: u16 = 66;
        /// Signing enabled, required.
        security_mode: SecurityMode = 68;
        /// Zero unless a 3.x dialect is offered.
        capabilities: Capabilities = 72;
        /// Identifies the client over its connections.
        client_guid: [u8; 16] = 76;
    }
}

impl<'a> NegotiateRequest<'a> {
    /// The dialects offered, as far as captured.
    pub fn dialects(self) -> impl Iterator<Item = Dialect> + use<'a> {
        let length = usize::from(self.dialect_count().unwrap_or(0)) * 2;
        u16_list(buffer_part(self.0, 100, length)).map(Dialect)
    }

    /// The negotiate contexts; empty unless 3.1.1 is offered (the fields are reserved before).
    pub fn contexts(self) -> NegotiateContexts<'a> {
        let place = self
            .dialects()
            .any(|dialect| dialect == Dialect::SMB_3_1_1)
            .then(|| Some((crate::read::u32_at(self.0, 92)?, crate::read::u16_at(self.0, 96)?)))
            .flatten();
        let (offset, count) = place.unwrap_or_default();
        NegotiateContexts::new(self.0, offset, count)
    }
}

view! {
    /// A negotiate response, from its SMB2 header.
    NegotiateResponse {
        /// Signing enabled, required.
        security_mode: SecurityMode = 66;
        /// The dialect chosen; the wildcard in answer to an SMB1 negotiate.
        dialect: Dialect = 68;
        /// Identifies the server over its addresses.
        server_guid: [u8; 16] = 72;
        /// What the server can do.
        capabilities: Capabilities = 88;
        /// Longest buffer of ioctl, query, set and directory in bytes.
        max_transact_size: u32 = 92;
        /// Longest read in bytes.
        max_read_size: u32 = 96;
        /// Longest write in bytes.
        max_write_size: u32 = 100;
        /// The server's clock, 100 ns since 1601.
        system_time: u64 = 104;
        /// Start of the server, 100 ns since 1601; mostly zero.
        server_start_time: u64 = 112;
        /// Where the security blob stands, from the header.
        security_buffer_offset: u16 = 120;
        /// Bytes of the security blob.
        security_buffer_length: u16 = 122;
    }
}

impl<'a> NegotiateResponse<'a> {
    /// The security blob (SPNEGO NegTokenInit2), if captured whole.
    pub fn security_blob(self) -> Option<&'a [u8]> {
        let offset = usize::from(self.security_buffer_offset()?);
        let length = usize::from(self.security_buffer_length()?);
        buffer(self.0, offset, length)
    }

    /// The negotiate contexts; empty unless the dialect is 3.1.1 (the fields are reserved before).
    pub fn contexts(self) -> NegotiateContexts<'a> {
        let place = (self.dialect() == Some(Dialect::SMB_3_1_1))
            .then(|| Some((crate::read::u32_at(self.0, 124)?, crate::read::u16_at(self.0, 70)?)))
            .flatten();
        let (offset, count) = place.unwrap_or_default();
        NegotiateContexts::new(self.0, offset, count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::negotiate_context::{CipherId, NegotiateContextData};
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    fn request(dialects: &[u16]) -> Vec<u8> {
        let mut bytes = message(&[36, 0]);
        put(&mut bytes, 66, &(dialects.len() as u16).to_le_bytes());
        put(&mut bytes, 68, &1u16.to_le_bytes());
        put(&mut bytes, 72, &0x7fu32.to_le_bytes());
        put(&mut bytes, 76, &[5; 16]);
        put(&mut bytes, 92, &112u32.to_le_bytes());
        put(&mut bytes, 96, &1u16.to_le_bytes());
        for (index, dialect) in dialects.iter().enumerate() {
            put(&mut bytes, 100 + 2 * index, &dialect.to_le_bytes());
        }
        // One context: ciphers AES-128-GCM and AES-128-CCM.
        put(&mut bytes, 112, &[2, 0, 6, 0, 0, 0, 0, 0, 2, 0, 2, 0, 1, 0]);
        bytes
    }

    #[test]
    fn reads_a_request() {
        let bytes = request(&[0x0202, 0x0210, 0x0311, 0x9999]);
        let view = NegotiateRequest(&bytes);
        let dialects: Vec<_> = view.dialects().map(|dialect| dialect.0).collect();
        assert_eq!(dialects, [0x0202, 0x0210, 0x0311, 0x9999]);
        assert!(view.capabilities().unwrap().contains(Capabilities::DFS));
        assert_eq!(view.security_mode(), Some(SecurityMode::SIGNING_ENABLED));
        assert_eq!(view.client_guid(), Some([5; 16]));
        let contexts: Vec<_> = view.contexts().collect();
        assert_eq!(contexts.len(), 1);
        let NegotiateContextData::Encryption(ciphers) = contexts[0].decode() else {
            panic!("{contexts:?}");
        };
        assert_eq!(
            ciphers.map(CipherId).collect::<Vec<_>>(),
            [CipherId::AES_128_GCM, CipherId::AES_128_CCM]
        );
        // Before 3.1.1 the same bytes are the client's start time.
        assert_eq!(NegotiateRequest(&request(&[0x302])).contexts().count(), 0);
        abuse(&bytes, |bytes| {
            let view = NegotiateRequest(bytes);
            view.touch();
            assert!(view.dialects().count() <= bytes.len());
            assert!(view.contexts().count() <= bytes.len());
        });
    }

    #[test]
    fn reads_a_response() {
        let mut bytes = message(&[65, 0, 3, 0]);
        put(&mut bytes, 68, &0x0311u16.to_le_bytes());
        put(&mut bytes, 70, &1u16.to_le_bytes());
        put(&mut bytes, 88, &0x2fu32.to_le_bytes());
        put(&mut bytes, 92, &0x10_0000u32.to_le_bytes());
        put(&mut bytes, 96, &0x80_0000u32.to_le_bytes());
        put(&mut bytes, 100, &0x40_0000u32.to_le_bytes());
        put(&mut bytes, 120, &[128, 0, 4, 0]);
        put(&mut bytes, 124, &136u32.to_le_bytes());
        put(&mut bytes, 128, b"blob");
        put(&mut bytes, 136, &[8, 0, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0]);
        let view = NegotiateResponse(&bytes);
        assert_eq!(view.dialect(), Some(Dialect::SMB_3_1_1));
        assert_eq!(view.max_transact_size(), Some(0x10_0000));
        assert_eq!(view.max_read_size(), Some(0x80_0000));
        assert_eq!(view.max_write_size(), Some(0x40_0000));
        assert_eq!(view.security_blob(), Some(&b"blob"[..]));
        assert_eq!(view.contexts().count(), 1);
        abuse(&bytes, |bytes| {
            let view = NegotiateResponse(bytes);
            view.touch();
            let _ = view.security_blob();
            assert!(view.contexts().count() <= bytes.len());
        });
    }
}
