//! The words of the language and their codes.
//!
//! Names are those of MS-SMB2, MS-FSCC and MS-ERREF, flags in lower case without their prefix
//! (`FILE_DIRECTORY_FILE` is `directory_file`), information classes and control codes as written there.

use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::smb2::info_class::{FileInfoClass, FsInfoClass, SecurityInformation};
use smbscope_wire::smb2::lease::LeaseState;
use smbscope_wire::smb2::notify::CompletionFilter;

/// A table of words.
pub(super) type Words = &'static [(&'static str, u32)];

/// Rights, and the sets of them that programs request.
pub(super) const ACCESS: Words = &[
    // Sets: the rights that CreateFile, GetFileAttributes, FindFirstFile, DeleteFile request.
    ("read", 0x0012_0089),
    ("write", 0x0012_0196),
    ("read_write", 0x0012_019f),
    ("attributes", 0x0010_0080),
    ("list", 0x0010_0081),
    ("remove", 0x0011_0080),
    // Single rights.
    ("read_data", AccessMask::READ_DATA.0),
    ("write_data", AccessMask::WRITE_DATA.0),
    ("append_data", AccessMask::APPEND_DATA.0),
    ("read_ea", AccessMask::READ_EA.0),
    ("write_ea", AccessMask::WRITE_EA.0),
    ("execute", AccessMask::EXECUTE.0),
    ("traverse", AccessMask::TRAVERSE.0),
    ("delete_child", AccessMask::DELETE_CHILD.0),
    ("read_attributes", AccessMask::READ_ATTRIBUTES.0),
    ("write_attributes", AccessMask::WRITE_ATTRIBUTES.0),
    ("delete", AccessMask::DELETE.0),
    ("read_control", AccessMask::READ_CONTROL.0),
    ("write_dac", AccessMask::WRITE_DAC.0),
    ("write_owner", AccessMask::WRITE_OWNER.0),
    ("synchronize", AccessMask::SYNCHRONIZE.0),
    ("maximum_allowed", AccessMask::MAXIMUM_ALLOWED.0),
    ("generic_read", AccessMask::GENERIC_READ.0),
    ("generic_write", AccessMask::GENERIC_WRITE.0),
];

/// CreateOptions.
pub(super) const OPTIONS: Words = &[
    ("directory_file", CreateOptions::DIRECTORY_FILE.0),
    ("non_directory_file", CreateOptions::NON_DIRECTORY_FILE.0),
    ("write_through", CreateOptions::WRITE_THROUGH.0),
    ("sequential_only", CreateOptions::SEQUENTIAL_ONLY.0),
    ("random_access", CreateOptions::RANDOM_ACCESS.0),
    ("no_intermediate_buffering", CreateOptions::NO_INTERMEDIATE_BUFFERING.0),
    ("delete_on_close", CreateOptions::DELETE_ON_CLOSE.0),
    ("open_for_backup_intent", CreateOptions::OPEN_FOR_BACKUP_INTENT.0),
    ("open_reparse_point", CreateOptions::OPEN_REPARSE_POINT.0),
    ("no_ea_knowledge", CreateOptions::NO_EA_KNOWLEDGE.0),
];

/// CreateDisposition.
pub(super) const DISPOSITIONS: Words = &[
    ("open", CreateDisposition::OPEN.0),
    ("create", CreateDisposition::CREATE.0),
    ("open_if", CreateDisposition::OPEN_IF.0),
    ("overwrite", CreateDisposition::OVERWRITE.0),
    ("overwrite_if", CreateDisposition::OVERWRITE_IF.0),
    ("supersede", CreateDisposition::SUPERSEDE.0),
];

/// ShareAccess.
pub(super) const SHARE: Words = &[
    ("none", 0),
    ("read", ShareAccess::READ.0),
    ("write", ShareAccess::WRITE.0),
    ("delete", ShareAccess::DELETE.0),
];

/// FileAttributes.
pub(super) const ATTRIBUTES: Words = &[
    ("readonly", FileAttributes::READONLY.0),
    ("hidden", FileAttributes::HIDDEN.0),
    ("system", FileAttributes::SYSTEM.0),
    ("directory", FileAttributes::DIRECTORY.0),
    ("archive", FileAttributes::ARCHIVE.0),
    ("normal", FileAttributes::NORMAL.0),
    ("temporary", FileAttributes::TEMPORARY.0),
    ("not_content_indexed", FileAttributes::NOT_CONTENT_INDEXED.0),
];

/// Oplock levels.
pub(super) const OPLOCKS: Words = &[
    ("none", OplockLevel::NONE.0 as u32),
    ("ii", OplockLevel::II.0 as u32),
    ("exclusive", OplockLevel::EXCLUSIVE.0 as u32),
    ("batch", OplockLevel::BATCH.0 as u32),
];

/// Lease states by their letters.
pub(super) const LEASES: Words = &[
    ("none", LeaseState::NONE.0),
    ("r", LeaseState::READ.0),
    ("rh", LeaseState::READ.0 | LeaseState::HANDLE.0),
    ("rw", LeaseState::READ.0 | LeaseState::WRITE.0),
    ("rwh", LeaseState::READ.0 | LeaseState::WRITE.0 | LeaseState::HANDLE.0),
];

