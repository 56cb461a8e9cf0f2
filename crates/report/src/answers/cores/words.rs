//! Sentences that text and page of a plan of cores share.

use smbscope_plan::cores::commands::{Interruption, Reason};
use smbscope_plan::cores::layout::{AdapterLayout, CpuId, Layout, Note};
use smbscope_plan::cores::prediction::multichannel::{Multichannel, Source};
use smbscope_plan::cores::prediction::{AdapterPrediction, Spread, Verdict};
use smbscope_plan::cores::toeplitz::KeySource;
use smbscope_plan::cores::topology::{Cpu, Machine, System};

use super::CoresPlan;
use crate::value::format;

/// Shares of cores that are listed.
const CORES_LISTED: usize = 8;

/// A CPU as people write it: with its group if that is not the first.
pub(super) fn cpu((group, number): CpuId) -> String {
    if group == 0 { number.to_string() } else { format!("{group}:{number}") }
}

/// Different values of the CPUs: sockets, nodes or cores.
pub(super) fn different(machine: &Machine, value: fn(&Cpu) -> u32) -> usize {
    let mut values: Vec<_> = machine.cpus.iter().map(value).collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

/// What the machine is, in one line.
pub(super) fn machine(machine: &Machine) -> String {
    let Machine { system, cpus, cards, .. } = machine;
    let name = match system {
        System::Linux => "Linux: ",
        System::Windows => "Windows: ",
    };
    let processors = match cpus.len() {
        0 => "CPUs unknown".to_owned(),
        count => format!(
            "{}, {}, {}, {}",
            format::counted(different(machine, |cpu| cpu.socket), "socket"),
            format::counted(different(machine, |cpu| cpu.node), "NUMA node"),
            format::counted(different(machine, |cpu| cpu.core), "core"),
            format::counted(count, "CPU")
        ),
    };
    let adapters = match cards.len() {
        0 => "network adapters unknown".to_owned(),
        count => format::counted(count, "network adapter"),
    };
    let name = if cpus.is_empty() && cards.is_empty() { "" } else { name };
    format!("{name}{processors}; {adapters}")
}

/// Why there is no layout, and what to add.
pub(super) fn no_layout(machine: &Machine) -> String {
    let missing = match (machine.cpus.is_empty(), machine.cards.is_empty(), machine.system) {
        (true, _, System::Linux) => {
            "the input does not have the CPUs. Add the output of lscpu -e=CPU,NODE,SOCKET,CORE,ONLINE, or use a file of --collect"
        }
        (true, _, System::Windows) => {
            "the input does not have the CPUs. Add the output of Get-NetAdapterRss, or use the script of --print-windows-script"
        }
        (false, true, System::Linux) => {
            "the input does not have a network adapter. Add ethtool -i, -l and -x, or a file of --collect"
        }
        (false, true, System::Windows) => {
            "the input does not have a network adapter. Add Get-NetAdapterRss and Get-NetAdapterHardwareInfo"
        }
        (false, false, _) => "no CPU is online",
    };
    format!("There is no layout: {missing}.")
}

/// What is planned for an adapter in addition to its queues: their cores, where several CPUs share one, RPS and the
/// range.
pub(super) fn besides(machine: &Machine, card: &AdapterLayout) -> String {
    let mut words = String::new();
    if machine.cpus.iter().any(|cpu| cpu.thread > 0) {
        let core = |id: &CpuId| machine.cpus.iter().find(|cpu| (cpu.group, cpu.number) == *id);
        let cores = card.queues.iter().filter_map(core).map(|cpu| cpu.core.to_string());
        words.push_str(&format!(" (core {})", cores.collect::<Vec<_>>().join(", ")));
    }
    if !card.rps.is_empty() {
        let rps: Vec<_> = card.rps.iter().map(|id| cpu(*id)).collect();
        words.push_str(&format!("; packet steering (RPS) to CPU {}", rps.join(", ")));
    }
    if let Some(range) = &card.range {
        words.push_str(&format!(
            "; base {}, last {}, at most {} CPUs, profile {}",
            cpu(range.base),
            cpu(range.last),
            range.processors_max,
            range.profile.name()
        ));
    }
    words
}

pub(super) fn note(note: &Note) -> String {
    match *note {
        Note::NodeUnknown => {
            "Its NUMA node is not known: the node with the most room was chosen.".to_owned()
        }
        Note::NodeWithoutCores { node } => {
            format!("Its node {node} has no CPU online: another node serves it.")
        }
        Note::QueuesUnknown => {
            "How many queues it can have is not known: the plan has no more than today's, if these are known.".to_owned()
        }
        Note::FewQueues { queues, share } => {
            format!(
                "It has {} only; its share would be {}.",
                format::counted(queues, "queue"),
                format::counted(share, "core")
            )
        }
        Note::FewerSuffice { from, to } => {
            format!("{from} queues gain nothing over {to}: the table has a power of two entries.")
        }
        Note::Uneven { percent_max, percent_even } => format!(
            "Shares of its table are uneven: {percent_max:.1} % at most, {percent_even:.1} % if they were even."
        ),
        Note::CoreShared { cards } => {
            format!("There are more adapters than cores: {cards} adapters have its core.")
        }
        Note::Cpu0 => "CPU 0 serves it too, because all cores of the node are needed.".to_owned(),
        Note::WindowsLimit => "Windows allows no more CPUs for an adapter.".to_owned(),
        Note::Virtual => "It is virtual: the host decides, too.".to_owned(),
    }
}

/// What to say first about an adapter's connections.
pub(super) fn connections(card: &AdapterPrediction) -> String {
    let connections = format::count(card.connections);
    match card.verdict {
        Verdict::OneConnection => {
            "there is one connection, and one connection stays on one core: no table spreads it."
                .to_owned()
        }
        Verdict::OneDominates { packets_percent } => format!(
            "one connection of {connections} has {packets_percent:.0} % of the packets: the busiest core keeps them."
        ),
        Verdict::Spreads => {
            format!("{connections} connections, none with more than half of the packets.")
        }
    }
}

/// What else one must know about an adapter's connections.
pub(super) fn about(card: &AdapterPrediction) -> Vec<String> {
    let mut lines: Vec<_> = card.multichannel.iter().map(multichannel).collect();
    if card.is_steering_hash_unknown {
        lines.push("The driver does not pass on the adapter's hash (ethtool -k: receive-hashing is off): RPS uses a hash of the kernel with a secret key, so its CPUs are a matter of chance.".to_owned());
    }
    lines.extend(key(card.key));
    if let Some(command) = &card.keep_key {
        lines.push(format!(
            "The key was read: the shares are exact until the driver draws another one at its next start. To keep it, run at each start: {command}"
        ));
    }
    lines
}

/// The connections that multichannel would open, and the share of the busiest core.
fn multichannel(found: &Multichannel) -> String {
    let source = match found.source {
        Source::Connections => "by Get-SmbMultichannelConnection",
        Source::Interfaces => {
            "by Get-SmbServerNetworkInterface and the default of four for an RSS-capable interface"
        }
        Source::SambaOff => "Samba's server multi channel support is off",
        Source::SambaOn => {
            "assumed: Samba's server multi channel support is on, and both interfaces are RSS-capable"
        }
        Source::Assumed => "assumed: one pair of RSS-capable interfaces, four connections",
    };
    let connections = format::counted(found.connections, "connection");
    match &found.chance {
        Some(chance) => format!(
            "SMB Multichannel would open {connections} on it ({source}). With random ports the busiest core then has {:.0} % of their packets on average ({:.0} to {:.0} % in 9 of 10 cases), and {:.1} cores have work.",
            chance.busiest.percent_mean,
            chance.busiest.percent_p5,
            chance.busiest.percent_p95,
            chance.cores_mean
        ),
        None => format!(
            "SMB Multichannel would open {connections} on it ({source}): it gains nothing here."
        ),
    }
}

/// How many processes of servers were found, a line for each server.
pub(super) fn processes(machine: &Machine) -> Vec<String> {
    let mut counts = std::collections::BTreeMap::new();
    for process in &machine.processes.list {
        *counts.entry((process.name.as_str(), process.is_kernel)).or_insert(0_u64) += 1;
    }
    let line = |((name, is_kernel), count): ((&str, bool), u64)| {
        let what = match (is_kernel, count) {
            (true, 1) => "kernel thread",
            (true, _) => "kernel threads",
            (false, 1) => "process",
            (false, _) => "processes",
        };
        format!("Server {name}: {} {what}", format::count(count))
    };
    let mut lines: Vec<_> = counts.into_iter().map(line).collect();
    if machine.processes.beyond_limit > 0 {
        let count = format::count(u64::from(machine.processes.beyond_limit));
        lines.push(format!(
            "{count} more processes of servers were not read: the limit was reached."
        ));
    }
    lines
}

/// Notes that are the same for each adapter of several.
pub(super) fn shared_notes(layout: &Layout) -> Vec<Note> {
    match &layout.cards[..] {
        [first, others @ ..] if !others.is_empty() => {
            let is_shared = |note: &&Note| others.iter().all(|card| card.notes.contains(note));
            first.notes.iter().filter(is_shared).copied().collect()
        }
        _ => Vec::new(),
    }
}

/// What it means that the key is not known.
fn key(source: KeySource) -> Option<String> {
    let key = match source {
        KeySource::Read => return None,
        KeySource::MellanoxDefault => "the default of Mellanox' driver",
        KeySource::Microsoft => "that of Microsoft's documentation",
    };
    Some(format!(
        "The adapter's key of the hash is not known; {key} was used, so which core gets which connection is an example."
    ))
}

/// Lines without a meaning.
pub(super) fn unread(count: u64) -> String {
    let are = if count == 1 { "was" } else { "were" };
    format!("{} of the input {are} not understood.", format::counted(count, "line"))
}

/// Connections without a place.
pub(super) fn ignored(count: u64) -> String {
    format!(
        "{} connections are not placed: RDMA or QUIC, addresses that are not known, or more than the limit.",
        format::count(count)
    )
}

pub(super) fn place(id: Option<CpuId>, queue: Option<u32>) -> String {
    match (id, queue) {
        (Some(id), _) => format!("CPU {}", cpu(id)),
        (None, Some(queue)) => format!("queue {queue}"),
        (None, None) => "an unknown CPU".to_owned(),
    }
}

pub(super) fn spread(spread: &Spread) -> String {
    let mut cores: Vec<_> = spread.cores.iter().filter(|core| core.packets > 0).collect();
    cores.sort_by_key(|core| std::cmp::Reverse(core.packets));
    let listed = cores
        .iter()
        .take(CORES_LISTED)
        .map(|core| format!("{} {:.0} %", place(core.cpu, core.queue), core.packets_percent));
    let mut words = listed.collect::<Vec<_>>().join(", ");
    if cores.len() > CORES_LISTED {
        words.push_str(&format!(" and {} more", cores.len() - CORES_LISTED));
    }
    if let Some(busiest) = &spread.busiest {
        words.push_str(&format!(
            "; with random keys the busiest has {:.0} % ({:.0} to {:.0} %)",
            busiest.percent_mean, busiest.percent_p5, busiest.percent_p95
        ));
    }
    if words.is_empty() { "nothing".to_owned() } else { words }
}

/// Why there are no commands.
pub(super) fn no_commands(plan: &CoresPlan) -> &'static str {
    if !plan.layout.cards.is_empty() && plan.commands.refused.is_empty() {
        "None: the settings found are those of the layout."
    } else {
        "None."
    }
}

