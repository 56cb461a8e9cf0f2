//! Which cores serve the queues of which network adapter.
//!
//! Owns the choice: cores, their number for each adapter, the range of Windows and the cores of RPS. Does not own the
//! commands that make it so ([`super::commands`]) nor its effect ([`super::prediction`]).
//!
//! Rules, from Microsoft's "Introduction to receive side scaling", "Setting the number of RSS CPUs" and
//! "Standardized INF keywords for RSS", and from Linux's `Documentation/networking/scaling.rst`:
//!
//! - A core serves with its first hardware thread that is online; its other threads are left out.
//! - An adapter gets cores of its node, of any one node if its node is unknown.
//! - Each adapter of a node gets a core before one gets a second; then the next core goes to the adapter with the
//!   fewest cores for its link speed, up to its hardware queues. Two adapters share a core only if each core that
//!   both may have is in use.
//! - Among numbers of queues with the same largest share of the indirection table the smallest is chosen, which is a
//!   power of two wherever that costs nothing; otherwise a note says how uneven the shares are.
//! - The core with CPU 0 is used last, because timers and other interrupts are there by default, and not at all where
//!   there are 16 cores or more.
//! - Functions of one device on the bus are on one node. An adapter whose node is unknown stays on the node on which its
//!   queues are today; if these are on several nodes it has no place ([`Layout::unplaced`]).
//! - Isolated CPUs are left alone, and so are teams and bonds themselves, and adapters of 1 Gbit/s next to faster ones.
//! - Windows knows one contiguous range in one processor group for each adapter.
//!
//! Numbering: Windows numbers the threads of a core one after the other, so that with hyper-threading the first threads
//! are 0, 2, 4 ...; six adapters with two cores each on two sockets of six cores then have the bases 0, 4, 8, 12, 16 and
//! 20. The bases 0, 2, 4, 6, 8 and 10 of the published case are the same cores where hyper-threading is off, or where
//! all first threads are numbered before all second ones, as Linux usually does.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::json;
use super::topology::{Adapter, Kind, Machine, System};

pub(super) use home::nodes_today;

mod home;
mod share;
#[cfg(test)]
pub(super) mod tests;

/// A logical processor: its group and its number in the group.
pub type CpuId = (u32, u32);

/// The most CPUs that an adapter gets on Windows ("must not set ... greater than 16").
pub const WINDOWS_PROCESSORS_MAX: u32 = 16;

/// Below this number of hardware queues an adapter on Linux also gets cores for receive packet steering (RPS).
pub const RPS_BELOW_QUEUES: u32 = 4;

/// The most cores, interrupts included, that RPS brings an adapter to: each more costs interrupts between CPUs.
pub const RPS_CORES_MAX: u32 = 8;

/// A layout of all adapters of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Layout {
    /// One for each adapter that can be placed, in the machine's order.
    pub cards: Vec<AdapterLayout>,
    /// Cores with a thread online.
    pub cores: u32,
    /// Cores that serve an adapter's queue.
    pub cores_used: u32,
    /// Indexes in [`Machine::cards`] of those without a place, and why.
    #[serde(skip)]
    pub unplaced: Vec<(usize, Unplaced)>,
}

/// Why an adapter has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unplaced {
    /// Its queues are on several nodes today, and its own node is not known.
    NodeUnknown,
    /// One CPU receives what it can carry, next to faster adapters.
    Minor,
    /// A team or bond: its members have the queues.
    Team,
}

/// A region with this number of cores or more does not need the one with CPU 0.
const CPU0_FREE_CORES: usize = 16;

/// The place of one adapter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdapterLayout {
    /// Index in [`Machine::cards`].
    #[serde(rename = "index")]
    pub card: usize,
    pub name: String,
    /// The node of its cores.
    pub node: u32,
    /// The CPU of each queue: queue 0 is served by the first.
    #[serde(serialize_with = "json::cpus")]
    pub queues: Vec<CpuId>,
    /// CPUs of RPS, on Linux where there are few queues; without those of the queues.
    #[serde(serialize_with = "json::cpus")]
    pub rps: Vec<CpuId>,
    /// Entries of the indirection table, as read or the default.
    pub table_entries: u32,
    /// The largest share of the table that a queue has, in percent; 100 / queues if shares are even.
    pub share_percent_max: f64,
    /// Windows only.
    pub range: Option<Range>,
    pub notes: Vec<Note>,
}

/// The range of `Set-NetAdapterRss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    #[serde(serialize_with = "json::cpu")]
    pub base: CpuId,
    #[serde(serialize_with = "json::cpu")]
    pub last: CpuId,
    pub processors_max: u32,
    pub profile: Profile,
    /// Set with `ClosestStatic` only: the NUMA profiles ignore it.
    pub node: Option<u32>,
}

