//! Each finding on the smallest machine that has it, and on one that just does not.

use serde_json::json;

use super::*;
use crate::cores::read::{RssProcessor, SoftnetRow, read};
use crate::cores::topology::{Cpu, Kind, System};

mod servers;

/// Two sockets, each a node of four cores with two threads: CPU 0-7 on node 0, 8-15 on node 1, threads next to each other.
fn machine(system: System) -> Machine {
    let cpu = |number: u32| Cpu {
        number,
        socket: number / 8,
        node: number / 8,
        core: number / 2,
        thread: number % 2,
        is_online: true,
        ..Cpu::default()
    };
    Machine { system, cpus: (0..16).map(cpu).collect(), ..Machine::default() }
}

/// An adapter of Linux on node 0 with its queues on these CPUs and a table of 128 entries.
fn linux(name: &str, cpus: &[u32]) -> Adapter {
    let queues = u32::try_from(cpus.len()).unwrap();
    let mut card = Adapter {
        name: name.to_owned(),
        node: Some(0),
        queues_max: Some(16),
        ..Adapter::default()
    };
    card.rss.queues = Some(queues);
    card.rss.queue_table = (0..128).map(|entry| entry % queues).collect();
    card.rss.interrupts = (40..).zip(cpus.iter().map(|cpu| vec![*cpu])).collect();
    card
}

/// An adapter of Windows with this table.
fn windows(name: &str, queues: u32, table: &[u32]) -> Adapter {
    let mut card = Adapter { name: name.to_owned(), ..Adapter::default() };
    card.rss.is_enabled = Some(true);
    card.rss.queues = Some(queues);
    card.rss.processor_table = table.iter().map(|number| (0, *number)).collect();
    card
}

fn on_linux(cards: &[Adapter]) -> Machine {
    Machine { cards: cards.to_vec(), ..machine(System::Linux) }
}

fn on_windows(cards: &[Adapter]) -> Machine {
    Machine { cards: cards.to_vec(), ..machine(System::Windows) }
}

/// Kind and evidence.
type Trouble = (FindingKind, Json);

pub(crate) fn trouble(finding: Finding) -> Trouble {
    (finding.kind, Json::Object(finding.details.evidence))
}

fn troubles(machine: &Machine) -> Vec<(Severity, Trouble)> {
    let of = |found: Finding| (found.severity().unwrap(), trouble(found));
    find(machine).into_iter().map(of).collect()
}

/// Only this finding, of this severity.
#[track_caller]
fn only(machine: &Machine, severity: Severity, trouble: Trouble) {
    assert_eq!(troubles(machine), [(severity, trouble)]);
}

#[track_caller]
fn nothing(machine: &Machine) {
    assert_eq!(troubles(machine), []);
}

fn changed(card: &Adapter, change: impl Fn(&mut Adapter)) -> Machine {
    let mut card = card.clone();
    change(&mut card);
    on_linux(&[card])
}

#[test]
fn one_processor() {
    let trouble = (
        FindingKind::OneProcessor,
        json!({ "processor": {"group": 0, "number": 2}, "queues": 4, "queues_max": 16 }),
    );
    only(&on_linux(&[linux("eth0", &[2, 2, 2, 2])]), Severity::High, trouble);
    nothing(&on_linux(&[linux("eth0", &[2, 2, 2, 4])]));
}

/// An interrupt that may go anywhere is where its counts are.
#[test]
fn one_processor_by_counts() {
    let mut card = linux("eth0", &[2, 2]);
    for (_, cpus) in &mut card.rss.interrupts {
        *cpus = vec![2, 4];
    }
    card.rss.interrupt_counts = vec![vec![(2, 90), (4, 10)], vec![(2, 70), (4, 30)]];
    assert!(matches!(
        &troubles(&on_linux(&[card.clone()]))[..],
        [(_, (FindingKind::OneProcessor, _))]
    ));
    card.rss.interrupt_counts = vec![vec![(2, 90), (4, 10)], vec![(2, 50), (4, 50)]];
    nothing(&on_linux(&[card]));
}

/// The fault of a real host: 16 queues, and a table of two CPUs.
#[test]
fn a_table_of_two_processors_for_16_queues() {
    let trouble = (FindingKind::FewQueuesInTable, json!({ "used": 2, "queues": 16, "entries": 4 }));
    only(&on_windows(&[windows("A", 16, &[2, 4, 2, 4])]), Severity::High, trouble);
    nothing(&on_windows(&[windows("A", 2, &[2, 4, 2, 4])]));
}

