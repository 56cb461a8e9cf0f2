//! The file id and the path of a request, whatever its command: where each command keeps them.
//!
//! Owns only the table; the layouts are in the commands' own files.

use super::strings::Text;
use super::transaction::Part;
use super::{Block, Command, create, file, nt_transact, open, path, search, trans2};

/// The file that a request works on, by id. Searches have ids of their own and are left out.
/// For a member of an AndX chain after an opening one the id is not known yet and the value has
/// no meaning.
pub fn request_fid(block: Block<'_>) -> Option<u16> {
    match block.command() {
        Command::CLOSE
        | Command::FLUSH
        | Command::READ
        | Command::WRITE
        | Command::LOCK_BYTE_RANGE
        | Command::UNLOCK_BYTE_RANGE
        | Command::SEEK
        | Command::LOCK_AND_READ
        | Command::WRITE_AND_UNLOCK
        | Command::READ_RAW
        | Command::READ_MPX
        | Command::WRITE_RAW
        | Command::WRITE_MPX
        | Command::SET_INFORMATION2
        | Command::QUERY_INFORMATION2
        | Command::IOCTL
        | Command::WRITE_AND_CLOSE
        | Command::CLOSE_AND_TREE_DISCONNECT
        | Command::WRITE_PRINT_FILE
        | Command::CLOSE_PRINT_FILE => file::FileRequest::new(block).fid(),
        Command::READ_AND_X | Command::WRITE_AND_X | Command::LOCKING_AND_X => block.word(4),
        Command::TRANSACTION => Part::parse(block, true)?.pipe_fid(),
        Command::TRANSACTION2 => {
            let part = Part::parse(block, true)?;
            trans2::fid(trans2::subcommand(part)?, part)
        }
        Command::NT_TRANSACT => {
            let part = Part::parse(block, true)?;
            nt_transact::fid(nt_transact::function(part)?, part)
        }
        _ => None,
    }
}

/// The path that a request names, the old one of a rename, the pattern of a search. Names of
/// pipes in Transaction and shares in TreeConnect are not paths.
pub fn request_path(block: Block<'_>) -> Option<Text<'_>> {
    match block.command() {
        Command::NT_CREATE_AND_X => create::NtCreateAndXRequest::new(block).name(),
        Command::OPEN_AND_X => open::OpenAndXRequest::new(block).name(),
        Command::OPEN
        | Command::CREATE
        | Command::CREATE_NEW
        | Command::CREATE_TEMPORARY
        | Command::DELETE
        | Command::RENAME
        | Command::CREATE_DIRECTORY
        | Command::DELETE_DIRECTORY
        | Command::CHECK_DIRECTORY
        | Command::QUERY_INFORMATION
        | Command::SET_INFORMATION
        | Command::NT_RENAME => path::PathRequest::new(block).path(),
        Command::SEARCH | Command::FIND | Command::FIND_UNIQUE => {
            search::SearchRequest::new(block).pattern()
        }
        Command::TRANSACTION2 => trans2::path(Part::parse(block, true)?),
        Command::NT_TRANSACT => {
            let part = Part::parse(block, true)?;
            match nt_transact::function(part)? {
                nt_transact::NtFunction::CREATE => nt_transact::CreateRequest::new(part).name(),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, words};
    use super::*;

    #[test]
    fn finds_file_ids() {
        let and_x = words(16, &[(0, &[0xff]), (4, &[7])]);
        for command in [0x24, 0x2e, 0x2f] {
            let bytes = message(command, 0, &and_x, &[]);
            assert_eq!(request_fid(block(&bytes)), Some(7));
        }
        for command in [0x04, 0x05, 0x0a, 0x0b, 0x1a, 0x1d, 0x2c] {
            let bytes = message(command, 0, &[9, 0], &[]);
            assert_eq!(request_fid(block(&bytes)), Some(9));
        }
        let bytes = message(0x34, 0, &[9, 0], &[]);
        assert_eq!(request_fid(block(&bytes)), None);
    }

    #[test]
    fn finds_paths() {
        for command in [0x00, 0x02, 0x06, 0x07, 0x0f, 0x10, 0x81, 0xa5] {
            let bytes = message(command, 0, &[0; 8], b"\x04\\a\0\x04\\b\0");
            assert_eq!(request_path(block(&bytes)).unwrap().decode(), "\\a");
        }
        let bytes = message(0x72, 0, &[], b"\x02NT LM 0.12\0");
        assert_eq!(request_path(block(&bytes)), None);
    }
}
