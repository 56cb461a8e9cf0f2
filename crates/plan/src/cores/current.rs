//! Which CPUs receive for which adapter, as the machine is set.
//!
//! Owns the way from a machine's table, queues and interrupts to CPUs. An interrupt that may go to several
//! CPUs is where most of its counts are; without counts its place is unknown. Does not judge: that is
//! [`super::findings`].

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::json;
use super::layout::CpuId;
use super::topology::{Adapter, Machine, System};

/// The CPUs that receive for an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Each once, in the table's order.
    pub processors: Vec<CpuId>,
    /// Entries of the indirection table by target: a queue on Linux, a CPU on Windows.
    pub shares: BTreeMap<(u32, u32), u32>,
    /// Whether the CPU of each queue is known.
    pub is_complete: bool,
    /// Queues that receive, in their order.
    pub queues: Vec<Queue>,
}

/// A receive queue in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Its number. Windows does not show it: there a CPU of the table counts as a queue.
    pub number: u32,
    /// The CPU of its interrupt, if it is known.
    #[serde(serialize_with = "json::optional_cpu")]
    pub cpu: Option<CpuId>,
}

/// The place of an adapter, as it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AdapterPlace {
    /// Index in [`Machine::cards`].
    #[serde(rename = "index")]
    pub card: usize,
    pub name: String,
    pub queues: Vec<Queue>,
    /// CPUs that receive packet steering (RPS) adds.
    #[serde(serialize_with = "json::cpus")]
    pub rps: Vec<CpuId>,
}

/// The places of all adapters, in the machine's order.
pub fn current(machine: &Machine) -> Vec<AdapterPlace> {
    let place = |(index, card): (usize, &Adapter)| {
        let queues = placement(machine, card).queues;
        let of_queue = |queue: &Queue| card.rss.rps.get(usize::try_from(queue.number).ok()?);
        let rps = queues.iter().filter_map(of_queue).flatten().map(|&number| (0, number));
        let rps = once_each(rps);
        AdapterPlace { card: index, name: card.name.clone(), queues, rps }
    };
    machine.cards.iter().enumerate().map(place).collect()
}

/// Where an adapter's receive work is, as it is set.
pub fn placement(machine: &Machine, card: &Adapter) -> Placement {
    let rss = &card.rss;
    let mut placement = Placement { is_complete: true, ..Placement::default() };
    if machine.system == System::Windows {
        if rss.is_enabled == Some(false) {
            // One CPU, and Windows does not show which.
            placement.queues = vec![Queue { number: 0, cpu: None }];
            return placement;
        }
        for processor in &rss.processor_table {
            *placement.shares.entry(*processor).or_default() += 1;
        }
        placement.processors = once_each(rss.processor_table.iter().copied());
        placement.queues = (0u32..)
            .zip(&placement.processors)
            .map(|(number, cpu)| Queue { number, cpu: Some(*cpu) })
            .collect();
        return placement;
    }
    for queue in &rss.queue_table {
        *placement.shares.entry((0, *queue)).or_default() += 1;
    }
    let interrupts = u32::try_from(rss.interrupts.len()).unwrap_or(u32::MAX);
    let queues: Vec<u32> = if placement.shares.is_empty() {
        (0..interrupts).collect()
    } else {
        placement.shares.keys().map(|(_, queue)| *queue).collect()
    };
    placement.queues =
        queues.into_iter().map(|number| Queue { number, cpu: queue_cpu(card, number) }).collect();
    let places = || placement.queues.iter().map(|queue| queue.cpu);
    placement.is_complete = places().next().is_some() && places().all(|cpu| cpu.is_some());
    placement.processors = once_each(places().flatten());
    placement
}

/// The CPU of a queue's interrupt on Linux: the only one that it may go to, or where most of its counts are.
pub(super) fn queue_cpu(card: &Adapter, queue: u32) -> Option<CpuId> {
    place(card, queue).map(|cpu| (0, cpu))
}

fn place(card: &Adapter, queue: u32) -> Option<u32> {
    let queue = usize::try_from(queue).ok()?;
    let (_, allowed) = card.rss.interrupts.get(queue)?;
    if let [only] = allowed[..] {
        return Some(only);
    }
    let counts = card.rss.interrupt_counts.get(queue)?;
    let sum = counts.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
    let (cpu, most) = counts.iter().max_by_key(|(_, count)| *count)?;
    (*most > sum / 2).then_some(*cpu)
}

fn once_each(processors: impl Iterator<Item = CpuId>) -> Vec<CpuId> {
    let mut before = BTreeSet::new();
    processors.filter(|processor| before.insert(*processor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::topology::Rss;

    #[test]
    fn a_queue_is_where_its_interrupt_goes_or_mostly_went() {
        let rss = Rss {
            queue_table: vec![0, 2, 3, 0],
            interrupts: vec![(40, vec![5]), (41, vec![1]), (42, vec![0, 1]), (43, vec![0, 1])],
            interrupt_counts: vec![vec![], vec![], vec![(0, 10), (1, 90)], vec![(0, 5), (1, 5)]],
            rps: vec![vec![6, 7], vec![1], vec![7], vec![]],
            ..Rss::default()
        };
        let card = Adapter { name: "eth0".into(), rss, ..Adapter::default() };
        let machine = Machine { cards: vec![card], ..Machine::default() };
        let places = current(&machine);
        let queues: Vec<_> = places[0].queues.iter().map(|one| (one.number, one.cpu)).collect();
        assert_eq!(queues, [(0, Some((0, 5))), (2, Some((0, 1))), (3, None)]);
        // Queue 1 is not in the table.
        assert_eq!(places[0].rps, [(0, 6), (0, 7)]);
        assert!(!placement(&machine, &machine.cards[0]).is_complete);
    }

    #[test]
    fn without_rss_windows_receives_on_one_unknown_processor() {
        let rss = Rss {
            is_enabled: Some(false),
            processor_table: vec![(0, 2), (0, 4)],
            ..Rss::default()
        };
        let mut card = Adapter { rss, ..Adapter::default() };
        let of = |card: &Adapter| {
            let system = System::Windows;
            current(&Machine { system, cards: vec![card.clone()], ..Machine::default() })
        };
        assert_eq!(of(&card)[0].queues, [Queue { number: 0, cpu: None }]);
        card.rss.is_enabled = Some(true);
        let cpus: Vec<_> = of(&card)[0].queues.iter().map(|queue| queue.cpu).collect();
        assert_eq!(cpus, [Some((0, 2)), Some((0, 4))]);
    }
}
