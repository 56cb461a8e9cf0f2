//! What is wrong with a machine's receive-side scaling, interrupts and processors.
//!
//! Owns the closed list of findings, their evidence, severity and sentence. Rules about processors are in `placement`,
//! rules about settings in `settings`. It proposes nothing: a layout does.
//!
//! Rules: Windows driver documentation ("Introduction to Receive Side Scaling", "Standardized INF Keywords for RSS",
//! `NDIS_RECEIVE_SCALE_PARAMETERS`); Linux `Documentation/networking/scaling.rst`, `core-api/irq/irq-affinity.rst`.

use std::fmt;

use serde::Serialize;
pub use smbscope_findings::Severity;

use super::json;
use super::topology::{Card, Machine};

mod placement;
mod received;
pub(super) mod servers;
mod settings;
#[cfg(test)]
mod tests;

/// Findings of one machine that are kept.
const FINDINGS_MAX: usize = 10_000;

/// A finding about one adapter, or about the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Name of the adapter; `None` for the machine.
    pub card: Option<String>,
    pub severity: Severity,
    #[serde(flatten)]
    pub trouble: Trouble,
    /// What it is, with its numbers.
    pub sentence: String,
}

/// A processor as (group, number); the group is 0 except on Windows with more than 64 processors.
pub type Processor = (u32, u32);

/// What is wrong, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "trouble", content = "evidence", rename_all = "kebab-case")]
pub enum Trouble {
    /// All receive work of an adapter is on one processor.
    OneProcessor {
        #[serde(serialize_with = "json::cpu")]
        processor: Processor,
        queues: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        queues_max: Option<u32>,
    },
    /// The indirection table uses fewer queues than the adapter has.
    FewQueuesInTable { used: u32, queues: u32, entries: u32 },
    /// Queues on several threads of one core.
    SiblingThreads { processors: u32, cores: u32 },
    /// Queues on another node than the adapter.
    ForeignNode {
        foreign: u32,
        processors: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        distance_max: Option<u32>,
    },
    /// Queues of two adapters on the same cores.
    SharedCores { other: String, cores: u32 },
    /// Queues on the processor that the system uses first. `cards` adapters do.
    FirstProcessor { cards: u32 },
    /// Receive-side scaling is off.
    RssOff {
        #[serde(skip_serializing_if = "Option::is_none")]
        queues_max: Option<u32>,
    },
    /// The profile ignores settings.
    ProfileIgnores { profile: String, settings: Vec<&'static str> },
    /// Entries of the table are not shared evenly.
    UnevenTable { entries: u32, targets: u32, least: u32, most: u32 },
    /// The table names more processors than the adapter has queues.
    MoreProcessorsThanQueues { processors: u32, queues: u32 },
    /// irqbalance may move interrupts that are placed.
    IrqbalanceActive { interrupts: u32, pinned: u32 },
    /// Interrupts may go to any processor, and irqbalance does not run.
    InterruptsFloat { interrupts: u32 },
    /// RPS is set although RSS spreads.
    RpsOnRss { queues: u32, processors: u32 },
    /// Transmit queues without processors.
    XpsMissing { queues: u32 },
    /// A team or bond is in the path.
    Teamed { master: String },
    /// Each frame is an interrupt.
    ModerationOff,
    /// Interrupts come late.
    ModerationHigh { delay_usecs: u32 },
    /// Receive rings lost frames.
    RingLosses {
        counter: String,
        frames: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        received: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ring: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ring_max: Option<u32>,
    },
    /// Receive work ran out of its budget, or backlogs were full.
    Squeezed { processors: u32, squeezed: u64, dropped: u64, processed: u64 },
    /// Filters place flows in addition to RSS.
    FlowFilters { is_ntuple: bool },
    /// Governors of the frequency save power.
    PowerSaving { governor: String },
    /// A trace shows receive work on few processors, and the busiest with this part of its time in it.
    ReceivedOnFew {
        #[serde(serialize_with = "json::cpus")]
        on: Vec<Processor>,
        online: u32,
        busiest_percent: f64,
        seconds: f64,
    },
    /// The adapter has more queues than its indirection table can name.
    QueuesBeyondTable { queues: u32, limit: u32 },
    /// Processes of the server may not run on the adapters' nodes.
    ServerConfined {
        server: String,
        processes: u32,
        of: u32,
        nodes: Vec<u32>,
        adapter_nodes: Vec<u32>,
    },
    /// Processes of the server ran last on these nodes, as (node, processes).
    ServerSpread {
        server: String,
        #[serde(serialize_with = "json::node_processes")]
        by_node: Vec<(u32, u32)>,
        adapter_nodes: Vec<u32>,
        is_kernel: bool,
    },
    /// Memory of the server is on these nodes, as (node, bytes), for the processes that were measured; `forbidden` may
    /// not use the adapters' nodes.
    ServerMemory {
        server: String,
        #[serde(serialize_with = "json::node_bytes")]
        bytes_by_node: Vec<(u32, u64)>,
        measured: u32,
        forbidden: u32,
        adapter_nodes: Vec<u32>,
    },
    /// One instance of a server takes connections of adapters on several nodes.
    ServerOfSeveralNodes { server: String, processes: u32, adapter_nodes: Vec<u32> },
    /// Windows: the server's threads are the system's.
    ServerInSystem { server: String, adapter_nodes: Vec<u32> },
    /// A virtual function: the host decides.
    VirtualFunction,
    /// An adapter of a hypervisor: the host decides.
    VirtualAdapter,
}

/// Finds everything. The most severe are first; otherwise adapters in their order.
pub fn find(machine: &Machine) -> Vec<Finding> {
    let mut findings = Findings { found: Vec::new() };
    placement::find(machine, &mut findings);
    received::find(machine, &mut findings);
    settings::find(machine, &mut findings);
    servers::find(machine, &mut findings);
    findings.found.sort_by_key(|finding| finding.severity);
    findings.found
}

/// The findings so far.
struct Findings {
    found: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, card: Option<&Card>, severity: Severity, trouble: Trouble) {
        if self.found.len() < FINDINGS_MAX {
            let sentence = trouble.to_string();
            self.found.push(Finding {
                card: card.map(|card| card.name.clone()),
                severity,
                trouble,
                sentence,
            });
        }
    }
}

