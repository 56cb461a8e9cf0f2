//! The command byte of an SMB1 message: its constants and names.
//!
//! MS-CIFS section 2.2.2.1; names are MS-CIFS's without the prefix SMB_COM.

/// A command code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Command(pub u8);

macro_rules! commands {
    ($($code:literal $constant:ident $name:literal,)*) => {
        #[allow(missing_docs)]
        impl Command {
            $(pub const $constant: Command = Command($code);)*
        }

        impl Command {
            /// The MS-CIFS name, or `None` for a code that has none.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

commands! {
    0x00 CREATE_DIRECTORY "CreateDirectory",
    0x01 DELETE_DIRECTORY "DeleteDirectory",
    0x02 OPEN "Open",
    0x03 CREATE "Create",
    0x04 CLOSE "Close",
    0x05 FLUSH "Flush",
    0x06 DELETE "Delete",
    0x07 RENAME "Rename",
    0x08 QUERY_INFORMATION "QueryInformation",
    0x09 SET_INFORMATION "SetInformation",
    0x0a READ "Read",
    0x0b WRITE "Write",
    0x0c LOCK_BYTE_RANGE "LockByteRange",
    0x0d UNLOCK_BYTE_RANGE "UnlockByteRange",
    0x0e CREATE_TEMPORARY "CreateTemporary",
    0x0f CREATE_NEW "CreateNew",
    0x10 CHECK_DIRECTORY "CheckDirectory",
    0x11 PROCESS_EXIT "ProcessExit",
    0x12 SEEK "Seek",
    0x13 LOCK_AND_READ "LockAndRead",
    0x14 WRITE_AND_UNLOCK "WriteAndUnlock",
    0x1a READ_RAW "ReadRaw",
    0x1b READ_MPX "ReadMpx",
    0x1c READ_MPX_SECONDARY "ReadMpxSecondary",
    0x1d WRITE_RAW "WriteRaw",
    0x1e WRITE_MPX "WriteMpx",
    0x1f WRITE_MPX_SECONDARY "WriteMpxSecondary",
    0x20 WRITE_COMPLETE "WriteComplete",
    0x21 QUERY_SERVER "QueryServer",
    0x22 SET_INFORMATION2 "SetInformation2",
    0x23 QUERY_INFORMATION2 "QueryInformation2",
    0x24 LOCKING_AND_X "LockingAndX",
    0x25 TRANSACTION "Transaction",
    0x26 TRANSACTION_SECONDARY "TransactionSecondary",
    0x27 IOCTL "Ioctl",
    0x28 IOCTL_SECONDARY "IoctlSecondary",
    0x29 COPY "Copy",
    0x2a MOVE "Move",
    0x2b ECHO "Echo",
    0x2c WRITE_AND_CLOSE "WriteAndClose",
    0x2d OPEN_AND_X "OpenAndX",
    0x2e READ_AND_X "ReadAndX",
    0x2f WRITE_AND_X "WriteAndX",
    0x30 NEW_FILE_SIZE "NewFileSize",
    0x31 CLOSE_AND_TREE_DISCONNECT "CloseAndTreeDisconnect",
    0x32 TRANSACTION2 "Transaction2",
    0x33 TRANSACTION2_SECONDARY "Transaction2Secondary",
    0x34 FIND_CLOSE2 "FindClose2",
    0x35 FIND_NOTIFY_CLOSE "FindNotifyClose",
    0x70 TREE_CONNECT "TreeConnect",
    0x71 TREE_DISCONNECT "TreeDisconnect",
    0x72 NEGOTIATE "Negotiate",
    0x73 SESSION_SETUP_AND_X "SessionSetupAndX",
    0x74 LOGOFF_AND_X "LogoffAndX",
    0x75 TREE_CONNECT_AND_X "TreeConnectAndX",
    0x7e SECURITY_PACKAGE_AND_X "SecurityPackageAndX",
    0x80 QUERY_INFORMATION_DISK "QueryInformationDisk",
    0x81 SEARCH "Search",
    0x82 FIND "Find",
    0x83 FIND_UNIQUE "FindUnique",
    0x84 FIND_CLOSE "FindClose",
    0xa0 NT_TRANSACT "NtTransact",
    0xa1 NT_TRANSACT_SECONDARY "NtTransactSecondary",
    0xa2 NT_CREATE_AND_X "NtCreateAndX",
    0xa4 NT_CANCEL "NtCancel",
    0xa5 NT_RENAME "NtRename",
    0xc0 OPEN_PRINT_FILE "OpenPrintFile",
    0xc1 WRITE_PRINT_FILE "WritePrintFile",
    0xc2 CLOSE_PRINT_FILE "ClosePrintFile",
    0xc3 GET_PRINT_QUEUE "GetPrintQueue",
    0xd8 READ_BULK "ReadBulk",
    0xd9 WRITE_BULK "WriteBulk",
    0xda WRITE_BULK_DATA "WriteBulkData",
    0xfe INVALID "Invalid",
    0xff NO_AND_X_COMMAND "NoAndXCommand",
}

impl Command {
    /// Whether its words begin with the AndX fields, so that another command may follow.
    pub fn is_and_x(self) -> bool {
        matches!(
            self,
            Command::LOCKING_AND_X
                | Command::OPEN_AND_X
                | Command::READ_AND_X
                | Command::WRITE_AND_X
                | Command::SESSION_SETUP_AND_X
                | Command::LOGOFF_AND_X
                | Command::TREE_CONNECT_AND_X
                | Command::SECURITY_PACKAGE_AND_X
                | Command::NT_CREATE_AND_X
        )
    }

    /// Whether it writes (true) or reads (false) file data; none for all others.
    pub fn writes_data(self) -> Option<bool> {
        match self {
            Command::WRITE
            | Command::WRITE_AND_UNLOCK
            | Command::WRITE_RAW
            | Command::WRITE_MPX
            | Command::WRITE_AND_CLOSE
            | Command::WRITE_AND_X => Some(true),
            Command::READ
            | Command::LOCK_AND_READ
            | Command::READ_RAW
            | Command::READ_MPX
            | Command::READ_AND_X => Some(false),
            _ => None,
        }
    }

    /// Whether its request may come in several messages of counted parameters and data.
    pub fn is_transaction(self) -> bool {
        matches!(self, Command::TRANSACTION | Command::TRANSACTION2 | Command::NT_TRANSACT)
    }

    /// The command of the operation to which a secondary request belongs, otherwise itself.
    pub fn primary(self) -> Command {
        match self {
            Command::TRANSACTION_SECONDARY => Command::TRANSACTION,
            Command::TRANSACTION2_SECONDARY => Command::TRANSACTION2,
            Command::NT_TRANSACT_SECONDARY => Command::NT_TRANSACT,
            Command::IOCTL_SECONDARY => Command::IOCTL,
            Command::READ_MPX_SECONDARY => Command::READ_MPX,
            Command::WRITE_MPX_SECONDARY => Command::WRITE_MPX,
            Command::WRITE_COMPLETE => Command::WRITE_RAW,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_ms_cifs() {
        assert_eq!(Command::NT_CREATE_AND_X.name(), Some("NtCreateAndX"));
        assert_eq!(Command(0x32).name(), Some("Transaction2"));
        assert_eq!(Command(0x33).primary(), Command::TRANSACTION2);
        assert_eq!(Command(0x36).name(), None);
        assert_eq!((0..=255).filter(|&code| Command(code).is_and_x()).count(), 9);
    }
}
