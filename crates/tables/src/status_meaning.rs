//! What NTSTATUS values mean to the people who use a share, in a few words.
//!
//! Where a status is usual, the words say so: a name that does not exist or an end of a listing is an answer, not a
//! failure. Source: MS-ERREF 2.3 and MS-SMB2 3.3.5, in our words.

/// The meaning of a status by its name; `None` where the name says it, or no short answer is true.
pub fn meaning(name: &str) -> Option<&'static str> {
    Some(match name {
        "STATUS_ACCESS_DENIED" => "the user may not do this",
        "STATUS_ACCOUNT_DISABLED" => "the account is disabled",
        "STATUS_ACCOUNT_LOCKED_OUT" => "the account is locked after wrong passwords",
        "STATUS_ACCOUNT_RESTRICTION" => "the account may not log on here, or has an empty password",
        "STATUS_BAD_NETWORK_NAME" => "there is no such share",
        "STATUS_BUFFER_OVERFLOW" => {
            "the answer was longer than the client asked for; the client asks again"
        }
        "STATUS_BUFFER_TOO_SMALL" => {
            "the client's buffer is too small for the answer; it asks again"
        }
        "STATUS_CANCELLED" => "the client gave up the request",
        "STATUS_CANNOT_DELETE" => "the file is read-only or in use",
        "STATUS_CONNECTION_DISCONNECTED" | "STATUS_CONNECTION_RESET" => "the connection ended",
        "STATUS_DELETE_PENDING" => "the file is being deleted, but somebody still has it open",
        "STATUS_DIRECTORY_NOT_EMPTY" => "the folder is not empty",
        "STATUS_DISK_FULL" => "the share is full",
        "STATUS_END_OF_FILE" => {
            "a read past the end of a file; usual when programs read until it ends"
        }
        "STATUS_FILE_CLOSED" => {
            "the server does not know the open: it was closed or lost, or is a pipe that has ended"
        }
        "STATUS_FILE_IS_A_DIRECTORY" => {
            "a folder where a file is expected; usual when clients try both"
        }
        "STATUS_FILE_LOCK_CONFLICT" | "STATUS_LOCK_NOT_GRANTED" => {
            "somebody else has locked the bytes"
        }
        "STATUS_FS_DRIVER_REQUIRED" => "the server has no support for this request",
        "STATUS_INSUFFICIENT_RESOURCES" | "STATUS_INSUFF_SERVER_RESOURCES" => {
            "the server has no memory, handles or credits left"
        }
        "STATUS_INVALID_DEVICE_REQUEST" | "STATUS_INVALID_INFO_CLASS" | "STATUS_NOT_SUPPORTED" => {
            "the server does not know this request; clients try and do without"
        }
        "STATUS_INVALID_LOGON_HOURS" => "the user may not log on at this time of day",
        "STATUS_IO_TIMEOUT" => "the server waited too long for its storage or for another machine",
        "STATUS_LOGON_FAILURE" => "the user is unknown, or the password is wrong",
        "STATUS_LOGON_TYPE_NOT_GRANTED" => "the user may not log on over the network",
        "STATUS_MORE_PROCESSING_REQUIRED" => "the next step of a logon follows",
        "STATUS_NETWORK_NAME_DELETED" => "the server closed the share or the connection to it",
        "STATUS_NETWORK_SESSION_EXPIRED" => "the logon has expired; the client logs on again",
        "STATUS_NOT_A_DIRECTORY" => {
            "a file where a folder is expected; usual when clients try both"
        }
        "STATUS_NOT_A_REPARSE_POINT" => "the file is not a link; usual when clients ask",
        "STATUS_NOT_FOUND" | "STATUS_NO_SUCH_FILE" | "STATUS_OBJECT_NAME_NOT_FOUND" => {
            "there is no such file; usual when programs look for one"
        }
        "STATUS_NOTIFY_CLEANUP" => "a watched folder was closed; usual",
        "STATUS_NOTIFY_ENUM_DIR" => "too many changes to list: the client reads the folder again",
        "STATUS_NO_EAS_ON_FILE" => "the file has no extended attributes; usual when clients ask",
        "STATUS_NO_LOGON_SERVERS" => "the server reaches no domain controller",
        "STATUS_NO_MORE_FILES" => "the end of a listing; usual",
        "STATUS_NO_SUCH_USER" => "the user is unknown",
        "STATUS_OBJECT_NAME_COLLISION" => {
            "a file of this name exists; usual when programs create what may exist"
        }
        "STATUS_OBJECT_NAME_INVALID" => "the server does not take this name",
        "STATUS_OBJECT_PATH_NOT_FOUND" => "a folder of the path does not exist",
        "STATUS_PASSWORD_EXPIRED" | "STATUS_PASSWORD_MUST_CHANGE" => "the password has expired",
        "STATUS_PATH_NOT_COVERED" => {
            "the folder is on another server: DFS works like this, and users notice nothing"
        }
        "STATUS_PENDING" => "the server will answer later",
        "STATUS_PIPE_BROKEN" | "STATUS_PIPE_DISCONNECTED" => "the other end of a pipe has ended",
        "STATUS_PRIVILEGE_NOT_HELD" => "the user lacks a right that this needs",
        "STATUS_QUOTA_EXCEEDED" => "the quota of the user or folder is used up",
        "STATUS_RANGE_NOT_LOCKED" => "the bytes were not locked",
        "STATUS_REQUEST_NOT_ACCEPTED" => "the server's limit of connections or sessions is reached",
        "STATUS_SHARING_VIOLATION" => "somebody else has the file open in a way that excludes this",
        "STATUS_STOPPED_ON_SYMLINK" => "a link leads elsewhere; the client follows it",
        "STATUS_TIME_DIFFERENCE_AT_DC" => "the clocks differ too much for Kerberos",
        "STATUS_TOO_MANY_OPENED_FILES" => "the server's limit of open files is reached",
        "STATUS_TRUSTED_RELATIONSHIP_FAILURE" => "the server's account in the domain does not work",
        "STATUS_USER_SESSION_DELETED" => "the server ended the session",
        "STATUS_VIRUS_INFECTED" => "a virus scanner on the server refused the file",
        "STATUS_WRONG_PASSWORD" => "the password is wrong",
        _ => return None,
    })
}

/// A status with its meaning: `STATUS_DISK_FULL (the share is full)`.
pub fn explained(name: &str) -> String {
    meaning(name).map_or_else(|| name.to_owned(), |meaning| format!("{name} ({meaning})"))
}

#[cfg(test)]
mod tests {
    use smbscope_wire::status::Status;

    use super::*;

    #[test]
    fn meanings_are_of_statuses_that_exist() {
        let source = include_str!("status_meaning.rs");
        let names: Vec<_> = source
            .split('"')
            .filter(|text| {
                text.starts_with("STATUS_") && text.len() > 7 && !text.contains([' ', ')'])
            })
            .collect();
        assert!(names.len() > 50);
        for name in names {
            assert!(Status::from_name(name).is_some(), "{name}");
        }
        let known = Status::names().filter(|name| meaning(name).is_some()).count();
        assert!(known > 50, "{known}");
        assert_eq!(explained("STATUS_DISK_FULL"), "STATUS_DISK_FULL (the share is full)");
        assert_eq!(explained("0xc0000999"), "0xc0000999");
    }
}
