//! The blob of a namespace in Windows 2000 mode: what [`super::super::read`] reads, byte for byte where the reader kept
//! what it needs.
//!
//! \[MS-DFSNM\] 2.3.3.1. The element order is that of servers: the table of sites, the root, the links.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::form::{
    FLAG_BITS, INTERLINK, INTERLINK_BIT, Stateful, bits_of_flags, priority_number,
};
use super::super::model::{Flags, Link, Namespace, PriorityClass, State, Target};
use super::super::read::{derived_guid, guid_text};
use super::express::{LINK_TTL_S, ROOT_TTL_S};

/// Type bits: always set, and set for the root.
const ENTRY: u32 = 0x1;
const ROOT: u32 = 0x80;

/// Bytes of the blob, or what it would be in Windows 2000 mode. Nothing is encoded.
pub fn namespace_bytes(namespace: &Namespace) -> u64 {
    let prefix = utf16(&namespace.host) + utf16(&namespace.name) + 4;
    let sites = namespace.other.get("v1:pKT/sites").map_or(20, |sites| sites.len() as u64 * 3 / 4);
    let root = element_bytes(22, prefix, namespace.comment.as_deref(), &namespace.targets);
    let links = namespace.links.iter().map(|link| link_bytes(namespace, link));
    8 + (2 + 18 + 4 + sites) + root + links.sum::<u64>()
}

/// Bytes of a link's element in the blob.
pub fn link_bytes(namespace: &Namespace, link: &Link) -> u64 {
    let prefix = utf16(&namespace.host) + utf16(&namespace.name) + utf16(&link.path) + 6;
    // \domainroot\ and 36 digits of a GUID.
    element_bytes(24 + 72, prefix, link.comment.as_deref(), &link.targets)
}

fn element_bytes(name: u64, prefix: u64, comment: Option<&str>, targets: &[Target]) -> u64 {
    let targets =
        targets.iter().map(|target| 4 + 20 + utf16(&target.server) + utf16(&target.share));
    let identity = 16 + 2 * (2 + prefix) + 8 + 2 + comment.map_or(0, utf16) + 24 + 4;
    2 + name + 4 + identity + (4 + 4 + targets.sum::<u64>()) + 8 + 4
}

fn utf16(text: &str) -> u64 {
    if text.is_ascii() { 2 * text.len() as u64 } else { 2 * text.encode_utf16().count() as u64 }
}

/// Writes the blob of a namespace that the form can express.
pub(super) fn write(namespace: &Namespace) -> Vec<u8> {
    let mut out = Vec::new();
    let number = |other: &BTreeMap<String, String>, key: &str| {
        other.get(key).and_then(|text| text.parse::<u32>().ok())
    };
    push_u32(&mut out, number(&namespace.other, "v1:pKT/blob-version").unwrap_or(0));
    push_u32(&mut out, u32::try_from(namespace.links.len() + 2).unwrap_or(u32::MAX));
    let sites = namespace.other.get("v1:pKT/sites").and_then(|text| STANDARD.decode(text).ok());
    element(&mut out, "\\siteroot", &sites.unwrap_or_else(|| vec![0; 20]));
    let prefix = format!("\\{}\\{}", namespace.host, namespace.name);
    let root = Common {
        prefix: &prefix,
        extra: ROOT,
        state: namespace.state,
        ttl_s: namespace.ttl_s.unwrap_or(ROOT_TTL_S),
        comment: namespace.comment.as_deref(),
        flags: &namespace.flags,
        targets: &namespace.targets,
        other: &namespace.other,
    };
    let name = namespace.other.get("v1:pKT/name").map_or("\\domainroot", String::as_str);
    element(&mut out, name, &root.bytes());
    for link in &namespace.links {
        let own = format!("{prefix}\\{}", link.path);
        let prefix = link.other.get("v1:pKT/prefix").unwrap_or(&own);
        let common = Common {
            prefix,
            extra: 0,
            state: link.state,
            ttl_s: link.ttl_s.unwrap_or(LINK_TTL_S),
            comment: link.comment.as_deref(),
            flags: &link.flags,
            targets: &link.targets,
            other: &link.other,
        };
        let derived = format!("\\domainroot\\{}", guid_text(&common.guid()));
        let name = link.other.get("v1:pKT/name").unwrap_or(&derived);
        element(&mut out, name, &common.bytes());
    }
    out
}

