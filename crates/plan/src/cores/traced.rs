//! A machine from the system configuration in a trace of its CPUs.
//!
//! Owns which CPUs and adapters such a trace describes, and what has to be assumed: a trace of Windows says which
//! CPUs have hyper-threads, not which of them share a core, and no setting of receive-side scaling.
//!
//! Windows numbers the hardware threads of a core one after the other (Microsoft, "Introduction to Receive Side
//! Scaling", figure of CPUs; `SystemConfig_CPU`, HyperThreadingFlag).

use std::collections::{BTreeMap, BTreeSet};

use super::assemble::{CARDS_MAX, settle};
use super::read::CPUS_MAX;
use super::topology::{Adapter, Cpu, Machine, System};

/// Hardware threads of a core of Windows' x86 machines with hyper-threading.
const THREADS: u32 = 2;

/// What a trace says about a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub system: System,
    pub processors: Vec<Processor>,
    pub devices: Vec<Device>,
}

/// A CPU of a trace. What is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// As events count it, over all groups.
    pub index: u64,
    /// Windows: group, and number in it.
    pub group: Option<(u32, u32)>,
    pub node: Option<u32>,
    pub socket: Option<u32>,
    pub core: Option<u32>,
    pub thread: Option<u32>,
    pub is_hyper_threaded: Option<bool>,
}

/// A device of a trace: a network adapter, or something above one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Windows: description of the interface. Linux: name of the interface.
    pub name: String,
    /// Windows: plug and play's instance id, which begins with the bus.
    pub instance: Option<String>,
    pub driver: Option<String>,
    /// Receive queues that were seen.
    pub queues: Option<u32>,
}

/// The machine that a trace describes.
pub fn machine(trace: &Trace) -> Machine {
    let mut machine = Machine { system: trace.system, ..Machine::default() };
    add_processors(&mut machine, &trace.processors);
    for device in &trace.devices {
        match trace.system {
            System::Windows if is_team(device) => machine.team = Some(device.name.clone()),
            System::Windows if !is_hardware(device) => {}
            _ if machine.cards.len() >= CARDS_MAX => break,
            System::Windows => machine.cards.push(Adapter {
                name: device.name.clone(),
                description: Some(device.name.clone()),
                driver: device.driver.clone(),
                ..Adapter::default()
            }),
            System::Linux => {
                let mut card = Adapter { name: device.name.clone(), ..Adapter::default() };
                card.rss.queues = device.queues;
                machine.cards.push(card);
            }
        }
    }
    machine.cards.iter_mut().for_each(settle);
    machine.cards.sort_by(|a, b| instance_order(&a.name).cmp(&instance_order(&b.name)));
    if !machine.cards.is_empty() {
        machine.assumptions.push(match trace.system {
            System::Windows => "The trace has adapters and CPUs, but no settings of receive-side scaling, no speed, node or number of queues of an adapter: give the output of Get-NetAdapterRss and Get-NetAdapterHardwareInfo in addition, or that of the script of --print-windows-script instead".to_owned(),
            System::Linux => "The trace has adapters and CPUs, but no settings: give a file of --collect in addition".to_owned(),
        });
    }
    machine
}

fn add_processors(machine: &mut Machine, processors: &[Processor]) {
    let mut sorted: Vec<&Processor> = processors.iter().take(CPUS_MAX).collect();
    sorted.sort_by_key(|processor| processor.index);
    let has_cores = sorted.iter().all(|processor| processor.core.is_some());
    let has_threads = !has_cores && sorted.iter().any(|one| one.is_hyper_threaded == Some(true));
    let threads = if has_threads { THREADS } else { 1 };
    let mut of_core: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for processor in &sorted {
        let index = u32::try_from(processor.index).unwrap_or(u32::MAX);
        let (group, number) = match machine.system {
            System::Linux => (0, index),
            System::Windows => processor.group.unwrap_or((0, index)),
        };
        let node = processor.node.unwrap_or(0);
        let socket = processor.socket.unwrap_or(node);
        let core = processor.core.unwrap_or(index / threads);
        let seen = of_core.entry((socket, core)).or_default();
        let thread = processor.thread.unwrap_or(*seen);
        *seen += 1;
        machine.cpus.push(Cpu { number, group, socket, node, core, thread, is_online: true });
    }
    // Cores are numbered in each socket by some systems.
    let keys: BTreeSet<(u32, u32)> =
        machine.cpus.iter().map(|cpu| (cpu.socket, cpu.core)).collect();
    let cores: BTreeMap<(u32, u32), u32> = keys.into_iter().zip(0..).collect();
    for cpu in &mut machine.cpus {
        cpu.core = cores.get(&(cpu.socket, cpu.core)).copied().unwrap_or(cpu.core);
    }
    if machine.cpus.is_empty() {
        return;
    }
    if has_threads {
        machine.assumptions.push(
            "The trace says that CPUs have hyper-threads, not which ones share a core: 0 and 1, 2 and 3 and so on, as Windows numbers them".to_owned(),
        );
    } else if !has_cores {
        machine
            .assumptions
            .push("The trace does not say which CPUs share a core: each is a core".to_owned());
    }
    if sorted.iter().any(|processor| processor.node.is_none()) {
        machine
            .assumptions
            .push("The trace does not have the NUMA nodes: one node is assumed".to_owned());
    } else if sorted.iter().any(|processor| processor.socket.is_none()) {
        machine.assumptions.push("Each NUMA node is taken for a socket".to_owned());
    }
}

