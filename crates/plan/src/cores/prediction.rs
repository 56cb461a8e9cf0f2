//! What a layout brings: each core's share of the receive work, before and after.
//!
//! Owns the way of a recorded connection through the hash, the table, the interrupt and RPS to a core, and the sums.
//! Does not own the hash ([`super::toeplitz`]) nor the layout ([`super::layout`]).
//!
//! The shares are exact where the key was read ([`KeySource::Read`]). With another key they are an example; the
//! interval over random hashes ([`Spread::busiest`]) then is the result. Windows may give the CPUs of a range to
//! the entries in another order, so that the loads may change places among an adapter's cores, but not their sizes
//! where the shares of the table are even.
//!
//! Microsoft, "Introduction to receive side scaling"; Linux, `Documentation/networking/scaling.rst`, `get_rps_cpu` in
//! `net/core/dev.c`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::current;
use super::json;
use super::layout::{AdapterLayout, CpuId, Layout};
use super::toeplitz::{self, Fields, Flow, KeySource};
use super::topology::{Adapter, Machine, System};
use crate::script::{names, quote};

pub mod chance;
pub mod multichannel;
#[cfg(test)]
mod tests;

use chance::Interval;
use multichannel::{Multichannel, multichannel};

/// A share of the packets of an adapter above which one connection is named as the limit.
const DOMINANT_PERCENT: f64 = 50.0;

/// A recorded connection to this machine, with what the machine received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Index of the adapter in [`Machine::cards`].
    pub card: usize,
    pub client: IpAddr,
    pub client_port: u16,
    pub server: IpAddr,
    pub server_port: u16,
    pub bytes: u64,
    pub packets: u64,
}

/// The prediction for a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    pub cards: Vec<AdapterPrediction>,
    /// All adapters together.
    pub before: Vec<CoreLoad>,
    pub after: Vec<CoreLoad>,
    /// Connections whose adapter is not in the layout, or whose addresses are of two families.
    pub ignored: u64,
}

/// The prediction for an adapter. Adapters without recorded connections have none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdapterPrediction {
    /// Index in [`Machine::cards`].
    #[serde(rename = "index")]
    pub card: usize,
    pub name: String,
    /// What to say first.
    #[serde(flatten)]
    pub verdict: Verdict,
    pub connections: u64,
    pub key: KeySource,
    /// Whether RPS uses a hash that is not the adapter's, so that its CPUs are unknown.
    pub is_steering_hash_unknown: bool,
    /// Where one connection has most packets: what several would bring.
    pub multichannel: Option<Multichannel>,
    /// Linux: the command that keeps the key that was read, because drivers draw one at each start.
    pub keep_key: Option<String>,
    pub before: Spread,
    /// The same as `before` for an adapter without a plan.
    pub after: Spread,
}

/// Whether more cores can help: a connection stays on one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// There is one connection: no table spreads it. Several connections (multichannel) do.
    OneConnection,
    /// One connection has most packets: the busiest core keeps at least its share.
    OneDominates { packets_percent: f64 },
    /// No connection has more than half of the packets.
    Spreads,
}

/// How an adapter's connections are spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// In the order of CPUs; the one that is unknown first.
    pub cores: Vec<CoreLoad>,
    /// The busiest core's share of the packets.
    pub busiest_percent: f64,
    /// The same over random hashes, for a key that is unknown.
    pub busiest: Option<Interval>,
}

/// The work of a core. How long it takes is known from a trace only ([`super::load`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CoreLoad {
    /// `None` for work whose CPU is unknown: RSS is off, a table was not read, or an interrupt
    /// went to several.
    #[serde(serialize_with = "json::optional_cpu")]
    pub cpu: Option<CpuId>,
    /// The queue, if only the CPU of its interrupt is unknown.
    pub queue: Option<u32>,
    pub connections: u64,
    pub bytes: u64,
    pub packets: u64,
    pub bytes_percent: f64,
    pub packets_percent: f64,
}

