//! A machine of Linux from `/sys`, `/proc` and the answers of its drivers.
//!
//! Linux `Documentation/ABI/testing/sysfs-devices-system-cpu`, `sysfs-class-net`, `sysfs-class-net-queues`;
//! `Documentation/networking/scaling.rst`; `core-api/irq/irq-affinity.rst`.

use std::collections::{BTreeMap, BTreeSet};

use super::super::assemble::{self, CARDS_MAX, belongs, settle};
use super::super::processes::{PROCESSES_MAX, Processes};
use super::super::read::pci::megatransfers;
use super::super::read::{
    CPUS_MAX, IdleState, Interrupts, PciLink, Piece, mask_list, number_list, read as read_text,
};
use super::super::topology::{Adapter, Cpu, Kind, Machine, System};
use super::{Bundle, BundleError, Files};

/// Command line of irqbalance.
pub(super) const IRQBALANCE: &str = "smbscope/irqbalance";
/// `yes` or `no`: Samba's `server multi channel support`; empty if its configuration does not say it.
pub(super) const SAMBA_MULTICHANNEL: &str = "smbscope/samba-multichannel";
/// JSON of the server's [`Processes`].
pub(super) const PROCESSES: &str = "smbscope/processes.json";
const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";
const ADAPTERS: &str = "sys/class/net";
/// Interrupts that irqbalance leaves alone.
const BANNED_MAX: usize = 4096;
/// Other options of irqbalance.
const OPTIONS_MAX: usize = 64;
/// Idle states of a CPU.
const IDLE_STATES_MAX: usize = 64;
/// Queues of one adapter in each direction.
const QUEUES_MAX: usize = 4096;

pub(super) fn read(files: &dyn Files) -> Result<Bundle, BundleError> {
    let mut bundle = Bundle {
        machine: Machine { system: System::Linux, ..Machine::default() },
        ..Bundle::default()
    };
    bundle.machine.cpus = cpus(files)?;
    let mut pieces = Vec::new();
    for path in ["proc/interrupts", "proc/softirqs", "proc/net/softnet_stat"] {
        pieces.extend(text(files, path, "", &mut bundle)?);
    }
    let interrupts = pieces.iter().find_map(|piece| {
        if let Piece::Interrupts(interrupts) = piece { Some(interrupts) } else { None }
    });
    let names: Vec<String> =
        files.list(ADAPTERS).into_iter().filter(|name| name != "lo").take(CARDS_MAX).collect();
    for name in &names {
        if let Some(card) = adapter(files, name, interrupts) {
            bundle.machine.cards.push(card);
        }
    }
    for name in &names {
        if bundle.machine.cards.iter().any(|card| card.name == *name) {
            pieces.extend(answers(files, name, &mut bundle)?);
        }
    }
    assemble::add(&mut bundle.machine, &pieces);
    let machine = &mut bundle.machine;
    irqbalance(files, machine);
    add_cpu_settings(files, machine);
    if let Some(contents) = files.read(PROCESSES) {
        let mut processes: Processes = serde_json::from_slice(&contents)
            .map_err(|error| BundleError::new(PROCESSES, error))?;
        processes.list.truncate(PROCESSES_MAX);
        machine.processes = processes;
    }
    machine.samba_multichannel = match word_file(files, SAMBA_MULTICHANNEL).as_deref() {
        Some("yes") => Some(true),
        Some("no") => Some(false),
        _ => None,
    };
    Ok(bundle)
}

/// Pieces of a text file; nothing if it is not there.
fn text(
    files: &dyn Files,
    path: &str,
    command: &str,
    bundle: &mut Bundle,
) -> Result<Vec<Piece>, BundleError> {
    let Some(contents) = files.read(path).filter(|contents| !contents.trim_ascii().is_empty())
    else {
        return Ok(Vec::new());
    };
    let reading = read_text(&[command.as_bytes(), &contents].concat())
        .map_err(|error| BundleError::new(path, error))?;
    bundle.unknown.extend_from(path, reading.unknown);
    Ok(reading.pieces)
}

/// What the driver answers: JSON of pieces, or outputs of ethtool in files that are named after its options.
fn answers(files: &dyn Files, name: &str, bundle: &mut Bundle) -> Result<Vec<Piece>, BundleError> {
    let path = format!("ethtool/{name}.json");
    if let Some(contents) = files.read(&path) {
        return serde_json::from_slice(&contents).map_err(|error| BundleError::new(&path, error));
    }
    let mut pieces = Vec::new();
    for option in files.list(&format!("ethtool/{name}")) {
        // The command line names the adapter, which some outputs do not.
        let command = format!("# ethtool {option} {name}\n");
        pieces.extend(text(files, &format!("ethtool/{name}/{option}"), &command, bundle)?);
    }
    Ok(pieces)
}