/// A team of Windows Server (LBFO), which has no queues of its own.
fn is_team(device: &Device) -> bool {
    device.name.to_ascii_lowercase().contains("multiplexor")
}

/// Whether a device of Windows is on a bus; others are software: tunnels, filters, virtual switches.
fn is_hardware(device: &Device) -> bool {
    let instance = device.instance.as_deref().unwrap_or_default().to_ascii_uppercase();
    ["PCI\\", "VMBUS\\", "USB\\", "XENVIF\\", "ACPI\\"].iter().any(|bus| instance.starts_with(bus))
}

/// Windows numbers adapters of one description: `X520-2`, `X520-2 #2`, ... `X520-2 #10`.
fn instance_order(name: &str) -> (&str, u32) {
    name.rsplit_once(" #")
        .and_then(|(name, number)| Some((name, number.parse().ok()?)))
        .unwrap_or((name, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::layout::plan;

    fn windows(processors: u64, is_hyper_threaded: Option<bool>) -> Trace {
        let half = processors / 2;
        Trace {
            system: System::Windows,
            processors: (0..processors)
                .map(|index| Processor {
                    index,
                    group: Some((0, u32::try_from(index).unwrap())),
                    node: Some(u32::from(index >= half)),
                    is_hyper_threaded,
                    ..Processor::default()
                })
                .collect(),
            devices: Vec::new(),
        }
    }

    fn device(name: &str, instance: &str) -> Device {
        Device { name: name.to_owned(), instance: Some(instance.to_owned()), ..Device::default() }
    }

    /// The published case: six adapters get two cores each, hyper-threads left out.
    #[test]
    fn a_log_of_windows_gives_the_layout_of_the_case_study() {
        let mut trace = windows(24, Some(true));
        let number = |place: u32| if place == 1 { String::new() } else { format!(" #{place}") };
        trace.devices = (1..=6)
            .rev()
            .map(|place| device(&format!("X520-2{}", number(place)), r"PCI\VEN_8086&DEV_10FB"))
            .collect();
        trace.devices.push(device("WAN Miniport (IP)", r"SWD\MSRRAS\MS_NDISWANIP"));
        trace.devices.push(device(
            "Microsoft Network Adapter Multiplexor Driver",
            r"COMPOSITEBUS\MS_IMPLAT_MP",
        ));
        let machine = machine(&trace);
        assert_eq!(machine.team.as_deref(), Some("Microsoft Network Adapter Multiplexor Driver"));
        let layout = plan(&machine);
        let cores: Vec<Vec<u32>> = layout
            .cards
            .iter()
            .map(|card| card.queues.iter().map(|(_, number)| number / 2).collect())
            .collect();
        assert_eq!(cores, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]);
        assert_eq!(layout.cards[0].name, "X520-2");
        assert_eq!(layout.cards[5].name, "X520-2 #6");
        assert!(machine.assumptions[0].contains("hyper-threads"), "{:?}", machine.assumptions);
    }

    #[test]
    fn without_hyper_threads_each_processor_is_a_core() {
        for known in [None, Some(false)] {
            let machine = machine(&windows(8, known));
            assert!(machine.cpus.iter().all(|cpu| cpu.thread == 0));
            assert_eq!(machine.cpus[7].core, 7);
            assert_eq!(machine.cpus[7].socket, 1);
        }
    }

    #[test]
    fn cores_that_are_numbered_in_each_socket_are_told_apart() {
        let processors = (0..8_u32).map(|index| Processor {
            index: u64::from(index),
            node: Some(index % 2),
            socket: Some(index % 2),
            core: Some(index / 4),
            ..Processor::default()
        });
        let trace = Trace { processors: processors.collect(), ..Trace::default() };
        let machine = machine(&trace);
        let cpus: Vec<_> = machine.cpus.iter().map(|cpu| (cpu.core, cpu.thread)).collect();
        assert_eq!(cpus, [(0, 0), (2, 0), (0, 1), (2, 1), (1, 0), (3, 0), (1, 1), (3, 1)]);
        assert!(machine.assumptions.is_empty());
    }
}
