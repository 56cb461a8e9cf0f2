//! Machines of the trials: plans that took service or redundancy away once.

use super::super::super::layout::{self, tests};
use super::super::super::processes::Process;
use super::super::super::toeplitz::default_table;
use super::super::super::topology::{Machine, Rss, System};
use super::super::{Interruption, Kind, Reason, Refusal, Request, commands};
use super::hostile;
use super::simulator::{Settings, Simulated};
use crate::cores::prediction::{Connection, predict};
use crate::cores::toeplitz::MICROSOFT_KEY;

/// Four ports of one device, queue k on CPU k over several nodes, and no node known: they stay as they are. With the node of
/// one port, all are on it, whole.
#[test]
fn ports_of_one_device_have_one_node_or_no_plan() {
    let numbering = tests::Numbering::Neighbours;
    let mut machine = tests::machine(System::Linux, 4, 18, 1, numbering);
    for port in 0..4 {
        let mut card = tests::card(&format!("eth{port}"), None, Some(128));
        card.bus = Some(format!("0000:c3:00.{port}"));
        card.rss = Rss {
            queues: Some(60),
            queue_table: default_table(512, 60),
            interrupts: (0..60).map(|queue| (100 * port + queue, vec![queue])).collect(),
            ..Rss::default()
        };
        machine.cards.push(card);
    }
    let plan = layout::plan(&machine);
    let commands_of = commands(&machine, &plan, &Request::default());
    assert_eq!((plan.cards.len(), commands_of.steps.len()), (0, 0));
    assert!(commands_of.refused.iter().all(|one| one.reason == Reason::NodeUnknown));
    assert_eq!(commands_of.refused.len(), 4);
    machine.cards[2].node = Some(1);
    let plan = layout::plan(&machine);
    assert_eq!(plan.cards.iter().map(|card| card.node).collect::<Vec<_>>(), [1; 4]);
    let cpus: std::collections::BTreeSet<_> =
        plan.cards.iter().flat_map(|card| card.queues.iter().map(|cpu| cpu.1)).collect();
    assert!(cpus.iter().all(|cpu| (18..36).contains(cpu)), "{cpus:?}");
    let commands_of = commands(&machine, &plan, &Request::default());
    let kinds = |name: &str| -> Vec<Kind> {
        let of = commands_of.steps.iter().filter(|step| step.details.card.as_deref() == Some(name));
        of.map(|step| step.details.kind).collect()
    };
    assert_eq!(kinds("eth3"), [Kind::Table, Kind::Interrupts]);
}

/// Isolated CPUs, the control group of the service, and options of irqbalance are respected.
#[test]
fn what_others_decided_about_cpus_is_respected() {
    let numbering = tests::Numbering::Neighbours;
    let mut machine = tests::machine(System::Linux, 2, 8, 1, numbering);
    machine.isolated = vec![12, 13, 14, 15];
    machine.irqbalance = Some(true);
    machine.irqbalance_options = vec!["--policyscript=/etc/p.sh".into(), "$(reboot)".into()];
    let mut card = tests::card("eth0", Some(1), Some(8));
    card.rss = Rss {
        queues: Some(8),
        queue_table: default_table(128, 8),
        interrupts: (0..8).map(|queue| (40 + queue, vec![0])).collect(),
        ..Rss::default()
    };
    machine.cards = vec![card];
    let process = |id, cpuset: Vec<u32>, unit: &str| Process {
        id,
        name: "smbd".into(),
        last: Some((0, 0)),
        allowed: (0..8).map(|cpu| (0, cpu)).collect(),
        cgroup: Some(format!("/system.slice/{unit}.service")),
        cpuset,
        ..Process::default()
    };
    machine.processes.list =
        vec![process(7, vec![8, 9, 12], "smbd"), process(8, (0..8).collect(), "other")];
    let plan = layout::plan(&machine);
    assert!(plan.cards[0].queues.iter().all(|cpu| (8..12).contains(&cpu.1)), "{plan:?}");
    let script = commands(&machine, &plan, &Request::default()).apply_script();
    assert!(script.contains("place_service 'smbd.service' 8-9 1"), "{script}");
    // On these CPUs the other service would not start.
    assert!(
        !script.contains("place_service 'other.service'") && !script.contains("place_process 8")
    );
    assert!(script.contains("ban_interrupts '--policyscript=/etc/p.sh' "), "{script}");
}

/// A management port of 1 Gbit/s is left alone, and no number of queues is set that its driver does not list.
#[test]
fn numbers_of_queues_are_those_of_the_driver() {
    let mut machine = hostile("Slot 4", System::Windows);
    machine.cards[0].queues_max = Some(4);
    machine.cards[0].queue_counts = vec![1, 2, 4];
    machine.cards[0].rss.queues = Some(1);
    let line = |machine: &Machine| {
        let commands = commands(machine, &layout::plan(machine), &Request::default());
        commands.steps.last().map(|step| step.apply.join("\n")).unwrap_or_default()
    };
    assert!(line(&machine).contains("-NumberOfReceiveQueues 4"), "{}", line(&machine));
    machine.cards[0].queues_max = None;
    assert!(!line(&machine).contains("NumberOfReceiveQueues"), "{}", line(&machine));
    machine.cards[0].bits_per_second = Some(1_000_000_000);
    let mut fast = hostile("Slot 5", System::Windows).cards.remove(0);
    fast.bits_per_second = Some(100_000_000_000);
    machine.cards.push(fast);
    let commands = commands(&machine, &layout::plan(&machine), &Request::default());
    let minor = Refusal { card: "Slot 4".into(), reason: Reason::Minor };
    assert!(commands.refused.contains(&minor), "{:?}", commands.refused);
    assert!(commands.steps.iter().all(|step| step.details.card.as_deref() == Some("Slot 5")));
}

