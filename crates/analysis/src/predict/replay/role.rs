//! What a command means for a replay.

use crate::predict::plan::Direction;
use crate::summary::kind::{Kind, kind};

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Move(Direction),
    Create,
    Close,
    /// Lists a directory.
    List,
    /// Waits for changes of a directory.
    Watch,
    Flush,
    /// Changes a file's attributes, size or name.
    Set,
    /// Asks or tells something else about an open.
    Other,
    /// Begins or ends a session or a tree connection.
    Session,
    /// Is about no open, or must not be moved.
    Alone,
}

impl Role {
    /// By the command's name (MS-SMB2 section 2.2, MS-CIFS section 2.2.2.1).
    pub(super) fn of(command: &str) -> Role {
        match (kind(command), command) {
            (Kind::Read, _) => Role::Move(Direction::Read),
            (Kind::Write, _) => Role::Move(Direction::Write),
            (Kind::Create, _) => Role::Create,
            (_, "Close") => Role::Close,
            (_, "QueryDirectory") => Role::List,
            (_, "ChangeNotify") => Role::Watch,
            (_, "Flush") => Role::Flush,
            (_, "SetInfo" | "SetInformation2") => Role::Set,
            (_, "QueryInfo" | "Ioctl") => Role::Other,
            (_, "Negotiate" | "SessionSetup" | "TreeConnect" | "Logoff") => Role::Session,
            (_, "SessionSetupAndX" | "TreeConnectAndX" | "LogoffAndX") => Role::Session,
            _ => Role::Alone,
        }
    }

    /// Which way it moves the bytes of a file.
    pub(super) fn moves(self) -> Option<Direction> {
        match self {
            Role::Move(direction) => Some(direction),
            _ => None,
        }
    }
}
