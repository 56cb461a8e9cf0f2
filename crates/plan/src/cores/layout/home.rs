//! The node of an adapter, and which adapters get no place.
//!
//! Functions of one device on the bus are on one node. Where neither the system nor the device says which, the node on which
//! the queues are today is kept.

use std::collections::{BTreeMap, BTreeSet};

use super::super::current;
use super::super::topology::{Adapter, Machine};
use super::{CpuId, Region, Unplaced};

/// Adapters that get no place.
pub(super) fn unplaced(machine: &Machine) -> Vec<(usize, Unplaced)> {
    let why = |card: &Adapter| {
        if card.is_team() {
            Some(Unplaced::Team)
        } else if machine.is_minor(card) {
            Some(Unplaced::Minor)
        } else {
            let is_unknown =
                node_of(machine, card).is_none() && nodes_today(machine, card).len() > 1;
            is_unknown.then_some(Unplaced::NodeUnknown)
        }
    };
    let cards = machine.cards.iter().enumerate();
    cards.filter_map(|(index, card)| Some((index, why(card)?))).collect()
}

/// The node of an adapter: its own, that of another function of its device, or the only one on which its queues are.
pub(super) fn node_of(machine: &Machine, card: &Adapter) -> Option<u32> {
    let of_device = || {
        let device = card.device()?;
        machine.cards.iter().filter(|other| other.device() == Some(device)).find_map(|one| one.node)
    };
    let of_today = || match nodes_today(machine, card).into_iter().collect::<Vec<_>>()[..] {
        [only] => Some(only),
        _ => None,
    };
    card.node.or_else(of_device).or_else(of_today)
}

/// The nodes of the CPUs that receive for an adapter, or for another function of its device, today.
pub(in crate::cores) fn nodes_today(machine: &Machine, card: &Adapter) -> BTreeSet<u32> {
    let is_of_device = |other: &&Adapter| {
        other.name == card.name || (card.device().is_some() && other.device() == card.device())
    };
    let cards = machine.cards.iter().filter(is_of_device);
    let cpus = cards.flat_map(|card| current::placement(machine, card).processors);
    let node = |(group, number): CpuId| {
        let mut all = machine.cpus.iter();
        all.find(|cpu| (cpu.group, cpu.number) == (group, number)).map(|cpu| cpu.node)
    };
    cpus.filter_map(node).collect()
}

/// The node on which another function of the adapter's device was placed.
pub(super) fn of_sibling(
    machine: &Machine,
    card: usize,
    homes: &BTreeMap<usize, usize>,
    regions: &[Region],
) -> Option<u32> {
    let device = machine.cards.get(card)?.device()?;
    let is_sibling = |other: &usize| {
        machine.cards.get(*other).is_some_and(|other| other.device() == Some(device))
    };
    let (_, region) = homes.iter().find(|(other, _)| is_sibling(other))?;
    regions.get(*region).map(|region| region.node)
}
