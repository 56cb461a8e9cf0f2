//! Functions of NtTransact: creating with a security descriptor, FSCTLs, change notification.
//!
//! MS-CIFS section 2.2.7, MS-SMB section 2.2.7 (quota).

use super::block::view;
use super::create::{CreateFlags, OplockLevel, ResourceType, requested_oplock};
use super::strings::Text;
use super::transaction::{Part, Role};
use super::{Block, Command};

/// A function of NtTransact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NtFunction(pub u16);

#[allow(missing_docs)]
impl NtFunction {
    pub const CREATE: NtFunction = NtFunction(1);
    pub const IOCTL: NtFunction = NtFunction(2);
    pub const SET_SECURITY_DESC: NtFunction = NtFunction(3);
    pub const NOTIFY_CHANGE: NtFunction = NtFunction(4);
    pub const RENAME: NtFunction = NtFunction(5);
    pub const QUERY_SECURITY_DESC: NtFunction = NtFunction(6);
    pub const QUERY_QUOTA: NtFunction = NtFunction(7);
    pub const SET_QUOTA: NtFunction = NtFunction(8);

    /// The MS-CIFS name, or `None` for a code that has none.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            NtFunction::CREATE => "NtTransactCreate",
            NtFunction::IOCTL => "NtTransactIoctl",
            NtFunction::SET_SECURITY_DESC => "NtTransactSetSecurityDesc",
            NtFunction::NOTIFY_CHANGE => "NtTransactNotifyChange",
            NtFunction::RENAME => "NtTransactRename",
            NtFunction::QUERY_SECURITY_DESC => "NtTransactQuerySecurityDesc",
            NtFunction::QUERY_QUOTA => "NtTransactQueryQuota",
            NtFunction::SET_QUOTA => "NtTransactSetQuota",
            _ => return None,
        })
    }
}

/// The function of an NtTransact request; only its primary message says it.
pub fn function(part: Part<'_>) -> Option<NtFunction> {
    match part.block().command() {
        Command::NT_TRANSACT => part.nt_function().map(NtFunction),
        _ => None,
    }
}

/// Whether a request is a NotifyChange, judged by its counts alone if its function was not
/// captured: WordCount gives four setup words, which only Ioctl has as well, and it requests
/// parameters, which Ioctl does not return.
pub fn is_notify_change(block: Block<'_>) -> bool {
    let count = |at| block.word::<u32>(at);
    block.command() == Command::NT_TRANSACT
        && block.word_count() == Some(19 + 4)
        && (count(3), count(7)) == (Some(0), Some(0))
        && count(11).is_some_and(|parameters| parameters > 0)
        && count(15) == Some(0)
}

/// The file of a request, by id; `function` comes from the primary, `part` may be a secondary.
pub fn fid(function: NtFunction, part: Part<'_>) -> Option<u16> {
    match function {
        NtFunction::IOCTL => IoctlSetup::new(part).fid(),
        NtFunction::NOTIFY_CHANGE => NotifyChangeSetup::new(part).fid(),
        NtFunction::SET_SECURITY_DESC
        | NtFunction::QUERY_SECURITY_DESC
        | NtFunction::RENAME
        | NtFunction::QUERY_QUOTA
        | NtFunction::SET_QUOTA => part.parameter(0),
        _ => None,
    }
}

view! {
    /// Parameters of a Create request.
    CreateRequest(Part.parameter) {
        /// Directory that the name is relative to, 0 for the share's root.
        root_directory_fid: u32 = 4,
        /// Access mask asked for.
        desired_access: u32 = 8,
        /// Bytes to allocate for a new file.
        allocation_size: u64 = 12,
        /// Attributes of a new file.
        ext_file_attributes: u32 = 20,
        /// What others may do meanwhile.
        share_access: u32 = 24,
        /// What to do when the file exists or not.
        create_disposition: u32 = 28,
        /// Options, write-through and no buffering among them.
        create_options: u32 = 32,
        /// Bytes of security descriptor in the data.
        security_descriptor_length: u32 = 36,
        /// Bytes of extended attributes in the data.
        ea_length: u32 = 40,
        /// Impersonation level.
        impersonation_level: u32 = 48,
    }
    also { flags, name, requested_oplock }
}

