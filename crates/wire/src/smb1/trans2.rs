//! Subcommands of Transaction2: searching, information about files and volumes, DFS referrals.
//!
//! Owns their parameters. Information levels are in `level`; the data of a referral is
//! `crate::dfs`, that of other answers is not read.
//!
//! MS-CIFS section 2.2.6.

use super::Command;
use super::block::view;
use super::level::{Level, LevelUse};
use super::open::AccessMode;
use super::strings::Text;
use super::transaction::{Part, Role};

/// A subcommand of Transaction2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trans2(pub u16);

#[allow(missing_docs)]
impl Trans2 {
    pub const OPEN2: Trans2 = Trans2(0x00);
    pub const FIND_FIRST2: Trans2 = Trans2(0x01);
    pub const FIND_NEXT2: Trans2 = Trans2(0x02);
    pub const QUERY_FS_INFORMATION: Trans2 = Trans2(0x03);
    pub const SET_FS_INFORMATION: Trans2 = Trans2(0x04);
    pub const QUERY_PATH_INFORMATION: Trans2 = Trans2(0x05);
    pub const SET_PATH_INFORMATION: Trans2 = Trans2(0x06);
    pub const QUERY_FILE_INFORMATION: Trans2 = Trans2(0x07);
    pub const SET_FILE_INFORMATION: Trans2 = Trans2(0x08);
    pub const FSCTL: Trans2 = Trans2(0x09);
    pub const IOCTL2: Trans2 = Trans2(0x0a);
    pub const FIND_NOTIFY_FIRST: Trans2 = Trans2(0x0b);
    pub const FIND_NOTIFY_NEXT: Trans2 = Trans2(0x0c);
    pub const CREATE_DIRECTORY: Trans2 = Trans2(0x0d);
    pub const SESSION_SETUP: Trans2 = Trans2(0x0e);
    pub const GET_DFS_REFERRAL: Trans2 = Trans2(0x10);
    pub const REPORT_DFS_INCONSISTENCY: Trans2 = Trans2(0x11);

    /// The MS-CIFS name, or `None` for a code that has none.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Trans2::OPEN2 => "Trans2Open2",
            Trans2::FIND_FIRST2 => "Trans2FindFirst2",
            Trans2::FIND_NEXT2 => "Trans2FindNext2",
            Trans2::QUERY_FS_INFORMATION => "Trans2QueryFsInformation",
            Trans2::SET_FS_INFORMATION => "Trans2SetFsInformation",
            Trans2::QUERY_PATH_INFORMATION => "Trans2QueryPathInformation",
            Trans2::SET_PATH_INFORMATION => "Trans2SetPathInformation",
            Trans2::QUERY_FILE_INFORMATION => "Trans2QueryFileInformation",
            Trans2::SET_FILE_INFORMATION => "Trans2SetFileInformation",
            Trans2::FSCTL => "Trans2Fsctl",
            Trans2::IOCTL2 => "Trans2Ioctl2",
            Trans2::FIND_NOTIFY_FIRST => "Trans2FindNotifyFirst",
            Trans2::FIND_NOTIFY_NEXT => "Trans2FindNotifyNext",
            Trans2::CREATE_DIRECTORY => "Trans2CreateDirectory",
            Trans2::SESSION_SETUP => "Trans2SessionSetup",
            Trans2::GET_DFS_REFERRAL => "Trans2GetDfsReferral",
            Trans2::REPORT_DFS_INCONSISTENCY => "Trans2ReportDfsInconsistency",
            _ => return None,
        })
    }

    /// How the subcommand uses its information level, if it has one.
    pub fn level_use(self) -> Option<LevelUse> {
        Some(match self {
            Trans2::FIND_FIRST2 | Trans2::FIND_NEXT2 => LevelUse::Find,
            Trans2::QUERY_FS_INFORMATION => LevelUse::QueryFs,
            Trans2::SET_FS_INFORMATION => LevelUse::SetFs,
            Trans2::QUERY_PATH_INFORMATION | Trans2::QUERY_FILE_INFORMATION => LevelUse::Query,
            Trans2::SET_PATH_INFORMATION | Trans2::SET_FILE_INFORMATION => LevelUse::Set,
            _ => return None,
        })
    }
}