/// Adapters that may carry receive work: those whose link is not known to be down.
fn cards(machine: &Machine) -> impl Iterator<Item = &Card> {
    machine.cards.iter().filter(|card| card.is_up != Some(false))
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneProcessor { processor, queues, queues_max } => {
                write!(
                    out,
                    "All receive work ({}) is on processor {}",
                    count(*queues, "queue"),
                    name(*processor)
                )?;
                match queues_max {
                    Some(queues_max) if queues_max > queues => {
                        write!(out, ", and the adapter has {queues_max} queues.")
                    }
                    _ => write!(out, "."),
                }
            }
            Self::FewQueuesInTable { used, queues, entries } => {
                write!(
                    out,
                    "The indirection table of {entries} entries uses {used} of {queues} queues."
                )
            }
            Self::SiblingThreads { processors, cores } => {
                write!(
                    out,
                    "Queues are on {processors} processors, which are hardware threads of only {}.",
                    count(*cores, "core")
                )
            }
            Self::ForeignNode { foreign, processors, node, distance_max } => {
                write!(out, "Receive work is on another NUMA node than the adapter")?;
                if let Some(node) = node {
                    write!(out, " (node {node})")?;
                }
                write!(out, ": {foreign} of {}", count(*processors, "processor"))?;
                match distance_max {
                    Some(distance) => write!(out, ", at a distance of up to {distance}."),
                    None => write!(out, "."),
                }
            }
            Self::SharedCores { other, cores } => {
                write!(out, "Its queues share {} with those of {other}.", count(*cores, "core"))
            }
            Self::FirstProcessor { cards: 1 } => {
                write!(
                    out,
                    "It receives on processor 0, which the operating system uses for other work first."
                )
            }
            Self::FirstProcessor { cards } => {
                write!(
                    out,
                    "{cards} adapters receive on processor 0, which the operating system uses for other work first."
                )
            }
            Self::RssOff { queues_max } => {
                write!(out, "Receive-side scaling is off: one processor does all receive work")?;
                match queues_max {
                    Some(queues) => {
                        write!(out, ", and the adapter has {}.", count(*queues, "queue"))
                    }
                    None => write!(out, "."),
                }
            }
            Self::ProfileIgnores { profile, settings } => {
                write!(out, "The profile {profile} ignores what is set: {}.", settings.join(", "))
            }
            Self::UnevenTable { entries, targets, least, most } => write!(
                out,
                "{entries} entries for {targets} targets: the busiest has {most}, the least busy {least} ({} % less).",
                (most - least) * 100 / most.max(&1)
            ),
            Self::MoreProcessorsThanQueues { processors, queues } => write!(
                out,
                "The indirection table names {processors} processors, and the adapter has {}: the driver uses a part of them.",
                count(*queues, "queue")
            ),
            Self::IrqbalanceActive { interrupts, pinned: 0 } => {
                write!(out, "irqbalance runs and may move its {}.", count(*interrupts, "interrupt"))
            }
            Self::IrqbalanceActive { interrupts, pinned } => write!(
                out,
                "irqbalance runs and may move {pinned} of its {} that are pinned to a processor.",
                count(*interrupts, "interrupt")
            ),
            Self::InterruptsFloat { interrupts } => write!(
                out,
                "{} may go to several processors, and irqbalance does not run: the interrupt controller chooses.",
                count(*interrupts, "interrupt")
            ),
            Self::RpsOnRss { queues, processors } => write!(
                out,
                "RPS sends frames to {} although RSS spreads over {}: each frame costs an interrupt between processors.",
                count(*processors, "processor"),
                count(*queues, "queue")
            ),
            Self::XpsMissing { queues } => {
                write!(
                    out,
                    "XPS is not set for {}: processors share transmit queues and their locks.",
                    count(*queues, "transmit queue")
                )
            }
            Self::Teamed { master } => write!(
                out,
                "{master} is a team, bond or bridge: SMB Multichannel sees one interface, and its hash decides which adapter receives."
            ),
            Self::ModerationOff => {
                write!(out, "Interrupt moderation is off: each frame may cost an interrupt.")
            }
            Self::ModerationHigh { delay_usecs } => {
                write!(
                    out,
                    "Interrupts come up to {delay_usecs} µs after a frame, which each SMB request waits for."
                )
            }
            Self::RingLosses { counter, frames, received, ring, ring_max } => {
                write!(out, "Receive rings lost {frames} frames ({counter})")?;
                if let Some(received) = received {
                    write!(out, " of {received} received")?;
                }
                match (ring, ring_max) {
                    (Some(ring), Some(most)) => {
                        write!(out, "; a ring has {ring} of at most {most} descriptors.")
                    }
                    _ => write!(out, "."),
                }
            }
            Self::Squeezed { processors, squeezed, dropped, processed } => write!(
                out,
                "Receive work ended early {squeezed} times and lost {dropped} frames on {}, of {processed} frames.",
                count(*processors, "processor")
            ),
            Self::FlowFilters { is_ntuple: true } => {
                write!(out, "ntuple filters are on: they place flows before RSS does.")
            }
            Self::FlowFilters { is_ntuple: false } => {
                write!(
                    out,
                    "The flow director (ATR) is on: it moves flows to the queue of the processor that sends, not to RSS's."
                )
            }
            Self::PowerSaving { governor } => {
                write!(
                    out,
                    "Processors use the frequency governor {governor}, which lowers the frequency between bursts."
                )
            }
            Self::ReceivedOnFew { on, online, busiest_percent, seconds } => {
                let names: Vec<_> = on.iter().map(|one| name(*one)).collect();
                write!(
                    out,
                    "In {seconds:.1} s, nearly all receive work ran on {} of {online} processors ({}), {} {busiest_percent:.0} % of its time.",
                    on.len(),
                    names.join(", "),
                    if on.len() == 1 { "which spent" } else { "the busiest with" }
                )
            }
            Self::QueuesBeyondTable { queues, limit } => write!(
                out,
                "It has {queues} queues, and its indirection table can name {limit}: receive-side scaling spreads over {limit} at most."
            ),
            Self::ServerConfined { server, processes, of, nodes, adapter_nodes } => write!(
                out,
                "{processes} of {} of {server} may run on {} only, and packets arrive on {}: all their data crosses between nodes.",
                processes_of(*of),
                named(nodes),
                named(adapter_nodes)
            ),
            Self::ServerSpread { server, by_node, adapter_nodes, is_kernel } => {
                let ran: Vec<String> = by_node
                    .iter()
                    .map(|(node, processes)| format!("{processes} on node {node}"))
                    .collect();
                write!(
                    out,
                    "{} of {server} ran last: {}. Packets arrive on {}: data of the others crosses between nodes.",
                    if *is_kernel { "Kernel threads" } else { "Processes" },
                    ran.join(", "),
                    named(adapter_nodes)
                )?;
                if *is_kernel {
                    write!(out, " The kernel places them: choose the adapters' node, not theirs.")?;
                }
                Ok(())
            }
            Self::ServerMemory { server, bytes_by_node, measured, forbidden, adapter_nodes } => {
                if *forbidden > 0 {
                    write!(
                        out,
                        "{} of {server} may not use memory of {}, where packets arrive.",
                        processes_of(*forbidden),
                        named(adapter_nodes)
                    )?;
                }
                if *measured > 0 {
                    let of: Vec<String> = bytes_by_node
                        .iter()
                        .map(|(node, bytes)| format!("{} MiB on node {node}", bytes >> 20))
                        .collect();
                    write!(
                        out,
                        "{}Memory of {server} ({} measured): {}. Packets arrive on {}.",
                        if *forbidden > 0 { " " } else { "" },
                        processes_of(*measured),
                        of.join(", "),
                        named(adapter_nodes)
                    )?;
                }
                Ok(())
            }
            Self::ServerOfSeveralNodes { server, processes, adapter_nodes } => write!(
                out,
                "Adapters are on {}, and one instance of {server} ({}) serves all: half of the data or more crosses between nodes. \
                 An instance for each node avoids it: bound to the adapters of its node, with state directories, CPUAffinity= and \
                 NUMAMask= of its own.",
                named(adapter_nodes),
                processes_of(*processes)
            ),
            Self::ServerInSystem { server, adapter_nodes } => write!(
                out,
                "The SMB server of Windows runs in {server}, whose threads cannot be placed: choose the node for receive-side scaling \
                 instead. Packets arrive on {}.",
                named(adapter_nodes)
            ),
            Self::VirtualFunction => {
                write!(
                    out,
                    "It is a virtual function (SR-IOV): the host decides how many queues it has."
                )
            }
            Self::VirtualAdapter => {
                write!(
                    out,
                    "It is a virtual adapter: the host's processors receive first, and their layout counts too."
                )
            }
        }
    }
}

fn count(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn processes_of(number: u32) -> String {
    format!("{number} process{}", if number == 1 { "" } else { "es" })
}

fn named(nodes: &[u32]) -> String {
    let words: Vec<String> = nodes.iter().map(u32::to_string).collect();
    format!("node{} {}", if nodes.len() == 1 { "" } else { "s" }, words.join(" and "))
}

fn name((group, number): Processor) -> String {
    if group == 0 { number.to_string() } else { format!("{group}:{number}") }
}
