//! The plan of cores as text and JSON: what the machine is, what is wrong, the layout, its commands, what it brings.

use serde_json::{Value, json};
use smbscope_plan::cores::commands::{Commands, Interruption, Reason, Step};
use smbscope_plan::cores::findings::{Finding, Severity};
use smbscope_plan::cores::layout::{CpuId, Layout, Note};
use smbscope_plan::cores::load::{Basis, CpuLoad, Load};
use smbscope_plan::cores::prediction::multichannel::{Multichannel, Source};
use smbscope_plan::cores::prediction::{Prediction, Spread, Verdict};
use smbscope_plan::cores::toeplitz::KeySource;
use smbscope_plan::cores::topology::{Machine, System};

use crate::format;

/// Cores of a node in one line of the drawing.
const CORES_IN_LINE: usize = 32;
/// Shares of cores that are listed.
const CORES_LISTED: usize = 8;

/// Processors with their load that are listed, and the share of the time from which on one is.
const LOADS_LISTED: usize = 64;
const SHOWN_PERCENT: f64 = 0.05;

/// A plan with everything that it is based on.
#[derive(Debug)]
pub struct CoresPlan {
    pub machine: Machine,
    pub findings: Vec<Finding>,
    pub layout: Layout,
    pub commands: Commands,
    /// Of recorded connections.
    pub prediction: Option<Prediction>,
    /// Of each processor, from a trace.
    pub load: Option<Load>,
    /// Lines of the input that were not understood.
    pub unknown_lines: u64,
}

/// The plan as JSON: its parts by name.
///
/// # Errors
///
/// Those of `serde_json`, which this data does not cause.
pub fn cores_json(plan: &CoresPlan) -> serde_json::Result<Value> {
    Ok(json!({
        "machine": serde_json::to_value(&plan.machine)?,
        "findings": serde_json::to_value(&plan.findings)?,
        "layout": serde_json::to_value(&plan.layout)?,
        "commands": serde_json::to_value(&plan.commands)?,
        "prediction": serde_json::to_value(&plan.prediction)?,
        "load": serde_json::to_value(&plan.load)?,
        "unknown_lines": plan.unknown_lines,
    }))
}