/// The other one: 63 rings (ixgbe), and a table that can name 16.
#[test]
fn a_table_of_16_of_63_rings() {
    let text = "RX flow hash indirection table for eth0 with 63 RX ring(s):\n 0: 0 1 2 3 4 5 6 7\n 8: 8 9 10 11 12 13 14 15\n";
    let of = |text: &str| crate::cores::assemble::assemble(&read(text.as_bytes()).unwrap().pieces);
    only(
        &of(text),
        Severity::Medium,
        (FindingKind::FewQueuesInTable, json!({ "used": 16, "queues": 63, "entries": 16 })),
    );
    nothing(&of(&text.replace("63", "16")));
}

#[test]
fn the_host_of_80_processors_has_no_fault_but_processor_0() {
    let output = crate::cores::read::tests::output("Get-NetAdapterRss_ConnectX3Pro_80cpu.txt");
    let Some(reading) = output else { return };
    let machine = crate::cores::assemble::assemble(&reading.pieces);
    only(&machine, Severity::Low, (FindingKind::FirstProcessor, json!({ "cards": 1 })));
}

#[test]
fn sibling_threads() {
    only(
        &on_linux(&[linux("eth0", &[2, 3])]),
        Severity::Medium,
        (FindingKind::SiblingThreads, json!({ "processors": 2, "cores": 1 })),
    );
    nothing(&on_linux(&[linux("eth0", &[2, 4])]));
}

#[test]
fn foreign_node() {
    let trouble = |foreign| {
        (FindingKind::ForeignNode, json!({ "foreign": foreign, "processors": 2, "node": 0 }))
    };
    only(&on_linux(&[linux("eth0", &[2, 8])]), Severity::Medium, trouble(1));
    only(&on_linux(&[linux("eth0", &[8, 10])]), Severity::High, trouble(2));
    nothing(&changed(&linux("eth0", &[8, 10]), |card| card.node = Some(1)));
    nothing(&changed(&linux("eth0", &[8, 10]), |card| card.node = None));
}

/// Windows says the distance itself.
#[test]
fn foreign_node_by_distance() {
    let mut card = windows("A", 2, &[2, 4]);
    let near = |number| RssProcessor { group: 0, number, distance: 0 };
    card.rss.processors = vec![near(2), RssProcessor { group: 0, number: 4, distance: 32_767 }];
    let trouble = (
        FindingKind::ForeignNode,
        json!({ "foreign": 1, "processors": 2, "distance_max": 32_767 }),
    );
    only(&on_windows(&[card.clone()]), Severity::Medium, trouble);
    card.rss.processors = vec![near(2), near(4)];
    nothing(&on_windows(&[card]));
}

#[test]
fn shared_cores() {
    let trouble = (FindingKind::SharedCores, json!({ "other": "eth1", "cores": 1 }));
    // CPU 4 and CPU 5 are threads of one core.
    only(&on_linux(&[linux("eth0", &[2, 4]), linux("eth1", &[5, 6])]), Severity::Medium, trouble);
    nothing(&on_linux(&[linux("eth0", &[2, 4]), linux("eth1", &[6, 1])]));
}

#[test]
fn first_processor() {
    only(
        &on_linux(&[linux("eth0", &[0, 2])]),
        Severity::Low,
        (FindingKind::FirstProcessor, json!({ "cards": 1 })),
    );
    let both = troubles(&on_linux(&[linux("eth0", &[0, 2]), linux("eth1", &[0, 4])]));
    assert!(
        both.contains(&(Severity::Medium, (FindingKind::FirstProcessor, json!({ "cards": 2 }))))
    );
    nothing(&on_linux(&[linux("eth0", &[2, 4])]));
}

#[test]
fn rss_off() {
    let mut card = windows("A", 4, &[2, 4, 6, 8]);
    nothing(&on_windows(std::slice::from_ref(&card)));
    card.rss.is_enabled = Some(false);
    only(&on_windows(&[card]), Severity::High, (FindingKind::RssOff, json!({})));
}

