//! The public functions of a PDB file (LLVM, "The PDB DBI Stream" and "CodeView Symbol Records"; the
//! same structures in github.com/microsoft/microsoft-pdb).
//!
//! Only public symbols are read: each names an address, none a length. So code of a function that
//! has no public symbol gets the name of the one before it, as in Microsoft's own tools.

use super::Unreadable;
use super::container::Container;
use super::functions::{Collector, Functions, Rank};
use smbscope_wire::read::{array_at, u16_at, u32_at};
use std::io::{Read, Seek};

/// Numbers of streams: the file's identity, and what was linked.
const INFO: u16 = 1;
const LINKED: u16 = 3;
/// Places in the list of optional streams: a map of addresses that a later tool moved, the sections,
/// and the sections before that.
const MOVED: usize = 4;
const SECTIONS: usize = 5;
const SECTIONS_BEFORE: usize = 10;
const PUBLIC: u16 = 0x110e;
const EXECUTABLE: u32 = 0x2000_0000;
const I386: u16 = 0x14c;

/// Which file it is: an image names the GUID and age of its PDB file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// In the order of bytes of the file.
    pub guid: [u8; 16],
    pub age: u32,
}

impl Identity {
    /// Reads 32 hexadecimal digits of the GUID and those of the age, as symbol stores write them.
    pub fn parse(text: &str) -> Option<Identity> {
        let (guid, age) = text.split_at_checked(32)?;
        // from_str_radix accepts a sign.
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut written = u128::from_str_radix(guid, 16).ok()?.to_be_bytes();
        // The first three fields of a GUID are little-endian numbers.
        written[0..4].reverse();
        written[4..6].reverse();
        written[6..8].reverse();
        Some(Identity { guid: written, age: u32::from_str_radix(age, 16).ok()? })
    }
}

/// The functions of a file; `None` if it is another one than `wanted`.
pub fn functions(
    source: impl Read + Seek,
    wanted: &Identity,
) -> Result<Option<Functions>, Unreadable> {
    const DAMAGED: Unreadable = Unreadable::Damaged("a stream is damaged");
    let mut file = Container::open(source)?;
    // Version, time stamp, age, GUID.
    let info = file.stream(INFO)?;
    let guid: &[u8; 16] = array_at(&info, 12).ok_or(DAMAGED)?;
    let linked = file.stream(LINKED)?;
    // Tools that write into the file increase the first age; images name the second one.
    let ages = [u32_at(&info, 8), u32_at(&linked, 8)];
    if *guid != wanted.guid || !ages.contains(&Some(wanted.age)) {
        return Ok(None);
    }
    let symbols = u16_at(&linked, 20).ok_or(DAMAGED)?;
    let machine = u16_at(&linked, 58).ok_or(DAMAGED)?;
    let further = further_streams(&linked).ok_or(DAMAGED)?;
    let mut stream = |place: usize| match further.get(place) {
        None | Some(&u16::MAX) => Ok(Vec::new()),
        Some(&number) => file.stream(number),
    };
    let moved = stream(MOVED)?;
    let sections = stream(if moved.is_empty() { SECTIONS } else { SECTIONS_BEFORE })?;
    let sections: Vec<Section> = sections.chunks_exact(40).filter_map(Section::parse).collect();
    if sections.is_empty() {
        return Err(Unreadable::Damaged("it does not list the sections of its image"));
    }
    let moved = Moved::parse(&moved);
    let mut all = Collector::default();
    for section in &sections {
        for end in [section.address, section.address.saturating_add(section.size)] {
            if let Some(end) = moved.address(end) {
                all.add(u64::from(end), Rank::End, "");
            }
        }
    }
    public_symbols(&file.stream(symbols)?, |number, offset, name| {
        let section = usize::from(number).checked_sub(1).and_then(|number| sections.get(number));
        let section = section.filter(|section| section.is_code && offset < section.size);
        let address = section.and_then(|section| section.address.checked_add(offset));
        if let Some(address) = address.and_then(|address| moved.address(address)) {
            let name = String::from_utf8_lossy(name);
            let name = if machine == I386 { undecorated(&name) } else { &name };
            all.add(u64::from(address), Rank::Global, name);
        }
    });
    Ok(Some(all.finish()))
}

