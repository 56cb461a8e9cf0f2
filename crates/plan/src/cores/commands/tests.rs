//! A simulator of the settings: a plan's commands, read as text, change them as planned, and the undo restores them.

use proptest::prelude::*;

use super::super::layout::tests::machines;
use super::super::layout::{self, CpuId};
use super::super::processes::Process;
use super::super::toeplitz::{default_table, weight_table};
use super::super::topology::Rss;
use super::*;
use crate::script::{names, quote};

mod cases;
mod simulator;

use simulator::{Settings, Simulated};

/// Settings for a machine's adapters, by a seed each, and the machine as a reader would show it.
fn with_settings(mut machine: Machine, seeds: &[u64]) -> (Machine, Settings) {
    let online: Vec<CpuId> = machine
        .cpus
        .iter()
        .filter(|cpu| cpu.is_online)
        .map(|cpu| (cpu.group, cpu.number))
        .collect();
    let numbers = online.iter().map(|cpu| cpu.1).collect();
    let mut settings = Settings { flow_entries: 0, online: numbers, ..Settings::default() };
    settings.has_irqbalance = seeds.first().is_some_and(|seed| seed % 2 == 0);
    for (index, card) in machine.cards.iter_mut().enumerate() {
        let mut adapter =
            Simulated::new(seeds[index % seeds.len()], machine.system, &online, card.queues_max);
        adapter.first_irq = 100 * index as u32;
        card.rss = adapter.rss(machine.system);
        card.rss_queue_limit = adapter.table_max;
        settings.adapters.insert(card.name.clone(), adapter);
    }
    machine.irqbalance = Some(settings.has_irqbalance);
    if machine.system == System::Linux {
        add_processes(&mut machine, &mut settings, &online, seeds);
    }
    (machine, settings)
}

/// Processes of smbd, each allowed on some of the CPUs.
fn add_processes(machine: &mut Machine, settings: &mut Settings, online: &[CpuId], seeds: &[u64]) {
    for (id, seed) in (100..).zip(seeds.iter().take(4)) {
        let allowed: Vec<CpuId> = (0..)
            .zip(online)
            .filter(|(bit, _)| seed >> (bit % 60) & 1 == 1)
            .map(|(_, cpu)| *cpu)
            .collect();
        if let Some(last) = allowed.get(*seed as usize % allowed.len().max(1)) {
            settings.processes.insert(id, allowed.iter().map(|cpu| cpu.1).collect());
            let group = cpuset(seed, &allowed);
            if !group.is_empty() {
                settings.cpusets.insert(id, group);
            }
            machine.processes.list.push(Process {
                id,
                name: "smbd".into(),
                last: Some(*last),
                cgroup: (seed % 3 > 0).then(|| "/system.slice/smbd.service".into()),
                cpuset: cpuset(seed, &allowed),
                allowed,
                ..Process::default()
            });
        }
    }
}

/// The control group of some processes: no more than the CPUs that they may use.
fn cpuset(seed: &u64, allowed: &[CpuId]) -> Vec<u32> {
    let cpus = allowed.iter().map(|cpu| cpu.1);
    if seed.is_multiple_of(5) { cpus.collect() } else { Vec::new() }
}

/// Whatever was applied: each entry of a table is a queue, whose interrupt goes to a CPU that is online, if any is.
fn check_receives(settings: &Settings, system: System) -> Result<(), TestCaseError> {
    let is_checked = system == System::Linux && !settings.online.is_empty();
    for (name, adapter) in settings.adapters.iter().filter(|_| is_checked) {
        for &queue in &adapter.table {
            prop_assert!(queue < adapter.queues, "{}: queue {} of {}", name, queue, adapter.queues);
            let cpus = adapter.affinity.get(queue as usize);
            let is_served =
                cpus.is_some_and(|cpus| cpus.iter().any(|cpu| settings.online.contains(cpu)));
            prop_assert!(is_served, "{}: queue {} on {:?}", name, queue, cpus);
        }
    }
    Ok(())
}