fn cpus(files: &dyn Files) -> Result<Vec<Cpu>, BundleError> {
    let path = format!("{CPUS}/online");
    let online =
        files.read(&path).and_then(|list| number_list(&String::from_utf8_lossy(&list), CPUS_MAX));
    let online = online.ok_or_else(|| BundleError::new(&path, "not a list of CPUs"))?;
    let mut numbers: Vec<u32> =
        files.list(CPUS).iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.truncate(CPUS_MAX);
    let mut node_of = BTreeMap::new();
    for node in
        files.list(NODES).iter().filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok())
    {
        for cpu in list(files, &format!("{NODES}/node{node}/cpulist")) {
            node_of.insert(cpu, node);
        }
    }
    let online: BTreeSet<u32> = online.into_iter().collect();
    let mut cores = BTreeMap::new();
    let mut cpus = Vec::new();
    for cpu in numbers {
        let file = |name: &str| format!("{CPUS}/cpu{cpu}/topology/{name}");
        // The threads of its core; an offline CPU has none, and counts as a core of its own.
        let siblings = list(files, &file("thread_siblings_list"));
        let first = siblings.first().copied().unwrap_or(cpu);
        let next = u32::try_from(cores.len()).unwrap_or(u32::MAX);
        let thread = siblings.iter().position(|sibling| *sibling == cpu).unwrap_or(0);
        cpus.push(Cpu {
            number: cpu,
            group: 0,
            socket: number(files, &file("physical_package_id")).unwrap_or(0),
            node: node_of.get(&cpu).copied().unwrap_or(0),
            core: *cores.entry(first).or_insert(next),
            thread: u32::try_from(thread).unwrap_or(0),
            is_online: online.contains(&cpu),
        });
    }
    Ok(cpus)
}

/// An adapter with a device; bridges, bonds and tunnels have none.
fn adapter(files: &dyn Files, name: &str, interrupts: Option<&Interrupts>) -> Option<Adapter> {
    let folder = format!("{ADAPTERS}/{name}");
    let file = |name: &str| format!("{folder}/{name}");
    let uevent = word_file(files, &file("device/uevent"))?;
    let value = |key: &str| {
        uevent.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned)
    };
    let master = word_file(files, &file("master/uevent"));
    let mut card = Adapter {
        name: name.to_owned(),
        driver: value("DRIVER"),
        bus: value("PCI_SLOT_NAME"),
        master: master.and_then(|uevent| {
            uevent.lines().find_map(|line| line.strip_prefix("INTERFACE=").map(str::to_owned))
        }),
        ..Adapter::default()
    };
    if !files.list(&file("device/physfn")).is_empty() {
        card.kind = Kind::VirtualFunction;
    }
    settle(&mut card);
    add_settings(files, &mut card);
    if let Some(interrupts) = interrupts {
        add_interrupts(files, &mut card, interrupts);
    }
    Some(card)
}

/// Adds what an adapter's folder says: node, speed, state, link to the bus, and steering.
pub(in crate::cores) fn add_settings(files: &dyn Files, card: &mut Adapter) {
    let folder = format!("{ADAPTERS}/{}", card.name);
    let file = |name: &str| format!("{folder}/{name}");
    // -1: the firmware does not say it.
    card.node = number(files, &file("device/numa_node")).or(card.node);
    let speed = number(files, &file("speed")).map(|megabits| u64::from(megabits) * 1_000_000);
    card.bits_per_second = speed.filter(|speed| *speed > 0).or(card.bits_per_second);
    let state = word_file(files, &file("operstate")).filter(|state| *state != "unknown");
    card.is_up = state.map(|state| state == "up").or(card.is_up);
    let received = word_file(files, &file("statistics/rx_packets"));
    card.received = received.and_then(|count| count.parse().ok()).or(card.received);
    let rate = |name: &str| word_file(files, &file(name)).as_deref().and_then(megatransfers);
    let lanes = |name: &str| number(files, &file(name)).filter(|lanes| (1..=32).contains(lanes));
    card.pci.update(&PciLink {
        megatransfers: rate("device/current_link_speed"),
        megatransfers_max: rate("device/max_link_speed"),
        lanes: lanes("device/current_link_width"),
        lanes_max: lanes("device/max_link_width"),
        read_request_bytes: None,
    });
    for queue in 0..queues(files, &folder, "rx-") {
        card.rss.rps.push(mask(files, &file(&format!("queues/rx-{queue}/rps_cpus"))));
        card.rss.flows.extend(number(files, &file(&format!("queues/rx-{queue}/rps_flow_cnt"))));
    }
    for queue in 0..queues(files, &folder, "tx-") {
        card.rss.xps.push(mask(files, &file(&format!("queues/tx-{queue}/xps_cpus"))));
    }
}

