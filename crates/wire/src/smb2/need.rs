//! How much of a message must be captured for everything that is read of it.
//!
//! The capture crate skips the rest by its length without looking at it; sizes are those of the
//! fixed parts in MS-SMB2 section 2.2, plus the header.

use super::info::SetInfoRequest;
use super::ioctl::{IoctlRequest, IoctlResponse, wants_content};
use super::{Command, HEADER_BYTES, Header};

/// The whole message.
pub const WHOLE: usize = usize::MAX;

/// Bytes that are needed, from the SMB2 header on, of a message that is not in a compound;
/// [`WHOLE`] for all. A shorter message is needed completely. For Ioctl and SetInfo it is what
/// [`need_more`] needs.
#[inline]
pub fn need(command: Command, to_server: bool) -> usize {
    let body = match (command, to_server) {
        (Command::NEGOTIATE | Command::SESSION_SETUP | Command::CREATE, _) => return WHOLE,
        (Command::OPLOCK_BREAK | Command::SERVER_TO_CLIENT_NOTIFICATION, _) => return WHOLE,
        (Command::TREE_CONNECT | Command::LOCK | Command::QUERY_DIRECTORY, true) => return WHOLE,
        (Command::TREE_CONNECT, false) => 16,
        (Command::CLOSE | Command::FLUSH, true) => 24,
        (Command::CLOSE, false) => 60,
        (Command::READ | Command::WRITE, true) => 48,
        (Command::READ | Command::WRITE, false) => 16,
        (Command::IOCTL, true) => 56,
        (Command::IOCTL, false) => 48,
        (Command::CHANGE_NOTIFY | Command::SET_INFO, true) => 32,
        (Command::QUERY_INFO, true) => 40,
        // Fixed parts of 8 bytes and less, and error responses.
        _ => 8,
    };
    HEADER_BYTES + body
}

/// As [`need`], for a message of which that much is there: [`WHOLE`] where its content shows that
/// the rest is read as well.
pub fn need_more(message: &[u8]) -> usize {
    let Some(header) = Header::parse(message) else {
        return HEADER_BYTES;
    };
    let to_server = !header.is_response();
    let whole = match (header.command, to_server) {
        (Command::IOCTL, true) => IoctlRequest(message).ctl_code().is_some_and(wants_content),
        (Command::IOCTL, false) => IoctlResponse(message).ctl_code().is_some_and(wants_content),
        (Command::SET_INFO, true) => SetInfoRequest(message).is_change() == Some(true),
        _ => false,
    };
    if whole { WHOLE } else { need(header.command, to_server) }
}

#[cfg(test)]
mod tests {
    use super::super::fsctl::Fsctl;
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn says_how_much_is_read() {
        assert_eq!(need(Command::READ, false), 80);
        assert_eq!(need(Command::WRITE, true), 112);
        assert_eq!(need(Command::QUERY_DIRECTORY, false), 72);
        assert_eq!(need(Command::CREATE, true), WHOLE);
        assert_eq!(need(Command::CLOSE, false), 124);
        assert_eq!(need(Command(0x77), true), 72);
    }

    #[test]
    fn wants_more_of_some_ioctls_and_sets() {
        let mut bytes = message(&[57, 0, 0, 0]);
        put(&mut bytes, 12, &Command::IOCTL.0.to_le_bytes());
        put(&mut bytes, 68, &Fsctl::DFS_GET_REFERRALS.0.to_le_bytes());
        assert_eq!(need_more(&bytes), WHOLE);
        put(&mut bytes, 68, &Fsctl::PIPE_TRANSCEIVE.0.to_le_bytes());
        assert_eq!(need_more(&bytes), 120);
        bytes[16] = 1;
        assert_eq!(need_more(&bytes), 112);
        let mut bytes = message(&[33, 0, 1, 10]);
        put(&mut bytes, 12, &Command::SET_INFO.0.to_le_bytes());
        assert_eq!(need_more(&bytes), WHOLE);
        bytes[67] = 4;
        assert_eq!(need_more(&bytes), 96);
        abuse(&bytes, |bytes| {
            let _ = need_more(bytes);
        });
    }
}