impl<'a> CreateRequest<'a> {
    /// Flags.
    pub fn flags(&self) -> Option<CreateFlags> {
        self.base.parameter(0).map(CreateFlags)
    }

    /// The file name, relative to the share's root; empty for the root itself.
    pub fn name(&self) -> Option<Text<'a>> {
        let length: u32 = self.base.parameter(44)?;
        self.base.parameter_strings(53)?.counted(usize::try_from(length).ok()?)
    }

    /// The oplock asked for by the flags.
    pub fn requested_oplock(&self) -> Option<OplockLevel> {
        Some(requested_oplock(self.flags()?))
    }
}

view! {
    /// Parameters of a Create response: 69 bytes, or 101 when extended.
    CreateResponse(Part.parameter) {
        /// The new file's id.
        fid: u16 = 2,
        /// What was done: 0 superseded, 1 opened, 2 created, 3 overwritten.
        create_action: u32 = 4,
        /// FILETIME.
        create_time: u64 = 12,
        /// FILETIME.
        last_access_time: u64 = 20,
        /// FILETIME.
        last_write_time: u64 = 28,
        /// FILETIME.
        last_change_time: u64 = 36,
        /// Attributes.
        ext_file_attributes: u32 = 44,
        /// Bytes allocated.
        allocation_size: u64 = 48,
        /// Size in bytes.
        end_of_file: u64 = 56,
        /// Not 0 for a directory.
        directory: u8 = 68,
        /// The file's id on its volume (extended).
        file_id: u64 = 85,
        /// The most that the user may be granted (extended).
        maximal_access: u32 = 93,
    }
    also { oplock_level, resource_type }
}

impl CreateResponse<'_> {
    /// The oplock granted.
    pub fn oplock_level(&self) -> Option<OplockLevel> {
        self.base.parameter(0).map(OplockLevel)
    }

    /// What was opened.
    pub fn resource_type(&self) -> Option<ResourceType> {
        self.base.parameter(64).map(ResourceType)
    }
}

view! {
    /// Parameters of SetSecurityDesc and QuerySecurityDesc requests.
    SecurityDescRequest(Part.parameter) {
        /// The file.
        fid: u16 = 0,
        /// Which parts: owner, group, DACL, SACL.
        security_information: u32 = 4,
    }
}

view! {
    /// Setup of an Ioctl request.
    IoctlSetup(Part.request_setup) {
        /// FSCTL or device control code.
        function_code: u32 = 0,
        /// The file.
        fid: u16 = 4,
        /// Not 0 for an FSCTL.
        is_fsctl: u8 = 6,
        /// Bit 0: apply to the root handle of the volume.
        is_flags: u8 = 7,
    }
}

view! {
    /// Setup of a NotifyChange request, which is answered when something changes.
    NotifyChangeSetup(Part.request_setup) {
        /// Which changes.
        completion_filter: u32 = 0,
        /// The directory.
        fid: u16 = 4,
        /// Not 0 for the whole tree below it.
        watch_tree: u8 = 6,
    }
}