/// Adds what decides about CPUs: isolation, governors of the frequency, idle states, and the flows of RFS.
pub(in crate::cores) fn add_cpu_settings(files: &dyn Files, machine: &mut Machine) {
    for file in ["isolated", "nohz_full"] {
        machine.isolated.extend(list(files, &format!("{CPUS}/{file}")));
    }
    machine.isolated.sort_unstable();
    machine.isolated.dedup();
    let governor =
        |cpu: &Cpu| word_file(files, &format!("{CPUS}/cpu{}/cpufreq/scaling_governor", cpu.number));
    let governors: BTreeSet<String> = machine.cpus.iter().filter_map(governor).collect();
    machine.governors.extend(governors);
    let folder = format!("{CPUS}/cpu0/cpuidle");
    for state in files.list(&folder).iter().take(IDLE_STATES_MAX) {
        let file = |name: &str| format!("{folder}/{state}/{name}");
        let name = word_file(files, &file("name"));
        machine.idle.extend(name.zip(number(files, &file("latency"))).map(
            |(name, latency_usecs)| {
                let is_disabled = number(files, &file("disable")).is_some_and(|flag| flag != 0);
                IdleState { name, latency_usecs, is_disabled }
            },
        ));
    }
    machine.flow_entries = number(files, "proc/sys/net/core/rps_sock_flow_entries");
}

/// The CPUs that an interrupt may go to; none if no file says it.
pub(in crate::cores) fn affinity(files: &dyn Files, irq: u32) -> Vec<u32> {
    list(files, &format!("proc/irq/{irq}/smp_affinity_list"))
}

/// The interrupts of an adapter, with the CPUs that they may go to: those of its device, or by their names.
fn add_interrupts(files: &dyn Files, card: &mut Adapter, interrupts: &Interrupts) {
    let device = format!("{ADAPTERS}/{}/device", card.name);
    let of_device: BTreeSet<u32> = files
        .list(&format!("{device}/msi_irqs"))
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    // `virtio2-input.0`: a virtio device has its own name, and its interrupts belong to its parent.
    let device = files
        .link(&device)
        .and_then(|target| Some(format!("{}-", target.trim_end().rsplit('/').next()?)));
    let is_mine = |row: &super::super::read::Interrupt| {
        of_device.contains(&row.number)
            || belongs(&row.name, card)
            || device.as_ref().is_some_and(|device| row.name.starts_with(device.as_str()))
    };
    let mine = interrupts.rows.iter().filter(|row| is_mine(row));
    card.rss.interrupts = mine.map(|row| (row.number, affinity(files, row.number))).collect();
}

fn irqbalance(files: &dyn Files, machine: &mut Machine) {
    let Some(words) = word_file(files, IRQBALANCE) else { return };
    machine.irqbalance = Some(!words.is_empty());
    let mut words = words.lines();
    // The program itself.
    words.next();
    while let Some(word) = words.next() {
        let banned = match word.strip_prefix("--banirq=") {
            Some(number) => Some(number),
            None if word == "--banirq" || word == "-i" => words.next(),
            None => {
                if !matches!(word, "--foreground" | "-f")
                    && machine.irqbalance_options.len() < OPTIONS_MAX
                {
                    machine.irqbalance_options.push(word.to_owned());
                }
                None
            }
        };
        let space = BANNED_MAX.saturating_sub(machine.irqbalance_banned.len());
        machine.irqbalance_banned.extend(
            banned.and_then(|number| number.trim().parse::<u32>().ok()).into_iter().take(space),
        );
    }
}

/// What a configuration of Samba says about multichannel: smb.conf(5), names without regard to spaces and case.
pub(super) fn samba_multichannel(text: &str) -> &'static str {
    let mut said = "";
    for line in text.lines() {
        let Some((name, value)) = line.split_once('=') else { continue };
        let name: String = name.to_ascii_lowercase().split_whitespace().collect();
        if name == "servermultichannelsupport" {
            said = match value.trim().to_ascii_lowercase().as_str() {
                "yes" | "true" | "1" | "on" => "yes",
                "no" | "false" | "0" | "off" => "no",
                _ => said,
            };
        }
    }
    said
}

fn queues(files: &dyn Files, folder: &str, prefix: &str) -> usize {
    files
        .list(&format!("{folder}/queues"))
        .iter()
        .filter(|name| name.starts_with(prefix))
        .count()
        .min(QUEUES_MAX)
}

fn word_file(files: &dyn Files, path: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&files.read(path)?).trim().to_owned())
}

fn number(files: &dyn Files, path: &str) -> Option<u32> {
    word_file(files, path)?.parse().ok()
}

/// A list of CPUs; empty if there is none.
fn list(files: &dyn Files, path: &str) -> Vec<u32> {
    word_file(files, path).and_then(|text| number_list(&text, CPUS_MAX)).unwrap_or_default()
}

fn mask(files: &dyn Files, path: &str) -> Vec<u32> {
    word_file(files, path).and_then(|text| mask_list(&text, CPUS_MAX)).unwrap_or_default()
}