/// Linux has no switch: one queue of many is off.
#[test]
fn one_queue_of_many_is_rss_off() {
    let mut card = Adapter { name: "eth0".to_owned(), queues_max: Some(16), ..Adapter::default() };
    card.rss.queues = Some(1);
    only(
        &on_linux(std::slice::from_ref(&card)),
        Severity::High,
        (FindingKind::RssOff, json!({ "queues_max": 16 })),
    );
    card.queues_max = Some(1);
    nothing(&on_linux(&[card]));
}

#[test]
fn the_profile_ignores_what_is_set() {
    let card = |profile: &str, node| {
        let mut card = windows("A", 2, &[2, 4]);
        card.rss.profile = Some(profile.to_owned());
        card.rss.node = node;
        card.rss.base = Some((0, 2));
        card.rss.last = Some((0, 6));
        on_windows(&[card])
    };
    let trouble = |profile: &str, settings: &[&'static str]| {
        (FindingKind::ProfileIgnores, json!({ "profile": profile, "settings": settings }))
    };
    only(&card("NUMAStatic", Some(1)), Severity::Medium, trouble("NUMAStatic", &["NumaNode"]));
    let balanced = trouble("Balanced", &["BaseProcessorNumber", "MaxProcessorNumber"]);
    only(&card("Balanced", None), Severity::Medium, balanced);
    nothing(&card("ClosestStatic", Some(1)));
    nothing(&card("NUMAStatic", None));
}

#[test]
fn uneven_table() {
    let trouble = (
        FindingKind::UnevenTable,
        json!({ "entries": 128, "targets": 3, "least": 42, "most": 43 }),
    );
    only(&on_linux(&[linux("eth0", &[2, 4, 6])]), Severity::Low, trouble);
    nothing(&on_linux(&[linux("eth0", &[2, 4])]));
    // Eight entries for three: one has a third less.
    let mut card = linux("eth0", &[2, 4, 6]);
    card.rss.queue_table.truncate(8);
    only(
        &on_linux(&[card]),
        Severity::Medium,
        (FindingKind::UnevenTable, json!({ "entries": 8, "targets": 3, "least": 2, "most": 3 })),
    );
}

#[test]
fn more_processors_than_queues() {
    let trouble = (FindingKind::MoreProcessorsThanQueues, json!({ "processors": 3, "queues": 2 }));
    only(&on_windows(&[windows("A", 2, &[2, 4, 6])]), Severity::Medium, trouble);
    nothing(&on_windows(&[windows("A", 3, &[2, 4, 6])]));
}

#[test]
fn irqbalance() {
    let with = |irqbalance, banned: &[u32]| Machine {
        irqbalance,
        irqbalance_banned: banned.to_vec(),
        ..on_linux(&[linux("eth0", &[2, 4])])
    };
    let trouble =
        |pinned| (FindingKind::IrqbalanceActive, json!({ "interrupts": 2, "pinned": pinned }));
    only(&with(Some(true), &[]), Severity::Medium, trouble(2));
    only(&with(Some(true), &[40]), Severity::Medium, trouble(1));
    nothing(&with(Some(true), &[40, 41]));
    nothing(&with(Some(false), &[]));
}

#[test]
fn interrupts_float() {
    let mut machine =
        changed(&linux("eth0", &[2, 4]), |card| card.rss.interrupts[1].1 = vec![4, 6]);
    nothing(&machine);
    machine.irqbalance = Some(false);
    only(&machine, Severity::Low, (FindingKind::InterruptsFloat, json!({ "interrupts": 1 })));
}

#[test]
fn rps_on_rss() {
    let rps = |card: &mut Adapter| card.rss.rps = vec![vec![6, 7], vec![]];
    only(
        &changed(&linux("eth0", &[2, 4]), rps),
        Severity::Low,
        (FindingKind::RpsOnRss, json!({ "queues": 2, "processors": 2 })),
    );
    nothing(&changed(&linux("eth0", &[2, 4]), |card| card.rss.rps = vec![vec![], vec![]]));
    // One queue needs it.
    let one = changed(&linux("eth0", &[2]), |card| {
        rps(card);
        card.queues_max = Some(1);
    });
    assert!(!troubles(&one).iter().any(|(_, trouble)| trouble.0 == FindingKind::RpsOnRss));
}

