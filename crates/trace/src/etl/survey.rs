//! What events refer to: images, threads, stacks by key, CPUs. The first reading of a log
//! (`reading`) collects it.

mod devices;
mod dictionary;
mod modules;
mod reading;

pub use dictionary::Dictionary;
pub use reading::{Found, Reading};

use super::clock::Clock;
use super::kernel::config::{NumaNode, ProcessorNumber};
use super::times::Bounds;
use crate::event::{Cpu, Device, Image};
use devices::Devices;
use foldhash::HashMap;
use modules::Modules;
use std::sync::Arc;

const CPUS_MAX: u32 = 4_096;

/// What events refer to.
#[derive(Debug, Default)]
pub struct Survey {
    modules: Modules,
    pub dictionary: Dictionary,
    pub threads: Threads,
    pub sample_interval_ns: Option<i64>,
    devices: Devices,
    pub(in crate::etl) mhz: Option<u32>,
    mhz_by_cpu: HashMap<u32, u32>,
    /// A bit for each of the first CPUs.
    hyper_threads: Option<u32>,
    numbers: Vec<ProcessorNumber>,
    nodes: Vec<NumaNode>,
}

/// Which process a thread belongs to, and its name.
#[derive(Debug, Default)]
pub struct Threads {
    processes: HashMap<u32, u32>,
    names: HashMap<u32, Arc<str>>,
}

impl Threads {
    pub fn process(&self, thread: u32) -> Option<u32> {
        // The idle threads of all CPUs have the number 0.
        if thread == 0 { Some(0) } else { self.processes.get(&thread).copied() }
    }

    pub fn name(&self, thread: u32) -> Option<Arc<str>> {
        self.names.get(&self.process(thread)?).cloned()
    }

    /// The thread starts; before, its number may have been that of another one.
    pub fn start(&mut self, process: u32, thread: u32) {
        if let Some(known) = self.processes.get_mut(&thread) {
            *known = process;
        }
    }
}

impl Survey {
    /// All images with their PDB files: those that were always there first, then by time.
    pub fn images(&mut self, clock: &Clock, bounds: &Bounds) -> Vec<Image> {
        self.modules.take(clock, bounds)
    }

    /// Devices that interrupt, and network adapters.
    pub fn devices(&self) -> Vec<Device> {
        self.devices.events()
    }

    /// All CPUs.
    pub fn cpus(&self, count: u32, header_mhz: u32) -> Vec<Cpu> {
        let mhz = self.mhz.or((header_mhz > 0).then_some(header_mhz));
        (0..count.min(CPUS_MAX))
            .map(|cpu| {
                let mhz = self.mhz_by_cpu.get(&cpu).copied().or(mhz);
                let number = self.number(cpu);
                Cpu {
                    cpu,
                    node: number.and_then(|number| self.node(number)),
                    is_hyper_threaded: self
                        .hyper_threads
                        .and_then(|bits| bits.checked_shr(cpu))
                        .map(|bits| bits & 1 == 1),
                    group: number.map(|number| (number.group, number.number)),
                    mhz,
                    ..Cpu::default()
                }
            })
            .collect()
    }

    /// Group of a CPU, and its number in it.
    fn number(&self, cpu: u32) -> Option<ProcessorNumber> {
        let known = usize::try_from(cpu).ok().and_then(|cpu| self.numbers.get(cpu)).copied();
        // Without processor groups the number in the only group is the CPU's.
        let only = || match u8::try_from(cpu) {
            Ok(number) if self.numbers.is_empty() && number < 64 => {
                Some(ProcessorNumber { group: 0, number })
            }
            _ => None,
        };
        known.or_else(only)
    }

    /// The CPU with this number in a group.
    pub fn cpu(&self, group: u16, number: u8) -> Option<u32> {
        let wanted = ProcessorNumber { group, number };
        match self.numbers.iter().position(|known| *known == wanted) {
            Some(cpu) => u32::try_from(cpu).ok(),
            None => (self.numbers.is_empty() && group == 0).then_some(u32::from(number)),
        }
    }

    fn node(&self, number: ProcessorNumber) -> Option<u32> {
        let is_in = |node: &NumaNode| {
            node.group == number.group && node.mask >> u32::from(number.number).min(63) & 1 == 1
        };
        self.nodes.iter().position(is_in).and_then(|node| u32::try_from(node).ok())
    }
}
