//! DFS referrals: the path asked (FSCTL_DFS_GET_REFERRALS, Trans2 GET_DFS_REFERRAL) and the targets.
//!
//! MS-DFSC section 2.2.2 (REQ_GET_DFS_REFERRAL), 2.2.3 (..._EX), 2.2.4 (RESP_GET_DFS_REFERRAL) and
//! 2.2.5 (the entries of versions 1 to 4). It does not own the IOCTL or transaction around them.
//!
//! A name is given only when its terminator was captured: half a path would name another place. [`encode`] writes what
//! is read here.

pub mod encode;

use crate::read::{array_at, slice_at, u16_at, u32_at};
use crate::text::{utf16le, utf16le_terminated};

/// Longest name that is looked for. Entries may share the bytes of a name, so that without a limit
/// a forged response would cost its size squared.
const NAME_BYTES_MAX: usize = 8192;

/// A request for a referral.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    bytes: &'a [u8],
    is_extended: bool,
}

impl<'a> Request<'a> {
    /// The input of FSCTL_DFS_GET_REFERRALS or of SMB1's TRANS2_GET_DFS_REFERRAL.
    pub fn new(bytes: &'a [u8]) -> Request<'a> {
        Request { bytes, is_extended: false }
    }

    /// The input of FSCTL_DFS_GET_REFERRALS_EX.
    pub fn new_extended(bytes: &'a [u8]) -> Request<'a> {
        Request { bytes, is_extended: true }
    }

    /// The highest version of referral that the client understands.
    pub fn max_referral_level(&self) -> Option<u16> {
        u16_at(self.bytes, 0)
    }

    /// The path asked: empty (domains), `\domain`, `\domain\namespace`, `\server\share\...`.
    pub fn path(&self) -> Option<String> {
        if !self.is_extended {
            return terminated(self.bytes, 2);
        }
        let length = usize::from(u16_at(self.bytes, 8)?);
        counted(self.bytes, 10, length)
    }

    /// The name of the client's site (extended request with the SiteName flag).
    pub fn site_name(&self) -> Option<String> {
        if !self.is_extended || u16_at(self.bytes, 2)? & 1 == 0 {
            return None;
        }
        let at = 10 + usize::from(u16_at(self.bytes, 8)?);
        let length = usize::from(u16_at(self.bytes, at)?);
        counted(self.bytes, at + 2, length)
    }
}

/// Flags of the response as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFlags(pub u32);

#[allow(missing_docs)]
impl HeaderFlags {
    pub const REFERRAL_SERVERS: HeaderFlags = HeaderFlags(1);
    pub const STORAGE_SERVERS: HeaderFlags = HeaderFlags(2);
    pub const TARGET_FAILBACK: HeaderFlags = HeaderFlags(4);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: HeaderFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The answer to a request for a referral, as far as captured.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a>(&'a [u8]);

impl<'a> Response<'a> {
    /// The output of either FSCTL.
    pub fn new(bytes: &'a [u8]) -> Response<'a> {
        Response(bytes)
    }

    /// Bytes (not characters) of the path asked that the referral covers.
    pub fn path_consumed(&self) -> Option<u16> {
        u16_at(self.0, 0)
    }

    /// How many entries the header announces.
    pub fn referral_count(&self) -> Option<u16> {
        u16_at(self.0, 2)
    }

    /// The flags of the response.
    pub fn flags(&self) -> Option<HeaderFlags> {
        u32_at(self.0, 4).map(HeaderFlags)
    }

    /// The entries that were captured, at most as many as announced.
    pub fn referrals(&self) -> Referrals<'a> {
        Referrals { rest: self.0.get(8..).unwrap_or(&[]), left: self.referral_count().unwrap_or(0) }
    }
}

/// The entries of a response.
#[derive(Clone, Copy, Debug)]
pub struct Referrals<'a> {
    rest: &'a [u8],
    left: u16,
}

impl<'a> Iterator for Referrals<'a> {
    type Item = Referral<'a>;

    fn next(&mut self) -> Option<Referral<'a>> {
        self.left = self.left.checked_sub(1)?;
        let referral = Referral(self.rest);
        let size = usize::from(u16_at(self.rest, 2)?);
        // An entry that is shorter than its own header would never end.
        let is_sane = size >= 8;
        self.rest = if is_sane { self.rest.get(size..) } else { None }.unwrap_or(&[]);
        is_sane.then_some(referral)
    }
}

/// What the target of an entry is (section 2.2.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerType(pub u16);

#[allow(missing_docs)]
impl ServerType {
    pub const NON_ROOT: ServerType = ServerType(0);
    pub const ROOT: ServerType = ServerType(1);
}

/// Flags of an entry (sections 2.2.5.3 and 2.2.5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryFlags(pub u16);

#[allow(missing_docs)]
impl EntryFlags {
    pub const NAME_LIST_REFERRAL: EntryFlags = EntryFlags(2);
    pub const TARGET_SET_BOUNDARY: EntryFlags = EntryFlags(4);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: EntryFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One entry. Its strings may lie behind all entries, so it keeps all bytes from its start on.
#[derive(Clone, Copy, Debug)]
pub struct Referral<'a>(&'a [u8]);

impl<'a> Referral<'a> {
    /// 1 to 4.
    pub fn version(&self) -> Option<u16> {
        u16_at(self.0, 0)
    }

    /// Whether the target is a namespace root.
    pub fn server_type(&self) -> Option<ServerType> {
        u16_at(self.0, 4).map(ServerType)
    }

    /// The entry's flags; `None` before version 3, where the field must be ignored.
    pub fn flags(&self) -> Option<EntryFlags> {
        let at_least_3 = self.version()? >= 3;
        at_least_3.then(|| u16_at(self.0, 6).map(EntryFlags))?
    }

    /// Whether it lists domains or domain controllers instead of a target.
    pub fn is_name_list(&self) -> bool {
        self.flags().is_some_and(|flags| flags.contains(EntryFlags::NAME_LIST_REFERRAL))
    }

    /// How long a client may keep the entry.
    pub fn time_to_live_s(&self) -> Option<u32> {
        match self.version()? {
            2 => u32_at(self.0, 12),
            3 | 4 => u32_at(self.0, 8),
            _ => None,
        }
    }

    /// The namespace path that the target serves.
    pub fn dfs_path(&self) -> Option<String> {
        self.path_at(16, 12)
    }

    /// The same path in 8.3 names, or again the same.
    pub fn alternate_path(&self) -> Option<String> {
        self.path_at(18, 14)
    }

    /// The target: `\server\share\path`.
    pub fn network_address(&self) -> Option<String> {
        match self.version()? {
            1 => terminated(self.entry(), 8),
            _ => self.path_at(20, 16),
        }
    }

    /// The GUID of the target's site, as on the wire (versions 3 and 4; unused, mostly zero).
    pub fn service_site_guid(&self) -> Option<[u8; 16]> {
        let has_it = matches!(self.version()?, 3 | 4) && !self.is_name_list();
        has_it.then(|| array_at(self.0, 18).copied())?
    }

    /// Name list: the domain asked about.
    pub fn special_name(&self) -> Option<String> {
        if !self.is_name_list() {
            return None;
        }
        terminated(self.0, usize::from(u16_at(self.0, 12)?))
    }

    /// Name list: its domain controllers; empty in a list of domains.
    pub fn expanded_names(&self) -> ExpandedNames<'a> {
        let fields = || {
            let offset = usize::from(u16_at(self.0, 16)?);
            Some((self.0.get(offset..)?, u16_at(self.0, 14)?))
        };
        let (rest, left) = fields().filter(|_| self.is_name_list()).unwrap_or_default();
        ExpandedNames { rest, left }
    }

    fn entry(&self) -> &'a [u8] {
        let size = u16_at(self.0, 2).map_or(0, usize::from);
        self.0.get(..size).unwrap_or(self.0)
    }

