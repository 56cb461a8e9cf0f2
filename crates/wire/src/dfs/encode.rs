//! Referral requests and answers as bytes: what [`super::Request`] and [`super::Response`] read.
//!
//! MS-DFSC sections 2.2.2 to 2.2.5. Strings lie behind all entries, as servers of Windows and Samba place them; those
//! of version 1 are inside their entry. Lengths and offsets are 16 bits on the wire: what does not fit is an error.

use super::{EntryFlags, HeaderFlags, ServerType};

/// Why a referral has no form on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLong {
    /// A string begins or ends behind the 65,535 bytes that its offset reaches.
    Offset,
    /// More than 65,535 entries or names.
    Count,
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            TooLong::Offset => {
                "the strings of the referral need more than the 65,535 bytes of an offset"
            }
            TooLong::Count => "more than 65,535 entries in one referral",
        })
    }
}

impl std::error::Error for TooLong {}

/// The input of FSCTL_DFS_GET_REFERRALS.
pub fn request(max_referral_level: u16, path: &str) -> Vec<u8> {
    let mut out = max_referral_level.to_le_bytes().to_vec();
    push_z(&mut out, path);
    out
}

/// One entry of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A target of a root or link.
    Target(Target<'a>),
    /// Domains, or the domain controllers of one (version 3 or 4).
    NameList(NameList<'a>),
}

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// 1 to 4. Version 1 has neither times nor paths.
    pub version: u16,
    /// Whether the target is a namespace root.
    pub server_type: ServerType,
    /// Written in version 3 and later.
    pub flags: EntryFlags,
    /// Written in version 2 and later.
    pub time_to_live_s: u32,
    /// The namespace path that the target serves.
    pub dfs_path: &'a str,
    /// The same path in 8.3 names.
    pub alternate_path: &'a str,
    /// `\server\share\path`.
    pub network_address: &'a str,
}

/// A list of names.
#[derive(Clone, Copy, Debug)]
pub struct NameList<'a> {
    /// 3 or 4.
    pub version: u16,
    /// What the names are.
    pub server_type: ServerType,
    /// Seconds.
    pub time_to_live_s: u32,
    /// The domain asked about.
    pub special_name: &'a str,
    /// Its domain controllers.
    pub expanded_names: &'a [&'a str],
}

/// The output of FSCTL_DFS_GET_REFERRALS. Strings that are equal are written once, as servers do.
pub fn response(
    path_consumed: u16,
    flags: HeaderFlags,
    entries: &[Entry<'_>],
) -> Result<Vec<u8>, TooLong> {
    let count = u16::try_from(entries.len()).map_err(|_| TooLong::Count)?;
    let mut out = Vec::new();
    push_u16(&mut out, path_consumed);
    push_u16(&mut out, count);
    out.extend_from_slice(&flags.0.to_le_bytes());
    let mut strings = Strings::default();
    // Where an offset is, where its entry begins, and which string it names.
    let mut offsets: Vec<(usize, usize, usize)> = Vec::new();
    for entry in entries {
        let start = out.len();
        match entry {
            Entry::Target(target) if target.version < 2 => {
                let size = 8 + 2 * (target.network_address.encode_utf16().count() + 1);
                push_u16(&mut out, target.version);
                push_u16(&mut out, u16::try_from(size).map_err(|_| TooLong::Offset)?);
                push_u16(&mut out, target.server_type.0);
                push_u16(&mut out, 0);
                push_z(&mut out, target.network_address);
            }
            Entry::Target(target) => {
                push_u16(&mut out, target.version);
                push_u16(&mut out, if target.version == 2 { 22 } else { 34 });
                push_u16(&mut out, target.server_type.0);
                push_u16(&mut out, if target.version == 2 { 0 } else { target.flags.0 });
                if target.version == 2 {
                    out.extend_from_slice(&[0; 4]);
                }
                out.extend_from_slice(&target.time_to_live_s.to_le_bytes());
                for text in [target.dfs_path, target.alternate_path, target.network_address] {
                    offsets.push((out.len(), start, strings.add(text)));
                    push_u16(&mut out, 0);
                }
                if target.version != 2 {
                    out.extend_from_slice(&[0; 16]);
                }
            }
            Entry::NameList(list) => {
                let names = u16::try_from(list.expanded_names.len()).map_err(|_| TooLong::Count)?;
                push_u16(&mut out, list.version);
                push_u16(&mut out, 18);
                push_u16(&mut out, list.server_type.0);
                push_u16(&mut out, EntryFlags::NAME_LIST_REFERRAL.0);
                out.extend_from_slice(&list.time_to_live_s.to_le_bytes());
                offsets.push((out.len(), start, strings.add(list.special_name)));
                push_u16(&mut out, 0);
                push_u16(&mut out, names);
                offsets.push((out.len(), start, strings.add_list(list.expanded_names)));
                push_u16(&mut out, 0);
            }
        }
    }
    let base = out.len();
    for (at, start, string) in offsets {
        let place = strings.starts.get(string).copied().unwrap_or_default();
        let offset = u16::try_from(base + place - start).map_err(|_| TooLong::Offset)?;
        if let Some(field) = out.get_mut(at..at + 2) {
            field.copy_from_slice(&offset.to_le_bytes());
        }
    }
    out.extend_from_slice(&strings.bytes);
    Ok(out)
}

/// The strings behind the entries.
#[derive(Default)]
struct Strings<'a> {
    bytes: Vec<u8>,
    /// Offset of each string in `bytes`.
    starts: Vec<usize>,
    known: std::collections::HashMap<&'a str, usize>,
}