fn request(settings: &Settings) -> Request {
    Request {
        management: Some("eth0".into()),
        flow_entries: Some(settings.flow_entries),
        flow_counts: settings
            .adapters
            .iter()
            .map(|(name, a)| (name.clone(), a.flow_counts.clone()))
            .collect(),
    }
}

/// What the layout wants of an adapter is there.
fn check_applied(placed: &layout::AdapterLayout, adapter: &Simulated) -> Result<(), TestCaseError> {
    if let Some(range) = placed.range {
        prop_assert!(adapter.is_enabled);
        prop_assert_eq!((adapter.base, adapter.last), (range.base, range.last));
        prop_assert_eq!(adapter.processors_max, range.processors_max);
        prop_assert_eq!(adapter.profile.as_str(), range.profile.name());
        prop_assert_eq!(adapter.node, range.node);
        prop_assert!(adapter.queues as usize >= placed.queues.len());
        return Ok(());
    }
    for (queue, cpus) in adapter.affinity.iter().enumerate() {
        prop_assert_eq!(cpus, &vec![placed.queues[queue % placed.queues.len()].1]);
    }
    let expected = default_table(adapter.table.len() as u32, placed.queues.len() as u32);
    prop_assert_eq!(&adapter.table, &expected);
    // Queues that serve transmit for their core; others for none.
    for (queue, cpus) in adapter.xps.iter().enumerate() {
        let cpu = placed.queues.get(queue);
        prop_assert!(
            cpu.is_none_or(|cpu| cpus.contains(&cpu.1)),
            "queue {} transmits for {:?}",
            queue,
            cpus
        );
    }
    let steering: Vec<u32> = placed.rps.iter().map(|cpu| cpu.1).collect();
    prop_assert!(adapter.rps.iter().all(|cpus| *cpus == steering));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_plan_is_applied_and_taken_back(
        machine in machines(),
        seeds in prop::collection::vec(any::<u64>(), 12),
    ) {
        let (machine, found) = with_settings(machine, &seeds);
        let layout = layout::plan(&machine);
        let commands = commands(&machine, &layout, &request(&found));
        let mut settings = found.clone();
        settings.run(&commands.apply_script()).map_err(TestCaseError::fail)?;
        for placed in &layout.cards {
            let refused = commands.refused.iter().any(|refusal| refusal.card == placed.name);
            // A plan is whole or absent.
            if refused {
                prop_assert_eq!(&settings.adapters[&placed.name], &found.adapters[&placed.name]);
            } else {
                check_applied(placed, &settings.adapters[&placed.name])?;
            }
        }
        check_receives(&settings, machine.system)?;
        let commanded = layout.clone().as_commanded(&commands);
        prop_assert!(commanded.cards.iter().all(|card| commands.refused.iter().all(|one| one.card != card.name)));
        let is_pinned = commands.steps.iter().any(|step| step.details.kind == Kind::Interrupts);
        prop_assert_eq!((settings.has_ban, settings.is_stopped), (is_pinned && found.has_irqbalance, false));
        if commands.steps.iter().any(|step| step.details.kind == Kind::ServerProcesses) {
            let node = machine.cards.iter().find_map(|card| card.node);
            let is_home = |cpu: &u32| {
                machine.cpus.iter().any(|other| other.number == *cpu && Some(other.node) == node && other.is_online)
            };
            // A control group without any of these CPUs keeps its processes where they are.
            for (id, cpus) in &settings.processes {
                let may_move = settings.cpusets.get(id).is_none_or(|group| group.iter().any(is_home));
                prop_assert!(!may_move || cpus.iter().all(is_home), "process {}: {:?}", id, cpus);
            }
        }
        settings.run(&commands.undo_script()).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&settings, &found);
        // The management address is last, and the steps of an adapter are together.
        let cards: Vec<_> = commands.steps.iter().filter_map(|step| step.details.card.as_deref()).collect();
        if cards.contains(&"eth0") {
            prop_assert_eq!(cards.last(), Some(&"eth0"));
        }
        let runs: Vec<_> = cards.chunk_by(|a, b| a == b).map(|run| run[0]).collect();
        let distinct: std::collections::BTreeSet<_> = runs.iter().collect();
        prop_assert_eq!(runs.len(), distinct.len());
        // Each step changes something and can be taken back.
        prop_assert!(commands.steps.iter().all(|step| step.apply != step.undo && !step.apply.is_empty()));
    }

    #[test]
    fn no_name_becomes_a_command(name in "\\PC{0,4}['\"$`;|&<>()\n\r\u{2018}-\u{201b}*\\[ ]{0,4}\\PC{0,4}") {
        if names::is_interface_name(&name) {
            prop_assert_eq!(simulator::words(&format!("x {}", quote::sh(&name)), System::Linux), Ok(vec!["x".into(), name.clone()]));
        }
        if names::is_alias(&name) {
            let line = format!("x {}", quote::powershell(&name));
            prop_assert_eq!(simulator::words(&line, System::Windows), Ok(vec!["x".into(), name.clone()]));
        }
        let machine = hostile(&name, System::Linux);
        let script = commands(&machine, &layout::plan(&machine), &Request::default()).apply_script();
        prop_assert!(name.is_empty() || names::is_interface_name(&name) || !script.contains("ethtool"));
    }
}

