//! The load of each CPU before and after a layout, from the receive work that a trace recorded.
//!
//! Owns the distribution of the recorded time over the planned CPUs. Does not own which interrupts are receive
//! work: the caller says so. The time for a packet is assumed to stay the same; where it depends on the cache of a node,
//! the layout makes it smaller, not larger.
//!
//! With recorded connections, an adapter's work goes where their packets go ([`super::prediction`]). Without, to each
//! CPU by its share of the indirection table, which is the mean over random connections. Work for other devices
//! (loopback, bridges) stays where it is: where packets are counted, its part of the time is that of its packets.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::json;
use super::layout::{CpuId, Layout};
use super::prediction::{Prediction, planned_shares};
use super::topology::Machine;

/// A CPU with less idle time than this has no room: more work may have waited than was done.
const FULL_SHARE: f64 = 0.9;

/// What CPUs did while a trace was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Received {
    pub length_ns: u64,
    /// All CPUs, in the order of the machine.
    pub cpus: Vec<ReceivedCpu>,
    /// Packets, if the trace counts them.
    pub packets: Option<u64>,
    /// Packets by the name of the adapter, if the trace counts them.
    #[serde(serialize_with = "json::card_packets")]
    pub cards: BTreeMap<String, u64>,
    /// What was counted as receive work, for people.
    pub counted: Vec<String>,
}

/// The time of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReceivedCpu {
    #[serde(serialize_with = "json::cpu")]
    pub cpu: CpuId,
    pub receive_ns: u64,
    /// Other interrupts, deferred work and threads; without threads if `is_idle_known` is false.
    pub other_ns: u64,
    /// Whether the trace has the time of threads.
    pub is_idle_known: bool,
}

/// The load before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    pub length_ns: u64,
    pub receive_ns: u64,
    pub packets: Option<u64>,
    /// Mean time of a packet.
    pub packet_ns: Option<f64>,
    pub cpus: Vec<CpuLoad>,
    /// The busiest CPU's receive work, in percent of the time.
    pub busiest_before_percent: f64,
    pub busiest_after_percent: f64,
    /// CPUs without room: what they could not do is not in the trace, so that the load after is a lower bound.
    #[serde(serialize_with = "json::cpus")]
    pub full: Vec<CpuId>,
    pub basis: Basis,
    pub counted: Vec<String>,
}

/// Loads of the busiest CPU that differ by less are the same, in percent of the time.
const SAME_PERCENT: f64 = 0.5;

impl Load {
    /// Whether the busiest CPU has less receive work than today; or it has no more, and less is received on nodes of which
    /// no adapter of the layout is.
    pub fn is_better(&self, machine: &Machine, layout: &Layout) -> bool {
        let homes: BTreeSet<u32> = layout.cards.iter().map(|card| card.node).collect();
        let is_foreign = |id: CpuId| {
            let mut cpus = machine.cpus.iter();
            let cpu = cpus.find(|cpu| (cpu.group, cpu.number) == id);
            cpu.is_some_and(|cpu| !homes.contains(&cpu.node))
        };
        let foreign = self.cpus.iter().filter(|one| is_foreign(one.cpu));
        let moved: f64 =
            foreign.map(|one| one.receive_before_percent - one.receive_after_percent).sum();
        let more = self.busiest_after_percent - self.busiest_before_percent;
        more < -SAME_PERCENT || (more <= SAME_PERCENT && moved > SAME_PERCENT)
    }
}

/// How the work of an adapter is distributed after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// By the packets of recorded connections.
    Connections,
    /// By the shares of the indirection table.
    Table,
}

/// The load of one CPU, in percent of the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuLoad {
    #[serde(serialize_with = "json::cpu")]
    pub cpu: CpuId,
    pub receive_before_percent: f64,
    pub receive_after_percent: f64,
    /// What stays where it is.
    pub other_percent: f64,
    /// Whether `other_percent` includes threads.
    pub is_idle_known: bool,
}

