//! What an open is for, by the access and options that it requests (MS-SMB2 sections 2.2.13 and
//! 2.2.13.1).

use smbscope_wire::smb2::access::AccessMask;
use smbscope_wire::smb2::create::CreateOptions;

/// Rights to query a file: its attributes and its access list.
const QUERY: u32 = AccessMask::READ_EA.0
    | AccessMask::READ_ATTRIBUTES.0
    | AccessMask::READ_CONTROL.0
    | AccessMask::SYNCHRONIZE.0;
/// Rights that change nothing: to query, to read and to execute, and the request for whatever is
/// granted, which clients use to find out their rights.
const READ: u32 = QUERY
    | AccessMask::READ_DATA.0
    | AccessMask::EXECUTE.0
    | AccessMask::GENERIC_READ.0
    | AccessMask::GENERIC_EXECUTE.0
    | AccessMask::MAXIMUM_ALLOWED.0;

/// Access and options that an open of an existing file requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateIntent {
    access: u32,
    options: u32,
}

impl CreateIntent {
    /// Unknown access counts as all rights.
    pub(crate) fn new(access: Option<u32>, options: Option<u32>) -> CreateIntent {
        CreateIntent { access: access.unwrap_or(u32::MAX), options: options.unwrap_or(0) }
    }

    /// Whether the open cannot change anything.
    pub(crate) fn only_looks(self) -> bool {
        self.access & !READ == 0 && !self.deletes()
    }

    /// Whether the open can only query attributes: it neither reads data nor changes anything.
    pub(crate) fn only_asks(self) -> bool {
        self.access & !QUERY == 0 && !self.deletes()
    }

    /// Whether closing the open deletes the file.
    pub(crate) fn deletes(self) -> bool {
        self.options & CreateOptions::DELETE_ON_CLOSE.0 != 0
    }

    /// Whether the open requests a directory.
    pub(crate) fn is_of_directory(self) -> bool {
        self.options & CreateOptions::DIRECTORY_FILE.0 != 0
    }
}