fn hostile(name: &str, system: System) -> Machine {
    let mut machine = layout::tests::machine(system, 1, 4, 1, layout::tests::Numbering::Neighbours);
    let mut card = layout::tests::card(name, Some(0), Some(4));
    card.rss = Rss {
        is_enabled: Some(true),
        queues: Some(2),
        base: Some((0, 0)),
        last: Some((0, 3)),
        queue_table: default_table(128, 2),
        interrupts: vec![(30, vec![0]), (31, vec![0])],
        ..Rss::default()
    };
    machine.cards = vec![card];
    machine
}

#[test]
fn names_are_quoted_or_refused() {
    for (name, system, is_refused) in [
        ("eth0", System::Linux, false),
        ("a'b$(reboot)", System::Linux, false),
        ("a;reboot", System::Linux, false),
        ("a\nreboot", System::Linux, true),
        ("../x", System::Linux, true),
        ("-h", System::Linux, true),
        ("a b", System::Linux, true),
        ("sixteen_bytes_xx", System::Linux, true),
        ("", System::Linux, true),
        ("Slot 4 Port 1", System::Windows, false),
        ("Bob\u{2019}s $card; 'x'", System::Windows, false),
        ("Ethernet*", System::Windows, true),
        ("Port [1]", System::Windows, true),
        ("a\nRemove-Item x", System::Windows, true),
        ("a`$b", System::Windows, true),
    ] {
        let machine = hostile(name, system);
        let commands = commands(&machine, &layout::plan(&machine), &Request::default());
        let expected = is_refused.then(|| Refusal { card: name.into(), reason: Reason::Name });
        assert_eq!(commands.refused.first(), expected.as_ref(), "{name:?}");
        assert_eq!(commands.steps.is_empty(), is_refused, "{name:?}");
    }
    assert_eq!(quote::sh("a'b"), r"'a'\''b'");
    assert_eq!(quote::powershell("a'b\u{2019}c"), "'a''b\u{2019}\u{2019}c'");
}