/// The load that a layout gives. `None` if the trace has no receive work, or no adapter is placed.
pub fn load(
    machine: &Machine,
    layout: &Layout,
    received: &Received,
    prediction: Option<&Prediction>,
) -> Option<Load> {
    let receive_ns =
        received.cpus.iter().fold(0_u64, |sum, one| sum.saturating_add(one.receive_ns));
    if receive_ns == 0 || received.length_ns == 0 || layout.cards.is_empty() {
        return None;
    }
    let parts = parts(machine, layout, received);
    // The part of the receive work that the layout moves.
    let moved = parts.iter().sum::<f64>().min(1.0);
    if moved <= 0.0 {
        return None;
    }
    let mut after: BTreeMap<CpuId, f64> = BTreeMap::new();
    let mut basis = Basis::Table;
    for (card, part) in layout.cards.iter().zip(parts) {
        let ns = receive_ns as f64 * part;
        let predicted = prediction.and_then(|prediction| {
            prediction.cards.iter().find(|predicted| predicted.card == card.card)
        });
        let shares = predicted.and_then(|predicted| {
            let cores = &predicted.after.cores;
            cores.iter().map(|core| Some((core.cpu?, core.packets_percent / 100.0))).collect()
        });
        let shares: Vec<(CpuId, f64)> = match shares {
            Some(shares) => {
                basis = Basis::Connections;
                shares
            }
            None => match machine.cards.get(card.card) {
                Some(settings) => planned_shares(settings, card),
                None => continue,
            },
        };
        for (cpu, share) in shares {
            *after.entry(cpu).or_default() += ns * share;
        }
    }
    let length = received.length_ns as f64;
    let percent = |ns: f64| 100.0 * ns / length;
    let mut cpus: Vec<CpuLoad> = received
        .cpus
        .iter()
        .map(|one| CpuLoad {
            cpu: one.cpu,
            receive_before_percent: percent(one.receive_ns as f64 * moved),
            receive_after_percent: percent(after.remove(&one.cpu).unwrap_or(0.0)),
            other_percent: percent(one.other_ns as f64 + one.receive_ns as f64 * (1.0 - moved)),
            is_idle_known: one.is_idle_known,
        })
        .collect();
    // CPUs of the layout on which the trace has no event.
    cpus.extend(after.into_iter().map(|(cpu, ns)| CpuLoad {
        cpu,
        receive_before_percent: 0.0,
        receive_after_percent: percent(ns),
        other_percent: 0.0,
        is_idle_known: false,
    }));
    cpus.sort_by_key(|one| one.cpu);
    let busiest = |of: fn(&CpuLoad) -> f64| cpus.iter().map(of).fold(0.0, f64::max);
    let is_full = |one: &&ReceivedCpu| {
        one.receive_ns > 0
            && one.receive_ns.saturating_add(one.other_ns) as f64 >= FULL_SHARE * length
    };
    Some(Load {
        length_ns: received.length_ns,
        receive_ns: (receive_ns as f64 * moved) as u64,
        packets: received.packets,
        packet_ns: received
            .packets
            .filter(|&packets| packets > 0)
            .map(|packets| receive_ns as f64 / packets as f64),
        busiest_before_percent: busiest(|one| one.receive_before_percent),
        busiest_after_percent: busiest(|one| one.receive_after_percent),
        full: received.cpus.iter().filter(is_full).map(|one| one.cpu).collect(),
        basis,
        counted: received.counted.clone(),
        cpus,
    })
}