impl<'a> Strings<'a> {
    fn add(&mut self, text: &'a str) -> usize {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        let number = self.add_list(&[text]);
        self.known.insert(text, number);
        number
    }

    fn add_list(&mut self, names: &[&str]) -> usize {
        self.starts.push(self.bytes.len());
        for name in names {
            push_z(&mut self.bytes, name);
        }
        self.starts.len() - 1
    }
}

fn push_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// A terminated string.
fn push_z(out: &mut Vec<u8>, text: &str) {
    for unit in text.encode_utf16().chain([0]) {
        push_u16(out, unit);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Request, Response};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_read_back() {
        let bytes = request(4, r"\contoso.com\Public");
        let read = Request::new(&bytes);
        assert_eq!(read.max_referral_level(), Some(4));
        assert_eq!(read.path().as_deref(), Some(r"\contoso.com\Public"));
    }

    #[test]
    fn a_name_list_is_read_back() {
        let list = NameList {
            version: 3,
            server_type: ServerType::NON_ROOT,
            time_to_live_s: 600,
            special_name: r"\contoso.com",
            expanded_names: &[r"\dc1.contoso.com", r"\dc2.contoso.com"],
        };
        let bytes = response(0, HeaderFlags(0), &[Entry::NameList(list)]).unwrap();
        let read = Response::new(&bytes).referrals().next().unwrap();
        assert!(read.is_name_list());
        assert_eq!(read.special_name().as_deref(), Some(r"\contoso.com"));
        assert_eq!(read.time_to_live_s(), Some(600));
        let names: Vec<_> = read.expanded_names().collect();
        assert_eq!(names, [r"\dc1.contoso.com", r"\dc2.contoso.com"]);
    }

    #[test]
    fn what_no_offset_reaches_is_refused() {
        let long = "x".repeat(40_000);
        let target = Target {
            version: 4,
            server_type: ServerType::NON_ROOT,
            flags: EntryFlags(0),
            time_to_live_s: 1,
            dfs_path: &long,
            alternate_path: r"\a",
            network_address: r"\b",
        };
        let refused = response(0, HeaderFlags(2), &[Entry::Target(target)]);
        assert_eq!(refused, Err(TooLong::Offset));
    }

    type Parts = (u16, bool, bool, u32, String, String, String);

    fn targets() -> impl Strategy<Value = Vec<Parts>> {
        let name = r"\\[a-zA-Z0-9ü]{1,8}\\[a-z &$]{1,12}";
        let one = (1_u16..5, any::<bool>(), any::<bool>(), any::<u32>(), name, name, name);
        proptest::collection::vec(one, 0..12)
    }

    proptest! {
        #[test]
        fn targets_are_read_back(targets in targets(), consumed: u16, flags in 0_u32..8) {
            let entries: Vec<_> = targets
                .iter()
                .map(|(version, is_root, is_set, ttl, path, alternate, target)| {
                    Entry::Target(Target {
                        version: *version,
                        server_type: ServerType(u16::from(*is_root)),
                        flags: EntryFlags(if *is_set { 4 } else { 0 }),
                        time_to_live_s: *ttl,
                        dfs_path: path,
                        alternate_path: alternate,
                        network_address: target,
                    })
                })
                .collect();
            let bytes = response(consumed, HeaderFlags(flags), &entries).unwrap();
            let read = Response::new(&bytes);
            prop_assert_eq!(read.path_consumed(), Some(consumed));
            prop_assert_eq!(read.flags(), Some(HeaderFlags(flags)));
            let all: Vec<_> = read.referrals().collect();
            prop_assert_eq!(all.len(), targets.len());
            for (read, (version, is_root, is_set, ttl, path, alternate, target)) in
                all.iter().zip(&targets)
            {
                prop_assert_eq!(read.version(), Some(*version));
                prop_assert_eq!(read.server_type(), Some(ServerType(u16::from(*is_root))));
                prop_assert_eq!(read.network_address(), Some(target.clone()));
                if *version >= 2 {
                    prop_assert_eq!(read.time_to_live_s(), Some(*ttl));
                    prop_assert_eq!(read.dfs_path(), Some(path.clone()));
                    prop_assert_eq!(read.alternate_path(), Some(alternate.clone()));
                }
                if *version >= 3 {
                    prop_assert_eq!(read.flags(), Some(EntryFlags(if *is_set { 4 } else { 0 })));
                }
            }
        }
    }
}