struct Common<'a> {
    prefix: &'a str,
    extra: u32,
    state: State,
    ttl_s: u32,
    comment: Option<&'a str>,
    flags: &'a Flags,
    targets: &'a [Target],
    other: &'a BTreeMap<String, String>,
}

impl Common<'_> {
    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.other.get(key)?.parse().ok()
    }

    fn guid(&self) -> [u8; 16] {
        self.other
            .get("v1:pKT/guid")
            .and_then(|text| guid_bytes(text))
            .unwrap_or_else(|| derived_guid(self.prefix))
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = self.guid().to_vec();
        push_name(&mut out, self.prefix);
        push_name(&mut out, self.other.get("v1:pKT/short").map_or(self.prefix, String::as_str));
        let flags = bits_of_flags(self.flags)
            | if self.other.contains_key("v1:pKT/scalability") { 0x200 } else { 0 }
            | if self.other.contains_key(INTERLINK) { INTERLINK_BIT } else { 0 };
        let bits =
            self.number::<u32>("v1:pKT/type").map_or(ENTRY | self.extra, |bits| bits & !FLAG_BITS);
        push_u32(&mut out, bits | flags);
        let code = Stateful::Volume.code(self.state, self.other).unwrap_or(1);
        push_u32(&mut out, high_bits(self.number("v1:pKT/state"), code));
        push_name(&mut out, self.comment.unwrap_or_default());
        let times = self.other.get("v1:pKT/times").map(String::as_str).unwrap_or_default();
        let mut times = times.split(',').map(|time| time.parse::<u64>().unwrap_or_default());
        for _ in 0..3 {
            out.extend_from_slice(&times.next().unwrap_or_default().to_le_bytes());
        }
        push_u32(&mut out, self.number("v1:pKT/version").unwrap_or(3));
        push_block(&mut out, &targets(self.targets));
        let reserved =
            self.other.get("v1:pKT/reserved").and_then(|text| STANDARD.decode(text).ok());
        push_block(&mut out, &reserved.unwrap_or_else(|| vec![0; 4]));
        push_u32(&mut out, self.ttl_s);
        out
    }
}

/// A state with the bits above its four that were read with it.
fn high_bits(read: Option<u32>, code: u32) -> u32 {
    read.map_or(code, |read| read & !0xf | code & 0xf)
}

fn targets(targets: &[Target]) -> Vec<u8> {
    let mut out = Vec::new();
    push_u32(&mut out, u32::try_from(targets.len()).unwrap_or(u32::MAX));
    for target in targets {
        let number = |key: &str| target.other.get(key).and_then(|text| text.parse::<u64>().ok());
        let low = |key: &str| number(key).and_then(|value| u32::try_from(value).ok());
        let mut entry = Vec::new();
        let rank = target.priority_rank.unwrap_or(0) & 0x1f;
        let class = match (target.priority_class, low("v1:pKT/priority-class")) {
            (None, Some(class)) => class & 7,
            (class, _) => {
                u32::from(priority_number(class.unwrap_or(PriorityClass::SiteCostNormal)))
            }
        };
        let priority = u64::from(class << 5 | rank);
        // A time excludes a priority.
        let time = number("v1:pKT/time").filter(|time| priority == 0 && *time > 0xff);
        entry.extend_from_slice(&time.unwrap_or(priority).to_le_bytes());
        let code = Stateful::Target.code(target.state, &target.other).unwrap_or(2);
        push_u32(&mut entry, high_bits(low("v1:pKT/state"), code));
        push_u32(&mut entry, low("v1:pKT/type").unwrap_or(2));
        push_name(&mut entry, &target.server);
        push_name(&mut entry, &target.share);
        push_block(&mut out, &entry);
    }
    out
}

/// The bytes of a GUID's text.
fn guid_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let mut bytes = [0; 16];
    if digits.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    bytes.get_mut(..4)?.reverse();
    bytes.get_mut(4..6)?.reverse();
    bytes.get_mut(6..8)?.reverse();
    Some(bytes)
}

fn element(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    push_name(out, name);
    push_block(out, data);
}

fn push_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn push_block(out: &mut Vec<u8>, data: &[u8]) {
    push_u32(out, u32::try_from(data.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(data);
}

/// A string with its length in bytes before it; [`super::express`] leaves out what is longer than the length can say.
fn push_name(out: &mut Vec<u8>, text: &str) {
    let units: Vec<u16> = text.encode_utf16().take(0x7fff).collect();
    let size = u16::try_from(2 * units.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&size.to_le_bytes());
    out.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
}