/// Predicts what the layout does to recorded connections.
pub fn predict(machine: &Machine, layout: &Layout, connections: &[Connection]) -> Prediction {
    let mut prediction = Prediction::default();
    let (mut before, mut after) = (Sums::default(), Sums::default());
    let mut predicted = 0_u64;
    for (index, card) in machine.cards.iter().enumerate() {
        let placed = layout.cards.iter().find(|placed| placed.card == index);
        let (key, source) = toeplitz::key_or_default(&card.rss.key, card.driver.as_deref());
        let of_card: Vec<(&Connection, u32)> = connections
            .iter()
            .filter(|connection| connection.card == index)
            .filter_map(|connection| Some((connection, hash(key, connection)?)))
            .collect();
        if of_card.is_empty() {
            continue;
        }
        let (mut card_before, mut card_after) = (Sums::default(), Sums::default());
        let path_before = Path::found(machine.system, card);
        let path_after = match placed {
            Some(placed) => Path::planned(card, placed),
            None => Path::found(machine.system, card),
        };
        for &(connection, hash) in &of_card {
            let (from, to) = (path_before.processor(hash), path_after.processor(hash));
            card_before.add(from, connection);
            card_after.add(to, connection);
            before.add(from, connection);
            after.add(to, connection);
        }
        let packets: Vec<u64> = of_card.iter().map(|(connection, _)| connection.packets).collect();
        let mut after = card_after.spread();
        let is_steering_hash_unknown = path_after.is_unknown() || path_before.is_unknown();
        after.busiest = chance::busiest_at_random(&packets, &path_after.shares());
        predicted += packets.len() as u64;
        let verdict = verdict(&packets);
        let largest = of_card.iter().max_by_key(|(connection, _)| connection.packets);
        let multichannel = largest
            .filter(|_| !matches!(verdict, Verdict::Spreads))
            .map(|(connection, _)| multichannel(machine, card, &path_after, connection));
        let keep_key = (source == KeySource::Read && machine.system == System::Linux).then(|| {
            let bytes: Vec<String> = key.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("ethtool -X {} hkey {}", quote::sh(&card.name), bytes.join(":"))
        });
        prediction.cards.push(AdapterPrediction {
            card: index,
            name: card.name.clone(),
            keep_key: keep_key.filter(|_| names::is_interface_name(&card.name)),
            verdict,
            connections: packets.len() as u64,
            key: source,
            is_steering_hash_unknown,
            multichannel,
            before: card_before.spread(),
            after,
        });
    }
    prediction.before = before.loads();
    prediction.after = after.loads();
    prediction.ignored = connections.len() as u64 - predicted;
    prediction
}

/// Shares of packets that differ by less are the same.
const SAME_PERCENT: f64 = 0.5;

impl Prediction {
    /// Whether recorded connections gain: the busiest core has less, or less is received on another node than the
    /// adapter's. True where today's CPUs are not known.
    pub fn is_better(&self, machine: &Machine) -> bool {
        if self.cards.is_empty() || self.before.iter().any(|core| core.cpu.is_none()) {
            return true;
        }
        let busiest =
            |cores: &[CoreLoad]| cores.iter().map(|core| core.packets_percent).fold(0.0, f64::max);
        let foreign = |spread: fn(&AdapterPrediction) -> &Spread| -> f64 {
            let of = |card: &AdapterPrediction| {
                let home = machine.cards.get(card.card).and_then(|card| card.node);
                let node = |id: CpuId| {
                    let mut cpus = machine.cpus.iter();
                    cpus.find(|cpu| (cpu.group, cpu.number) == id).map(|cpu| cpu.node)
                };
                let is_foreign = |core: &&CoreLoad| {
                    home.is_some() && core.cpu.and_then(node).is_some_and(|node| Some(node) != home)
                };
                spread(card)
                    .cores
                    .iter()
                    .filter(is_foreign)
                    .map(|core| core.packets_percent)
                    .sum::<f64>()
            };
            self.cards.iter().map(of).sum()
        };
        let more = busiest(&self.after) - busiest(&self.before);
        let moved = foreign(|card| &card.before) - foreign(|card| &card.after);
        more < -SAME_PERCENT || (more <= SAME_PERCENT && moved > SAME_PERCENT)
    }
}

