//! Information types and classes of queries, sets and directory listings (MS-SMB2 section
//! 2.2.37, MS-FSCC sections 2.4 and 2.5, MS-DTYP section 2.4.7).

use super::view::{codes, flags};

codes! {
    /// What an information class is about.
    InfoType(u8) {
        FILE = 1 => "FILE",
        FILESYSTEM = 2 => "FILESYSTEM",
        SECURITY = 3 => "SECURITY",
        QUOTA = 4 => "QUOTA",
    }
}

codes! {
    /// Information about a file, or of the entries of a directory.
    FileInfoClass(u8) {
        DIRECTORY = 1 => "FileDirectoryInformation",
        FULL_DIRECTORY = 2 => "FileFullDirectoryInformation",
        BOTH_DIRECTORY = 3 => "FileBothDirectoryInformation",
        BASIC = 4 => "FileBasicInformation",
        STANDARD = 5 => "FileStandardInformation",
        INTERNAL = 6 => "FileInternalInformation",
        EA = 7 => "FileEaInformation",
        ACCESS = 8 => "FileAccessInformation",
        NAME = 9 => "FileNameInformation",
        RENAME = 10 => "FileRenameInformation",
        LINK = 11 => "FileLinkInformation",
        NAMES = 12 => "FileNamesInformation",
        DISPOSITION = 13 => "FileDispositionInformation",
        POSITION = 14 => "FilePositionInformation",
        FULL_EA = 15 => "FileFullEaInformation",
        MODE = 16 => "FileModeInformation",
        ALIGNMENT = 17 => "FileAlignmentInformation",
        ALL = 18 => "FileAllInformation",
        ALLOCATION = 19 => "FileAllocationInformation",
        END_OF_FILE = 20 => "FileEndOfFileInformation",
        ALTERNATE_NAME = 21 => "FileAlternateNameInformation",
        STREAM = 22 => "FileStreamInformation",
        PIPE = 23 => "FilePipeInformation",
        PIPE_LOCAL = 24 => "FilePipeLocalInformation",
        PIPE_REMOTE = 25 => "FilePipeRemoteInformation",
        MAILSLOT_QUERY = 26 => "FileMailslotQueryInformation",
        MAILSLOT_SET = 27 => "FileMailslotSetInformation",
        COMPRESSION = 28 => "FileCompressionInformation",
        OBJECT_ID = 29 => "FileObjectIdInformation",
        MOVE_CLUSTER = 31 => "FileMoveClusterInformation",
        QUOTA = 32 => "FileQuotaInformation",
        REPARSE_POINT = 33 => "FileReparsePointInformation",
        NETWORK_OPEN = 34 => "FileNetworkOpenInformation",
        ATTRIBUTE_TAG = 35 => "FileAttributeTagInformation",
        TRACKING = 36 => "FileTrackingInformation",
        ID_BOTH_DIRECTORY = 37 => "FileIdBothDirectoryInformation",
        ID_FULL_DIRECTORY = 38 => "FileIdFullDirectoryInformation",
        VALID_DATA_LENGTH = 39 => "FileValidDataLengthInformation",
        SHORT_NAME = 40 => "FileShortNameInformation",
        SFIO_RESERVE = 44 => "FileSfioReserveInformation",
        SFIO_VOLUME = 45 => "FileSfioVolumeInformation",
        HARD_LINK = 46 => "FileHardLinkInformation",
        NORMALIZED_NAME = 48 => "FileNormalizedNameInformation",
        ID_GLOBAL_TX_DIRECTORY = 50 => "FileIdGlobalTxDirectoryInformation",
        STANDARD_LINK = 54 => "FileStandardLinkInformation",
        ID = 59 => "FileIdInformation",
        ID_EXTD_DIRECTORY = 60 => "FileIdExtdDirectoryInformation",
        DISPOSITION_EX = 64 => "FileDispositionInformationEx",
        RENAME_EX = 65 => "FileRenameInformationEx",
        STAT = 68 => "FileStatInformation",
        STAT_LX = 70 => "FileStatLxInformation",
        CASE_SENSITIVE = 71 => "FileCaseSensitiveInformation",
        LINK_EX = 72 => "FileLinkInformationEx",
        STORAGE_RESERVE_ID = 74 => "FileStorageReserveIdInformation",
        ID_64_EXTD_DIRECTORY = 78 => "FileId64ExtdDirectoryInformation",
        ID_64_EXTD_BOTH_DIRECTORY = 79 => "FileId64ExtdBothDirectoryInformation",
        ID_ALL_EXTD_DIRECTORY = 80 => "FileIdAllExtdDirectoryInformation",
        ID_ALL_EXTD_BOTH_DIRECTORY = 81 => "FileIdAllExtdBothDirectoryInformation",
        POSIX = 100 => "FilePosixInformation",
    }
}

codes! {
    /// Information about a file system.
    FsInfoClass(u8) {
        VOLUME = 1 => "FileFsVolumeInformation",
        LABEL = 2 => "FileFsLabelInformation",
        SIZE = 3 => "FileFsSizeInformation",
        DEVICE = 4 => "FileFsDeviceInformation",
        ATTRIBUTE = 5 => "FileFsAttributeInformation",
        CONTROL = 6 => "FileFsControlInformation",
        FULL_SIZE = 7 => "FileFsFullSizeInformation",
        OBJECT_ID = 8 => "FileFsObjectIdInformation",
        DRIVER_PATH = 9 => "FileFsDriverPathInformation",
        VOLUME_FLAGS = 10 => "FileFsVolumeFlagsInformation",
        SECTOR_SIZE = 11 => "FileFsSectorSizeInformation",
        POSIX = 100 => "FileFsPosixInformation",
    }
}

flags! {
    /// The parts of a security descriptor to query or set (AdditionalInformation).
    SecurityInformation(u32) {
        OWNER = 0x0000_0001,
        GROUP = 0x0000_0002,
        DACL = 0x0000_0004,
        SACL = 0x0000_0008,
        LABEL = 0x0000_0010,
        ATTRIBUTE = 0x0000_0020,
        SCOPE = 0x0000_0040,
        BACKUP = 0x0001_0000,
    }
}

/// The name of a class within its type. Security and quota have one class each.
pub fn info_class_name(info_type: InfoType, class: u8) -> Option<&'static str> {
    match info_type {
        InfoType::FILE => FileInfoClass(class).name(),
        InfoType::FILESYSTEM => FsInfoClass(class).name(),
        InfoType::SECURITY => Some("SecurityInformation"),
        InfoType::QUOTA => Some("FileQuotaInformation"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_depend_on_the_type() {
        assert_eq!(info_class_name(InfoType::FILE, 5), Some("FileStandardInformation"));
        assert_eq!(info_class_name(InfoType::FILESYSTEM, 5), Some("FileFsAttributeInformation"));
        assert_eq!(info_class_name(InfoType::SECURITY, 0), Some("SecurityInformation"));
        assert_eq!(info_class_name(InfoType(9), 5), None);
        assert_eq!(info_class_name(InfoType::FILE, 200), None);
    }
}
