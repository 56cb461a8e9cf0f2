//! What a request's body adds to its operation in addition to the columns that `tables::message`
//! fills: names, sessions, and what belongs to the connection.

use smbscope_tables::date::civil;
use smbscope_tables::message;
use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::create::CreateRequest;
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::smb2::header::Member;
use smbscope_wire::smb2::info::{Change, SetInfoRequest};
use smbscope_wire::smb2::ioctl::IoctlRequest;
use smbscope_wire::smb2::negotiate::{NegotiateRequest, SecurityMode};
use smbscope_wire::smb2::session::{SessionSecurityMode, SessionSetupRequest};
use smbscope_wire::smb2::tree::TreeConnectRequest;
use smbscope_wire::{dfs, text};

use crate::smb::logon;
use crate::smb::pairing::Pairing;
use crate::smb::pending::Pending;

/// Fills the row from the body, as far as captured.
#[inline]
pub fn decode(member: &Member<'_>, pending: &mut Pending, pairing: &mut Pairing) {
    let bytes = member.bytes;
    let snapshot = message::request(member.header.command, bytes, &mut pending.row);
    match member.header.command {
        Command::CREATE => create(bytes, member.header.flags.0 & DFS != 0, snapshot, pending),
        Command::IOCTL => {
            let view = IoctlRequest(bytes);
            let asked = match view.ctl_code() {
                Some(Fsctl::DFS_GET_REFERRALS) => view.input().map(dfs::Request::new),
                Some(Fsctl::DFS_GET_REFERRALS_EX) => view.input().map(dfs::Request::new_extended),
                _ => None,
            };
            if let Some(path) = asked.and_then(|asked| asked.path()) {
                pending.name = path;
                pending.has_name = true;
            }
        }
        Command::SET_INFO => {
            if let Some(Change::Rename { name, .. }) = SetInfoRequest(bytes).change() {
                pending.name.clear();
                text::push_utf16le(&mut pending.name, name);
            }
        }
        Command::NEGOTIATE => negotiate(bytes, pairing),
        Command::SESSION_SETUP => session_setup(bytes, pending, pairing),
        Command::TREE_CONNECT => {
            if let Some(path) = TreeConnectRequest(bytes).path() {
                text::push_utf16le(&mut pending.name, path);
            }
        }
        _ => {}
    }
}

const DFS: u32 = 0x1000_0000;

fn create(bytes: &[u8], dfs: bool, snapshot: Option<u64>, pending: &mut Pending) {
    if let Some(name) = CreateRequest(bytes).name() {
        text::push_utf16le(&mut pending.name, name);
        pending.has_name = true;
        if dfs {
            strip_dfs(&mut pending.name);
        }
        if let Some(time) = snapshot {
            // A snapshot of a file is a different file than the current one.
            let separator = if pending.name.is_empty() { "" } else { "\\" };
            pending.name.insert_str(0, &format!("{}{separator}", snapshot_token(time)));
        }
        if pending.name.is_empty() {
            pending.name.push('\\');
        }
    }
}

/// The path component by which Windows, Samba and SMB1 name the snapshot of a time (100 ns since
/// 1601, UTC): `@GMT-2026.11.24-18.01.08` (MS-SMB section 2.2.1.1.1).
fn snapshot_token(time: u64) -> String {
    const DAYS_TO_1970: i64 = 134_774;
    let seconds = time / 10_000_000;
    let (year, month, day) = civil((seconds / 86_400) as i64 - DAYS_TO_1970);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("@GMT-{year:04}.{month:02}.{day:02}-{hour:02}.{minute:02}.{second:02}")
}

/// In a DFS request the name begins with server and share (MS-SMB2 section 3.2.4.3).
fn strip_dfs(name: &mut String) {
    let rest = name.splitn(3, '\\').nth(2).map(str::to_owned);
    *name = rest.unwrap_or_default();
}

fn negotiate(bytes: &[u8], pairing: &mut Pairing) {
    let view = NegotiateRequest(bytes);
    if let Some(guid) = view.client_guid() {
        pairing.client_guid = Some(guid);
        pairing.table.client_guid = Some(logon::guid(&guid));
    }
    pairing.table.client_capabilities = view.capabilities().map(|bits| u64::from(bits.0));
    pairing.table.client_signing_required =
        view.security_mode().map(|mode| mode.contains(SecurityMode::SIGNING_REQUIRED));
}

/// Takes whether the client requires signing. Windows sets the bit too if only the server requires
/// signing (MS-SMB2 section 3.2.4.2.3), so it says something about a server that does not.
fn session_security(mode: SessionSecurityMode, pairing: &mut Pairing) {
    let table = &mut *pairing.table;
    let is_required = mode.contains(SessionSecurityMode::SIGNING_REQUIRED);
    table.client_signing_required = match (table.client_signing_required, is_required) {
        (Some(true), _) => Some(true),
        (known, false) => known.or(Some(false)),
        (known, true) => match table.signing_required {
            Some(true) => known,
            Some(false) => Some(true),
            None => None,
        },
    };
}

fn session_setup(bytes: &[u8], pending: &mut Pending, pairing: &mut Pairing) {
    let view = SessionSetupRequest(bytes);
    if let Some(mode) = view.security_mode() {
        session_security(mode, pairing);
    }
    let binding = view.is_binding() == Some(true);
    let mut session = view.security_blob().map(logon::session_of_blob).unwrap_or_default();
    session.binding = binding;
    session.previous = view.previous_session_id().filter(|&id| id != 0);
    session.client_guid = pairing.client_guid;
    pending.session = Some(Box::new(session));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_repeats_the_servers_requirement_does_not_require_signing() {
        let after = |client: Option<bool>, server: Option<bool>, mode: u8| {
            let mut pairing = Pairing::default();
            pairing.table.client_signing_required = client;
            pairing.table.signing_required = server;
            session_security(SessionSecurityMode(mode), &mut pairing);
            pairing.table.client_signing_required
        };
        assert_eq!(after(Some(false), Some(true), 2), Some(false));
        assert_eq!(after(None, Some(true), 2), None);
        assert_eq!(after(Some(false), Some(false), 2), Some(true));
        assert_eq!(after(Some(false), None, 2), None);
        assert_eq!(after(Some(false), Some(true), 1), Some(false));
        assert_eq!(after(None, None, 1), Some(false));
        assert_eq!(after(Some(true), Some(true), 1), Some(true));
    }
}
