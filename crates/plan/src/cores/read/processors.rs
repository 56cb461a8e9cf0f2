//! Processors of Windows: the buffer of `GetLogicalProcessorInformationEx(RelationAll)`, which the collector's script writes in
//! base64 as the property `LogicalProcessorInformation`.
//!
//! `SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX` of `winnt.h`, 64-bit: a relationship (u32), its size (u32), then for cores and
//! packages flags, a class of efficiency, 20 reserved bytes, a count of groups (u16) and for each group a mask (u64),
//! a number (u16) and 6 reserved bytes; for nodes a number (u32), 18 reserved bytes and the same.

use serde::{Deserialize, Serialize};

use super::CPUS_MAX;
use crate::input::powershell::Object;

const CORE: u32 = 0;
const NODE: u32 = 1;
const PACKAGE: u32 = 3;
/// Windows Server 2022 and later, with all groups of a node.
const NODE_EX: u32 = 6;
/// Longest buffer, in bytes.
const BUFFER_MAX: usize = 4 << 20;
/// Groups of one relationship.
const GROUPS_MAX: u16 = 256;

/// All processors of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalProcessors {
    pub processors: Vec<Processor>,
}

/// A logical processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    pub group: u32,
    pub number: u32,
    pub package: u32,
    pub node: u32,
    pub core: u32,
    /// Which hardware thread of its core it is.
    pub thread: u32,
}

pub(super) fn read(object: &Object) -> Option<Result<LogicalProcessors, String>> {
    let text = object.text(&["logicalprocessorinformation"])?;
    let damaged = || "`LogicalProcessorInformation` is damaged".to_owned();
    Some(base64(&text).and_then(|bytes| parse(&bytes)).ok_or_else(damaged))
}

/// Reads the buffer; `None` if it is damaged or names no core.
pub(crate) fn parse(bytes: &[u8]) -> Option<LogicalProcessors> {
    let mut processors: Vec<Processor> = Vec::new();
    let (mut cores, mut packages) = (0, 0);
    for pass in [CORE, PACKAGE, NODE] {
        let mut rest = bytes;
        while !rest.is_empty() {
            let relationship = u32_at(rest, 0)?;
            let size = usize::try_from(u32_at(rest, 4)?).ok().filter(|size| *size >= 8)?;
            let (entry, after) = rest.split_at_checked(size)?;
            rest = after;
            let is_of_pass = relationship == pass || (pass == NODE && relationship == NODE_EX);
            if !is_of_pass {
                continue;
            }
            let members = members(entry)?;
            match pass {
                CORE => {
                    for (thread, (group, number)) in (0u32..).zip(members) {
                        if processors.len() >= CPUS_MAX {
                            return None;
                        }
                        processors.push(Processor {
                            group,
                            number,
                            core: cores,
                            thread,
                            ..Processor::default()
                        });
                    }
                    cores += 1;
                }
                PACKAGE => {
                    set(&mut processors, &members, |processor| processor.package = packages);
                    packages += 1;
                }
                _ => {
                    let node = u32_at(entry, 8)?;
                    set(&mut processors, &members, |processor| processor.node = node);
                }
            }
        }
    }
    processors.sort_by_key(|processor| (processor.group, processor.number));
    (!processors.is_empty()).then_some(LogicalProcessors { processors })
}

fn set(processors: &mut [Processor], members: &[(u32, u32)], set: impl Fn(&mut Processor)) {
    let members: std::collections::BTreeSet<_> = members.iter().collect();
    processors
        .iter_mut()
        .filter(|processor| members.contains(&(processor.group, processor.number)))
        .for_each(set);
}

/// The processors of a core, package or node as (group, number).
fn members(entry: &[u8]) -> Option<Vec<(u32, u32)>> {
    // Older versions have no count for a node: 0 is one group.
    let groups = u16::from_le_bytes(*entry.get(30..)?.first_chunk()?).clamp(1, GROUPS_MAX);
    let mut members = Vec::new();
    for group in 0..usize::from(groups) {
        let affinity = entry.get(32 + group * 16..)?.get(..16)?;
        let mask = u64::from_le_bytes(*affinity.first_chunk()?);
        let group = u32::from(u16::from_le_bytes(*affinity.get(8..)?.first_chunk()?));
        members.extend((0..64).filter(|bit| mask >> bit & 1 == 1).map(|bit| (group, bit)));
    }
    Some(members)
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn base64(text: &str) -> Option<Vec<u8>> {
    if text.len() / 4 * 3 > BUFFER_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0u32);
    for letter in text.bytes().filter(|letter| !letter.is_ascii_whitespace()) {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => break,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn entry(relationship: u32, number: u32, group: u16, mask: u64) -> Vec<u8> {
        let mut bytes =
            [relationship.to_le_bytes(), 48u32.to_le_bytes(), number.to_le_bytes()].concat();
        bytes.extend([0; 18]);
        bytes.extend(1u16.to_le_bytes());
        bytes.extend(mask.to_le_bytes());
        bytes.extend(group.to_le_bytes());
        bytes.extend([0; 6]);
        bytes
    }

    /// Two packages of one node and two cores each, with two threads.
    pub(crate) fn buffer() -> Vec<u8> {
        let cores = (0..4).flat_map(|core| entry(CORE, 0, core / 2, 3 << (core % 2 * 2)));
        let packages = (0..2).flat_map(|package| entry(PACKAGE, 0, package, 15));
        let nodes = (0..2).flat_map(|node| entry(NODE, u32::from(node), node, 15));
        cores.chain(packages).chain(nodes).collect()
    }

    #[test]
    fn cores_packages_and_nodes_are_joined() {
        let processors = parse(&buffer()).unwrap().processors;
        assert_eq!(processors.len(), 8);
        let last = processors.last().unwrap();
        assert_eq!(
            (last.group, last.number, last.package, last.node, last.core, last.thread),
            (1, 3, 1, 1, 3, 1)
        );
    }

    #[test]
    fn a_cut_buffer_is_damaged() {
        let bytes = buffer();
        for length in (1..bytes.len()).filter(|length| length % 48 != 0) {
            assert_eq!(parse(&bytes[..length]), None, "{length}");
        }
        assert_eq!(parse(&[]), None);
    }

    #[test]
    fn base64_is_decoded() {
        assert_eq!(base64("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(base64("a*"), None);
    }
}
