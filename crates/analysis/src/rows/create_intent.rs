//! What an open is for, by what it asks for (MS-SMB2 sections 2.2.13 and 2.2.13.1).

/// CreateOptions: a directory is wanted.
pub(crate) const DIRECTORY_FILE: u32 = 1;
/// CreateOptions: the file goes when the open is closed.
const DELETE_ON_CLOSE: u32 = 0x1000;

/// Rights with which nothing is changed: to read, and to see how long reading may go on.
const LOOKS: u32 = ATTRIBUTES | 0x1 | 0x20 | 0x8000_0000 | 0x2000_0000 | 0x0200_0000;
/// Of them those with which no data is read.
const ATTRIBUTES: u32 = 0x8 | 0x80 | 0x2_0000 | 0x10_0000;

/// What an open of what is there asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateIntent {
    access: u32,
    options: u32,
}

impl CreateIntent {
    /// Rights that are not known might be any.
    pub(crate) fn new(access: Option<u32>, options: Option<u32>) -> CreateIntent {
        CreateIntent { access: access.unwrap_or(u32::MAX), options: options.unwrap_or(0) }
    }

    /// Whether nothing can be changed through it.
    pub(crate) fn only_looks(self) -> bool {
        self.access & !LOOKS == 0 && !self.deletes()
    }

    /// Whether neither data is read through it nor anything changed.
    pub(crate) fn only_asks(self) -> bool {
        self.access & !ATTRIBUTES == 0 && !self.deletes()
    }

    /// Whether what it opens goes with it.
    pub(crate) fn deletes(self) -> bool {
        self.options & DELETE_ON_CLOSE != 0
    }

    /// Whether a directory is asked for.
    pub(crate) fn is_of_directory(self) -> bool {
        self.options & DIRECTORY_FILE != 0
    }
}
