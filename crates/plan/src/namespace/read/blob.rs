//! The blob of a namespace in Windows 2000 mode: the attribute `pKT` of its object.
//!
//! \[MS-DFSNM\] 2.3.3.1 and below: elements with a name and a length; the root's and each link's have an identity, a list
//! of targets and a TTL. What the model has no field for is kept in `other` under keys that begin with `v1:pKT/`, so that
//! the same bytes can be written again: identities, times, short names, bits without a meaning, the table of sites.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::form::{
    FLAG_BITS, Form, INTERLINK, INTERLINK_BIT, STATE_DETAIL, Stateful, flags_of_bits, folded,
    priority_class_of_number, split_unc,
};
use super::super::model::{Flags, Link, Namespace, PriorityClass, State, Target};
use super::{LINKS_MAX, push_target};

/// Type bits: always set, and set for the root.
const ENTRY: u32 = 0x1;
const ROOT: u32 = 0x80;

/// The GUID of an object that has none: from its path, so that writing twice gives the same.
pub(crate) fn derived_guid(path: &str) -> [u8; 16] {
    // FNV-1a with 128 bits; version 8 of RFC 9562 is for such GUIDs.
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in folded(path).bytes() {
        hash ^= u128::from(byte);
        hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    let mut bytes = hash.to_be_bytes();
    bytes[7] = bytes[7] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// The text of a GUID: its first three numbers are little-endian.
pub(crate) fn guid_text(guid: &[u8; 16]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let [a, b, c, d, e, f, g, h, rest @ ..] = guid;
    format!(
        "{}-{}-{}-{}-{}",
        hex(&[*d, *c, *b, *a]),
        hex(&[*f, *e]),
        hex(&[*h, *g]),
        hex(&rest[..2]),
        hex(&rest[2..])
    )
}

/// What a blob holds.
#[derive(Debug)]
pub(super) struct Blob {
    pub(super) namespace: Namespace,
    /// Size in bytes.
    pub(super) bytes: u64,
}

/// Reads a blob; an error says at which byte it is damaged.
pub(super) fn read(bytes: &[u8]) -> Result<Blob, String> {
    let mut input = Input { bytes, at: 0, start: 0 };
    let version = input.u32()?;
    let count = input.u32()?;
    let mut namespace: Option<Namespace> = None;
    let mut links: Vec<(Link, String)> = Vec::new();
    let mut sites = None;
    for _ in 0..count {
        let name = input.name()?;
        let size = input.u32()?;
        let data = input.block(size, &format!("element {name}"))?;
        let folded_name = folded(&name);
        if folded_name == r"\siteroot" {
            // An empty table is what every newer server writes.
            let is_empty = data.bytes.get(data.at..).is_some_and(|rest| {
                rest.len() == 20
                    && rest.get(16..) == Some(&[0; 4])
                    && rest.get(..16) == Some(&[0; 16])
            });
            if !is_empty {
                sites = Some(STANDARD.encode(data.bytes.get(data.at..).unwrap_or_default()));
            }
        } else if folded_name == r"\domainroot" {
            if namespace.is_some() {
                return Err(format!("byte {}: a second root", data.place()));
            }
            namespace = Some(root(data, &name)?);
        } else if folded_name.starts_with(r"\domainroot\") {
            if links.len() >= LINKS_MAX {
                return Err(format!("more than {LINKS_MAX} links"));
            }
            links.push(link(data, &name)?);
        } else {
            return Err(format!(
                "byte {}: an element with the unknown name {name:?}",
                data.place()
            ));
        }
    }
    if input.at < bytes.len() {
        return Err(format!(
            "byte {}: {} bytes behind the last element",
            input.at,
            bytes.len() - input.at
        ));
    }
    let mut namespace = namespace.ok_or("no element \\domainroot: the blob has no root")?;
    if version != 0 {
        namespace.other.insert("v1:pKT/blob-version".to_owned(), version.to_string());
    }
    if let Some(sites) = sites {
        namespace.other.insert("v1:pKT/sites".to_owned(), sites);
    }
    for (mut link, prefix) in links {
        let own = format!("\\{}\\{}\\{}", namespace.host, namespace.name, link.path);
        if prefix != own {
            link.other.insert("v1:pKT/prefix".to_owned(), prefix);
        }
        namespace.links.push(link);
    }
    Ok(Blob { namespace, bytes: bytes.len() as u64 })
}

/// What a root and a link have in common.
struct Common {
    prefix: String,
    bits: u32,
    state: State,
    comment: Option<String>,
    targets: Vec<Target>,
    ttl_s: u32,
    flags: Flags,
    other: BTreeMap<String, String>,
}

fn root(data: Input<'_>, name: &str) -> Result<Namespace, String> {
    let place = data.place();
    let common = common(data, ROOT)?;
    let Some((host, share, below)) = split_unc(&common.prefix).filter(|parts| parts.2.is_empty())
    else {
        return Err(format!(
            "byte {place}: the root's path {:?} is not \\domain\\namespace",
            common.prefix
        ));
    };
    let _ = below;
    let mut namespace = Namespace {
        host: host.to_owned(),
        name: share.to_owned(),
        kind: Form::DirectoryV1.kind(),
        state: common.state,
        ttl_s: Some(common.ttl_s),
        comment: common.comment,
        flags: common.flags,
        targets: common.targets,
        links: Vec::new(),
        other: common.other,
    };
    if name != r"\domainroot" {
        namespace.other.insert("v1:pKT/name".to_owned(), name.to_owned());
    }
    drop_derived(&mut namespace.other, &common.prefix);
    Ok(namespace)
}

fn link(data: Input<'_>, name: &str) -> Result<(Link, String), String> {
    let place = data.place();
    let common = common(data, 0)?;
    if common.bits & ROOT != 0 {
        return Err(format!("byte {place}: a link with the type of a root"));
    }
    let path = split_unc(&common.prefix).map(|parts| parts.2.to_owned()).unwrap_or_default();
    if path.is_empty() {
        return Err(format!(
            "byte {place}: the link's path {:?} is not \\domain\\namespace\\link",
            common.prefix
        ));
    }
    let mut link = Link {
        path,
        state: common.state,
        ttl_s: Some(common.ttl_s),
        comment: common.comment,
        flags: common.flags,
        targets: common.targets,
        security: None,
        other: common.other,
    };
    // A namespace has no scalability for a single link.
    if link.flags.root_scalability == Some(true) {
        link.other.insert("v1:pKT/scalability".to_owned(), "1".to_owned());
    }
    link.flags.root_scalability = None;
    let guid = link.other.get("v1:pKT/guid").cloned().unwrap_or_default();
    if name != format!("\\domainroot\\{guid}") {
        link.other.insert("v1:pKT/name".to_owned(), name.to_owned());
    }
    drop_derived(&mut link.other, &common.prefix);
    Ok((link, common.prefix))
}

/// Forgets a GUID that is the one which writing would derive.
fn drop_derived(other: &mut BTreeMap<String, String>, prefix: &str) {
    if other.get("v1:pKT/guid").is_some_and(|guid| *guid == guid_text(&derived_guid(prefix))) {
        other.remove("v1:pKT/guid");
    }
}

fn common(mut data: Input<'_>, extra: u32) -> Result<Common, String> {
    let mut other = BTreeMap::new();
    let mut keep = |key: &str, value: String| {
        other.insert(format!("v1:pKT/{key}"), value);
    };
    let guid = *data.array::<16>()?;
    keep("guid", guid_text(&guid));
    let prefix = data.name()?;
    let short = data.name()?;
    if short != prefix {
        keep("short", short);
    }
    let bits = data.u32()?;
    // The root never has the bit of an interlink.
    let interlink = if extra == 0 { INTERLINK_BIT } else { 0 };
    let unknown = bits & !(FLAG_BITS | ENTRY | extra | interlink);
    if unknown != 0 || bits & ENTRY == 0 || bits & extra != extra {
        keep("type", bits.to_string());
    }
    let is_interlink = bits & interlink != 0;
    let code = data.u32()?;
    let comment = data.name()?;
    let times = [data.u64()?, data.u64()?, data.u64()?];
    if times != [0; 3] {
        keep("times", times.map(|time| time.to_string()).join(","));
    }
    let version = data.u32()?;
    if version != 3 {
        keep("version", version.to_string());
    }
    let size = data.u32()?;
    let targets = targets(data.block(size, "the list of targets")?)?;
    let reserved_size = data.u32()?;
    let reserved = data.block(reserved_size, "the reserved block")?;
    let reserved = reserved.bytes.get(reserved.at..).unwrap_or_default();
    if reserved != [0; 4] {
        keep("reserved", STANDARD.encode(reserved));
    }
    let ttl_s = data.u32()?;
    data.ends()?;
    let (state, detail) = Stateful::Volume.state(code & 0xf);
    if code > 0xf {
        keep("state", code.to_string());
    }
    if let Some(detail) = detail {
        other.insert(STATE_DETAIL.to_owned(), detail);
    }
    if is_interlink {
        other.insert(INTERLINK.to_owned(), "yes".to_owned());
    }
    Ok(Common {
        prefix,
        bits,
        state,
        comment: (!comment.is_empty()).then_some(comment),
        targets,
        ttl_s,
        flags: flags_of_bits(bits),
        other,
    })
}

fn targets(mut data: Input<'_>) -> Result<Vec<Target>, String> {
    let count = data.u32()?;
    let mut targets = Vec::new();
    for _ in 0..count {
        let size = data.u32()?;
        let mut entry = data.block(size, "a target")?;
        let time = entry.u64()?;
        let code = entry.u32()?;
        let kind = entry.u32()?;
        let server = entry.name()?;
        let share = entry.name()?;
        entry.ends()?;
        let (state, detail) = Stateful::Target.state(code & 0xf);
        let mut target = Target { server, share, state, ..Target::default() };
        if let Some(detail) = detail {
            target.other.insert(STATE_DETAIL.to_owned(), detail);
        }
        if code > 0xf {
            target.other.insert("v1:pKT/state".to_owned(), code.to_string());
        }
        if kind != 2 {
            target.other.insert("v1:pKT/type".to_owned(), kind.to_string());
        }
        if let Ok(priority) = u8::try_from(time) {
            target.priority_rank = Some(u32::from(priority & 0x1f));
            target.priority_class = priority_class_of_number(priority >> 5);
            if target.priority_class.is_none() {
                target
                    .other
                    .insert("v1:pKT/priority-class".to_owned(), (priority >> 5).to_string());
            }
        } else {
            // The time of the last change; the priority is then the usual one.
            target.priority_class = Some(PriorityClass::SiteCostNormal);
            target.priority_rank = Some(0);
            target.other.insert("v1:pKT/time".to_owned(), time.to_string());
        }
        push_target(&mut targets, target)?;
    }
    data.ends()?;
    Ok(targets)
}

/// A position in the blob.
#[derive(Clone, Copy)]
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where `bytes` begins in the blob.
    start: usize,
}

impl<'a> Input<'a> {
    fn place(&self) -> usize {
        self.start + self.at
    }

    fn take(&mut self, length: usize, what: &str) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| {
            format!(
                "byte {}: {what} needs {length} bytes, {} are left",
                self.place(),
                self.bytes.len().saturating_sub(self.at)
            )
        })?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], String> {
        let place = self.place();
        self.take(N, "a number")?.first_chunk().ok_or_else(|| format!("byte {place}: cut"))
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().copied().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().copied().map(u64::from_le_bytes)
    }

    /// A string with its length in bytes before it.
    fn name(&mut self) -> Result<String, String> {
        let place = self.place();
        let size = self.array().copied().map(u16::from_le_bytes)?;
        let bytes = self.take(usize::from(size), "a string")?;
        if size % 2 != 0 {
            return Err(format!("byte {place}: a string of {size} bytes, which is not UTF-16"));
        }
        let units = bytes.chunks_exact(2).filter_map(|pair| pair.first_chunk().copied());
        char::decode_utf16(units.map(u16::from_le_bytes))
            .collect::<Result<String, _>>()
            .map_err(|_| format!("byte {place}: a string that is not UTF-16"))
    }

    fn block(&mut self, size: u32, what: &str) -> Result<Input<'a>, String> {
        let start = self.place();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        Ok(Input { bytes: self.take(size, what)?, at: 0, start })
    }

    fn ends(&self) -> Result<(), String> {
        let left = self.bytes.len() - self.at;
        if left == 0 {
            Ok(())
        } else {
            Err(format!("byte {}: {left} bytes too many", self.place()))
        }
    }
}