#[test]
fn a_script_of_windows_reads_as_documented() {
    let mut machine = hostile("Slot 4", System::Windows);
    machine.cards[0].rss.profile = Some("Conservative".into());
    machine.cards[0].rss.processors_max = Some(16);
    machine.cards[0].queues_max = Some(2);
    let commands = commands(&machine, &layout::plan(&machine), &Request::default());
    assert_eq!(
        commands.steps[0].apply,
        [
            "Set-NetAdapterRss -Name 'Slot 4' -Profile ClosestStatic -BaseProcessorGroup 0 -BaseProcessorNumber 1 \
          -MaxProcessorGroup 0 -MaxProcessorNumber 2 -MaxProcessors 2 -NumaNode 0"
        ]
    );
    assert_eq!(
        commands.steps[0].undo,
        [
            "Set-NetAdapterRss -Name 'Slot 4' -Profile Conservative -BaseProcessorGroup 0 -BaseProcessorNumber 0 \
          -MaxProcessorGroup 0 -MaxProcessorNumber 3 -MaxProcessors 16 -NumaNode 65535"
        ]
    );
    assert_eq!(commands.steps[0].details.interrupts, Interruption::AdapterRestart);
    assert!(commands.apply_script().contains("$status = (Get-NetAdapter -Name 'Slot 4').Status\n"));
    assert!(commands.apply_script().ends_with("Wait-Link 'Slot 4' $status\n"));
}

#[test]
fn what_is_unknown_or_cannot_be_restored_is_refused() {
    let reasons = |change: fn(&mut Rss), system| {
        let mut machine = hostile("eth0", system);
        change(&mut machine.cards[0].rss);
        let commands = commands(&machine, &layout::plan(&machine), &Request::default());
        commands.refused.iter().map(|refusal| refusal.reason).collect::<Vec<_>>()
    };
    assert_eq!(reasons(|_| {}, System::Linux), []);
    assert_eq!(reasons(|rss| rss.queues = None, System::Linux), [Reason::QueuesUnknown]);
    assert_eq!(reasons(|rss| rss.interrupts.clear(), System::Linux), [Reason::InterruptsUnknown]);
    assert_eq!(
        reasons(|rss| rss.interrupts[0].1.clear(), System::Linux),
        [Reason::InterruptsUnknown]
    );
    assert_eq!(reasons(|rss| rss.queue_table[0] = 1, System::Linux), [Reason::TableNotRestorable]);
    // What is refused has no step: a part of a plan is another plan.
    let mut machine = hostile("eth0", System::Linux);
    machine.cards[0].rss.interrupts.clear();
    let layout = layout::plan(&machine);
    let commands = commands(&machine, &layout, &Request::default());
    assert_eq!((commands.steps.len(), layout.as_commanded(&commands).cards.len()), (0, 0));
    assert_eq!(
        reasons(|rss| rss.queue_table[0] = u32::MAX, System::Linux),
        [Reason::TableNotRestorable]
    );
    assert_eq!(reasons(|rss| rss.base = None, System::Windows), [Reason::RangeUnknown]);
    assert_eq!(reasons(|rss| rss.is_enabled = None, System::Windows), [Reason::StateUnknown]);
}