    /// The string whose offset from the entry's start is at one of two places, depending on the
    /// version.
    fn path_at(&self, version_2: usize, version_3: usize) -> Option<String> {
        let offset_at = match self.version()? {
            2 => version_2,
            3 | 4 if !self.is_name_list() => version_3,
            _ => return None,
        };
        terminated(self.0, usize::from(u16_at(self.0, offset_at)?))
    }
}

/// The names of a name list.
#[derive(Clone, Copy, Debug)]
pub struct ExpandedNames<'a> {
    rest: &'a [u8],
    left: u16,
}

impl Iterator for ExpandedNames<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        let (name, taken) = utf16le_terminated(self.rest);
        let is_whole = taken >= name.len() + 2 && u16_at(self.rest, name.len()) == Some(0);
        self.rest = self.rest.get(taken..)?;
        is_whole.then(|| utf16le(name))
    }
}

/// The terminated string at `offset`; `None` when its terminator was not captured or is too far.
fn terminated(bytes: &[u8], offset: usize) -> Option<String> {
    let bytes = bytes.get(offset..)?;
    let bytes = bytes.get(..NAME_BYTES_MAX).unwrap_or(bytes);
    let (name, _) = utf16le_terminated(bytes);
    (u16_at(bytes, name.len())? == 0).then(|| utf16le(name))
}

