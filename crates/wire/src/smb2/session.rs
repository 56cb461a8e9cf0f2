//! SESSION_SETUP and LOGOFF (MS-SMB2 sections 2.2.5 to 2.2.8).
//!
//! The security blobs (SPNEGO, NTLMSSP, Kerberos) belong to `auth`.

use super::negotiate::Capabilities;
use super::view::{buffer, buffer_part, flags, view};

flags! {
    /// Flags of a session setup request.
    SessionSetupFlags(u8) {
        BINDING = 0x01,
    }
}

flags! {
    /// Whether signing is possible or demanded; as in negotiate, but one byte.
    SessionSecurityMode(u8) {
        SIGNING_ENABLED = 0x01,
        SIGNING_REQUIRED = 0x02,
    }
}

flags! {
    /// What the server says of the session.
    SessionFlags(u16) {
        IS_GUEST = 0x0001,
        IS_NULL = 0x0002,
        ENCRYPT_DATA = 0x0004,
    }
}

view! {
    /// A session setup request, from its SMB2 header.
    SessionSetupRequest {
        /// Whether an existing session is bound to this connection.
        flags: SessionSetupFlags = 66;
        /// Signing enabled, required.
        security_mode: SessionSecurityMode = 67;
        /// What the client can do; only DFS is defined here.
        capabilities: Capabilities = 68;
        /// Reserved; zero.
        channel: u32 = 72;
        /// Where the security blob stands, from the header.
        security_buffer_offset: u16 = 76;
        /// Bytes of the security blob.
        security_buffer_length: u16 = 78;
        /// The session that this one replaces after a reconnect; 0 for none.
        previous_session_id: u64 = 80;
    }
}

impl<'a> SessionSetupRequest<'a> {
    /// The security blob, as far as captured.
    pub fn security_blob(self) -> Option<&'a [u8]> {
        let offset = usize::from(self.security_buffer_offset()?);
        let length = usize::from(self.security_buffer_length()?);
        Some(buffer_part(self.0, offset, length))
    }

    /// Whether an existing session is bound to this connection (multichannel).
    pub fn is_binding(self) -> Option<bool> {
        Some(self.flags()?.contains(SessionSetupFlags::BINDING))
    }
}

view! {
    /// A session setup response, from its SMB2 header.
    SessionSetupResponse {
        /// Guest, anonymous, encrypted; final only with STATUS_SUCCESS.
        flags: SessionFlags = 66;
        /// Where the security blob stands, from the header.
        security_buffer_offset: u16 = 68;
        /// Bytes of the security blob.
        security_buffer_length: u16 = 70;
    }
}

impl<'a> SessionSetupResponse<'a> {
    /// The security blob, if captured whole.
    pub fn security_blob(self) -> Option<&'a [u8]> {
        let offset = usize::from(self.security_buffer_offset()?);
        let length = usize::from(self.security_buffer_length()?);
        buffer(self.0, offset, length)
    }
}

view! {
    /// A logoff request or response, from its SMB2 header; it has no fields.
    Logoff {}
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn reads_both_directions() {
        let mut bytes = message(&[25, 0, 1, 2, 1, 0, 0, 0]);
        put(&mut bytes, 76, &[88, 0, 3, 0]);
        put(&mut bytes, 80, &0x55u64.to_le_bytes());
        put(&mut bytes, 88, b"abc");
        let view = SessionSetupRequest(&bytes);
        assert_eq!(view.is_binding(), Some(true));
        assert_eq!(view.security_mode(), Some(SessionSecurityMode::SIGNING_REQUIRED));
        assert_eq!(view.capabilities(), Some(Capabilities::DFS));
        assert_eq!(view.previous_session_id(), Some(0x55));
        assert_eq!(view.security_blob(), Some(&b"abc"[..]));
        abuse(&bytes, |bytes| {
            let view = SessionSetupRequest(bytes);
            view.touch();
            let _ = (view.is_binding(), view.security_blob());
            Logoff(bytes).touch();
        });

        let bytes = message(&[9, 0, 5, 0, 72, 0, 2, 0, 8, 9]);
        let view = SessionSetupResponse(&bytes);
        let flags = view.flags().unwrap();
        assert!(flags.contains(SessionFlags::IS_GUEST));
        assert!(flags.contains(SessionFlags::ENCRYPT_DATA));
        assert!(!flags.contains(SessionFlags::IS_NULL));
        assert_eq!(view.security_blob(), Some(&[8, 9][..]));
        abuse(&bytes, |bytes| {
            let view = SessionSetupResponse(bytes);
            view.touch();
            let _ = view.security_blob();
        });
    }
}