/// A profile that leaves the assignment of CPUs as it was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Profile {
    /// Where the adapter's node is known.
    ClosestStatic,
    /// Where it is not.
    #[serde(rename = "NUMAStatic")]
    NumaStatic,
}

impl Profile {
    /// The name of the value of `-Profile`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClosestStatic => "ClosestStatic",
            Self::NumaStatic => "NUMAStatic",
        }
    }
}

/// What one should know about an adapter's place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "note", rename_all = "kebab-case")]
pub enum Note {
    /// The adapter's node is unknown; the node with the most room was chosen.
    NodeUnknown,
    /// The adapter's node has no CPU online.
    NodeWithoutCores { node: u32 },
    /// The number of hardware queues is unknown; the cores alone decided.
    QueuesUnknown,
    /// The hardware has fewer queues than its share of the cores.
    FewQueues { queues: u32, share: u32 },
    /// Fewer queues have the same largest share of the table; `from` would gain nothing.
    FewerSuffice { from: u32, to: u32 },
    /// The largest share of the table is above the even one.
    Uneven { percent_max: f64, percent_even: f64 },
    /// There are more adapters than cores: others have the same core.
    CoreShared { cards: u32 },
    /// CPU 0 serves too, because all cores of the node are needed.
    Cpu0,
    /// Windows: the range is limited to [`WINDOWS_PROCESSORS_MAX`].
    WindowsLimit,
    /// A virtual function or virtual adapter: the host decides, too.
    Virtual,
}

/// A core with a thread online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Core {
    /// Its first thread that is online.
    first: CpuId,
    node: u32,
    /// Whether CPU 0 is one of its threads.
    has_cpu0: bool,
}

/// Cores from which an adapter may get several: a node; on Windows a part of one without a gap.
#[derive(Clone, Debug, Default)]
struct Region {
    node: u32,
    cores: Vec<Core>,
}

/// Plans the machine. Adapters of a machine without any CPU online are left out.
pub fn plan(machine: &Machine) -> Layout {
    let cores = cores(machine);
    let regions = regions(&cores, machine.system);
    let unplaced = home::unplaced(machine);
    let homes = homes(machine, &regions, &unplaced);
    let mut cards = Vec::new();
    for (index, region) in regions.iter().enumerate() {
        let members: Vec<usize> =
            (0..machine.cards.len()).filter(|&card| homes.get(&card) == Some(&index)).collect();
        cards.extend(place(machine, region, &members));
    }
    cards.sort_by_key(|layout| layout.card);
    let mut layout = Layout { cards, cores: count(cores.len()), cores_used: 0, unplaced };
    layout.keep(|_| true);
    layout
}

impl Layout {
    /// Leaves out adapters.
    pub fn keep(&mut self, is_kept: impl Fn(&AdapterLayout) -> bool) {
        self.cards.retain(is_kept);
        let used: BTreeSet<CpuId> =
            self.cards.iter().flat_map(|layout| layout.queues.iter().copied()).collect();
        self.cores_used = count(used.len());
    }
}

/// All cores with a thread online, in the order of the numbers of their first threads.
fn cores(machine: &Machine) -> Vec<Core> {
    let mut threads: BTreeMap<u32, Vec<(u32, CpuId, u32)>> = BTreeMap::new();
    for cpu in machine.cpus.iter().filter(|cpu| machine.is_usable(cpu)) {
        threads.entry(cpu.core).or_default().push((cpu.thread, (cpu.group, cpu.number), cpu.node));
    }
    let mut cores: Vec<Core> = threads
        .values()
        .filter_map(|threads| {
            let &(_, first, node) = threads.iter().min()?;
            Some(Core { first, node, has_cpu0: threads.iter().any(|&(_, cpu, _)| cpu == (0, 0)) })
        })
        .collect();
    cores.sort_by_key(|core| core.first);
    cores
}

fn regions(cores: &[Core], system: System) -> Vec<Region> {
    match system {
        System::Linux => {
            let mut nodes: BTreeMap<u32, Region> = BTreeMap::new();
            for &core in cores {
                let region = nodes.entry(core.node).or_default();
                region.node = core.node;
                region.cores.push(core);
            }
            nodes.into_values().collect()
        }
        // A range of Windows includes each core between its ends, so that a region ends where node or group change.
        System::Windows => cores
            .chunk_by(|a, b| a.node == b.node && a.first.0 == b.first.0)
            .filter_map(|run| Some(Region { node: run.first()?.node, cores: run.to_vec() }))
            .collect(),
    }
}