/// The subcommand of a Transaction2 request; only its primary message says it.
pub fn subcommand(part: Part<'_>) -> Option<Trans2> {
    match part.block().command() {
        Command::TRANSACTION2 => part.subcommand().map(Trans2),
        _ => None,
    }
}

/// The information level of a request whose parameters begin in `part`; `subcommand` comes from
/// the primary, `part` may be a secondary.
pub fn level(subcommand: Trans2, part: Part<'_>) -> Option<Level> {
    match subcommand {
        Trans2::FIND_FIRST2 => FindFirst2Request::new(part).level(),
        Trans2::FIND_NEXT2 => FindNext2Request::new(part).level(),
        Trans2::QUERY_FS_INFORMATION => FsInformationRequest::new(part).level(),
        Trans2::QUERY_PATH_INFORMATION | Trans2::SET_PATH_INFORMATION => {
            PathInformationRequest::new(part).level()
        }
        Trans2::QUERY_FILE_INFORMATION
        | Trans2::SET_FILE_INFORMATION
        | Trans2::SET_FS_INFORMATION => FileInformationRequest::new(part).level(),
        _ => None,
    }
}

/// The file of a request, by id.
pub fn fid(subcommand: Trans2, part: Part<'_>) -> Option<u16> {
    match subcommand {
        Trans2::QUERY_FILE_INFORMATION | Trans2::SET_FILE_INFORMATION => {
            FileInformationRequest::new(part).fid()
        }
        // Parameters are the file system's own; the id is in the setup.
        Trans2::FSCTL | Trans2::IOCTL2 if part.role() == Role::Primary => part.setup_word(2),
        _ => None,
    }
}

/// The path (or pattern) in a request's parameters.
pub fn path_of(subcommand: Trans2, part: Part<'_>) -> Option<Text<'_>> {
    let at = match subcommand {
        Trans2::OPEN2 => 28,
        Trans2::FIND_FIRST2 | Trans2::FIND_NEXT2 => 12,
        Trans2::QUERY_PATH_INFORMATION | Trans2::SET_PATH_INFORMATION => 6,
        Trans2::CREATE_DIRECTORY => 4,
        Trans2::GET_DFS_REFERRAL => 2,
        Trans2::REPORT_DFS_INCONSISTENCY => 0,
        Trans2::FIND_NOTIFY_FIRST => 6,
        _ => return None,
    };
    part.parameter_strings(at)?.text()
}

/// [`path_of`] for a request whose primary holds the parameters, as nearly all do.
pub fn path(part: Part<'_>) -> Option<Text<'_>> {
    path_of(subcommand(part)?, part)
}

view! {
    /// Parameters of a FindFirst2 request.
    FindFirst2Request(Part.parameter) {
        /// Attributes that entries may have.
        search_attributes: u16 = 0,
        /// Entries wanted.
        search_count: u16 = 2,
        /// Bit 0: close after this; bit 1: close at the end; bit 2: resume keys; bit 3: continue;
        /// bit 4: backup intent.
        flags: u16 = 4,
        /// 0, or 1 directories only, 0x40 files only.
        search_storage_type: u32 = 8,
    }
    also { level, pattern }
}

impl<'a> FindFirst2Request<'a> {
    /// What is wanted of each entry.
    pub fn level(&self) -> Option<Level> {
        self.base.parameter(6).map(Level)
    }

    /// The path with its pattern.
    pub fn pattern(&self) -> Option<Text<'a>> {
        path_of(Trans2::FIND_FIRST2, self.base)
    }
}

view! {
    /// Parameters of a FindFirst2 response.
    FindFirst2Response(Part.parameter) {
        /// Search handle.
        sid: u16 = 0,
        /// Entries returned.
        search_count: u16 = 2,
        /// Not 0 when this is all.
        end_of_search: u16 = 4,
    }
}

view! {
    /// Parameters of a FindNext2 request.
    FindNext2Request(Part.parameter) {
        /// Search handle.
        sid: u16 = 0,
        /// Entries wanted.
        search_count: u16 = 2,
        /// Resume key of the last entry.
        resume_key: u32 = 6,
        /// As in FindFirst2.
        flags: u16 = 10,
    }
    also { level, last_name }
}

impl<'a> FindNext2Request<'a> {
    /// What is wanted of each entry.
    pub fn level(&self) -> Option<Level> {
        self.base.parameter(4).map(Level)
    }

    /// The name after which the search continues.
    pub fn last_name(&self) -> Option<Text<'a>> {
        path_of(Trans2::FIND_NEXT2, self.base)
    }
}