/// The plan as text, `width` columns wide. `bold` are the texts that start and end bold text.
pub fn cores_text(plan: &CoresPlan, width: usize, bold: (&str, &str)) -> String {
    let mut text = Lines { text: String::new(), width, bold };
    let Machine { system, cpus, cards, assumptions, failures, .. } = &plan.machine;
    let of = |value: fn(&smbscope_plan::cores::topology::Cpu) -> u32| {
        let mut values: Vec<_> = cpus.iter().map(value).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    let name = match system {
        System::Linux => "Linux: ",
        System::Windows => "Windows: ",
    };
    let processors = match cpus.len() {
        0 => "processors unknown".to_owned(),
        count => format!(
            "{}, {}, {}, {}",
            counted(of(|cpu| cpu.socket), "socket"),
            counted(of(|cpu| cpu.node), "NUMA node"),
            counted(of(|cpu| cpu.core), "core"),
            counted(count, "processor")
        ),
    };
    let adapters = match cards.len() {
        0 => "network adapters unknown".to_owned(),
        count => counted(count, "network adapter"),
    };
    let is_empty = cpus.is_empty() && cards.is_empty();
    let name = if is_empty { "" } else { name };
    text.line(0, &format!("{name}{processors}; {adapters}"));
    for assumption in assumptions {
        text.line(2, &format!("Assumed: {assumption}"));
    }
    for failure in failures {
        text.line(2, &format!("Not read: {failure}"));
    }
    if plan.unknown_lines > 0 {
        let count = format::count(plan.unknown_lines);
        text.line(2, &format!("{count} lines of the input were not understood."));
    }
    if let Some(prediction) = &plan.prediction {
        not_spread(&mut text, prediction);
    }
    processes(&mut text, &plan.machine);
    findings(&mut text, &plan.findings);
    layout(&mut text, &plan.machine, &plan.layout);
    if let Some(prediction) = &plan.prediction {
        predicted(&mut text, prediction);
    }
    if let Some(load) = &plan.load {
        loads(&mut text, load);
    }
    commands(&mut text, &plan.commands);
    text.text
}

fn findings(text: &mut Lines<'_>, findings: &[Finding]) {
    text.heading("What is wrong");
    if findings.is_empty() {
        text.line(2, "Nothing that the input shows.");
    }
    for finding in findings {
        let severity = match finding.severity {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        };
        let card = finding.card.as_deref().map_or(String::new(), |card| format!("{card}: "));
        text.line(2, &format!("[{severity}] {card}{}", finding.sentence));
    }
}

/// Each node with its cores, and the adapters' letters on those that receive.
fn layout(text: &mut Lines<'_>, machine: &Machine, layout: &Layout) {
    text.heading("Layout");
    if layout.cards.is_empty() {
        let missing = match (machine.cpus.is_empty(), machine.cards.is_empty(), machine.system) {
            (true, _, System::Linux) => {
                "the input does not have the processors. Add the output of lscpu -e=CPU,NODE,SOCKET,CORE,ONLINE, or use a file of --collect"
            }
            (true, _, System::Windows) => {
                "the input does not have the processors. Add the output of Get-NetAdapterRss, or use the script of --print-windows-script"
            }
            (false, true, System::Linux) => {
                "the input does not have a network adapter. Add ethtool -i, -l and -x, or a file of --collect"
            }
            (false, true, System::Windows) => {
                "the input does not have a network adapter. Add Get-NetAdapterRss and Get-NetAdapterHardwareInfo"
            }
            (false, false, _) => "no processor is online",
        };
        text.line(2, &format!("There is no layout: {missing}."));
        return;
    }
    let letter = |place: usize| char::from(b'A' + (place % 26) as u8);
    let mut nodes: Vec<_> = machine.cpus.iter().map(|cpu| cpu.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        let mut cores: Vec<_> = machine
            .cpus
            .iter()
            .filter(|cpu| cpu.node == node && cpu.is_online)
            .map(|cpu| (cpu.core, cpu.group, cpu.number))
            .collect();
        cores.sort_unstable();
        cores.dedup_by_key(|(core, ..)| *core);
        for line in cores.chunks(CORES_IN_LINE) {
            let marks: String = line
                .iter()
                .map(|&(_, group, number)| {
                    let serves = |card: &&smbscope_plan::cores::layout::CardLayout| {
                        card.queues.contains(&(group, number))
                    };
                    let place = layout.cards.iter().position(|card| serves(&card));
                    place.map_or('·', letter)
                })
                .collect();
            let (first, last) = (line.first(), line.last());
            let range = match (first, last) {
                (Some(&(_, g1, n1)), Some(&(_, g2, n2))) => {
                    format!("{} to {}", cpu((g1, n1)), cpu((g2, n2)))
                }
                _ => String::new(),
            };
            text.line(2, &format!("node {node}  {marks}  first threads of cores, CPU {range}"));
        }
    }
    for (place, card) in layout.cards.iter().enumerate() {
        let queues: Vec<_> = card.queues.iter().map(|id| cpu(*id)).collect();
        let of = |id: &CpuId| {
            let cpu = machine.cpus.iter().find(|cpu| (cpu.group, cpu.number) == *id)?;
            Some(cpu.core.to_string())
        };
        let cores: Vec<_> = card.queues.iter().filter_map(of).collect();
        let mut words = format!(
            "{} {}: node {}, {} on core {} (CPU {})",
            letter(place),
            card.name,
            card.node,
            counted(queues.len(), "queue"),
            cores.join(", "),
            queues.join(", ")
        );
        if !card.rps.is_empty() {
            let rps: Vec<_> = card.rps.iter().map(|id| cpu(*id)).collect();
            words.push_str(&format!("; packet steering (RPS) to CPU {}", rps.join(", ")));
        }
        if let Some(range) = &card.range {
            words.push_str(&format!(
                "; base {}, last {}, at most {} processors, profile {}",
                cpu(range.base),
                cpu(range.last),
                range.processors_max,
                range.profile.name()
            ));
        }
        text.line(2, &words);
        for note in &card.notes {
            text.line(4, &said(note));
        }
    }
}

fn said(note: &Note) -> String {
    match *note {
        Note::NodeUnknown => {
            "Its NUMA node is not known: the node with the most room was chosen.".to_owned()
        }
        Note::NodeWithoutCores { node } => {
            format!("Its node {node} has no processor online: another node serves it.")
        }
        Note::QueuesUnknown => {
            "How many queues it has is not known: the cores alone decided.".to_owned()
        }
        Note::FewQueues { queues, share } => {
            format!(
                "It has {} only; its share would be {}.",
                counted(queues, "queue"),
                counted(share, "core")
            )
        }
        Note::FewerSuffice { from, to } => {
            format!(
                "{from} queues would bring no more than {to}: the table has a power of two entries."
            )
        }
        Note::Uneven { percent_max, percent_even } => format!(
            "Shares of its table are uneven: {percent_max:.1} % at most, {percent_even:.1} % if they were even."
        ),
        Note::CoreShared { cards } => {
            format!("There are more adapters than cores: {cards} adapters have its core.")
        }
        Note::Cpu0 => "CPU 0 serves it too, because all cores of the node are needed.".to_owned(),
        Note::WindowsLimit => "Windows allows no more processors for an adapter.".to_owned(),
        Note::Virtual => "It is virtual: the host decides, too.".to_owned(),
    }
}

fn predicted(text: &mut Lines<'_>, prediction: &Prediction) {
    text.heading("What it brings, for the recorded connections");
    if prediction.cards.is_empty() {
        text.line(2, "The recording has no connection to an adapter of the layout.");
    }
    for card in &prediction.cards {
        let connections = format::count(card.connections);
        let first = match card.verdict {
            Verdict::OneConnection => "there is one connection, and one connection stays on one core: no table spreads it.".to_owned(),
            Verdict::OneDominates { packets_percent } => format!("one connection of {connections} has {packets_percent:.0} % of the packets: the busiest core keeps them."),
            Verdict::Spreads => format!("{connections} connections, none with more than half of the packets."),
        };
        text.line(2, &format!("{}: {first}", card.name));
        text.line(4, &format!("before: {}", spread(&card.before)));
        text.line(4, &format!("after:  {}", spread(&card.after)));
        if let Some(found) = &card.multichannel {
            text.line(4, &multichannel(found));
        }
        if card.is_steering_hash_unknown {
            text.line(4, "The driver does not pass on the adapter's hash (ethtool -k: receive-hashing is off): RPS uses a hash of the kernel with a secret key, so its processors are a matter of chance.");
        }
        let key = match card.key {
            KeySource::Read => None,
            KeySource::MellanoxDefault => Some("the default of Mellanox' driver"),
            KeySource::Microsoft => Some("that of Microsoft's documentation"),
        };
        if let Some(key) = key {
            text.line(4, &format!("The adapter's key of the hash is not known; {key} was used, so which core gets which connection is an example."));
        }
    }
    if prediction.ignored > 0 {
        let count = format::count(prediction.ignored);
        text.line(2, &format!("{count} connections are not placed: RDMA or QUIC, addresses that are not known, or more than the limit."));
    }
}

/// The load of each processor with receive work before or after.
fn loads(text: &mut Lines<'_>, load: &Load) {
    let seconds = load.length_ns as f64 / 1e9;
    text.heading(&format!("Load of each processor, from {seconds:.1} s of the trace"));
    text.code(2, "CPU       receive before    after   other work");
    let (listed, quiet): (Vec<&CpuLoad>, Vec<&CpuLoad>) = load.cpus.iter().partition(|one| {
        one.receive_before_percent >= SHOWN_PERCENT || one.receive_after_percent >= SHOWN_PERCENT
    });
    for one in listed.iter().take(LOADS_LISTED) {
        let other = match one.is_idle_known {
            true => format!("{:.1} %", one.other_percent),
            false => "not known".to_owned(),
        };
        text.code(
            2,
            &format!(
                "{:<8} {:>14.1} % {:>6.1} %   {other:>10}",
                cpu(one.cpu),
                one.receive_before_percent,
                one.receive_after_percent
            ),
        );
    }
    let more = listed.len().saturating_sub(LOADS_LISTED);
    if more > 0 {
        text.line(2, &format!("and {more} more (--format json has all)"));
    }
    if !quiet.is_empty() {
        text.line(2, &format!("{} without receive work.", counted(quiet.len(), "processor")));
    }
    text.line(
        2,
        &format!(
            "The busiest receives {:.0} % of the time before, {:.0} % after.",
            load.busiest_before_percent, load.busiest_after_percent
        ),
    );
    if let (Some(packets), Some(ns)) = (load.packets, load.packet_ns) {
        let packets = format::count(packets);
        text.line(2, &format!("A packet costs {:.2} µs (mean of {packets}).", ns / 1e3));
    }
    text.line(2, match load.basis {
        Basis::Connections => "After: the recorded connections go where the hash sends them. The time of a packet is assumed to stay the same.",
        Basis::Table => "After: with many connections, which the hash spreads evenly; one connection stays on one core (--recording shows yours). The time of a packet is assumed to stay the same.",
    });
    if !load.full.is_empty() {
        let full: Vec<_> = load.full.iter().map(|id| cpu(*id)).collect();
        text.line(2, &format!("CPU {} had no room: what they could not do is not in the trace, so more may arrive, and the load after is a lower bound.", full.join(", ")));
    }
    text.line(2, &format!("Counted as receive work: {}.", load.counted.join(", ")));
}

/// How many processes of servers were found.
fn processes(text: &mut Lines<'_>, machine: &Machine) {
    let mut counts = std::collections::BTreeMap::new();
    for process in &machine.processes.list {
        *counts.entry((process.name.as_str(), process.is_kernel)).or_insert(0_u64) += 1;
    }
    for ((name, is_kernel), count) in counts {
        let what = if is_kernel { "kernel thread" } else { "process" };
        let end = if count == 1 {
            ""
        } else if is_kernel {
            "s"
        } else {
            "es"
        };
        text.line(2, &format!("Server {name}: {} {what}{end}", format::count(count)));
    }
    if machine.processes.beyond_limit > 0 {
        let count = format::count(u64::from(machine.processes.beyond_limit));
        text.line(
            2,
            &format!("{count} more processes of servers were not read: the limit was reached."),
        );
    }
}

/// What no layout changes, before everything else.
fn not_spread(text: &mut Lines<'_>, prediction: &Prediction) {
    for card in &prediction.cards {
        let share = match card.verdict {
            Verdict::OneConnection => 100.0,
            Verdict::OneDominates { packets_percent } => packets_percent,
            Verdict::Spreads => continue,
        };
        text.line(2, &format!("{}: One connection has {share:.0} % of the packets. It cannot be spread: it stays on one core, whatever the plan.", card.name));
    }
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
    let connections = counted(found.connections, "connection");
    match &found.chance {
        Some(chance) => format!(
            "SMB Multichannel would open {connections} on it ({source}). With random ports the busiest core then has {:.0} % of their packets on average ({:.0} to {:.0} % in 9 of 10 cases), and {:.1} cores have work.",
            chance.busiest.percent_mean,
            chance.busiest.percent_p5,
            chance.busiest.percent_p95,
            chance.cores_mean
        ),
        None => format!(
            "SMB Multichannel would open {connections} on it ({source}): it brings nothing here."
        ),
    }
}

fn spread(spread: &Spread) -> String {
    let mut cores: Vec<_> = spread.cores.iter().filter(|core| core.packets > 0).collect();
    cores.sort_by_key(|core| std::cmp::Reverse(core.packets));
    let listed = cores.iter().take(CORES_LISTED).map(|core| {
        let place = core.cpu.map_or("an unknown CPU".to_owned(), |id| format!("CPU {}", cpu(id)));
        format!("{place} {:.0} %", core.packets_percent)
    });
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

fn commands(text: &mut Lines<'_>, commands: &Commands) {
    text.heading("Commands (nothing was executed)");
    if commands.steps.is_empty() {
        text.line(2, "None: the settings found are those of the layout, or cannot be changed.");
    }
    for (number, step) in commands.steps.iter().enumerate() {
        self::step(text, number + 1, step);
    }
    for refusal in &commands.refused {
        let sentence = refused(refusal.reason);
        text.line(2, &format!("Left as it is: {}: {sentence}", refusal.card));
    }
}

/// Why a setting is left as it is, and what to do.
fn refused(reason: Reason) -> &'static str {
    match reason {
        Reason::Name => "its name has characters that a command must not contain.",
        Reason::RangeUnknown => {
            "its range of processors is not known, so there is no undo. Add the output of Get-NetAdapterRss."
        }
        Reason::QueuesUnknown => {
            "how many queues it uses is not known, so there is no undo. Add the output of ethtool -l or Get-NetAdapterRss."
        }
        Reason::InterruptsUnknown => {
            "where the interrupt of each queue goes is not known, so there is no undo. Run the command on the machine, or with a file of --collect."
        }
        Reason::TableNotRestorable => {
            "its indirection table was set in a way that ethtool -X cannot make again."
        }
        Reason::SteeringUnknown => {
            "its settings of RPS are not known, so there is no undo. Run the command on the machine, or with a file of --collect."
        }
        Reason::StateUnknown => {
            "whether its receive-side scaling is on is not known, so there is no undo. Add the output of Get-NetAdapterRss."
        }
    }
}

fn step(text: &mut Lines<'_>, number: usize, step: &Step) {
    let card = step.card.as_deref().map_or(String::new(), |card| format!("{card}: "));
    let interrupts = match step.interrupts {
        Interruption::None => "interrupts nothing",
        Interruption::AdapterRestart => "restarts the adapter: its link is down for some seconds",
        Interruption::QueueRestart => {
            "restarts the adapter's queues: packets can be lost for a moment"
        }
        Interruption::Service => "restarts a service, not traffic",
    };
    text.line(2, &format!("{number}. {card}{} ({interrupts})", step.does));
    for line in &step.apply {
        text.code(5, line);
    }
    for line in &step.undo {
        text.code(5, &format!("undo:  {line}"));
    }
    for check in &step.checks {
        text.code(5, &format!("check: {}  -> {}", check.command, check.expected));
    }
}

fn counted(count: impl TryInto<u64>, what: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{} {what}{}", format::count(count), if count == 1 { "" } else { "s" })
}

/// A processor as people write it: with its group if that is not the first.
fn cpu((group, number): CpuId) -> String {
    if group == 0 { number.to_string() } else { format!("{group}:{number}") }
}

struct Lines<'a> {
    text: String,
    width: usize,
    bold: (&'a str, &'a str),
}

impl Lines<'_> {
    fn heading(&mut self, words: &str) {
        let (begin, end) = self.bold;
        self.text.push_str(&format!("\n{begin}{words}{end}\n"));
    }

    /// Words, folded.
    fn line(&mut self, indent: usize, words: &str) {
        super::findings::folded(&mut self.text, indent, &format::harmless(words), self.width);
    }

    /// A command, never folded.
    fn code(&mut self, indent: usize, line: &str) {
        self.text.push_str(&format!("{:indent$}{}\n", "", format::harmless(line)));
    }
}
