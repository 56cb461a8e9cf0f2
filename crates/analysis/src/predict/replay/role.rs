//! What a command means for a replay.

use smbscope_tables::command_class::CommandClass;

use crate::predict::plan::Direction;

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
    /// Queries or changes something else of an open.
    Other,
    /// Begins or ends a session or a tree connection.
    Session,
    /// Is about no open, or must not be moved.
    Alone,
}

impl Role {
    /// By the command's name. SMB1's transactions are not moved, whatever their subcommand does.
    pub(super) fn from_command(command: &str) -> Role {
        match CommandClass::from_command(command) {
            CommandClass::Read => Role::Move(Direction::Read),
            CommandClass::Write => Role::Move(Direction::Write),
            CommandClass::Open => Role::Create,
            CommandClass::Close => Role::Close,
            CommandClass::List => Role::List,
            CommandClass::Notify => Role::Watch,
            CommandClass::Flush => Role::Flush,
            CommandClass::Set => Role::Set,
            CommandClass::Ioctl => Role::Other,
            // SMB1's queries by path are about no open.
            CommandClass::Query if command == "QueryInfo" => Role::Other,
            // A TreeDisconnect is signed and encrypted as any other request.
            CommandClass::Session if command != "TreeDisconnect" => Role::Session,
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
