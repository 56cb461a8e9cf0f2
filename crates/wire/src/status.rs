//! What a response says of success: NTSTATUS values and SMB1's DOS error classes.
//!
//! MS-ERREF section 2.3, MS-CIFS section 2.2.2.4. Owns numbers and names; which status makes an
//! SMB2 response an error response says `smb2::error`.

mod dos;
mod names;

pub use dos::DosError;

/// The status of a response (NTSTATUS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u32);

#[allow(missing_docs)]
impl Status {
    pub const SUCCESS: Status = Status(0x0000_0000);
    pub const PENDING: Status = Status(0x0000_0103);
    pub const OPLOCK_BREAK_IN_PROGRESS: Status = Status(0x0000_0108);
    pub const NOTIFY_CLEANUP: Status = Status(0x0000_010b);
    pub const NOTIFY_ENUM_DIR: Status = Status(0x0000_010c);
    pub const BUFFER_OVERFLOW: Status = Status(0x8000_0005);
    pub const NO_MORE_FILES: Status = Status(0x8000_0006);
    pub const STOPPED_ON_SYMLINK: Status = Status(0x8000_002d);
    pub const INVALID_HANDLE: Status = Status(0xc000_0008);
    pub const INVALID_PARAMETER: Status = Status(0xc000_000d);
    pub const NOT_IMPLEMENTED: Status = Status(0xc000_0002);
    pub const INVALID_INFO_CLASS: Status = Status(0xc000_0003);
    pub const NO_SUCH_FILE: Status = Status(0xc000_000f);
    pub const INVALID_DEVICE_REQUEST: Status = Status(0xc000_0010);
    pub const END_OF_FILE: Status = Status(0xc000_0011);
    pub const MORE_PROCESSING_REQUIRED: Status = Status(0xc000_0016);
    pub const NO_MEMORY: Status = Status(0xc000_0017);
    pub const ACCESS_DENIED: Status = Status(0xc000_0022);
    pub const BUFFER_TOO_SMALL: Status = Status(0xc000_0023);
    pub const OBJECT_NAME_NOT_FOUND: Status = Status(0xc000_0034);
    pub const OBJECT_NAME_COLLISION: Status = Status(0xc000_0035);
    pub const OBJECT_PATH_NOT_FOUND: Status = Status(0xc000_003a);
    pub const SHARING_VIOLATION: Status = Status(0xc000_0043);
    pub const QUOTA_EXCEEDED: Status = Status(0xc000_0044);
    pub const FILE_LOCK_CONFLICT: Status = Status(0xc000_0054);
    pub const LOCK_NOT_GRANTED: Status = Status(0xc000_0055);
    pub const DELETE_PENDING: Status = Status(0xc000_0056);
    pub const LOGON_FAILURE: Status = Status(0xc000_006d);
    pub const RANGE_NOT_LOCKED: Status = Status(0xc000_007e);
    pub const DISK_FULL: Status = Status(0xc000_007f);
    pub const INSUFFICIENT_RESOURCES: Status = Status(0xc000_009a);
    pub const IO_TIMEOUT: Status = Status(0xc000_00b5);
    pub const NOT_SUPPORTED: Status = Status(0xc000_00bb);
    pub const NETWORK_NAME_DELETED: Status = Status(0xc000_00c9);
    pub const BAD_NETWORK_NAME: Status = Status(0xc000_00cc);
    pub const REQUEST_NOT_ACCEPTED: Status = Status(0xc000_00d0);
    pub const DIRECTORY_NOT_EMPTY: Status = Status(0xc000_0101);
    pub const FILE_CORRUPT_ERROR: Status = Status(0xc000_0102);
    pub const TOO_MANY_OPENED_FILES: Status = Status(0xc000_011f);
    pub const CANCELLED: Status = Status(0xc000_0120);
    pub const FILE_CLOSED: Status = Status(0xc000_0128);
    pub const IO_DEVICE_ERROR: Status = Status(0xc000_0185);
    pub const USER_SESSION_DELETED: Status = Status(0xc000_0203);
    pub const INSUFF_SERVER_RESOURCES: Status = Status(0xc000_0205);
    pub const NOT_FOUND: Status = Status(0xc000_0225);
    pub const ACCOUNT_LOCKED_OUT: Status = Status(0xc000_0234);
    pub const PATH_NOT_COVERED: Status = Status(0xc000_0257);
    pub const NETWORK_SESSION_EXPIRED: Status = Status(0xc000_035c);
    pub const FILE_NOT_AVAILABLE: Status = Status(0xc000_0467);
}

