//! Blobs inside messages of either protocol: the user of a session, DFS referrals, GUIDs.

use smbscope_tables::tables::Referral;
use smbscope_wire::{auth, dfs};

use crate::outcome::Session;

/// Session details from a security blob: user and workstation of an NTLMSSP AUTHENTICATE, or only
/// the mechanism.
pub fn session_of_blob(blob: &[u8]) -> Session {
    let auth = auth::inspect(blob);
    Session {
        user: auth.account(),
        workstation: auth
            .ntlmssp
            .as_ref()
            .and_then(|message| message.workstation())
            .filter(|name| !name.is_empty()),
        mechanism: auth.mechanism.map(|mechanism| mechanism.to_string()),
        ticket: auth.kerberos.as_ref().and_then(|message| message.ticket),
        ..Session::default()
    }
}

/// Targets that are kept of one referral; a server may list every target of a large namespace.
const REFERRALS: usize = 64;

/// The targets of a DFS referral.
pub fn referrals(answer: &[u8]) -> Vec<Referral> {
    let one = |entry: dfs::Referral<'_>| Referral {
        dfs_path: entry.dfs_path().or_else(|| entry.special_name()),
        target: entry
            .network_address()
            .or_else(|| entry.is_name_list().then(|| entry.expanded_names().next()).flatten()),
        version: entry.version().map(u64::from),
        root: entry.server_type().map(|kind| kind == dfs::ServerType::ROOT),
        time_to_live_s: entry.time_to_live_s().map(u64::from),
        ..Referral::default()
    };
    dfs::Response::new(answer).referrals().take(REFERRALS).map(one).collect()
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