/// Each planned adapter's part of the receive work, 0 to 1: by packets where they are counted, otherwise by the speed of
/// links, otherwise alike.
fn parts(machine: &Machine, layout: &Layout, received: &Received) -> Vec<f64> {
    let of = |weight: &dyn Fn(usize) -> Option<u64>| -> Option<Vec<f64>> {
        let weights: Option<Vec<u64>> = layout.cards.iter().map(|card| weight(card.card)).collect();
        let weights = weights?;
        let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
        (total > 0).then(|| weights.iter().map(|&weight| weight as f64 / total as f64).collect())
    };
    if let Some(packets) = received.packets.filter(|&packets| packets > 0) {
        let of = |card: usize| received.cards.get(&machine.cards.get(card)?.name).copied();
        let part = |card: usize| of(card).unwrap_or(0) as f64 / packets as f64;
        return layout.cards.iter().map(|card| part(card.card)).collect();
    }
    let speed = |card: usize| machine.cards.get(card)?.bits_per_second;
    of(&speed).or_else(|| of(&|_| Some(1))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::layout::plan;
    use crate::cores::layout::tests::{Numbering, card, machine};
    use crate::cores::topology::System;

    fn received(cpus: u32, flooded: &[u32], receive_ns: u64) -> Received {
        let one = |number| ReceivedCpu {
            cpu: (0, number),
            receive_ns: if flooded.contains(&number) { receive_ns } else { 0 },
            other_ns: 50_000_000,
            is_idle_known: true,
        };
        Received {
            length_ns: 1_000_000_000,
            cpus: (0..cpus).map(one).collect(),
            ..Received::default()
        }
    }

    #[test]
    fn the_time_of_four_processors_goes_to_twelve_cores() {
        let mut machine = machine(System::Windows, 2, 6, 2, Numbering::Neighbours);
        machine.cards = (0..6).map(|_| card("Slot", None, Some(8))).collect();
        let layout = plan(&machine);
        let load =
            load(&machine, &layout, &received(24, &[0, 2, 4, 6], 920_000_000), None).unwrap();
        assert!((load.busiest_before_percent - 92.0).abs() < 1e-9);
        assert!((load.busiest_after_percent - 92.0 / 3.0).abs() < 1e-9);
        assert_eq!(load.full, [(0, 0), (0, 2), (0, 4), (0, 6)]);
        let before: f64 = load.cpus.iter().map(|one| one.receive_before_percent).sum();
        let after: f64 = load.cpus.iter().map(|one| one.receive_after_percent).sum();
        assert!((before - after).abs() < 1e-6, "{before} {after}");
        // Hyper-threads have nothing.
        assert!(load.cpus.iter().all(|one| one.cpu.1 % 2 == 0 || one.receive_after_percent == 0.0));
    }

    #[test]
    fn an_adapter_gets_the_part_of_its_packets() {
        let mut machine = machine(System::Linux, 1, 12, 1, Numbering::Neighbours);
        machine.cards = vec![card("eth0", Some(0), Some(4)), card("eth1", Some(0), Some(4))];
        let layout = plan(&machine);
        let mut received = received(12, &[0], 400_000_000);
        received.packets = Some(100_000);
        // A fifth of the packets is for others, as loopback.
        received.cards = BTreeMap::from([("eth0".to_owned(), 60_000), ("eth1".to_owned(), 20_000)]);
        let load = load(&machine, &layout, &received, None).unwrap();
        assert_eq!(load.packet_ns, Some(4_000.0));
        let of = |number| load.cpus.iter().find(|one| one.cpu == (0, number)).unwrap();
        let sum = |cards: usize| -> f64 {
            layout.cards[cards]
                .queues
                .iter()
                .map(|(_, number)| of(*number).receive_after_percent)
                .sum()
        };
        assert!((sum(0) - 24.0).abs() < 1e-9 && (sum(1) - 8.0).abs() < 1e-9);
        let first = of(0);
        assert!((first.receive_before_percent - 32.0).abs() < 1e-9);
        assert!((first.other_percent - 13.0).abs() < 1e-9);

        // Without a packet of a planned adapter there is nothing to move.
        received.cards.clear();
        assert_eq!(super::load(&machine, &layout, &received, None), None);
    }

    #[test]
    fn without_receive_work_there_is_no_load() {
        let mut machine = machine(System::Linux, 1, 4, 1, Numbering::Neighbours);
        machine.cards = vec![card("eth0", Some(0), Some(2))];
        assert_eq!(load(&machine, &plan(&machine), &received(4, &[], 0), None), None);
    }
}