impl Part<'_> {
    fn request_setup<T: super::block::Field>(&self, at: usize) -> Option<T> {
        match self.role() {
            Role::Primary => self.setup_word(at),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::super::testing::{block, message, reply, truncate, utf16, words};
    use super::*;

    #[test]
    fn reads_create() {
        let mut parameters =
            words(53, &[(0, &[0x02]), (8, &0x0012_019fu32.to_le_bytes()), (28, &[2]), (44, &[8])]);
        parameters.push(0);
        parameters.extend(utf16("\\new"));
        let count = (parameters.len() as u32).to_le_bytes();
        // Bytes begin at 73; parameters at 76.
        let fixed = words(38, &[(3, &count), (19, &count), (23, &[76]), (36, &[1, 0])]);
        let bytes = message(0xa0, 0xc001, &fixed, &[&[0; 3], &parameters[..]].concat());
        let part = Part::parse(block(&bytes), true).unwrap();
        assert_eq!(function(part).unwrap().name(), Some("NtTransactCreate"));
        let create = CreateRequest::new(part);
        assert_eq!(create.name().unwrap().decode(), "\\new");
        assert_eq!(create.desired_access(), Some(0x0012_019f));
        assert_eq!(create.create_disposition(), Some(2));
        assert_eq!(create.requested_oplock(), Some(OplockLevel::EXCLUSIVE));
        truncate(&bytes);
    }

    #[test]
    fn reads_the_response_of_create() {
        let parameters = words(69, &[(0, &[1, 0, 7, 0, 2]), (56, &[99]), (68, &[1])]);
        let fixed = words(36, &[(3, &[69]), (11, &[69]), (15, &[72])]);
        let bytes = reply(0xa0, 0xc001, &fixed, &[&[0], &parameters[..]].concat());
        let part = Part::parse(block(&bytes), false).unwrap();
        let create = CreateResponse::new(part);
        assert_eq!(create.oplock_level(), Some(OplockLevel::EXCLUSIVE));
        assert_eq!(create.fid(), Some(7));
        assert_eq!(create.create_action(), Some(2));
        assert_eq!(create.end_of_file(), Some(99));
        assert_eq!(create.directory(), Some(1));
        assert_eq!(create.maximal_access(), None);
        assert_eq!(function(part), None);
        truncate(&bytes);
    }

    #[test]
    fn reads_setups_and_security() {
        let mut fixed = words(46, &[(35, &[4, 2]), (38, &[0xc0, 0, 9, 0, 7, 0, 1])]);
        let bytes = message(0xa0, 0xc001, &fixed, &[]);
        let part = Part::parse(block(&bytes), true).unwrap();
        let ioctl = IoctlSetup::new(part);
        assert_eq!(ioctl.function_code(), Some(0x0009_00c0));
        assert_eq!((ioctl.fid(), ioctl.is_fsctl()), (Some(7), Some(1)));
        assert_eq!(fid(NtFunction::IOCTL, part), Some(7));
        truncate(&bytes);

        fixed[36] = 4;
        let bytes = message(0xa0, 0xc001, &fixed, &[]);
        let part = Part::parse(block(&bytes), true).unwrap();
        assert_eq!(function(part), Some(NtFunction::NOTIFY_CHANGE));
        let notify = NotifyChangeSetup::new(part);
        assert_eq!((notify.fid(), notify.watch_tree()), (Some(7), Some(1)));

        // Cut before the function.
        let is_notify = |fixed: &[u8], captured: usize| {
            let bytes = message(0xa0, 0, fixed, &[]);
            let cut = Message::new(&bytes[..captured], bytes.len()).unwrap();
            is_notify_change(cut.blocks().next().unwrap())
        };
        fixed[11] = 32;
        assert!(is_notify(&fixed, 52) && !is_notify(&fixed, 51));
        // An Ioctl that returns data, one that sends some, and what has fewer setup words.
        for other in [words(46, &[(15, &[32])]), words(46, &[(7, &[4]), (11, &[32])])] {
            assert!(!is_notify(&other, 52));
        }
        assert!(!is_notify(&fixed[..38], 52));

        let fixed = words(38, &[(3, &[8]), (19, &[8]), (23, &[76]), (36, &[6])]);
        let bytes = message(0xa0, 0, &fixed, &[0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0]);
        let part = Part::parse(block(&bytes), true).unwrap();
        let query = SecurityDescRequest::new(part);
        assert_eq!(query.security_information(), Some(4));
        assert_eq!(fid(NtFunction::QUERY_SECURITY_DESC, part), Some(7));
    }
}
