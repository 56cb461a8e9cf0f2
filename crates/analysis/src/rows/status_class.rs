//! What an NTSTATUS says about its operation: MS-ERREF section 2.3, with MS-SMB2 section 3.3 for
//! those that are part of normal operation.

use serde::Serialize;
use smbscope_wire::status::Status;

/// SMB1 error class 1 (ERRDOS) in the four bytes of the header's status field.
const ERR_BAD_FILE: Status = Status(0x0002_0001);
const ERR_BAD_PATH: Status = Status(0x0003_0001);
const ERR_NO_FILES: Status = Status(0x0012_0001);

/// What a status means for its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusClass {
    /// Part of normal operation: more data, end of a listing, next step of a logon.
    Usual,
    /// The requested name does not exist.
    NotFound,
    /// The operation failed.
    Error,
}

impl StatusClass {
    /// The class of a status.
    pub fn from_status(status: u32) -> StatusClass {
        match Status(status) {
            // An SMB1 error class and code (MS-CIFS section 2.2.2.4) where the client did not
            // negotiate NTSTATUS: the class is in the lowest byte, the code in the upper half. No
            // NTSTATUS success code that SMB uses looks like that.
            ERR_BAD_FILE | ERR_BAD_PATH => StatusClass::NotFound,
            // The end of a search.
            ERR_NO_FILES => StatusClass::Usual,
            _ if status >> 30 == 0 && status >> 16 != 0 && status & 0xff00 == 0 => {
                StatusClass::Error
            }
            // Success, informational and warning severities come with an answer.
            _ if status >> 30 != 3 => StatusClass::Usual,
            // The next step of a logon; a read at the end of a file; the client cancelled it.
            Status::MORE_PROCESSING_REQUIRED | Status::END_OF_FILE | Status::CANCELLED => {
                StatusClass::Usual
            }
            Status::NO_SUCH_FILE
            | Status::OBJECT_NAME_NOT_FOUND
            | Status::OBJECT_PATH_NOT_FOUND
            | Status::NOT_FOUND => StatusClass::NotFound,
            _ => StatusClass::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_errors_from_usual_replies() {
        for usual in [0x103, 0x10c, 0x0012_0001, 0x8000_0005, 0x8000_0006, 0xc000_0016, 0xc000_0011]
        {
            assert_eq!(StatusClass::from_status(usual), StatusClass::Usual, "{usual:x}");
        }
        for missing in [0xc000_0034, 0xc000_003a, 0xc000_000f, 0x0002_0001] {
            assert_eq!(StatusClass::from_status(missing), StatusClass::NotFound, "{missing:x}");
        }
        for error in [0xc000_0022, 0xc000_0043, 0xc000_010a, 0xc0ff_ffff, 0x0006_0001, 0x0005_0002]
        {
            assert_eq!(StatusClass::from_status(error), StatusClass::Error, "{error:x}");
        }
    }
}
