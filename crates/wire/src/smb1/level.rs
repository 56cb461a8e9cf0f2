//! Information levels of Transaction2: what is queried, or set, on files and volumes.
//!
//! MS-CIFS section 2.2.2.3 and 2.2.8, MS-SMB section 2.2.2.3 (pass-through), the UNIX extensions
//! for 0x200 and up. A pass-through level is 1000 plus an information class of MS-FSCC, whose names
//! belong to `crate::smb2`, where the same classes are used.

/// First pass-through level.
const PASS_THROUGH: u16 = 1000;

/// How a level is used: the same number means different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LevelUse {
    /// FindFirst2, FindNext2.
    Find,
    /// QueryPathInformation, QueryFileInformation.
    Query,
    /// SetPathInformation, SetFileInformation.
    Set,
    /// QueryFsInformation.
    QueryFs,
    /// SetFsInformation.
    SetFs,
}

/// An information level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level(pub u16);

impl Level {
    /// The information class of MS-FSCC (4 = FileBasicInformation ...; of a volume
    /// 1 = FileFsVolumeInformation ...) when the level is a pass-through.
    pub fn pass_through(self) -> Option<u16> {
        self.0.checked_sub(PASS_THROUGH)
    }

    /// The specification's name; `None` for pass-through and unknown levels.
    pub fn name(self, used: LevelUse) -> Option<&'static str> {
        match used {
            LevelUse::Find => self.find(),
            LevelUse::Query => self.query(),
            LevelUse::Set => self.set(),
            LevelUse::QueryFs => self.query_fs(),
            LevelUse::SetFs => match self.0 {
                0x200 => Some("SMB_SET_CIFS_UNIX_INFO"),
                0x203 => Some("SMB_REQUEST_TRANSPORT_ENCRYPTION"),
                _ => None,
            },
        }
    }

    fn find(self) -> Option<&'static str> {
        Some(match self.0 {
            0x001 => "SMB_INFO_STANDARD",
            0x002 => "SMB_INFO_QUERY_EA_SIZE",
            0x003 => "SMB_INFO_QUERY_EAS_FROM_LIST",
            0x101 => "SMB_FIND_FILE_DIRECTORY_INFO",
            0x102 => "SMB_FIND_FILE_FULL_DIRECTORY_INFO",
            0x103 => "SMB_FIND_FILE_NAMES_INFO",
            0x104 => "SMB_FIND_FILE_BOTH_DIRECTORY_INFO",
            0x105 => "SMB_FIND_FILE_ID_FULL_DIRECTORY_INFO",
            0x106 => "SMB_FIND_FILE_ID_BOTH_DIRECTORY_INFO",
            0x202 => "SMB_FIND_FILE_UNIX",
            0x20b => "SMB_FIND_FILE_UNIX_INFO2",
            _ => return None,
        })
    }

    fn query(self) -> Option<&'static str> {
        Some(match self.0 {
            0x001 => "SMB_INFO_STANDARD",
            0x002 => "SMB_INFO_QUERY_EA_SIZE",
            0x003 => "SMB_INFO_QUERY_EAS_FROM_LIST",
            0x004 => "SMB_INFO_QUERY_ALL_EAS",
            0x006 => "SMB_INFO_IS_NAME_VALID",
            0x101 => "SMB_QUERY_FILE_BASIC_INFO",
            0x102 => "SMB_QUERY_FILE_STANDARD_INFO",
            0x103 => "SMB_QUERY_FILE_EA_INFO",
            0x104 => "SMB_QUERY_FILE_NAME_INFO",
            0x107 => "SMB_QUERY_FILE_ALL_INFO",
            0x108 => "SMB_QUERY_FILE_ALT_NAME_INFO",
            0x109 => "SMB_QUERY_FILE_STREAM_INFO",
            0x10b => "SMB_QUERY_FILE_COMPRESSION_INFO",
            0x200 => "SMB_QUERY_FILE_UNIX_BASIC",
            0x201 => "SMB_QUERY_FILE_UNIX_LINK",
            0x204 => "SMB_QUERY_POSIX_ACL",
            0x205 => "SMB_QUERY_XATTR",
            0x206 => "SMB_QUERY_ATTR_FLAGS",
            0x208 => "SMB_QUERY_POSIX_LOCK",
            0x20b => "SMB_QUERY_FILE_UNIX_INFO2",
            _ => return None,
        })
    }

    fn set(self) -> Option<&'static str> {
        Some(match self.0 {
            0x001 => "SMB_INFO_STANDARD",
            0x002 => "SMB_INFO_SET_EAS",
            0x101 => "SMB_SET_FILE_BASIC_INFO",
            0x102 => "SMB_SET_FILE_DISPOSITION_INFO",
            0x103 => "SMB_SET_FILE_ALLOCATION_INFO",
            0x104 => "SMB_SET_FILE_END_OF_FILE_INFO",
            0x200 => "SMB_SET_FILE_UNIX_BASIC",
            0x201 => "SMB_SET_FILE_UNIX_LINK",
            0x203 => "SMB_SET_FILE_UNIX_HLINK",
            0x204 => "SMB_SET_POSIX_ACL",
            0x205 => "SMB_SET_XATTR",
            0x206 => "SMB_SET_ATTR_FLAGS",
            0x208 => "SMB_SET_POSIX_LOCK",
            0x209 => "SMB_POSIX_PATH_OPEN",
            0x20a => "SMB_POSIX_PATH_UNLINK",
            0x20b => "SMB_SET_FILE_UNIX_INFO2",
            _ => return None,
        })
    }

    fn query_fs(self) -> Option<&'static str> {
        Some(match self.0 {
            0x001 => "SMB_INFO_ALLOCATION",
            0x002 => "SMB_INFO_VOLUME",
            0x102 => "SMB_QUERY_FS_VOLUME_INFO",
            0x103 => "SMB_QUERY_FS_SIZE_INFO",
            0x104 => "SMB_QUERY_FS_DEVICE_INFO",
            0x105 => "SMB_QUERY_FS_ATTRIBUTE_INFO",
            0x200 => "SMB_QUERY_CIFS_UNIX_INFO",
            0x201 => "SMB_QUERY_POSIX_FS_INFO",
            0x202 => "SMB_QUERY_POSIX_WHO_AM_I",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_what_its_use_says() {
        let level = Level(0x104);
        let names = [
            (LevelUse::Find, "SMB_FIND_FILE_BOTH_DIRECTORY_INFO"),
            (LevelUse::Query, "SMB_QUERY_FILE_NAME_INFO"),
            (LevelUse::Set, "SMB_SET_FILE_END_OF_FILE_INFO"),
            (LevelUse::QueryFs, "SMB_QUERY_FS_DEVICE_INFO"),
        ];
        for (used, name) in names {
            assert_eq!(level.name(used), Some(name));
        }
        assert_eq!(level.pass_through(), None);
        assert_eq!(Level(1010).pass_through(), Some(10));
        assert_eq!(Level(1010).name(LevelUse::Set), None);
    }
}
