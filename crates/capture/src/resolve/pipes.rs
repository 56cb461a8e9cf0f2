//! Requests on named pipes that wait by design: a program reads a pipe until the other side has
//! something to say (MS-SMB2 section 3.3.5.12; remote shells, notifications of services).
//!
//! Their time is not latency, as that of a change notification. Not so if the server did not say that
//! the request is pending: then the reply is late.

use smbscope_tables::code;
use smbscope_tables::operation::{Column, Operation};
use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::fsctl::Fsctl;

/// A read or write of a pipe that takes this long waits for the other side, ns.
const WAITS_NS: i64 = 1_000_000_000;
/// A call through a pipe may work for longer, ns.
const CALL_WAITS_NS: i64 = 30_000_000_000;

/// What a request does with a pipe.
enum Use {
    Transfer,
    Call,
}

/// Marks a request that waits by design. `is_pipe` if its tree is known to be one of pipes.
pub(super) fn mark_waiting(row: &mut Operation, is_pipe: bool) {
    let (Some(elapsed), None) = (row.elapsed_ns().filter(|ns| *ns >= WAITS_NS), row.waits()) else {
        return;
    };
    let is_smb1 = row.protocol() == Some(1);
    let Some(command) = row.command() else { return };
    let used = if is_smb1 { smb1_use(command) } else { smb2_use(command, row.detail()) };
    let Some((used, names_pipe)) = used else { return };
    let least = match used {
        Use::Transfer => WAITS_NS,
        Use::Call => CALL_WAITS_NS,
    };
    // SMB1 has no interim response.
    let is_pending = is_smb1 || row.pending_at().is_some();
    if (is_pipe || names_pipe) && is_pending && elapsed >= least {
        row.set_waits(true);
        row.clear(Column::busy_ns);
        row.clear(Column::server_ns);
        row.clear(Column::server_error_ns);
    }
}

/// The use, and whether the command itself says that it is of a pipe.
fn smb2_use(command: u64, detail: Option<u64>) -> Option<(Use, bool)> {
    let fsctl = |code: Fsctl| Some(code::detail(code::Detail::Fsctl, code.0));
    let is = |other: Command| command == code::command(2, other.0);
    if is(Command::READ) || is(Command::WRITE) {
        Some((Use::Transfer, false))
    } else if is(Command::IOCTL) && detail == fsctl(Fsctl::PIPE_WAIT) {
        Some((Use::Transfer, true))
    } else if is(Command::IOCTL) && detail == fsctl(Fsctl::PIPE_TRANSCEIVE) {
        Some((Use::Call, true))
    } else {
        None
    }
}

fn smb1_use(command: u64) -> Option<(Use, bool)> {
    use smbscope_wire::smb1::Command;
    let is = |other: Command| command == code::command(1, u16::from(other.0));
    if is(Command::READ_AND_X) || is(Command::WRITE_AND_X) {
        Some((Use::Transfer, false))
    } else if is(Command::TRANSACTION) {
        Some((Use::Call, false))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn waits(
        command: Command,
        detail: Option<u64>,
        seconds: i64,
        pending: bool,
        pipe: bool,
    ) -> bool {
        let mut row = Operation::default();
        row.set_protocol(2);
        row.set_command(code::command(2, command.0));
        if let Some(detail) = detail {
            row.set_detail(detail);
        }
        row.set_elapsed_ns(seconds * SECOND);
        row.set_busy_ns(seconds * SECOND);
        if pending {
            row.set_pending_at(0);
        }
        mark_waiting(&mut row, pipe);
        assert_eq!(row.busy_ns().is_none(), row.waits() == Some(true));
        row.waits() == Some(true)
    }

    #[test]
    fn a_read_of_a_pipe_waits_and_a_late_reply_does_not() {
        assert!(waits(Command::READ, None, 69, true, true));
        assert!(!waits(Command::READ, None, 69, true, false), "of a file");
        assert!(!waits(Command::READ, None, 69, false, true), "without an interim response");
        assert!(!waits(Command::READ, None, 0, true, true), "quick");
        assert!(!waits(Command::QUERY_INFO, None, 69, true, true));
    }

    #[test]
    fn calls_through_a_pipe_may_take_longer() {
        let transceive = Some(code::detail(code::Detail::Fsctl, Fsctl::PIPE_TRANSCEIVE.0));
        assert!(waits(Command::IOCTL, transceive, 60, true, false));
        assert!(!waits(Command::IOCTL, transceive, 10, true, true), "a slow service");
        assert!(!waits(Command::IOCTL, transceive, 60, false, true), "without an interim response");
    }
}
