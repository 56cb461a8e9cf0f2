//! NTSTATUS values (MS-ERREF section 2.3).

/// The status of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u32);

#[allow(missing_docs)]
impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const PENDING: Status = Status(0x0000_0103);
    pub const NOTIFY_CLEANUP: Status = Status(0x0000_010b);
    pub const NOTIFY_ENUM_DIR: Status = Status(0x0000_010c);
    pub const BUFFER_OVERFLOW: Status = Status(0x8000_0005);
    pub const NO_MORE_FILES: Status = Status(0x8000_0006);
    pub const STOPPED_ON_SYMLINK: Status = Status(0x8000_002d);
    pub const INVALID_PARAMETER: Status = Status(0xc000_000d);
    pub const MORE_PROCESSING_REQUIRED: Status = Status(0xc000_0016);
    pub const CANCELLED: Status = Status(0xc000_0120);
}

impl Status {
    /// Whether the severity is "error".
    #[inline]
    pub fn is_error(self) -> bool {
        self.0 >> 30 == 3
    }
}
