//! The identity of a server: whether it is the same one, started again.
//!
//! Negotiate's ServerStartTime and ServerGuid (MS-SMB2 section 2.2.4). Samba 4.17 and ksmbd 6.12 send a start time of
//! 0 and the same guid after a start; so do servers in public captures since 2022. Older Windows servers send a time.

use smbscope_client::Session;

/// What a server says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// ServerGuid.
    pub guid: [u8; 16],
    /// When it started, 100 ns since 1601; 0: it does not say.
    pub start_time: u64,
}

/// What a comparison of two identities shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// It was started again.
    Restarted,
    /// Another guid: another server, or one that makes a new guid when it starts.
    OtherGuid,
    /// Its start time is the same: only the connection was lost.
    SameStart,
    /// It does not say when it was started.
    Unknown,
}

impl Identity {
    /// Identifies the server of a session.
    pub fn of_server(session: &Session) -> Identity {
        let negotiated = session.negotiated();
        Identity { guid: negotiated.server_guid, start_time: negotiated.server_start_time }
    }

    /// How the server came back.
    pub fn compare(&self, after: &Identity) -> Return {
        if self.guid != after.guid {
            Return::OtherGuid
        } else if self.start_time == 0 || after.start_time == 0 {
            Return::Unknown
        } else if self.start_time == after.start_time {
            Return::SameStart
        } else {
            Return::Restarted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_start_time_is_a_restart() {
        let of = |guid, start_time| Identity { guid: [guid; 16], start_time };
        assert_eq!(of(1, 5).compare(&of(1, 6)), Return::Restarted);
        assert_eq!(of(1, 5).compare(&of(1, 5)), Return::SameStart);
        assert_eq!(of(1, 0).compare(&of(1, 0)), Return::Unknown);
        assert_eq!(of(1, 5).compare(&of(2, 5)), Return::OtherGuid);
    }
}
