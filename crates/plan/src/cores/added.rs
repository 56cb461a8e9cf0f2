//! What if adapters were added: where they would receive, and how clients would come to them.
//!
//! Owns the question only: the layout is that of [`super::layout`] for the machine with the adapters, and how evenly clients or
//! connections fall on them is [`chance`]. Each is taken for a card of its own, whose node is the one with the most room.
//!
//! Microsoft, "Deploy SMB Multichannel" (`ConnectionCountPerRssNetworkInterface` 4), "NIC Teaming"; RFC 1794 (DNS support
//! for load balancing).

use std::net::IpAddr;

use serde::Serialize;

use super::json;
use super::layout::{self, CpuId};
use super::prediction::chance::{self, Interval};
use super::topology::{Adapter, Machine};

/// The most adapters that can be added.
pub const ADDED_MAX: u32 = 64;

/// Adapters to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// From 1 to [`ADDED_MAX`].
    pub adapters: u32,
    /// The value of each adapter.
    pub bits_per_second: u64,
}

/// What adapters would bring.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Added {
    pub adapters: u32,
    /// The value of each adapter.
    pub bits_per_second: u64,
    /// All adapters of today whose link is not down; `None` if a speed is not known.
    pub bits_per_second_today: Option<u64>,
    /// Where they would receive; empty if the CPUs are not known.
    pub places: Vec<AddedPlace>,
    /// Recorded clients; `None` without a recording.
    pub clients: Option<u64>,
    pub ways: Vec<Way>,
}

/// The place of an added adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AddedPlace {
    pub name: String,
    pub node: u32,
    /// The first CPU, where its range begins.
    #[serde(serialize_with = "json::cpu")]
    pub base: CpuId,
    #[serde(serialize_with = "json::cpus")]
    pub queues: Vec<CpuId>,
    /// Whether another adapter has one of these CPUs.
    pub is_shared: bool,
}

/// How clients come to the added adapters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Way {
    pub way: WayKind,
    pub addresses: u32,
    /// Entries of one name.
    pub dns_entries: u32,
    /// Recorded clients for each address on average, where a client uses one.
    pub clients_per_address: Option<f64>,
    /// What one client gets at most.
    pub client_bits_per_second: u64,
    /// The busiest adapter's share of the recorded packets, with clients or connections on random ones; even shares are
    /// 100 / adapters.
    pub busiest: Option<Interval>,
}

/// The ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WayKind {
    /// Each adapter has an address and an entry in DNS; a client takes one of them.
    AddressEach,
    /// Each adapter has an address; SMB Multichannel uses all.
    Multichannel,
    /// One address; a hash chooses a member for each connection.
    Team,
}

/// A recorded connection: its client, and the packets from it.
pub type Recorded = (IpAddr, u64);

/// What these adapters would bring to the machine and the recorded connections.
pub fn added(machine: &Machine, wanted: &Wanted, recorded: &[Recorded]) -> Added {
    let up = machine.cards.iter().filter(|card| card.is_up != Some(false) && !card.is_team());
    let speeds: Option<Vec<u64>> = up.map(|card| card.bits_per_second).collect();
    let clients = by_client(recorded);
    Added {
        adapters: wanted.adapters,
        bits_per_second: wanted.bits_per_second,
        bits_per_second_today: speeds
            .map(|speeds| speeds.iter().fold(0, |sum: u64, speed| sum.saturating_add(*speed))),
        places: places(machine, wanted),
        clients: (!recorded.is_empty()).then_some(clients.len() as u64),
        ways: ways(wanted, &clients, recorded),
    }
}

fn by_client(recorded: &[Recorded]) -> Vec<u64> {
    let mut clients = std::collections::BTreeMap::<IpAddr, u64>::new();
    for &(client, packets) in recorded {
        let sum = clients.entry(client).or_default();
        *sum = sum.saturating_add(packets);
    }
    clients.into_values().collect()
}