/// The string of a known length, without the terminator that some clients count in.
fn counted(bytes: &[u8], offset: usize, length: usize) -> Option<String> {
    let (name, _) = utf16le_terminated(slice_at(bytes, offset, length)?);
    Some(utf16le(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn z(text: &str) -> Vec<u8> {
        let units = text.encode_utf16().chain([0]);
        units.flat_map(u16::to_le_bytes).collect()
    }

    fn words(values: &[u16]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    /// Two version 4 entries (34 bytes each) followed by their strings.
    fn version_4() -> Vec<u8> {
        let strings = [z(r"\d\ns"), z(r"\d\ns"), z(r"\s1\x"), z(r"\s2\x")];
        let mut out = words(&[10, 2, 7, 0]);
        for (entry, flags) in [(0usize, 4u16), (1, 0)] {
            let base = if entry == 0 { 68 } else { 34 };
            let path = base as u16;
            let alternate = path + strings[0].len() as u16;
            let targets = alternate + strings[1].len() as u16;
            let target = targets + (entry * strings[2].len()) as u16;
            out.extend(words(&[4, 34, 1, flags, 300, 0, path, alternate, target]));
            out.extend([0; 16]);
        }
        out.extend(strings.concat());
        out
    }

    #[test]
    fn reads_requests() {
        let mut bytes = words(&[4]);
        bytes.extend(z(r"\dom\root"));
        let request = Request::new(&bytes);
        assert_eq!(request.max_referral_level(), Some(4));
        assert_eq!(request.path().as_deref(), Some(r"\dom\root"));
        assert_eq!(Request::new(&bytes[..bytes.len() - 1]).path(), None);

        let (path, site) = (z(r"\dom\root"), z("Berlin"));
        let mut bytes = words(&[4, 1]);
        bytes.extend((4 + path.len() as u32 + site.len() as u32).to_le_bytes());
        bytes.extend(words(&[path.len() as u16]));
        bytes.extend(&path);
        bytes.extend(words(&[site.len() as u16]));
        bytes.extend(&site);
        let request = Request::new_extended(&bytes);
        assert_eq!(request.path().as_deref(), Some(r"\dom\root"));
        assert_eq!(request.site_name().as_deref(), Some("Berlin"));
    }

    #[test]
    fn reads_targets_of_version_4() {
        let bytes = version_4();
        let response = Response::new(&bytes);
        assert_eq!(response.path_consumed(), Some(10));
        assert!(response.flags().unwrap().contains(HeaderFlags::TARGET_FAILBACK));
        let all: Vec<_> = response.referrals().collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].time_to_live_s(), Some(300));
        assert_eq!(all[0].server_type(), Some(ServerType::ROOT));
        assert!(all[0].flags().unwrap().contains(EntryFlags::TARGET_SET_BOUNDARY));
        assert_eq!(all[0].dfs_path().as_deref(), Some(r"\d\ns"));
        assert_eq!(all[0].network_address().as_deref(), Some(r"\s1\x"));
        assert_eq!(all[1].alternate_path().as_deref(), Some(r"\d\ns"));
        assert_eq!(all[1].network_address().as_deref(), Some(r"\s2\x"));
        assert_eq!(all[1].service_site_guid(), Some([0; 16]));
    }

    #[test]
    fn reads_versions_1_and_2() {
        let share = z(r"\s\x");
        let mut bytes = words(&[4, 2, 2, 0]);
        bytes.extend(words(&[1, 8 + share.len() as u16, 0, 1]));
        bytes.extend(&share);
        bytes.extend(words(&[2, 22, 1, 0, 0, 0, 60, 0, 22, 22, 28]));
        bytes.extend(z(r"\d"));
        bytes.extend(z(r"\t\y"));
        let all: Vec<_> = Response::new(&bytes).referrals().collect();
        assert_eq!(all[0].network_address().as_deref(), Some(r"\s\x"));
        assert_eq!((all[0].time_to_live_s(), all[0].flags()), (None, None));
        assert_eq!(all[1].time_to_live_s(), Some(60));
        assert_eq!(all[1].dfs_path().as_deref(), Some(r"\d"));
        assert_eq!(all[1].network_address().as_deref(), Some(r"\t\y"));
    }

    #[test]
    fn reads_a_list_of_domain_controllers() {
        let mut bytes = words(&[0, 1, 0, 0]);
        bytes.extend(words(&[3, 18, 0, 2, 600, 0, 18, 2, 26]));
        bytes.extend(z("dom"));
        bytes.extend(z(r"\dc1"));
        bytes.extend(z(r"\dc2"));
        let referral = Response::new(&bytes).referrals().next().unwrap();
        assert!(referral.is_name_list());
        assert_eq!(referral.special_name().as_deref(), Some("dom"));
        let names: Vec<_> = referral.expanded_names().collect();
        assert_eq!(names, [r"\dc1", r"\dc2"]);
        assert_eq!(referral.network_address(), None);
        let cut = Response::new(&bytes[..bytes.len() - 2]).referrals().next();
        assert_eq!(cut.unwrap().expanded_names().count(), 1);
    }

    fn walk(bytes: &[u8]) {
        for request in [Request::new(bytes), Request::new_extended(bytes)] {
            let _ = (request.path(), request.site_name());
        }
        for referral in Response::new(bytes).referrals() {
            let _ = (referral.dfs_path(), referral.alternate_path());
            let _ = (referral.network_address(), referral.service_site_guid());
            let _ = (referral.special_name(), referral.expanded_names().count());
        }
    }

    #[test]
    fn every_truncation_is_survived_and_never_shortens_a_name() {
        let bytes = version_4();
        for length in 0..bytes.len() {
            walk(&bytes[..length]);
            for referral in Response::new(&bytes[..length]).referrals() {
                assert!(referral.dfs_path().is_none_or(|path| path == r"\d\ns"));
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            walk(&bytes);
        }
    }
}