view! {
    /// Parameters of a FindNext2 response.
    FindNext2Response(Part.parameter) {
        /// Entries returned.
        search_count: u16 = 0,
        /// Not 0 when this is all.
        end_of_search: u16 = 2,
    }
}

view! {
    /// Parameters of a QueryFsInformation request.
    FsInformationRequest(Part.parameter) {}
    also { level }
}

impl FsInformationRequest<'_> {
    /// What is wanted.
    pub fn level(&self) -> Option<Level> {
        self.base.parameter(0).map(Level)
    }
}

view! {
    /// Parameters of QueryPathInformation and SetPathInformation requests.
    PathInformationRequest(Part.parameter) {}
    also { level, path }
}

impl<'a> PathInformationRequest<'a> {
    /// What is wanted or set.
    pub fn level(&self) -> Option<Level> {
        self.base.parameter(0).map(Level)
    }

    /// The path, empty for the share's root.
    pub fn path(&self) -> Option<Text<'a>> {
        path_of(Trans2::QUERY_PATH_INFORMATION, self.base)
    }
}

view! {
    /// Parameters of QueryFileInformation, SetFileInformation and SetFsInformation requests.
    FileInformationRequest(Part.parameter) {
        /// The file.
        fid: u16 = 0,
    }
    also { level }
}

impl FileInformationRequest<'_> {
    /// What is wanted or set.
    pub fn level(&self) -> Option<Level> {
        self.base.parameter(2).map(Level)
    }
}

view! {
    /// Parameters of an Open2 request.
    Open2Request(Part.parameter) {
        /// Bit 0: return attributes; bit 1: exclusive oplock; bit 2: batch oplock.
        flags: u16 = 0,
        /// Attributes of a new file.
        file_attributes: u16 = 6,
        /// What to do when the file exists (bits 0-1) or not (bit 4: create).
        open_mode: u16 = 12,
        /// Bytes to allocate for a new file.
        allocation_size: u32 = 14,
    }
    also { access_mode, name }
}

impl<'a> Open2Request<'a> {
    /// Access and sharing.
    pub fn access_mode(&self) -> Option<AccessMode> {
        self.base.parameter(2).map(AccessMode)
    }

    /// The file name.
    pub fn name(&self) -> Option<Text<'a>> {
        path_of(Trans2::OPEN2, self.base)
    }
}

view! {
    /// Parameters of an Open2 response.
    Open2Response(Part.parameter) {
        /// The new file's id.
        fid: u16 = 0,
        /// Attributes.
        file_attributes: u16 = 2,
        /// Size in bytes.
        file_data_size: u32 = 8,
        /// Access granted.
        access_mode: u16 = 12,
        /// What was opened; see [`super::create::ResourceType`].
        resource_type: u16 = 14,
        /// Bits 0-1: 1 opened, 2 created, 3 truncated; bit 15: an oplock was granted.
        action_taken: u16 = 18,
    }
}

view! {
    /// Parameters of a GetDfsReferral request.
    GetDfsReferralRequest(Part.parameter) {
        /// The newest version of referrals that the client reads.
        max_referral_level: u16 = 0,
    }
    also { file_name }
}

impl<'a> GetDfsReferralRequest<'a> {
    /// The path asked for.
    pub fn file_name(&self) -> Option<Text<'a>> {
        path_of(Trans2::GET_DFS_REFERRAL, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, utf16, words};
    use super::*;

    /// A request with `parameters` at 68 (bytes begin at 65).
    fn request(code: u8, flags2: u16, parameters: &[u8]) -> Vec<u8> {
        let count = (parameters.len() as u16).to_le_bytes();
        let fixed = words(30, &[(0, &count), (18, &count), (20, &[68]), (26, &[1]), (28, &[code])]);
        message(0x32, flags2, &fixed, &[&[0; 3], parameters].concat())
    }