#[test]
fn a_script_of_linux_is_valid_sh() {
    let mut machine = hostile("a'b$(x)", System::Linux);
    machine.irqbalance = Some(true);
    let commands = commands(&machine, &layout::plan(&machine), &Request::default());
    for script in [commands.apply_script(), commands.undo_script()] {
        let mut shell = std::process::Command::new("sh")
            .args(["-n", "-s"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("sh starts");
        std::io::Write::write_all(&mut shell.stdin.take().expect("a pipe"), script.as_bytes())
            .expect("sh reads");
        assert!(shell.wait().expect("sh ends").success(), "{script}");
        assert!(script.contains(r"'a'\''b$(x)'"), "{script}");
    }
}

#[test]
fn weights_restore_a_table_in_runs() {
    let table = weight_table(128, &[3, 1]).unwrap();
    let mut machine = hostile("eth0", System::Linux);
    machine.cards[0].rss.queue_table = table;
    let commands = commands(&machine, &layout::plan(&machine), &Request::default());
    let step = commands.steps.iter().find(|step| step.details.kind == Kind::Table).unwrap();
    assert_eq!(step.undo, ["ethtool -X 'eth0' weight 96 32"]);
    // A table that begins with another queue.
    machine.cards[0].rss.queues = Some(4);
    machine.cards[0].rss.interrupts = (30..34).map(|irq| (irq, vec![0])).collect();
    machine.cards[0].rss.queue_table =
        default_table(128, 2).iter().map(|queue| queue + 2).collect();
    let commands = super::commands(&machine, &layout::plan(&machine), &Request::default());
    let step = commands.steps.iter().find(|step| step.details.kind == Kind::Table).unwrap();
    assert_eq!(step.undo, ["ethtool -X 'eth0' start 2 equal 2"]);
}

/// The published case as commands: six adapters, two cores each, hyper-threads left out.
#[test]
fn the_published_case_has_its_bases_in_commands() {
    let mut machine =
        layout::tests::machine(System::Windows, 2, 6, 2, layout::tests::Numbering::ThreadsLast);
    for slot in 0..6 {
        let mut card = layout::tests::card(&format!("Slot {slot}"), Some(slot / 3), Some(8));
        card.rss = Rss {
            is_enabled: Some(true),
            queues: Some(8),
            profile: Some("NUMAStatic".into()),
            base: Some((0, 0)),
            last: Some((0, 23)),
            processors_max: Some(8),
            ..Rss::default()
        };
        machine.cards.push(card);
    }
    let request = Request { management: Some("Slot 0".into()), ..Request::default() };
    let commands = commands(&machine, &layout::plan(&machine), &request);
    let values: Vec<_> = commands
        .steps
        .iter()
        .map(|step| {
            let words = simulator::words(&step.apply[0], System::Windows).unwrap();
            let value =
                |name: &str| words[words.iter().position(|word| word == name).unwrap() + 1].clone();
            [
                value("-Name"),
                value("-BaseProcessorNumber"),
                value("-MaxProcessorNumber"),
                value("-NumaNode"),
            ]
            .join(" ")
        })
        .collect();
    assert_eq!(
        values,
        [
            "Slot 1 2 3 0",
            "Slot 2 4 5 0",
            "Slot 3 6 7 1",
            "Slot 4 8 9 1",
            "Slot 5 10 11 1",
            "Slot 0 0 1 0"
        ]
    );
    let json = serde_json::to_value(&commands).unwrap();
    assert_eq!(json["steps"][0]["kind"], "processors");
    assert_eq!(json["steps"][0]["interrupts"], "adapter-restart");
}

/// The functions of the script do what the lines say: on a process of this test.
#[cfg(target_os = "linux")]
#[test]
fn a_process_is_placed_by_the_script_and_taken_back() {
    let online = std::fs::read_to_string("/proc/self/status").unwrap();
    let found =
        online.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let first: String = found.chars().take_while(char::is_ascii_digit).collect();
    if first == found || std::process::Command::new("taskset").arg("-V").output().is_err() {
        return smbscope_testing::skip!("placing a process: one CPU only, or no taskset");
    }
    let mut sleeper = std::process::Command::new("sleep").arg("30").spawn().unwrap();
    let id = sleeper.id();
    let allowed = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.unwrap().trim().to_owned()
    };
    let run = |program: &str, cpus: &str| {
        let mut script = linux::preamble("a test").join("\n");
        script.push_str(&format!("\nplace_process {id} {program} {cpus}\n"));
        let status = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(status.status.success(), "{status:?}");
        allowed()
    };
    // The name is there once the program has started.
    let comm = || std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    let began = std::time::Instant::now();
    while comm().trim() != "sleep" && began.elapsed().as_secs() < 10 {
        std::thread::yield_now();
    }
    let results = [run("smbd", &first), run("sleep", &first), run("sleep", found)];
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(results, [found.to_owned(), first, found.to_owned()]);
}
