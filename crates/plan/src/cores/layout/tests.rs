//! The layout of known machines, and what must hold for any.

use proptest::prelude::*;

use super::*;
use crate::cores::topology::{Cpu, Rss};

/// How the threads of cores are numbered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Numbering {
    /// Threads of a core are neighbours (Windows).
    Neighbours,
    /// All first threads, then all second ones (usual on Linux).
    ThreadsLast,
}

/// A machine of equal sockets, each a node; on Windows in groups of 64.
pub(crate) fn machine(
    system: System,
    sockets: u32,
    cores: u32,
    threads: u32,
    numbering: Numbering,
) -> Machine {
    let total = sockets * cores;
    let mut cpus = Vec::new();
    for core in 0..total {
        for thread in 0..threads {
            let number = match numbering {
                Numbering::Neighbours => core * threads + thread,
                Numbering::ThreadsLast => thread * total + core,
            };
            let socket = core / cores;
            let (group, number) =
                if system == System::Windows { (number / 64, number % 64) } else { (0, number) };
            cpus.push(Cpu { number, group, socket, node: socket, core, thread, is_online: true });
        }
    }
    cpus.sort_by_key(|cpu| (cpu.group, cpu.number));
    Machine { system, cpus, ..Machine::default() }
}

pub(crate) fn card(name: &str, node: Option<u32>, queues_max: Option<u32>) -> Adapter {
    Adapter {
        name: name.into(),
        node,
        queues_max,
        bits_per_second: Some(10_000_000_000),
        ..Adapter::default()
    }
}

fn bases(machine: &Machine) -> Vec<u32> {
    plan(machine).cards.iter().filter_map(|card| Some(card.range?.base.1)).collect()
}

/// The published case: two sockets of six cores, six adapters. See the comment of the module on numbering.
#[test]
fn six_cards_on_two_sockets_have_two_cores_each() {
    for nodes in [[Some(0), Some(0), Some(0), Some(1), Some(1), Some(1)], [None; 6]] {
        let case = |threads, numbering| {
            let mut machine = machine(System::Windows, 2, 6, threads, numbering);
            machine.cards = nodes.iter().map(|&node| card("Slot", node, Some(8))).collect();
            machine
        };
        assert_eq!(bases(&case(1, Numbering::Neighbours)), [0, 2, 4, 6, 8, 10]);
        assert_eq!(bases(&case(2, Numbering::ThreadsLast)), [0, 2, 4, 6, 8, 10]);
        let neighbours = case(2, Numbering::Neighbours);
        assert_eq!(bases(&neighbours), [0, 4, 8, 12, 16, 20]);
        let layout = plan(&neighbours);
        assert!(
            layout
                .cards
                .iter()
                .all(|card| card.queues.len() == 2 && card.range.unwrap().processors_max == 2)
        );
        assert_eq!(layout.cards[3].queues, [(0, 12), (0, 14)]);
        assert_eq!((layout.cores, layout.cores_used), (12, 12));
    }
}

#[test]
fn cpu_0_is_used_last() {
    let mut machine = machine(System::Linux, 1, 8, 2, Numbering::ThreadsLast);
    machine.cards = vec![card("eth0", Some(0), Some(4))];
    assert_eq!(plan(&machine).cards[0].queues, [(0, 1), (0, 2), (0, 3), (0, 4)]);
    machine.cards = vec![card("eth0", Some(0), Some(8))];
    let layout = plan(&machine);
    assert_eq!(layout.cards[0].queues[0], (0, 0));
    assert!(layout.cards[0].notes.contains(&Note::Cpu0));
}

/// Sixteen CPUs for each adapter are a ceiling, not a need.
#[test]
fn cpu_0_is_free_where_there_are_many_cores() {
    let mut machine = machine(System::Windows, 1, 32, 2, Numbering::Neighbours);
    machine.cards = vec![card("SMB1", Some(0), None), card("SMB2", Some(0), None)];
    let layout = plan(&machine);
    let ranges: Vec<_> = layout.cards.iter().filter_map(|card| card.range).collect();
    let bounds: Vec<_> = ranges.iter().map(|range| (range.base.1, range.last.1)).collect();
    assert_eq!(bounds, [(2, 30), (32, 62)]);
    assert_eq!(ranges.iter().map(|range| range.processors_max).collect::<Vec<_>>(), [15, 16]);
}