/// The region of each adapter: first adapters with a known node, then the others, each time the fastest first.
fn homes(
    machine: &Machine,
    regions: &[Region],
    unplaced: &[(usize, Unplaced)],
) -> BTreeMap<usize, usize> {
    let weights = weights(machine);
    let is_placed = |card: &usize| unplaced.iter().all(|(other, _)| other != card);
    let mut order: Vec<usize> = (0..machine.cards.len()).filter(is_placed).collect();
    let known = |card: usize| known_node(machine, machine.cards.get(card)?, regions);
    order.sort_by_key(|&card| {
        (known(card).is_none(), std::cmp::Reverse(weights.get(card).copied()), card)
    });
    let mut members = vec![(0_usize, 0_u128); regions.len()];
    let mut homes = BTreeMap::new();
    for card in order {
        let weight = weights.get(card).copied().unwrap_or(1);
        let node = known(card).or_else(|| home::of_sibling(machine, card, &homes, regions));
        let best = regions
            .iter()
            .zip(&members)
            .enumerate()
            .filter(|(_, (region, _))| node.is_none_or(|node| region.node == node))
            .min_by(|(_, (a, in_a)), (_, (b, in_b))| {
                let is_full =
                    |region: &Region, members: &(usize, u128)| members.0 >= region.cores.len();
                let load = |members: &(usize, u128), other: &Region| {
                    (members.1 + weight) * other.cores.len() as u128
                };
                is_full(a, in_a)
                    .cmp(&is_full(b, in_b))
                    .then_with(|| load(in_a, b).cmp(&load(in_b, a)))
                    .then_with(|| has_cpu0(&a.cores).cmp(&has_cpu0(&b.cores)))
            })
            .map(|(index, _)| index);
        if let Some(index) = best {
            if let Some((count, sum)) = members.get_mut(index) {
                *count += 1;
                *sum += weight;
            }
            homes.insert(card, index);
        }
    }
    in_order(machine, regions, &weights, &mut homes);
    homes
}

/// Among equal adapters without a known node, lower regions go to the adapters that come first.
fn in_order(
    machine: &Machine,
    regions: &[Region],
    weights: &[u128],
    homes: &mut BTreeMap<usize, usize>,
) {
    let mut alike: BTreeMap<(Option<u128>, Option<u32>), Vec<usize>> = BTreeMap::new();
    for (index, card) in machine.cards.iter().enumerate() {
        let is_free = homes.contains_key(&index) && card.device().is_none();
        if is_free && known_node(machine, card, regions).is_none() {
            alike.entry((weights.get(index).copied(), card.queues_max)).or_default().push(index);
        }
    }
    for cards in alike.values() {
        let mut of_cards: Vec<usize> =
            cards.iter().filter_map(|card| homes.get(card).copied()).collect();
        of_cards.sort_unstable();
        homes.extend(cards.iter().copied().zip(of_cards));
    }
}

/// The adapter's node, if it has cores.
fn known_node(machine: &Machine, card: &Adapter, regions: &[Region]) -> Option<u32> {
    home::node_of(machine, card).filter(|&node| regions.iter().any(|region| region.node == node))
}

/// Link speeds in Mbit/s, or all equal if one is unknown.
fn weights(machine: &Machine) -> Vec<u128> {
    let speeds: Option<Vec<u128>> = machine
        .cards
        .iter()
        .map(|card| card.bits_per_second.map(|speed| u128::from(speed / 1_000_000).max(1)))
        .collect();
    speeds.unwrap_or_else(|| vec![1; machine.cards.len()])
}

/// Places the adapters of one region.
fn place(machine: &Machine, region: &Region, members: &[usize]) -> Vec<AdapterLayout> {
    let weights = weights(machine);
    let cards: Vec<(usize, &Adapter)> =
        members.iter().filter_map(|&index| Some((index, machine.cards.get(index)?))).collect();
    let wishes: Vec<share::Wish> = cards
        .iter()
        .map(|&(index, card)| share::Wish {
            weight: weights.get(index).copied().unwrap_or(1),
            queues_max: queues_max(machine, card),
            table_entries: table_entries(machine, card),
        })
        .collect();
    let mut shares = share::shares(&wishes, count(region.cores.len()));
    let needed: usize = shares.iter().map(|share| share.cores as usize).sum();
    if needed == region.cores.len() && needed >= CPU0_FREE_CORES && has_cpu0(&region.cores) {
        share::one_less(&mut shares, &wishes);
    }
    let taken = if cards.len() > region.cores.len() {
        share::crowded(&wishes, &cpu0_last(&region.cores))
    } else {
        share::in_rows(&shares, &region.cores)
    };
    let used: BTreeSet<CpuId> = taken.iter().flatten().map(|core| core.first).collect();
    let free: Vec<CpuId> = region
        .cores
        .iter()
        .filter(|core| !core.has_cpu0 && !used.contains(&core.first))
        .map(|core| core.first)
        .collect();
    let mut steering = match machine.system {
        System::Linux => share::steering(&wishes, &free),
        System::Windows => vec![Vec::new(); cards.len()],
    }
    .into_iter();
    let mut layouts = Vec::new();
    for (((index, card), wish), (share, cores)) in
        cards.iter().zip(&wishes).zip(shares.iter().zip(&taken))
    {
        let together =
            taken.iter().filter(|other| cores.iter().any(|core| other.contains(core))).count();
        let mut layout = AdapterLayout {
            card: *index,
            name: card.name.clone(),
            node: region.node,
            queues: cores.iter().map(|core| core.first).collect(),
            rps: steering.next().unwrap_or_default(),
            table_entries: wish.table_entries,
            share_percent_max: share::percent_max(wish.table_entries, count(cores.len())),
            range: None,
            notes: Vec::new(),
        };
        layout.notes = notes(machine, card, region, &layout, share, together);
        layout.notes.extend(has_cpu0(cores).then_some(Note::Cpu0));
        layout.range = range(machine, card, &layout);
        layouts.push(layout);
    }
    layouts
}

