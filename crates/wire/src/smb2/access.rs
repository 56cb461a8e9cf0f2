//! Access masks, share access and file attributes (MS-SMB2 sections 2.2.13.1 and 2.2.13,
//! MS-FSCC section 2.6).

use super::view::flags;

flags! {
    /// Rights on a file, pipe or directory. Where the meaning differs for a directory, the
    /// constant's second name is the directory's.
    AccessMask(u32) {
        READ_DATA = 0x0000_0001,
        LIST_DIRECTORY = 0x0000_0001,
        WRITE_DATA = 0x0000_0002,
        ADD_FILE = 0x0000_0002,
        APPEND_DATA = 0x0000_0004,
        ADD_SUBDIRECTORY = 0x0000_0004,
        READ_EA = 0x0000_0008,
        WRITE_EA = 0x0000_0010,
        EXECUTE = 0x0000_0020,
        TRAVERSE = 0x0000_0020,
        DELETE_CHILD = 0x0000_0040,
        READ_ATTRIBUTES = 0x0000_0080,
        WRITE_ATTRIBUTES = 0x0000_0100,
        DELETE = 0x0001_0000,
        READ_CONTROL = 0x0002_0000,
        WRITE_DAC = 0x0004_0000,
        WRITE_OWNER = 0x0008_0000,
        SYNCHRONIZE = 0x0010_0000,
        ACCESS_SYSTEM_SECURITY = 0x0100_0000,
        MAXIMUM_ALLOWED = 0x0200_0000,
        GENERIC_ALL = 0x1000_0000,
        GENERIC_EXECUTE = 0x2000_0000,
        GENERIC_WRITE = 0x4000_0000,
        GENERIC_READ = 0x8000_0000,
    }
}

flags! {
    /// What other opens may do meanwhile.
    ShareAccess(u32) {
        READ = 0x0000_0001,
        WRITE = 0x0000_0002,
        DELETE = 0x0000_0004,
    }
}

flags! {
    /// Attributes of a file.
    FileAttributes(u32) {
        READONLY = 0x0000_0001,
        HIDDEN = 0x0000_0002,
        SYSTEM = 0x0000_0004,
        DIRECTORY = 0x0000_0010,
        ARCHIVE = 0x0000_0020,
        NORMAL = 0x0000_0080,
        TEMPORARY = 0x0000_0100,
        SPARSE_FILE = 0x0000_0200,
        REPARSE_POINT = 0x0000_0400,
        COMPRESSED = 0x0000_0800,
        OFFLINE = 0x0000_1000,
        NOT_CONTENT_INDEXED = 0x0000_2000,
        ENCRYPTED = 0x0000_4000,
        INTEGRITY_STREAM = 0x0000_8000,
        NO_SCRUB_DATA = 0x0002_0000,
        RECALL_ON_OPEN = 0x0004_0000,
        PINNED = 0x0008_0000,
        UNPINNED = 0x0010_0000,
        RECALL_ON_DATA_ACCESS = 0x0040_0000,
    }
}