#[test]
fn an_adapter_without_a_node_gets_the_node_with_room() {
    let mut machine = machine(System::Linux, 2, 4, 1, Numbering::Neighbours);
    machine.cards = vec![card("virtual", None, Some(2)), card("eth0", Some(1), Some(4))];
    let layout = plan(&machine);
    assert_eq!(layout.cards[0].queues, [(0, 1), (0, 2)]);
    assert_eq!(layout.cards[0].notes[0], Note::NodeUnknown);
    assert_eq!(layout.cards[1].queues, [(0, 4), (0, 5), (0, 6), (0, 7)]);
}

#[test]
fn one_queue_gets_cores_of_rps() {
    let mut machine = machine(System::Linux, 1, 4, 2, Numbering::ThreadsLast);
    machine.cards = vec![card("eth0", Some(0), Some(1))];
    let layout = plan(&machine);
    assert_eq!(layout.cards[0].queues, [(0, 1)]);
    assert_eq!(layout.cards[0].rps, [(0, 2), (0, 3)]);
    assert!(layout.cards[0].notes.contains(&Note::FewQueues { queues: 1, share: 4 }));
}

#[test]
fn a_node_over_two_groups_gives_a_range_in_one() {
    let mut machine = machine(System::Windows, 1, 48, 2, Numbering::Neighbours);
    machine.cards = (0..3).map(|_| card("Slot", Some(0), None)).collect();
    let layout = plan(&machine);
    for card in &layout.cards {
        let range = card.range.unwrap();
        assert_eq!((range.base.0, range.processors_max <= 16), (range.last.0, true));
    }
    assert_eq!(layout.cards.iter().filter(|card| card.range.unwrap().base.0 == 1).count(), 1);
}

#[test]
fn a_machine_without_processors_has_an_empty_layout() {
    let machine = Machine { cards: vec![card("eth0", Some(0), None)], ..Machine::default() };
    assert_eq!(plan(&machine), Layout::default());
}

/// Any machine: 1 to 8 sockets, 2 to 64 cores, 1 to 8 threads, 1 to 12 adapters.
pub(crate) fn machines() -> impl Strategy<Value = Machine> {
    let shape = (
        any::<bool>(),
        1_u32..=8,
        1_u32..=8,
        prop::sample::select(vec![1_u32, 2, 4, 8]),
        any::<bool>(),
    );
    let cards = prop::collection::vec(
        (
            prop::option::weighted(0.7, 0_u32..10),
            prop::option::weighted(0.8, 0_u32..70),
            prop::option::weighted(0.9, prop::sample::select(vec![1_u64, 10, 25, 100])),
            prop::sample::select(vec![0_usize, 16, 100, 128, 512]),
        ),
        1..=12,
    );
    let offline = prop::collection::vec(any::<prop::sample::Index>(), 0..20);
    (shape, cards, offline).prop_map(
        |((is_windows, sockets, cores, threads, neighbours), cards, offline)| {
            let system = if is_windows { System::Windows } else { System::Linux };
            let numbering = if neighbours { Numbering::Neighbours } else { Numbering::ThreadsLast };
            let mut machine = machine(system, sockets, cores.max(2), threads, numbering);
            for index in offline {
                let cpu = index.index(machine.cpus.len());
                machine.cpus[cpu].is_online = false;
            }
            machine.cards = cards
                .into_iter()
                .enumerate()
                .map(|(index, (node, queues_max, gigabits, entries))| Adapter {
                    name: format!("eth{index}"),
                    node,
                    queues_max,
                    bits_per_second: gigabits.map(|gigabits| gigabits * 1_000_000_000),
                    rss: Rss { queue_table: vec![0; entries], ..Rss::default() },
                    ..Adapter::default()
                })
                .collect();
            machine
        },
    )
}