/// The command next to a prediction keeps the key that was read, and nothing else changes.
#[test]
fn the_command_that_keeps_a_key_sets_this_key() {
    let mut machine = hostile("eth0", System::Linux);
    machine.cards[0].rss.key = MICROSOFT_KEY.to_vec();
    let connection = Connection {
        card: 0,
        client: [192, 0, 2, 1].into(),
        client_port: 50_000,
        server: [192, 0, 2, 2].into(),
        server_port: 445,
        bytes: 1,
        packets: 1,
    };
    let prediction = predict(&machine, &layout::plan(&machine), &[connection]);
    let command = prediction.cards[0].keep_key.as_deref().unwrap();
    let mut found = Simulated::new(7, System::Linux, &[(0, 0)], Some(4));
    let mut settings = Settings::default();
    settings.adapters.insert("eth0".into(), found.clone());
    settings.run(&format!("#!/bin/sh\n# smbscope\n{command}\n")).unwrap();
    let after = settings.adapters.remove("eth0").unwrap();
    assert!(
        after.key.starts_with("6d:5a:56:da:") && after.key.len() == 40 * 3 - 1,
        "{}",
        after.key
    );
    found.key.clone_from(&after.key);
    assert_eq!(after, found);
}

/// The commands of a server on another node than its adapter, and their undo from what was found.
#[test]
fn a_server_is_placed_and_taken_back() {
    let mut machine =
        layout::tests::machine(System::Linux, 2, 4, 1, layout::tests::Numbering::Neighbours);
    let mut card = layout::tests::card("eth0", Some(1), Some(4));
    card.rss = Rss {
        queues: Some(4),
        queue_table: default_table(128, 4),
        interrupts: (0..4).map(|queue| (40 + queue, vec![4 + queue])).collect(),
        ..Rss::default()
    };
    machine.cards = vec![card];
    let process = |id, allowed: std::ops::Range<u32>, cgroup: &str| Process {
        id,
        name: "smbd".into(),
        last: Some((0, allowed.start)),
        allowed: allowed.map(|cpu| (0, cpu)).collect(),
        cgroup: Some(cgroup.into()),
        ..Process::default()
    };
    machine.processes.list = vec![
        process(7, 0..8, "/system.slice/smbd.service"),
        process(8, 4..8, "/system.slice/smbd.service"),
        process(9, 0..4, "/system.slice/--force .service"),
    ];
    let placing = commands(&machine, &layout::plan(&machine), &Request::default());
    let lines = |kind, undo| -> Vec<&str> {
        let steps = placing.steps.iter().filter(|step| step.details.kind == kind);
        steps
            .flat_map(|step| if undo { &step.undo } else { &step.apply })
            .map(String::as_str)
            .collect()
    };
    assert_eq!(lines(Kind::ServerUnit, false), ["place_service 'smbd.service' 4-7 1"]);
    assert_eq!(
        lines(Kind::ServerUnit, true),
        [
            "rm -f '/etc/systemd/system/smbd.service.d/smbscope-cores.conf'",
            "systemctl daemon-reload"
        ]
    );
    assert_eq!(
        lines(Kind::ServerProcesses, false),
        ["place_process 7 'smbd' 4-7", "place_process 9 'smbd' 4-7"]
    );
    assert_eq!(
        lines(Kind::ServerProcesses, true),
        ["place_process 7 'smbd' 0-7", "place_process 9 'smbd' 0-3"]
    );
    assert!(
        placing.steps.iter().all(
            |step| step.details.interrupts == Interruption::None || step.details.card.is_some()
        )
    );
    // Adapters that stay as they are receive on their node already: the processes go there. Where they receive on another
    // node, or it is not known where, the processes stay.
    let mut kept = placing.clone();
    let placed = layout::plan(&machine);
    kept.drop_without_gain(&machine, &placed);
    assert_eq!(kept.refused.last().map(|one| one.reason), Some(Reason::NoGain));
    assert!(kept.steps.len() == 2 && kept.steps.iter().all(|step| step.details.card.is_none()));
    for interrupts in [vec![(40, vec![0])], Vec::new()] {
        let mut elsewhere = machine.clone();
        elsewhere.cards[0].rss.interrupts = interrupts;
        let mut kept = commands(&elsewhere, &placed, &Request::default());
        kept.drop_without_gain(&elsewhere, &placed);
        assert_eq!(kept.steps, []);
    }
    // A bundle with another name, which a comment of the script would have as a line.
    let mut hostile = machine.clone();
    for process in &mut hostile.processes.list {
        process.name = "smbd\nreboot".into();
        process.cgroup = Some("/a\nreboot.service".into());
    }
    let renamed = commands(&hostile, &layout::plan(&hostile), &Request::default());
    assert!(!renamed.apply_script().contains("reboot"));
    // Adapters on both nodes: no place is right for all connections.
    machine.cards.push(layout::tests::card("eth1", Some(0), Some(4)));
    let placing = commands(&machine, &layout::plan(&machine), &Request::default());
    assert!(placing.steps.iter().all(|step| step.details.card.is_some()));
}