/// The numbers of the streams at the end of the DBI stream, behind six other parts whose sizes are in
/// its header.
fn further_streams(linked: &[u8]) -> Option<Vec<u16>> {
    let mut at = 64_usize;
    for size in [24, 28, 32, 36, 40, 52] {
        at = at.checked_add(usize::try_from(u32_at(linked, size)?).ok()?)?;
    }
    let length = usize::try_from(u32_at(linked, 48)?).ok()?;
    let list = linked.get(at..)?;
    let list = list.get(..length).unwrap_or(list);
    Some(list.chunks_exact(2).filter_map(|number| u16_at(number, 0)).collect())
}

/// A section of the image (IMAGE_SECTION_HEADER).
#[derive(Clone, Copy, Debug)]
struct Section {
    address: u32,
    size: u32,
    is_code: bool,
}

impl Section {
    fn parse(header: &[u8]) -> Option<Section> {
        Some(Section {
            size: u32_at(header, 8)?,
            address: u32_at(header, 12)?,
            is_code: u32_at(header, 36)? & EXECUTABLE != 0,
        })
    }
}

/// Where a tool moved code after it was linked: pairs of old and new address in the order of the
/// old ones.
struct Moved(Vec<(u32, u32)>);

impl Moved {
    fn parse(bytes: &[u8]) -> Moved {
        let pairs = bytes.chunks_exact(8);
        let mut pairs: Vec<_> =
            pairs.filter_map(|pair| Some((u32_at(pair, 0)?, u32_at(pair, 4)?))).collect();
        pairs.sort_unstable();
        Moved(pairs)
    }

    /// The address in the image; `None` if it was removed.
    fn address(&self, old: u32) -> Option<u32> {
        if self.0.is_empty() {
            return Some(old);
        }
        let after = self.0.partition_point(|(from, _)| *from <= old);
        let (from, to) = *self.0.get(after.checked_sub(1)?)?;
        if to == 0 { None } else { to.checked_add(old - from) }
    }
}

/// Calls `each` with section, offset and name of all records S_PUB32.
fn public_symbols(records: &[u8], mut each: impl FnMut(u16, u32, &[u8])) {
    let mut at = 0_usize;
    while let (Some(length), Some(kind)) = (u16_at(records, at), u16_at(records, at + 2)) {
        let end = at.saturating_add(2).saturating_add(usize::from(length));
        if kind == PUBLIC
            && let Some(record) = records.get(at..end)
            && let (Some(offset), Some(section), Some(name)) =
                (u32_at(record, 8), u16_at(record, 12), record.get(14..))
            && let Some(name) = name.split(|&byte| byte == 0).next()
            && !name.is_empty()
        {
            each(section, offset, name);
        }
        at = end;
    }
}

/// The name without the decorations of calling conventions on 32-bit x86: `_name`, `_name@8`,
/// `@name@8`.
fn undecorated(name: &str) -> &str {
    let plain = name.strip_prefix(['_', '@']).unwrap_or(name);
    match plain.rsplit_once('@') {
        Some((plain, bytes)) if bytes.parse::<u32>().is_ok() => plain,
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_a_guid_and_an_age() {
        let identity = Identity::parse("0B2B7C1D00010203A0A1A2A3A4A5A6A71f").unwrap();
        assert_eq!(identity.guid[..8], [0x1d, 0x7c, 0x2b, 0x0b, 1, 0, 3, 2]);
        assert_eq!((identity.guid[8], identity.guid[15], identity.age), (0xa0, 0xa7, 0x1f));
        for wrong in
            ["", "0B2B", &"0".repeat(32), &format!("+{}1", "0".repeat(31)), &"ä".repeat(20)]
        {
            assert_eq!(Identity::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn decorations_of_32_bit_names_are_removed() {
        let plain = undecorated;
        assert_eq!(plain("_KeBugCheck@4"), "KeBugCheck");
        assert_eq!(plain("@ObfDereferenceObject@4"), "ObfDereferenceObject");
        assert_eq!(plain("_memcpy"), "memcpy");
        assert_eq!(plain("?run@Task@@YAXXZ"), "?run@Task@@YAXXZ");
    }

    #[test]
    fn moved_code_has_its_new_address() {
        let words = [(0x1000_u32, 0x5000_u32), (0x1100, 0), (0x1200, 0x2000)];
        let bytes: Vec<u8> =
            words.iter().flat_map(|(a, b)| [a.to_le_bytes(), b.to_le_bytes()].concat()).collect();
        let moved = Moved::parse(&bytes);
        assert_eq!(moved.address(0x1010), Some(0x5010));
        assert_eq!(moved.address(0x1110), None);
        assert_eq!(moved.address(0x1204), Some(0x2004));
        assert_eq!(moved.address(0xfff), None);
        assert_eq!(Moved::parse(&[]).address(7), Some(7));
    }
}