/// Why a setting is left as it is, and what to do.
pub(super) fn refused(reason: Reason) -> &'static str {
    match reason {
        Reason::Name => "its name has characters that a command must not contain.",
        Reason::RangeUnknown => {
            "its range of CPUs is not known, so there is no undo. Add the output of Get-NetAdapterRss."
        }
        Reason::QueuesUnknown => {
            "how many queues it uses is not known, so there is no undo. Add the output of ethtool -l or Get-NetAdapterRss."
        }
        Reason::InterruptsUnknown => {
            "where the interrupt of each queue goes is not known, so there is no undo. Add grep . /proc/irq/*/smp_affinity_list, or a file of --collect."
        }
        Reason::TableNotRestorable => {
            "its indirection table was set in a way that ethtool -X cannot make again."
        }
        Reason::SteeringUnknown => {
            "its settings of RPS are not known, so there is no undo. Add grep . /sys/class/net/*/queues/rx-*/rps_cpus, or a file of --collect."
        }
        Reason::NodeUnknown => {
            "its queues are on several NUMA nodes, and its own node is not known. Add grep . /sys/class/net/*/device/numa_node, or a file of --collect."
        }
        Reason::Minor => "it is slow next to faster adapters: one CPU can receive for it.",
        Reason::Team => "it is a team or bond: its members have the queues, and they are planned.",
        Reason::NoGain => "for what was recorded the plan would not be better than today.",
        Reason::StateUnknown => {
            "whether its receive-side scaling is on is not known, so there is no undo. Add the output of Get-NetAdapterRss."
        }
    }
}

pub(super) fn interrupts(interruption: Interruption) -> &'static str {
    match interruption {
        Interruption::None => "interrupts nothing",
        Interruption::AdapterRestart => "restarts the adapter: its link is down for some seconds",
        Interruption::QueueRestart => {
            "restarts the adapter's queues: packets can be lost for a moment"
        }
        Interruption::Service => "restarts a service, not traffic",
    }
}
