//! Who a session belongs to, from the blobs of its session setup.

use smbscope_wire::auth;

use crate::output::Session;

/// What a security blob tells of a session: user and workstation of an NTLMSSP AUTHENTICATE, or
/// the mechanism alone.
pub fn of_blob(_blob: &[u8]) -> Session {
    Session::default()
}

/// A GUID as people write it (MS-DTYP section 2.3.4).
pub fn guid(bytes: &[u8; 16]) -> String {
    let [a0, a1, a2, a3, b0, b1, c0, c1, rest @ ..] = *bytes;
    let mut out = format!(
        "{:08x}-{:04x}-{:04x}-",
        u32::from_le_bytes([a0, a1, a2, a3]),
        u16::from_le_bytes([b0, b1]),
        u16::from_le_bytes([c0, c1])
    );
    for (index, byte) in rest.iter().enumerate() {
        if index == 2 {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}