    fn response(parameters: &[u8]) -> Vec<u8> {
        let count = (parameters.len() as u16).to_le_bytes();
        let fixed = words(20, &[(0, &count), (6, &count), (8, &[56])]);
        reply(0x32, 0, &fixed, &[&[0], parameters].concat())
    }

    #[test]
    fn reads_find_first_and_next() {
        let mut parameters = vec![0x16, 0, 100, 0, 6, 0, 4, 1, 0, 0, 0, 0];
        parameters.extend(utf16("\\dir\\*\0"));
        let bytes = request(1, 0xc001, &parameters);
        let part = Part::parse(block(&bytes), true).unwrap();
        assert_eq!(subcommand(part).unwrap().name(), Some("Trans2FindFirst2"));
        let find = FindFirst2Request::new(part);
        assert_eq!(find.pattern().unwrap().decode(), "\\dir\\*");
        assert_eq!(find.search_count(), Some(100));
        assert_eq!(level(Trans2::FIND_FIRST2, part), Some(Level(0x104)));
        truncate(&bytes);

        let bytes = response(&[1, 8, 55, 0, 1, 0, 0, 0, 0, 0]);
        let part = Part::parse(block(&bytes), false).unwrap();
        let found = FindFirst2Response::new(part);
        assert_eq!((found.sid(), found.search_count()), (Some(0x801), Some(55)));
        assert_eq!(found.end_of_search(), Some(1));

        let bytes = request(2, 0, b"\x01\x08\x64\0\x04\x01\0\0\0\0\x0e\0last\0");
        let part = Part::parse(block(&bytes), true).unwrap();
        let next = FindNext2Request::new(part);
        assert_eq!((next.sid(), next.flags()), (Some(0x801), Some(14)));
        assert_eq!(next.last_name().unwrap().decode(), "last");
        truncate(&bytes);
    }

    #[test]
    fn reads_path_and_file_information() {
        let bytes = request(5, 0, b"\x07\x01\0\0\0\0\\a\\b\0");
        let part = Part::parse(block(&bytes), true).unwrap();
        let query = PathInformationRequest::new(part);
        assert_eq!(query.level(), Some(Level(0x107)));
        assert_eq!(path(part).unwrap().decode(), "\\a\\b");
        truncate(&bytes);
        // The root: no name at all, not even its terminator.
        let bytes = request(5, 0x8000, b"\x07\x01\0\0\0\0");
        let part = Part::parse(block(&bytes), true).unwrap();
        assert!(path(part).unwrap().is_empty());

        let bytes = request(8, 0, &[7, 0, 0xfc, 3, 0, 0]);
        let part = Part::parse(block(&bytes), true).unwrap();
        let code = subcommand(part).unwrap();
        assert_eq!(fid(code, part), Some(7));
        assert_eq!(level(code, part).unwrap().pass_through(), Some(20));
        assert_eq!(path(part), None);
        truncate(&bytes);
    }

    #[test]
    fn reads_open2_and_referrals() {
        let mut parameters = words(28, &[(2, &[0x42]), (12, &[0x11])]);
        parameters.extend(b"\\f\0");
        let bytes = request(0, 0, &parameters);
        let part = Part::parse(block(&bytes), true).unwrap();
        let open = Open2Request::new(part);
        assert_eq!(open.access_mode().unwrap().sharing(), 4);
        assert_eq!(open.name().unwrap().decode(), "\\f");
        let bytes = response(&words(30, &[(0, &[9]), (8, &[77])]));
        let part = Part::parse(block(&bytes), false).unwrap();
        let open = Open2Response::new(part);
        assert_eq!((open.fid(), open.file_data_size()), (Some(9), Some(77)));

        let parameters = [vec![3, 0], utf16("\\srv\\dfs\0")].concat();
        let bytes = request(0x10, 0x8000, &parameters);
        let part = Part::parse(block(&bytes), true).unwrap();
        let referral = GetDfsReferralRequest::new(part);
        assert_eq!(referral.max_referral_level(), Some(3));
        assert_eq!(referral.file_name().unwrap().decode(), "\\srv\\dfs");
        truncate(&bytes);
    }
}