fn places(machine: &Machine, wanted: &Wanted) -> Vec<AddedPlace> {
    let mut with = machine.clone();
    let first = with.cards.len();
    with.cards.extend((1..=wanted.adapters.min(ADDED_MAX)).map(|number| Adapter {
        name: format!("new {number}"),
        bits_per_second: Some(wanted.bits_per_second),
        ..Adapter::default()
    }));
    let layout = layout::plan(&with);
    let is_shared = |card: usize, cpus: &[CpuId]| {
        let mut others = layout.cards.iter().filter(|other| other.card != card);
        others.any(|other| other.queues.iter().any(|cpu| cpus.contains(cpu)))
    };
    let new = layout.cards.iter().filter(|card| card.card >= first);
    new.filter_map(|card| {
        Some(AddedPlace {
            name: card.name.clone(),
            node: card.node,
            base: *card.queues.first()?,
            queues: card.queues.clone(),
            is_shared: is_shared(card.card, &card.queues),
        })
    })
    .collect()
}

fn ways(wanted: &Wanted, clients: &[u64], recorded: &[Recorded]) -> Vec<Way> {
    let Wanted { adapters, bits_per_second } = *wanted;
    let adapters = adapters.clamp(1, ADDED_MAX);
    let shares = vec![1.0 / f64::from(adapters); adapters as usize];
    let connections: Vec<u64> = recorded.iter().map(|(_, packets)| *packets).collect();
    let each = |addresses: u32| {
        (!recorded.is_empty()).then(|| clients.len() as f64 / f64::from(addresses))
    };
    let way = |way, addresses, dns_entries| Way {
        way,
        addresses,
        dns_entries,
        clients_per_address: None,
        client_bits_per_second: bits_per_second,
        busiest: None,
    };
    vec![
        Way {
            clients_per_address: each(adapters),
            busiest: chance::busiest_at_random(clients, &shares),
            ..way(WayKind::AddressEach, adapters, adapters)
        },
        Way {
            client_bits_per_second: bits_per_second.saturating_mul(u64::from(adapters)),
            ..way(WayKind::Multichannel, adapters, 1)
        },
        Way {
            clients_per_address: each(1),
            busiest: chance::busiest_at_random(&connections, &shares),
            ..way(WayKind::Team, 1, 1)
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::{Numbering, card, machine};
    use super::super::topology::System;
    use super::*;

    /// Six ports on two sockets of six cores: two cores each, as in the published case, and the port of today left alone.
    #[test]
    fn six_adapters_get_cores_addresses_and_entries() {
        let mut machine = machine(System::Windows, 2, 6, 2, Numbering::Neighbours);
        let mut today = card("Management", Some(0), Some(1));
        today.bits_per_second = Some(1_000_000_000);
        machine.cards = vec![today];
        let wanted = Wanted { adapters: 6, bits_per_second: 10_000_000_000 };
        let client = |number: u8| IpAddr::from([10, 0, 0, number]);
        // Twelve clients, of which each has two connections.
        let recorded: Vec<Recorded> = (0..24).map(|number| (client(number / 2), 100)).collect();
        let added = added(&machine, &wanted, &recorded);
        assert_eq!(added.bits_per_second_today, Some(1_000_000_000));
        let bases: Vec<_> = added.places.iter().map(|place| place.base.1).collect();
        assert_eq!(bases, [0, 4, 8, 12, 16, 20]);
        assert!(added.places.iter().all(|place| place.queues.len() == 2 && !place.is_shared));
        assert_eq!(added.clients, Some(12));
        let [each, multichannel, team] = &added.ways[..] else { panic!("{added:?}") };
        assert_eq!((each.addresses, each.dns_entries, each.clients_per_address), (6, 6, Some(2.0)));
        assert_eq!((multichannel.addresses, multichannel.dns_entries), (6, 1));
        assert_eq!(multichannel.client_bits_per_second, 60_000_000_000);
        assert_eq!((team.addresses, team.client_bits_per_second), (1, 10_000_000_000));
        // More and smaller parts fall more evenly.
        let mean = |way: &Way| way.busiest.unwrap().percent_mean;
        assert!(mean(each) > mean(team) && mean(team) > 100.0 / 6.0, "{added:?}");
    }

    #[test]
    fn without_cpus_and_recording_the_ways_remain() {
        let wanted = Wanted { adapters: 2, bits_per_second: 25_000_000_000 };
        let added = added(&Machine::default(), &wanted, &[]);
        assert!(added.places.is_empty() && added.clients.is_none());
        assert!(added.ways.iter().all(|way| way.busiest.is_none()));
        assert_eq!(added.bits_per_second_today, Some(0));
    }
}