/// The CPU that RPS chooses for a hash: the hash scaled to the number of its CPUs, which are in the order
/// of their numbers (`reciprocal_scale` in `get_rps_cpu`). `None` without CPUs.
pub fn steered(hash: u32, processors: &[CpuId]) -> Option<CpuId> {
    let index = (u64::from(hash) * processors.len() as u64) >> 32;
    processors.get(usize::try_from(index).ok()?).copied()
}

fn hash(key: &[u8], connection: &Connection) -> Option<u32> {
    let flow = Flow {
        source: connection.client,
        source_port: connection.client_port,
        destination: connection.server,
        destination_port: connection.server_port,
    };
    toeplitz::flow_hash(key, &flow, Fields::AddressesAndPorts)
}

fn verdict(packets: &[u64]) -> Verdict {
    let largest = packets.iter().max().copied().unwrap_or(0);
    let packets_percent = percent(largest, total(packets.iter().copied()));
    if packets.len() < 2 {
        Verdict::OneConnection
    } else if packets_percent > DOMINANT_PERCENT {
        Verdict::OneDominates { packets_percent }
    } else {
        Verdict::Spreads
    }
}

/// Where work is: the CPU, else the queue whose CPU is not known.
type Place = (Option<CpuId>, Option<u32>);

/// The way of a packet: the CPU of the interrupt of each entry of the table, and those of RPS behind it.
struct Path {
    /// Where the interrupt is, and the CPUs of RPS, in order.
    entries: Vec<(Place, Vec<CpuId>)>,
    /// Whether RPS has the adapter's hash. Without it the kernel computes one with a secret key.
    has_hash: bool,
}

impl Path {
    fn found(system: System, card: &Adapter) -> Self {
        let rss = &card.rss;
        let entries = match system {
            System::Windows if rss.is_enabled == Some(false) => Vec::new(),
            System::Windows => {
                rss.processor_table.iter().map(|&cpu| ((Some(cpu), None), Vec::new())).collect()
            }
            System::Linux => {
                let default = || {
                    toeplitz::default_table(
                        toeplitz::TABLE_ENTRIES_DEFAULT,
                        rss.queues.unwrap_or(0),
                    )
                };
                let table =
                    if rss.queue_table.is_empty() { default() } else { rss.queue_table.clone() };
                table.iter().map(|&queue| Self::of_queue(card, queue)).collect()
            }
        };
        Self { entries, has_hash: card.has_receive_hash != Some(false) }
    }

    fn of_queue(card: &Adapter, queue: u32) -> (Place, Vec<CpuId>) {
        let cpu = current::queue_cpu(card, queue);
        let place = (cpu, cpu.is_none().then_some(queue));
        let queue = usize::try_from(queue).unwrap_or(usize::MAX);
        let steering =
            card.rss.rps.get(queue).map(|cpus| cpus.iter().map(|&cpu| (0, cpu)).collect());
        (place, steering.unwrap_or_default())
    }

    fn planned(card: &Adapter, placed: &AdapterLayout) -> Self {
        let queues = u32::try_from(placed.queues.len()).unwrap_or(u32::MAX);
        let mut steering = placed.rps.clone();
        steering.sort_unstable();
        let entries = toeplitz::default_table(placed.table_entries, queues)
            .into_iter()
            .map(|queue| ((placed.queues.get(queue as usize).copied(), None), steering.clone()))
            .collect();
        Self { entries, has_hash: card.has_receive_hash != Some(false) }
    }

    /// Whether a secret hash decides.
    fn is_unknown(&self) -> bool {
        !self.has_hash && self.entries.iter().any(|(_, steering)| !steering.is_empty())
    }