/// The two uppermost bits of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Severity {
    Success,
    Informational,
    Warning,
    Error,
}

impl Status {
    /// The name in MS-ERREF, with its `STATUS_`; `None` for an unknown value.
    pub fn name(self) -> Option<&'static str> {
        let at = names::NAMES.binary_search_by_key(&self.0, |&(value, _)| value).ok()?;
        names::NAMES.get(at).map(|&(_, name)| name)
    }

    /// The status of a name in MS-ERREF, with its `STATUS_`; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Status> {
        names::NAMES.iter().find(|&&(_, known)| known == name).map(|&(value, _)| Status(value))
    }

    /// All names, in the order of their values.
    pub fn names() -> impl Iterator<Item = &'static str> {
        names::NAMES.iter().map(|&(_, name)| name)
    }

    /// What the two uppermost bits say.
    #[inline]
    pub fn severity(self) -> Severity {
        match self.0 >> 30 {
            0 => Severity::Success,
            1 => Severity::Informational,
            2 => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Whether it says that a file or folder does not exist. Servers choose differently: Windows and Samba
    /// distinguish the last component from those before it, others answer STATUS_NO_SUCH_FILE or
    /// STATUS_NOT_FOUND for both.
    pub fn is_absent(self) -> bool {
        matches!(
            self,
            Status::OBJECT_NAME_NOT_FOUND
                | Status::OBJECT_PATH_NOT_FOUND
                | Status::NO_SUCH_FILE
                | Status::NOT_FOUND
        )
    }

    /// Whether the severity is "error". A warning such as STATUS_BUFFER_OVERFLOW is not an error;
    /// nor are SMB1 values under 0x40000000, which have their own error class (see [`DosError`]).
    #[inline]
    pub fn is_error(self) -> bool {
        self.severity() == Severity::Error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(names::NAMES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(names::NAMES.len() > 500);
        for &(value, name) in names::NAMES {
            assert_eq!(Status(value).name(), Some(name));
            assert_eq!(Status::from_name(name).and_then(Status::name), Some(name));
            assert!(name.starts_with("STATUS_"), "{name}");
        }
        assert_eq!(Status(0xc123_4567).name(), None);
        assert_eq!(Status::from_name("STATUS_FINE"), None);
        assert_eq!(Status::names().count(), names::NAMES.len());
    }

    #[test]
    fn constants_have_their_names() {
        for (status, name) in [
            (Status::SUCCESS, "STATUS_SUCCESS"),
            (Status::PENDING, "STATUS_PENDING"),
            (Status::OPLOCK_BREAK_IN_PROGRESS, "STATUS_OPLOCK_BREAK_IN_PROGRESS"),
            (Status::NOTIFY_CLEANUP, "STATUS_NOTIFY_CLEANUP"),
            (Status::NOTIFY_ENUM_DIR, "STATUS_NOTIFY_ENUM_DIR"),
            (Status::BUFFER_OVERFLOW, "STATUS_BUFFER_OVERFLOW"),
            (Status::NO_MORE_FILES, "STATUS_NO_MORE_FILES"),
            (Status::STOPPED_ON_SYMLINK, "STATUS_STOPPED_ON_SYMLINK"),
            (Status::INVALID_HANDLE, "STATUS_INVALID_HANDLE"),
            (Status::INVALID_PARAMETER, "STATUS_INVALID_PARAMETER"),
            (Status::NOT_IMPLEMENTED, "STATUS_NOT_IMPLEMENTED"),
            (Status::INVALID_INFO_CLASS, "STATUS_INVALID_INFO_CLASS"),
            (Status::NO_SUCH_FILE, "STATUS_NO_SUCH_FILE"),
            (Status::END_OF_FILE, "STATUS_END_OF_FILE"),
            (Status::MORE_PROCESSING_REQUIRED, "STATUS_MORE_PROCESSING_REQUIRED"),
            (Status::ACCESS_DENIED, "STATUS_ACCESS_DENIED"),
            (Status::BUFFER_TOO_SMALL, "STATUS_BUFFER_TOO_SMALL"),
            (Status::OBJECT_NAME_NOT_FOUND, "STATUS_OBJECT_NAME_NOT_FOUND"),
            (Status::OBJECT_NAME_COLLISION, "STATUS_OBJECT_NAME_COLLISION"),
            (Status::OBJECT_PATH_NOT_FOUND, "STATUS_OBJECT_PATH_NOT_FOUND"),
            (Status::SHARING_VIOLATION, "STATUS_SHARING_VIOLATION"),
            (Status::ACCOUNT_LOCKED_OUT, "STATUS_ACCOUNT_LOCKED_OUT"),
            (Status::IO_DEVICE_ERROR, "STATUS_IO_DEVICE_ERROR"),
            (Status::TOO_MANY_OPENED_FILES, "STATUS_TOO_MANY_OPENED_FILES"),
            (Status::FILE_CORRUPT_ERROR, "STATUS_FILE_CORRUPT_ERROR"),
            (Status::QUOTA_EXCEEDED, "STATUS_QUOTA_EXCEEDED"),
            (Status::NO_MEMORY, "STATUS_NO_MEMORY"),
            (Status::FILE_LOCK_CONFLICT, "STATUS_FILE_LOCK_CONFLICT"),
            (Status::LOCK_NOT_GRANTED, "STATUS_LOCK_NOT_GRANTED"),
            (Status::DELETE_PENDING, "STATUS_DELETE_PENDING"),
            (Status::LOGON_FAILURE, "STATUS_LOGON_FAILURE"),
            (Status::RANGE_NOT_LOCKED, "STATUS_RANGE_NOT_LOCKED"),
            (Status::DISK_FULL, "STATUS_DISK_FULL"),
            (Status::INSUFFICIENT_RESOURCES, "STATUS_INSUFFICIENT_RESOURCES"),
            (Status::IO_TIMEOUT, "STATUS_IO_TIMEOUT"),
            (Status::INVALID_DEVICE_REQUEST, "STATUS_INVALID_DEVICE_REQUEST"),
            (Status::NOT_SUPPORTED, "STATUS_NOT_SUPPORTED"),
            (Status::NETWORK_NAME_DELETED, "STATUS_NETWORK_NAME_DELETED"),
            (Status::BAD_NETWORK_NAME, "STATUS_BAD_NETWORK_NAME"),
            (Status::REQUEST_NOT_ACCEPTED, "STATUS_REQUEST_NOT_ACCEPTED"),
            (Status::CANCELLED, "STATUS_CANCELLED"),
            (Status::FILE_CLOSED, "STATUS_FILE_CLOSED"),
            (Status::USER_SESSION_DELETED, "STATUS_USER_SESSION_DELETED"),
            (Status::FILE_NOT_AVAILABLE, "STATUS_FILE_NOT_AVAILABLE"),
            (Status::INSUFF_SERVER_RESOURCES, "STATUS_INSUFF_SERVER_RESOURCES"),
            (Status::PATH_NOT_COVERED, "STATUS_PATH_NOT_COVERED"),
            (Status::NETWORK_SESSION_EXPIRED, "STATUS_NETWORK_SESSION_EXPIRED"),
        ] {
            assert_eq!(status.name(), Some(name));
        }
    }

    #[test]
    fn severity_is_in_the_upper_bits() {
        assert_eq!(Status::PENDING.severity(), Severity::Success);
        assert_eq!(Status(0x4000_0000).severity(), Severity::Informational);
        assert_eq!(Status::BUFFER_OVERFLOW.severity(), Severity::Warning);
        assert!(Status::CANCELLED.is_error());
        assert!(!Status::NO_MORE_FILES.is_error());
    }
}
