//! Feature sections of `perf.data`: where CPUs are in the machine, and build ids.
//!
//! `tools/perf/util/header.c` (`process_cpu_topology`, `process_numa_topology`,
//! `process_build_id`).

use std::collections::{BTreeMap, HashMap};

use crate::bytes::{Order, until_zero};
use crate::event::Cpu;

pub const TRACING_DATA: u64 = 1;
pub const BUILD_ID: u64 = 2;
const CPUS: u64 = 7;
const CPU_TOPOLOGY: u64 = 13;
const NUMA_TOPOLOGY: u64 = 14;
const SAMPLE_TIME: u64 = 21;
/// The sections that are read.
pub const USED: [u64; 6] = [TRACING_DATA, BUILD_ID, CPUS, CPU_TOPOLOGY, NUMA_TOPOLOGY, SAMPLE_TIME];

/// Most CPUs and nodes of a machine.
const CPUS_MAX: u32 = 8192;
const NODES_MAX: u32 = 1024;
const BUILD_IDS_MAX: usize = 65_536;
/// The kernel's own file is named in several ways.
pub const KERNEL: &str = "[kernel.kallsyms]";
/// Bits of a record's `misc`.
const CPU_MODE: u16 = 7;
const CPU_MODE_KERNEL: u16 = 1;
const HAS_BUILD_ID_SIZE: u16 = 1 << 15;

/// Reads numbers and texts one after the other.
struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
    order: Order,
}

impl<'a> Words<'a> {
    fn u32(&mut self) -> Option<u32> {
        let number = self.order.u32(self.bytes, self.at)?;
        self.at += 4;
        Some(number)
    }

    fn u64(&mut self) -> Option<u64> {
        let number = self.order.u64(self.bytes, self.at)?;
        self.at += 8;
        Some(number)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        let end = self.at.checked_add(length)?;
        let text = self.bytes.get(self.at..end)?;
        self.at = end;
        std::str::from_utf8(until_zero(text)).ok()
    }

    fn texts(&mut self) -> Option<Vec<&'a str>> {
        let count = self.u32()?;
        let mut texts = Vec::new();
        for _ in 0..count.min(CPUS_MAX) {
            texts.push(self.text()?);
        }
        Some(texts)
    }
}

/// Numbers in a list such as `0-3,8`, as many as there can be CPUs.
fn list(text: &str) -> impl Iterator<Item = u32> {
    let numbers = text.split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>(), last.trim().parse::<u32>());
        let range = first.ok().zip(last.ok()).filter(|&(_, last)| last < CPUS_MAX);
        range.map_or(0..0, |(first, last)| first..last + 1)
    });
    numbers.take(CPUS_MAX as usize)
}

/// Times of the first and the last sample, if `perf record` wrote them.
pub fn sample_times(features: &BTreeMap<u64, Vec<u8>>, order: Order) -> Option<(u64, u64)> {
    let section = features.get(&SAMPLE_TIME)?;
    let (first, last) = (order.u64(section, 0)?, order.u64(section, 8)?);
    (0 < first && first <= last).then_some((first, last))
}

/// Where the CPUs are, as far as the sections say.
pub fn cpus(features: &BTreeMap<u64, Vec<u8>>, order: Order) -> Vec<Cpu> {
    let section = |feature| {
        let bytes = features.get(&feature).map_or(&[][..], Vec::as_slice);
        Words { bytes, at: 0, order }
    };
    let mut cpus = BTreeMap::<u32, Cpu>::new();
    let count = section(CPUS).u32().unwrap_or(0).min(CPUS_MAX);
    let mut words = section(CPU_TOPOLOGY);
    if let (Some(_cores), Some(threads)) = (words.texts(), words.texts()) {
        // Threads of a core, by their numbers in it.
        let of_core = threads.iter().flat_map(|threads| list(threads).zip(0_u32..));
        let threads: HashMap<u32, u32> = of_core.collect();
        for cpu in 0..count {
            let (Some(core), Some(socket)) = (words.u32(), words.u32()) else { break };
            // CPUs that are not there have the number -1.
            if core != u32::MAX {
                let thread = threads.get(&cpu).copied();
                let (core, socket) = (Some(core), Some(socket));
                cpus.insert(cpu, Cpu { cpu, socket, core, thread, ..Cpu::default() });
            }
        }
    }
    let mut words = section(NUMA_TOPOLOGY);
    for _ in 0..words.u32().unwrap_or(0).min(NODES_MAX) {
        let (Some(node), Some(_), Some(_)) = (words.u32(), words.u64(), words.u64()) else { break };
        let Some(text) = words.text() else { break };
        for cpu in list(text) {
            cpus.entry(cpu).or_insert_with(|| Cpu { cpu, ..Cpu::default() }).node = Some(node);
        }
    }
    cpus.into_values().collect()
}