    /// The CPU that does most of the work for a hash. RPS takes the adapter's hash where the adapter gives one
    /// (`ethtool -k`: receive-hashing), scaled to the number of its CPUs.
    fn processor(&self, hash: u32) -> Place {
        let entries = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let entry =
            toeplitz::table_entry(hash, entries).and_then(|entry| usize::try_from(entry).ok());
        let Some((interrupt, steering)) = entry.and_then(|entry| self.entries.get(entry)) else {
            return (None, None);
        };
        match (steering.is_empty(), self.has_hash) {
            (true, _) => *interrupt,
            (false, true) => (steered(hash, steering), None),
            (false, false) => (None, None),
        }
    }

    /// What `connections` with equal load from one client would bring, their ports unknown: the ports of `client.1` go
    /// through the hash, and the distribution of the busiest core is exact for independent ports. `None` if the addresses
    /// are of two families or a limit of [`chance`] is exceeded.
    fn more_connections(
        &self,
        card: &Adapter,
        client: (IpAddr, std::ops::RangeInclusive<u16>),
        server: (IpAddr, u16),
        connections: u32,
    ) -> Option<chance::Busiest> {
        let (key, source) = toeplitz::key_or_default(&card.rss.key, card.driver.as_deref());
        // Without the key only the shares of the table are known.
        if source != KeySource::Read || self.is_unknown() {
            return chance::busiest(connections, &self.shares());
        }
        let mut counts: BTreeMap<Place, u32> = BTreeMap::new();
        let mut ports = 0_u32;
        for port in client.1 {
            let flow = Flow {
                source: client.0,
                source_port: port,
                destination: server.0,
                destination_port: server.1,
            };
            let hash = toeplitz::flow_hash(key, &flow, Fields::AddressesAndPorts)?;
            *counts.entry(self.processor(hash)).or_default() += 1;
            ports += 1;
        }
        let shares: Vec<f64> =
            counts.values().map(|&count| f64::from(count) / f64::from(ports.max(1))).collect();
        chance::busiest(connections, &shares)
    }

    /// The share of each CPU among all hashes, 0 to 1.
    fn shares(&self) -> Vec<f64> {
        self.by_processor().into_values().collect()
    }

    /// The same by CPU.
    fn by_processor(&self) -> BTreeMap<Place, f64> {
        let mut shares: BTreeMap<Place, f64> = BTreeMap::new();
        for (interrupt, steering) in &self.entries {
            let share = 1.0 / self.entries.len() as f64;
            if steering.is_empty() {
                *shares.entry(*interrupt).or_default() += share;
            }
            for cpu in steering {
                *shares.entry((Some(*cpu), None)).or_default() += share / steering.len() as f64;
            }
        }
        shares
    }
}

/// The share of each CPU of a planned adapter among all hashes, 0 to 1.
pub(super) fn planned_shares(card: &Adapter, placed: &AdapterLayout) -> Vec<(CpuId, f64)> {
    let shares = Path::planned(card, placed).by_processor();
    shares.into_iter().filter_map(|((cpu, _), share)| Some((cpu?, share))).collect()
}

/// Sums by CPU.
#[derive(Default)]
struct Sums(BTreeMap<Place, (u64, u64, u64)>);

impl Sums {
    fn add(&mut self, place: Place, connection: &Connection) {
        let (connections, bytes, packets) = self.0.entry(place).or_default();
        *connections += 1;
        *bytes = bytes.saturating_add(connection.bytes);
        *packets = packets.saturating_add(connection.packets);
    }

    fn loads(&self) -> Vec<CoreLoad> {
        let bytes_total = total(self.0.values().map(|sums| sums.1));
        let packets_total = total(self.0.values().map(|sums| sums.2));
        self.0
            .iter()
            .map(|(&(cpu, queue), &(connections, bytes, packets))| CoreLoad {
                cpu,
                queue,
                connections,
                bytes,
                packets,
                bytes_percent: percent(bytes, bytes_total),
                packets_percent: percent(packets, packets_total),
            })
            .collect()
    }

    fn spread(&self) -> Spread {
        let cores = self.loads();
        let busiest_percent = cores.iter().map(|core| core.packets_percent).fold(0.0, f64::max);
        Spread { cores, busiest_percent, busiest: None }
    }
}

fn total(items: impl Iterator<Item = u64>) -> u64 {
    items.fold(0, u64::saturating_add)
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
