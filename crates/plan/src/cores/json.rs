//! Shapes of JSON: pairs and lists that have no names in Rust get them here.
//!
//! The names are a stable interface (`smbscope schema cores`).

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::layout::CpuId;
use super::processes::{Process, Processes};

/// A CPU: `{"group": 0, "number": 8}`.
#[derive(Serialize)]
struct Cpu {
    group: u32,
    number: u32,
}

impl From<CpuId> for Cpu {
    fn from((group, number): CpuId) -> Self {
        Self { group, number }
    }
}

/// A number of times something came to a CPU.
#[derive(Serialize)]
struct Count {
    cpu: u32,
    count: u64,
}

fn counts(counts: &[(u32, u64)]) -> Vec<Count> {
    counts.iter().map(|&(cpu, count)| Count { cpu, count }).collect()
}

pub(super) fn cpu<S: Serializer>(cpu: &CpuId, to: S) -> Result<S::Ok, S::Error> {
    Cpu::from(*cpu).serialize(to)
}

pub(super) fn optional_cpu<S: Serializer>(cpu: &Option<CpuId>, to: S) -> Result<S::Ok, S::Error> {
    cpu.map(Cpu::from).serialize(to)
}

pub(super) fn cpus<S: Serializer>(cpus: &[CpuId], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(cpus.iter().map(|&cpu| Cpu::from(cpu)))
}

/// Interrupts, with the CPUs that each may go to.
pub(super) fn interrupts<S: Serializer>(
    interrupts: &[(u32, Vec<u32>)],
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Interrupt<'a> {
        number: u32,
        cpus: &'a [u32],
    }
    to.collect_seq(interrupts.iter().map(|(number, cpus)| Interrupt { number: *number, cpus }))
}

/// For each interrupt, how often it came to which CPU.
pub(super) fn interrupt_counts<S: Serializer>(
    of_interrupts: &[Vec<(u32, u64)>],
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct OfInterrupt {
        counts: Vec<Count>,
    }
    to.collect_seq(of_interrupts.iter().map(|one| OfInterrupt { counts: counts(one) }))
}

pub(super) fn cpu_counts<S: Serializer>(of: &[(u32, u64)], to: S) -> Result<S::Ok, S::Error> {
    counts(of).serialize(to)
}

/// For each queue, its CPUs.
pub(super) fn queue_cpus<S: Serializer>(queues: &[Vec<u32>], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Queue<'a> {
        queue: usize,
        cpus: &'a [u32],
    }
    to.collect_seq(queues.iter().enumerate().map(|(queue, cpus)| Queue { queue, cpus }))
}

/// Lost frames by the name of their counter.
pub(super) fn losses<S: Serializer>(losses: &[(String, u64)], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Loss<'a> {
        counter: &'a str,
        frames: u64,
    }
    to.collect_seq(losses.iter().map(|(counter, frames)| Loss { counter, frames: *frames }))
}

/// The key of a hash as ethtool writes it: bytes in hexadecimal, with colons between them.
pub(super) fn hex<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    to.serialize_str(&bytes.join(":"))
}

/// Processes of servers, which a bundle has in a shorter form.
pub(super) fn processes<S: Serializer>(processes: &Processes, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct List<'a> {
        list: Vec<One<'a>>,
        beyond_limit: u32,
    }
    #[derive(Serialize)]
    struct One<'a> {
        id: u32,
        name: &'a str,
        is_kernel: bool,
        allowed: Vec<Cpu>,
        memory_nodes: &'a [u32],
        last: Option<Cpu>,
        memory: Vec<NodeBytes>,
        cgroup: Option<&'a str>,
    }
    fn one(process: &Process) -> One<'_> {
        let Process { id, name, is_kernel, allowed, memory_nodes, last, memory, cgroup, cpuset: _ } =
            process;
        One {
            id: *id,
            name,
            is_kernel: *is_kernel,
            allowed: allowed.iter().map(|&cpu| Cpu::from(cpu)).collect(),
            memory_nodes,
            last: last.map(Cpu::from),
            memory: memory.iter().map(|&(node, bytes)| NodeBytes { node, bytes }).collect(),
            cgroup: cgroup.as_deref(),
        }
    }
    let list = processes.list.iter().map(one).collect();
    List { list, beyond_limit: processes.beyond_limit }.serialize(to)
}

/// Memory on a node.
#[derive(Serialize)]
struct NodeBytes {
    node: u32,
    bytes: u64,
}

/// Packets by adapter.
pub(super) fn card_packets<S: Serializer>(
    cards: &BTreeMap<String, u64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct OfCard<'a> {
        card: &'a str,
        packets: u64,
    }
    to.collect_seq(cards.iter().map(|(card, &packets)| OfCard { card, packets }))
}