fn check(machine: &Machine) -> Result<(), TestCaseError> {
    let layout = plan(machine);
    let all = cores(machine);
    let free = |node: Option<u32>| {
        all.iter().any(|core| {
            node.is_none_or(|node| node == core.node)
                && !layout.cards.iter().any(|card| card.queues.contains(&core.first))
        })
    };
    let is_online = machine.cpus.iter().any(|cpu| cpu.is_online);
    // Each adapter is placed, or the layout says why not: here only slow ones next to faster ones are not.
    let is_minor = |index: &usize| machine.is_minor(&machine.cards[*index]);
    let (minor, expected): (Vec<_>, Vec<_>) = (0..machine.cards.len()).partition(is_minor);
    prop_assert!(layout.unplaced.iter().all(|(_, why)| *why == Unplaced::Minor));
    prop_assert_eq!(layout.unplaced.iter().map(|(card, _)| *card).collect::<Vec<_>>(), minor);
    let placed: Vec<usize> = layout.cards.iter().map(|placed| placed.card).collect();
    prop_assert_eq!(placed, if is_online { expected } else { Vec::new() });
    for (position, placed) in layout.cards.iter().enumerate() {
        let card = &machine.cards[placed.card];
        // Each CPU exists, is online, is the first online thread of its core, and occurs once.
        let distinct: BTreeSet<CpuId> = placed.queues.iter().chain(&placed.rps).copied().collect();
        prop_assert_eq!(distinct.len(), placed.queues.len() + placed.rps.len());
        for cpu in &distinct {
            let found =
                machine.cpus.iter().find(|other| (other.group, other.number) == *cpu).unwrap();
            prop_assert!(found.is_online);
            let is_first = machine
                .cpus
                .iter()
                .filter(|other| other.core == found.core && other.is_online)
                .all(|other| other.thread >= found.thread);
            prop_assert!(is_first);
            prop_assert_eq!(found.node, placed.node);
        }
        // It is on its node where that has CPUs.
        let has_cores = all.iter().any(|core| Some(core.node) == card.node);
        prop_assert!(!has_cores || card.node == Some(placed.node));
        // The hardware has the queues.
        prop_assert!(!placed.queues.is_empty());
        prop_assert!(placed.queues.len() as u32 <= card.queues_max.unwrap_or(u32::MAX).max(1));
        // No core is shared while another that would do is free.
        let is_shared = layout.cards.iter().enumerate().any(|(other, card)| {
            other != position && card.queues.iter().any(|cpu| placed.queues.contains(cpu))
        });
        if is_shared {
            prop_assert!(!free(card.node.filter(|_| has_cores)));
            prop_assert_eq!(placed.queues.len(), 1);
        }
        // No core is left while an adapter could use it, on Linux, where no range limits.
        let could_grow = (placed.queues.len() as u32) < card.queues_max.unwrap_or(u32::MAX)
            && share::fewest(placed.table_entries, placed.queues.len() as u32 + 1)
                > placed.queues.len() as u32;
        if machine.system == System::Linux && could_grow && !placed.notes.iter().any(is_rounded) {
            prop_assert!(!free(Some(placed.node)));
        }
        check_range(machine, placed, &all)?;
    }
    Ok(())
}

fn is_rounded(note: &Note) -> bool {
    matches!(note, Note::FewerSuffice { .. })
}

/// A range of Windows has exactly the adapter's cores, in one group.
fn check_range(
    machine: &Machine,
    placed: &AdapterLayout,
    all: &[Core],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(placed.range.is_some(), machine.system == System::Windows);
    if let Some(range) = placed.range {
        prop_assert_eq!(range.base.0, range.last.0);
        prop_assert!(range.base <= range.last && range.last.1 < 64);
        let inside: Vec<CpuId> = all
            .iter()
            .map(|core| core.first)
            .filter(|cpu| (range.base..=range.last).contains(cpu))
            .collect();
        prop_assert_eq!(&inside, &placed.queues);
        prop_assert_eq!(range.processors_max as usize, placed.queues.len());
        prop_assert!(range.processors_max <= WINDOWS_PROCESSORS_MAX);
        prop_assert!(placed.rps.is_empty());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_layout_breaks_a_rule(machine in machines()) {
        check(&machine)?;
    }
}