#[test]
fn xps_missing() {
    let card = linux("eth0", &[2, 4]);
    only(
        &changed(&card, |card| card.rss.xps = vec![vec![]; 2]),
        Severity::Low,
        (FindingKind::XpsMissing, json!({ "queues": 2 })),
    );
    nothing(&changed(&card, |card| card.rss.xps = vec![vec![2], vec![]]));
    nothing(&changed(&card, |card| card.rss.xps = vec![vec![]]));
}

#[test]
fn teamed() {
    let card = linux("eth0", &[2, 4]);
    let trouble = (FindingKind::Teamed, json!({ "master": "bond0" }));
    nothing(&on_linux(std::slice::from_ref(&card)));
    let mut team = card.clone();
    team.name = "bond0".to_owned();
    // A team and its member have the same CPUs, which is not a finding.
    let member = Adapter { master: Some("bond0".to_owned()), ..card };
    only(&on_linux(&[member, team]), Severity::Medium, trouble);
}

#[test]
fn moderation() {
    let with = |is_adaptive, delay, frames| {
        changed(&linux("eth0", &[2, 4]), move |card| {
            card.moderation.is_adaptive = Some(is_adaptive);
            card.moderation.delay_usecs = Some(delay);
            card.moderation.frames = Some(frames);
        })
    };
    only(&with(false, 0, 0), Severity::Medium, (FindingKind::ModerationOff, json!({})));
    nothing(&with(true, 0, 0));
    nothing(&with(false, 0, 32));
    only(
        &with(false, 201, 0),
        Severity::Medium,
        (FindingKind::ModerationHigh, json!({ "delay_usecs": 201 })),
    );
    nothing(&with(false, 200, 0));
    nothing(&with(true, 201, 0));
    only(
        &changed(&linux("eth0", &[2, 4]), |card| card.moderation.is_on = Some(false)),
        Severity::Medium,
        (FindingKind::ModerationOff, json!({})),
    );
}

#[test]
fn ring_losses() {
    let with = |frames, received| {
        changed(&linux("eth0", &[2, 4]), move |card| {
            card.losses =
                vec![("rx_missed_errors".to_owned(), frames), ("rx_dropped".to_owned(), 1)];
            card.received = received;
        })
    };
    let severity = |machine: &Machine| {
        let found = troubles(machine);
        assert!(
            matches!(&found[..], [(_, (FindingKind::RingLosses, of))] if of["counter"] == "rx_missed_errors")
        );
        found[0].0
    };
    assert_eq!(severity(&with(10, Some(10_000))), Severity::High);
    assert_eq!(severity(&with(10, Some(10_001))), Severity::Medium);
    assert_eq!(severity(&with(10, Some(10_000_001))), Severity::Low);
    assert_eq!(severity(&with(10, None)), Severity::Medium);
    nothing(&changed(&linux("eth0", &[2, 4]), |card| {
        card.losses.push(("rx_dropped".to_owned(), 0))
    }));
}

#[test]
fn squeezes() {
    let with = |dropped, squeezed| {
        let row = SoftnetRow { cpu: 2, processed: 100_000, dropped, squeezed, rps: None };
        Machine { softnet: vec![SoftnetRow::default(), row], ..on_linux(&[linux("eth0", &[2, 4])]) }
    };
    let trouble = |dropped, squeezed| {
        (
            FindingKind::Squeezed,
            json!({ "processors": 1, "squeezed": squeezed, "dropped": dropped, "processed": 100_000 }),
        )
    };
    only(&with(0, 100), Severity::Medium, trouble(0, 100));
    nothing(&with(0, 99));
    only(&with(1, 0), Severity::Medium, trouble(1, 0));
    only(&with(100, 0), Severity::High, trouble(100, 0));
}

#[test]
fn filters_power_and_virtual_adapters() {
    let card = linux("eth0", &[2, 4]);
    let filters = |is_ntuple| (FindingKind::FlowFilters, json!({ "is_ntuple": is_ntuple }));
    only(
        &changed(&card, |card| card.has_ntuple_filters = Some(true)),
        Severity::Low,
        filters(true),
    );
    only(
        &changed(&card, |card| card.has_flow_director = Some(true)),
        Severity::Low,
        filters(false),
    );
    nothing(&changed(&card, |card| card.has_flow_director = Some(false)));
    only(
        &changed(&card, |card| card.kind = Kind::Virtual),
        Severity::Low,
        (FindingKind::VirtualAdapter, json!({})),
    );
    only(
        &changed(&card, |card| card.kind = Kind::VirtualFunction),
        Severity::Low,
        (FindingKind::VirtualFunction, json!({})),
    );
    let governor = |name: &str| Machine { governors: vec![name.to_owned()], ..on_linux(&[]) };
    only(
        &governor("powersave"),
        Severity::Low,
        (FindingKind::PowerSaving, json!({ "governor": "powersave" })),
    );
    nothing(&governor("performance"));
}