/// The build ids of files in hexadecimal, by the name of the file.
pub fn build_ids(section: &[u8], order: Order) -> HashMap<String, String> {
    let mut ids = HashMap::new();
    let mut rest = section;
    // Header, process, 20 bytes of the build id, its length in one of four, and the name.
    while let (Some(misc), Some(size)) = (order.u16(rest, 4), order.u16(rest, 6)) {
        let Some((record, after)) = rest.split_at_checked(usize::from(size)) else { break };
        let Some(id) = record.get(12..32) else { break };
        if ids.len() >= BUILD_IDS_MAX {
            break;
        }
        let length = match misc & HAS_BUILD_ID_SIZE {
            0 => 20,
            _ => usize::from(record.get(32).copied().unwrap_or(20)),
        };
        let name = until_zero(record.get(36..).unwrap_or_default());
        let name = String::from_utf8_lossy(name).into_owned();
        let id = hexadecimal(id.get(..length).unwrap_or(id));
        if misc & CPU_MODE == CPU_MODE_KERNEL && !name.ends_with(".ko") && !is_module(&name) {
            ids.insert(KERNEL.to_owned(), id.clone());
        }
        ids.insert(name, id);
        rest = after;
    }
    ids
}

/// `[xfs]`, as opposed to `[kernel.kallsyms]`, and compressed files of modules.
fn is_module(name: &str) -> bool {
    let is_named =
        name.starts_with('[') && !name.starts_with("[kernel") && !name.starts_with("[guest");
    is_named || name.contains(".ko.")
}

/// Whether a record is about the kernel.
pub fn is_of_kernel(misc: u16) -> bool {
    misc & CPU_MODE == CPU_MODE_KERNEL
}

/// Bytes as digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        let mut bytes = 64_u32.to_le_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes.resize(68, 0);
        bytes
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn processors_have_a_place_in_the_machine() {
        let topology = [
            words(&[1]),
            text("0-3"),
            words(&[2]),
            text("0,2"),
            text("1,3"),
            words(&[0, 0, 1, 0, 0, 0, 1, 0]),
        ];
        let numa = [words(&[2, 0, 0, 0, 0, 0]), text("0-1"), words(&[1, 0, 0, 0, 0]), text("2-3")];
        let mut features = BTreeMap::from([
            (CPUS, words(&[4, 4])),
            (CPU_TOPOLOGY, topology.concat()),
            (NUMA_TOPOLOGY, numa.concat()),
        ]);
        let found = cpus(&features, Order::Little);
        let places: Vec<_> =
            found.iter().map(|cpu| (cpu.cpu, cpu.core, cpu.thread, cpu.node)).collect();
        assert_eq!(
            places,
            [
                (0, Some(0), Some(0), Some(0)),
                (1, Some(1), Some(0), Some(0)),
                (2, Some(0), Some(1), Some(1)),
                (3, Some(1), Some(1), Some(1)),
            ]
        );
        features.insert(CPU_TOPOLOGY, words(&[u32::MAX, u32::MAX]));
        features
            .insert(NUMA_TOPOLOGY, [words(&[1, 0, 0, 0, 0, 0]), text("0-4294967295,x,7")].concat());
        assert_eq!(cpus(&features, Order::Little).len(), 1);
        assert!(cpus(&BTreeMap::new(), Order::Big).is_empty());
    }

    #[test]
    fn build_ids_belong_to_files() {
        let record = |misc: u16, name: &str| {
            let mut bytes = [&[67, 0, 0, 0][..], &misc.to_le_bytes(), &[64, 0]].concat();
            bytes.extend_from_slice(&[0xff; 4]);
            bytes.extend_from_slice(&[0xab; 20]);
            bytes.extend_from_slice(&[2, 0, 0, 0]);
            bytes.extend_from_slice(name.as_bytes());
            bytes.resize(64, 0);
            bytes
        };
        let section = [
            record(1 | HAS_BUILD_ID_SIZE, "/usr/lib/debug/vmlinux"),
            record(1, "[xfs]"),
            record(2, "/bin/true"),
        ];
        let ids = build_ids(&section.concat(), Order::Little);
        assert_eq!(ids.get(KERNEL).map(String::as_str), Some("abab"));
        assert_eq!(ids.get("[xfs]").map(String::len), Some(40));
        assert_eq!(ids.len(), 4);
        assert_eq!(build_ids(&section[0][..40], Order::Little).len(), 0);
        assert_eq!(build_ids(&[0; 64], Order::Little).len(), 0);
    }
}
