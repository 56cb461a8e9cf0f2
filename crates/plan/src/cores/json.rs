//! Shapes of JSON: pairs and lists that have no names in Rust get them here.
//!
//! The names are a stable interface (`docs/cores.schema.json`).

use serde::{Serialize, Serializer};

use super::layout::CpuId;

/// A processor: `{"group": 0, "number": 8}`.
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

/// A number of times something came to a processor.
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

/// Interrupts, with the processors that each may go to.
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

/// For each interrupt, how often it came to which processor.
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

/// For each queue, its processors.
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