#[test]
fn a_finding_as_json_has_its_evidence_and_its_sentence() {
    let found = find(&on_windows(&[windows("NIC 1", 16, &[2, 4, 2, 4])]));
    let json = serde_json::to_value(&found[0]).unwrap();
    let expected = json!({
        "card": "NIC 1", "severity": "high", "trouble": "few-queues-in-table",
        "evidence": { "used": 2, "queues": 16, "entries": 4 },
        "what": "The indirection table of 4 entries uses 2 of 16 queues.",
        "first_ns": null, "last_ns": null, "remedies": [],
    });
    assert_eq!(json, expected);
}

/// As a trace shows it: the CPUs that really received.
#[test]
fn receive_work_on_few_processors_is_found_by_its_time() {
    let of = |flooded: &[u32], percent: u64| {
        let mut machine = machine(System::Windows);
        let one = |number| crate::cores::load::ReceivedCpu {
            cpu: (0, number),
            receive_ns: if flooded.contains(&number) { percent * 10_000_000 } else { 0 },
            other_ns: 0,
            is_idle_known: false,
        };
        machine.received = Some(crate::cores::load::Received {
            length_ns: 1_000_000_000,
            cpus: (0..16).map(one).collect(),
            ..Default::default()
        });
        let found = find(&machine);
        found.iter().find(|one| one.kind == FindingKind::ReceivedOnFew).cloned()
    };
    let found = of(&[0, 2], 92).unwrap();
    assert_eq!(found.severity(), Some(Severity::High));
    assert_eq!(
        found.what,
        "In 1.0 s, nearly all receive work ran on 2 of 16 CPUs (0, 2), the busiest with 92 % of its time."
    );
    assert_eq!(of(&[0, 2], 10), None);
    assert_eq!(of(&[3], 18).unwrap().severity(), Some(Severity::Low));
    assert!(of(&[3], 18).unwrap().what.ends_with("(3), which spent 18 % of its time."));
    let all: Vec<u32> = (0..16).collect();
    assert_eq!(of(&all, 80), None);
}

/// ixgbe: 63 queues for its flow director, and a table of 128 entries of four bits.
#[test]
fn more_queues_than_the_table_can_name() {
    let text = |table: u32| {
        let mut text = "# ethtool -i eth0\ndriver: ixgbe\nChannel parameters for eth0:\nPre-set maximums:\nCombined: 63\n\
             Current hardware settings:\nCombined: 63\nRX flow hash indirection table for eth0 with 63 RX ring(s):\n"
            .to_owned();
        for first in (0..table).step_by(8) {
            let entries: Vec<String> =
                (first..first + 8).map(|entry| (entry % 16).to_string()).collect();
            text.push_str(&format!("{first}: {}\n", entries.join(" ")));
        }
        let mut made = crate::cores::assemble::assemble(&read(text.as_bytes()).unwrap().pieces);
        made.cpus = (0..64)
            .map(|number| Cpu { number, core: number, is_online: true, ..Cpu::default() })
            .collect();
        made
    };
    let old = text(128);
    assert_eq!(old.cards[0].rss_queue_limit, Some(16));
    let found = troubles(&old);
    assert!(
        found.contains(&(
            Severity::Low,
            (FindingKind::QueuesBeyondTable, json!({ "queues": 63, "limit": 16 }))
        )),
        "{found:?}"
    );
    assert_eq!(crate::cores::layout::plan(&old).cards[0].queues.len(), 16);
    let new = text(512);
    assert_eq!(new.cards[0].rss_queue_limit, Some(64));
    assert!(troubles(&new).iter().all(|(_, trouble)| trouble.0 != FindingKind::QueuesBeyondTable));
    assert!(crate::cores::layout::plan(&new).cards[0].queues.len() > 16);
}
