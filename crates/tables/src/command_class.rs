//! What kind of work a command does: one answer for every reader of the operation row.
//!
//! Owns the classes and which commands are in each, by the names of the `command` column (MS-SMB2
//! section 2.2.1.2, MS-CIFS section 2.2.2.1). SMB1's transactions carry a subcommand that decides;
//! it is in the `detail` column. Questions in SQL list the commands of a class; a test of the
//! `store` crate compares these lists with [`CommandClass::commands`].

/// What kind of work a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandClass {
    /// Opens or creates a file, directory or pipe.
    Open,
    /// Closes an open.
    Close,
    /// Reads from a file or pipe.
    Read,
    /// Writes to a file or pipe.
    Write,
    /// Asks the server to write a file's data to stable storage.
    Flush,
    /// Locks or unlocks byte ranges.
    Lock,
    /// Calls a function of the file system or a device.
    Ioctl,
    /// Lists a directory.
    List,
    /// Waits for changes of a directory.
    Notify,
    /// Queries an open, a path or a volume.
    Query,
    /// Sets attributes, times, size or name.
    Set,
    /// Creates, renames or deletes by path, without an open (SMB1).
    Namespace,
    /// Negotiates, or begins or ends a session or a tree connection.
    Session,
    /// Breaks an oplock or a lease, or acknowledges that.
    Break,
    /// Cancels a request; has no response.
    Cancel,
    /// One of SMB1's transactions, whose subcommand decides: see [`CommandClass::of_subcommand`].
    Transaction,
    /// Anything else.
    Other,
}

macro_rules! commands {
    ($($class:ident: $($name:literal)|+;)*) => {
        impl CommandClass {
            /// The class of a command, by its name in the `command` column.
            #[inline]
            pub fn from_command(command: &str) -> CommandClass {
                match command {
                    $($($name)|+ => CommandClass::$class,)*
                    _ => CommandClass::Other,
                }
            }

            /// The names of the commands of a class. [`CommandClass::Other`] has no list.
            pub fn commands(self) -> &'static [&'static str] {
                match self {
                    $(CommandClass::$class => &[$($name),+],)*
                    CommandClass::Other => &[],
                }
            }
        }
    };
}

commands! {
    Open: "Create" | "NtCreateAndX" | "OpenAndX" | "Open" | "CreateNew" | "CreateTemporary";
    Close: "Close";
    Read: "Read" | "ReadAndX" | "ReadRaw" | "ReadMpx" | "LockAndRead";
    Write: "Write" | "WriteAndX" | "WriteRaw" | "WriteMpx" | "WriteAndUnlock" | "WriteAndClose";
    Flush: "Flush";
    Lock: "Lock" | "LockingAndX" | "LockByteRange" | "UnlockByteRange";
    Ioctl: "Ioctl";
    List: "QueryDirectory";
    Notify: "ChangeNotify";
    Query: "QueryInfo" | "QueryInformation" | "QueryInformation2" | "CheckDirectory";
    Set: "SetInfo" | "SetInformation" | "SetInformation2";
    Namespace: "CreateDirectory" | "DeleteDirectory" | "Delete" | "Rename" | "NtRename";
    Session: "Negotiate" | "SessionSetup" | "SessionSetupAndX" | "Logoff" | "LogoffAndX"
        | "TreeConnect" | "TreeConnectAndX" | "TreeDisconnect";
    Break: "OplockBreak";
    Cancel: "Cancel" | "NtCancel";
    Transaction: "Transaction2" | "NtTransact";
}

impl CommandClass {
    /// The class of a [`CommandClass::Transaction`] by its `detail`, which begins with the name of
    /// the subcommand (MS-CIFS sections 2.2.6 and 2.2.7).
    pub fn of_subcommand(detail: &str) -> CommandClass {
        let name = detail.split([' ', ':']).next().unwrap_or(detail);
        match name {
            "Trans2Open2" | "NtTransactCreate" => CommandClass::Open,
            "Trans2FindFirst2" | "Trans2FindNext2" => CommandClass::List,
            "Trans2QueryPathInformation" | "Trans2QueryFileInformation" => CommandClass::Query,
            "Trans2SetPathInformation" | "Trans2SetFileInformation" => CommandClass::Set,
            "Trans2CreateDirectory" => CommandClass::Namespace,
            "Trans2FindNotifyFirst" | "Trans2FindNotifyNext" | "NtTransactNotifyChange" => {
                CommandClass::Notify
            }
            _ => CommandClass::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb1::trans2::Trans2;
    use smbscope_wire::{smb1, smb2};

    #[test]
    fn every_listed_name_is_a_command_of_smb1_or_smb2() {
        let names: Vec<_> = (0..=0xff)
            .flat_map(|code| [smb1::Command(code).name(), smb2::Command(code.into()).name()])
            .flatten()
            .collect();
        for class in [
            CommandClass::Open,
            CommandClass::Close,
            CommandClass::Read,
            CommandClass::Write,
            CommandClass::Flush,
            CommandClass::Lock,
            CommandClass::Ioctl,
            CommandClass::List,
            CommandClass::Notify,
            CommandClass::Query,
            CommandClass::Set,
            CommandClass::Namespace,
            CommandClass::Session,
            CommandClass::Break,
            CommandClass::Cancel,
            CommandClass::Transaction,
        ] {
            assert!(!class.commands().is_empty(), "{class:?}");
            for name in class.commands() {
                assert!(names.contains(name), "{name}");
                assert_eq!(CommandClass::from_command(name), class);
            }
        }
        assert_eq!(CommandClass::from_command("Echo"), CommandClass::Other);
    }

    #[test]
    fn subcommands_are_recognized_with_and_without_their_level() {
        let open = Trans2::OPEN2.name().unwrap();
        assert_eq!(CommandClass::of_subcommand(open), CommandClass::Open);
        let find =
            format!("{} SMB_FIND_FILE_BOTH_DIRECTORY_INFO", Trans2::FIND_FIRST2.name().unwrap());
        assert_eq!(CommandClass::of_subcommand(&find), CommandClass::List);
        assert_eq!(CommandClass::of_subcommand("Trans2GetDfsReferral"), CommandClass::Other);
    }
}