fn notes(
    machine: &Machine,
    card: &Adapter,
    region: &Region,
    layout: &AdapterLayout,
    share: &share::Share,
    together: usize,
) -> Vec<Note> {
    let queues = count(layout.queues.len());
    let mut notes = Vec::new();
    match home::node_of(machine, card) {
        None => notes.push(Note::NodeUnknown),
        Some(node) if node != region.node => notes.push(Note::NodeWithoutCores { node }),
        Some(_) => {}
    }
    match card.queues_max {
        None => notes.push(Note::QueuesUnknown),
        Some(max) if max < share.without_limit => {
            notes.push(Note::FewQueues { queues: max, share: share.without_limit });
        }
        Some(_) => {}
    }
    if share.before_rounding > queues && together < 2 {
        notes.push(Note::FewerSuffice { from: share.before_rounding, to: queues });
    }
    let percent_even = 100.0 / f64::from(queues.max(1));
    if layout.share_percent_max > percent_even + 1e-9 {
        notes.push(Note::Uneven { percent_max: layout.share_percent_max, percent_even });
    }
    if together > 1 {
        notes.push(Note::CoreShared { cards: count(together) });
    }
    let is_limited = card.queues_max.is_none_or(|max| max > WINDOWS_PROCESSORS_MAX);
    if machine.system == System::Windows && is_limited && queues == WINDOWS_PROCESSORS_MAX {
        notes.push(Note::WindowsLimit);
    }
    if card.kind != Kind::Physical {
        notes.push(Note::Virtual);
    }
    notes
}

fn range(machine: &Machine, card: &Adapter, layout: &AdapterLayout) -> Option<Range> {
    let (base, last) = (*layout.queues.first()?, *layout.queues.last()?);
    let node = home::node_of(machine, card).filter(|&node| node == layout.node);
    let profile = if node.is_some() { Profile::ClosestStatic } else { Profile::NumaStatic };
    // The number of an assumed node says nothing to Windows, which knows the distances.
    let node = if machine.are_nodes_assumed { card.rss.node } else { node };
    (machine.system == System::Windows).then_some(Range {
        base,
        last,
        processors_max: count(layout.queues.len()),
        profile,
        node,
    })
}

/// The most queues that an adapter can use, at least 1: where it is not known, those that it has today.
fn queues_max(machine: &Machine, card: &Adapter) -> u32 {
    let limit = match machine.system {
        System::Linux => u32::MAX,
        System::Windows => WINDOWS_PROCESSORS_MAX,
    };
    let limit = card.rss_queue_limit.map_or(limit, |of_table| of_table.clamp(1, limit));
    card.queues_max.or(card.rss.queues).unwrap_or(u32::MAX).clamp(1, limit)
}

/// Entries of the adapter's indirection table. Windows shows as many as are in use, so that the default is its minimum.
fn table_entries(machine: &Machine, card: &Adapter) -> u32 {
    let default = super::toeplitz::TABLE_ENTRIES_DEFAULT;
    match machine.system {
        System::Linux if card.rss.queue_table.is_empty() => default,
        System::Linux => count(card.rss.queue_table.len()),
        System::Windows => count(card.rss.processor_table.len()).max(default),
    }
}

fn has_cpu0(cores: &[Core]) -> bool {
    cores.iter().any(|core| core.has_cpu0)
}

fn cpu0_last(cores: &[Core]) -> Vec<Core> {
    let mut cores = cores.to_vec();
    cores.sort_by_key(|core| (core.has_cpu0, core.first));
    cores
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