/// CompletionFilter.
pub(super) const FILTERS: Words = &[
    ("file_name", CompletionFilter::FILE_NAME.0),
    ("dir_name", CompletionFilter::DIR_NAME.0),
    ("attributes", CompletionFilter::ATTRIBUTES.0),
    ("size", CompletionFilter::SIZE.0),
    ("last_write", CompletionFilter::LAST_WRITE.0),
    ("last_access", CompletionFilter::LAST_ACCESS.0),
    ("creation", CompletionFilter::CREATION.0),
    ("ea", CompletionFilter::EA.0),
    ("security", CompletionFilter::SECURITY.0),
];

/// Parts of a security descriptor.
pub(super) const SECURITY: Words = &[
    ("owner", SecurityInformation::OWNER.0),
    ("group", SecurityInformation::GROUP.0),
    ("dacl", SecurityInformation::DACL.0),
    ("sacl", SecurityInformation::SACL.0),
    ("label", SecurityInformation::LABEL.0),
];

/// Classes of a directory listing (MS-SMB2 section 2.2.33).
pub(super) const LISTINGS: &[FileInfoClass] = &[
    FileInfoClass::DIRECTORY,
    FileInfoClass::FULL_DIRECTORY,
    FileInfoClass::ID_FULL_DIRECTORY,
    FileInfoClass::BOTH_DIRECTORY,
    FileInfoClass::ID_BOTH_DIRECTORY,
    FileInfoClass::NAMES,
    FileInfoClass::ID_EXTD_DIRECTORY,
];

/// Classes of a file that can be queried (MS-FSCC section 2.4), with the size limit of their answer.
pub(super) const FILE_QUERIES: &[(FileInfoClass, u32)] = &[
    (FileInfoClass::BASIC, 40),
    (FileInfoClass::STANDARD, 24),
    (FileInfoClass::INTERNAL, 8),
    (FileInfoClass::EA, 4),
    (FileInfoClass::ACCESS, 4),
    (FileInfoClass::POSITION, 8),
    (FileInfoClass::FULL_EA, 65_536),
    (FileInfoClass::MODE, 4),
    (FileInfoClass::ALIGNMENT, 4),
    (FileInfoClass::ALL, 4_096),
    (FileInfoClass::ALTERNATE_NAME, 64),
    (FileInfoClass::STREAM, 4_096),
    (FileInfoClass::COMPRESSION, 16),
    (FileInfoClass::NETWORK_OPEN, 56),
    (FileInfoClass::ATTRIBUTE_TAG, 8),
    (FileInfoClass::NORMALIZED_NAME, 4_096),
    (FileInfoClass::ID, 24),
];

/// Classes of a file system that can be queried (MS-FSCC section 2.5), with the size limit.
pub(super) const FS_QUERIES: &[(FsInfoClass, u32)] = &[
    (FsInfoClass::VOLUME, 536),
    (FsInfoClass::SIZE, 24),
    (FsInfoClass::DEVICE, 8),
    (FsInfoClass::ATTRIBUTE, 536),
    (FsInfoClass::FULL_SIZE, 32),
    (FsInfoClass::OBJECT_ID, 64),
    (FsInfoClass::SECTOR_SIZE, 28),
];

/// Control codes that need an open file and an input that the executor can provide.
pub(super) const FSCTLS: &[Fsctl] = &[
    Fsctl::CREATE_OR_GET_OBJECT_ID,
    Fsctl::GET_OBJECT_ID,
    Fsctl::GET_REPARSE_POINT,
    Fsctl::GET_COMPRESSION,
    Fsctl::IS_PATHNAME_VALID,
    Fsctl::IS_VOLUME_DIRTY,
    Fsctl::FILESYSTEM_GET_STATISTICS,
    Fsctl::GET_NTFS_VOLUME_DATA,
    Fsctl::QUERY_ALLOCATED_RANGES,
    Fsctl::READ_FILE_USN_DATA,
    Fsctl::QUERY_FILE_REGIONS,
    Fsctl::GET_INTEGRITY_INFORMATION,
];

/// A number of bytes as people write it: "65536", "64 KiB", "64k", "1.5 MiB". Units are powers of
/// 1,024. `None` for anything else, and for a fraction of a byte.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits =
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        "k" | "kib" | "kb" => 1 << 10,
        "m" | "mib" | "mb" => 1 << 20,
        "g" | "gib" | "gb" => 1 << 30,
        "t" | "tib" | "tb" => 1 << 40,
        _ => return None,
    };
    let number = number.replace('_', "");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let bytes = number.parse::<f64>().ok()? * factor as f64;
    (bytes.fract() == 0.0 && bytes < (1u64 << 53) as f64).then_some(bytes as u64)
}

/// A number of bytes in the largest unit that divides it: `64 KiB`, `1 MiB`, `1500 B`.
pub fn format_bytes(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_and_written() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("65536", Some(65_536)),
            ("64 KiB", Some(65_536)),
            ("64k", Some(65_536)),
            ("1.5 MiB", Some(1_572_864)),
            ("1_000", Some(1_000)),
            ("2 GB", Some(2 << 30)),
            ("0.3 B", None),
            ("1 parsec", None),
            ("", None),
            ("-1", None),
            ("99999999999 TiB", None),
        ] {
            assert_eq!(parse_bytes(text), bytes, "{text}");
        }
        for bytes in [0, 1, 1_500, 65_536, 3 << 20, 1 << 30, 5 << 40] {
            assert_eq!(parse_bytes(&format_bytes(bytes)), Some(bytes));
        }
    }
}
