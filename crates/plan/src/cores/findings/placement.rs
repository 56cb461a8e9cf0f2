//! Rules about CPUs: where an adapter's queues are, and whose neighbours they are.
//!
//! Where they are is in [`current`](super::super::current).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use smbscope_findings::KindInfo;

use super::super::current::{Placement, placement};
use super::super::topology::{Adapter, Cpu, Machine, System};
use super::{FindingKind, Findings, Processor, Severity, cards, count, cpu, length, name};

pub(super) const ONE_PROCESSOR: KindInfo =
    KindInfo::new("one-processor", "All receive work of an adapter is on one CPU");
pub(super) const FEW_QUEUES_IN_TABLE: KindInfo = KindInfo::new(
    "few-queues-in-table",
    "The indirection table uses fewer queues than the adapter has",
);
pub(super) const SIBLING_THREADS: KindInfo =
    KindInfo::new("sibling-threads", "Queues on several threads of one core");
pub(super) const FOREIGN_NODE: KindInfo =
    KindInfo::new("foreign-node", "Queues on another node than the adapter");
pub(super) const SHARED_CORES: KindInfo =
    KindInfo::new("shared-cores", "Queues of two adapters on the same cores");
pub(super) const FIRST_PROCESSOR: KindInfo =
    KindInfo::new("first-processor", "Queues on the CPU that the system uses first");
pub(super) const UNEVEN_TABLE: KindInfo =
    KindInfo::new("uneven-table", "Entries of the table are not shared evenly");
pub(super) const MORE_PROCESSORS_THAN_QUEUES: KindInfo = KindInfo::new(
    "more-processors-than-queues",
    "The table names more CPUs than the adapter has queues",
);

/// Pairs of adapters on the same cores that are reported.
const PAIRS_MAX: usize = 1000;

pub(super) fn find(machine: &Machine, findings: &mut Findings) {
    let cpus: BTreeMap<Processor, &Cpu> =
        machine.cpus.iter().map(|cpu| ((cpu.group, cpu.number), cpu)).collect();
    let placements: Vec<(&Adapter, Placement)> =
        cards(machine).map(|card| (card, placement(machine, card))).collect();
    for (card, placement) in &placements {
        one_processor(machine, card, placement, findings);
        few_queues(machine, card, placement, findings);
        siblings(&cpus, card, placement, findings);
        foreign_node(&cpus, card, placement, findings);
        uneven(card, placement, findings);
        more_processors_than_queues(machine, card, placement, findings);
    }
    first_processor(&cpus, &placements, findings);
    shared_cores(&cpus, &placements, findings);
}

fn one_processor(
    machine: &Machine,
    card: &Adapter,
    placement: &Placement,
    findings: &mut Findings,
) {
    let online = machine.cpus.iter().filter(|cpu| cpu.is_online).count();
    if let ([processor], true, true) =
        (&placement.processors[..], placement.is_complete, online != 1)
    {
        let queues = length(placement.shares.len()).max(if placement.shares.is_empty() {
            length(card.rss.interrupts.len())
        } else {
            1
        });
        let queues = if machine.system == System::Windows {
            card.rss.queues.unwrap_or(queues)
        } else {
            queues
        };
        let severity = if card.queues_max == Some(1) { Severity::Medium } else { Severity::High };
        let rest = match card.queues_max {
            Some(most) if most > queues => format!(", and the adapter has {most} queues"),
            _ => String::new(),
        };
        let sentence = format!(
            "All receive work ({}) is on CPU {}{rest}.",
            count(queues, "queue"),
            name(*processor)
        );
        let evidence = json!({
            "processor": cpu(*processor),
            "queues": queues,
            "queues_max": card.queues_max,
        });
        findings.add(Some(card), FindingKind::OneProcessor, severity, sentence, evidence);
    }
}

fn few_queues(machine: &Machine, card: &Adapter, placement: &Placement, findings: &mut Findings) {
    let used = length(placement.shares.len());
    let entries: u32 = placement.shares.values().sum();
    // On Windows each CPU of the table has a queue, as far as there are queues.
    let queues = match machine.system {
        System::Windows => card.rss.queues,
        System::Linux => card.rss.queues.into_iter().chain(card.rss.rings).max(),
    };
    let Some(queues) = queues.filter(|queues| used > 0 && used < *queues) else { return };
    let severity = if used.saturating_mul(4) <= queues { Severity::High } else { Severity::Medium };
    let sentence =
        format!("The indirection table of {entries} entries uses {used} of {queues} queues.");
    let evidence = json!({ "used": used, "queues": queues, "entries": entries });
    findings.add(Some(card), FindingKind::FewQueuesInTable, severity, sentence, evidence);
}

fn siblings(
    cpus: &BTreeMap<Processor, &Cpu>,
    card: &Adapter,
    placement: &Placement,
    findings: &mut Findings,
) {
    let known: Vec<&&Cpu> =
        placement.processors.iter().filter_map(|processor| cpus.get(processor)).collect();
    let cores: BTreeSet<(u32, u32)> = known.iter().map(|cpu| (cpu.socket, cpu.core)).collect();
    if cores.len() < known.len() {
        let (processors, cores) = (known.len(), length(cores.len()));
        let sentence = format!(
            "Queues are on {processors} CPUs, which are hardware threads of only {}.",
            count(cores, "core")
        );
        let evidence = json!({ "processors": processors, "cores": cores });
        findings.add(Some(card), FindingKind::SiblingThreads, Severity::Medium, sentence, evidence);
    }
}

fn foreign_node(
    cpus: &BTreeMap<Processor, &Cpu>,
    card: &Adapter,
    placement: &Placement,
    findings: &mut Findings,
) {
    let mut foreign = 0;
    let mut distance_max = None;
    for processor in &placement.processors {
        let distance =
            card.rss.processors.iter().find(|other| (other.group, other.number) == *processor);
        let is_foreign = match (distance, card.node, cpus.get(processor)) {
            (Some(distance), _, _) if distance.distance > 0 => {
                distance_max = distance_max.max(Some(distance.distance));
                true
            }
            (None, Some(node), Some(cpu)) => cpu.node != node,
            _ => false,
        };
        foreign += u32::from(is_foreign);
    }
    if foreign > 0 {
        let processors = length(placement.processors.len());
        let severity = if foreign == processors { Severity::High } else { Severity::Medium };
        let node = card.node.map_or(String::new(), |node| format!(" (node {node})"));
        let distance = distance_max
            .map_or(String::new(), |distance| format!(", at a distance of up to {distance}"));
        let sentence = format!(
            "Receive work is on another NUMA node than the adapter{node}: {foreign} of {}{distance}.",
            count(processors, "CPU")
        );
        let evidence = json!({
            "foreign": foreign,
            "processors": processors,
            "node": card.node,
            "distance_max": distance_max,
        });
        findings.add(Some(card), FindingKind::ForeignNode, severity, sentence, evidence);
    }
}

fn uneven(card: &Adapter, placement: &Placement, findings: &mut Findings) {
    let (Some(least), Some(most)) =
        (placement.shares.values().min(), placement.shares.values().max())
    else {
        return;
    };
    if least < most {
        let severity = if (most - least) * 4 >= *most { Severity::Medium } else { Severity::Low };
        let entries: u32 = placement.shares.values().sum();
        let targets = placement.shares.len();
        let sentence = format!(
            "{entries} entries for {targets} targets: the busiest has {most}, the least busy {least} ({} % less).",
            (most - least) * 100 / most.max(&1)
        );
        let evidence =
            json!({ "entries": entries, "targets": targets, "least": least, "most": most });
        findings.add(Some(card), FindingKind::UnevenTable, severity, sentence, evidence);
    }
}

fn more_processors_than_queues(
    machine: &Machine,
    card: &Adapter,
    placement: &Placement,
    findings: &mut Findings,
) {
    let processors = length(placement.processors.len());
    let queues =
        card.rss.queues.filter(|queues| machine.system == System::Windows && processors > *queues);
    if let Some(queues) = queues {
        let sentence = format!(
            "The indirection table names {processors} CPUs, and the adapter has {}: the driver uses a part of them.",
            count(queues, "queue")
        );
        let evidence = json!({ "processors": processors, "queues": queues });
        let kind = FindingKind::MoreProcessorsThanQueues;
        findings.add(Some(card), kind, Severity::Medium, sentence, evidence);
    }
}

fn first_processor(
    cpus: &BTreeMap<Processor, &Cpu>,
    placements: &[(&Adapter, Placement)],
    findings: &mut Findings,
) {
    let on_first: Vec<&Adapter> = placements
        .iter()
        .filter(|(_, placement)| placement.processors.contains(&(0, 0)))
        .map(|(card, _)| *card)
        .collect();
    // On a machine with one CPU there is no other.
    if on_first.is_empty() || cpus.len() == 1 {
        return;
    }
    let cards = on_first.len();
    let (card, severity, who) = if let [only] = on_first[..] {
        (Some(only), Severity::Low, "It receives".to_owned())
    } else {
        (None, Severity::Medium, format!("{cards} adapters receive"))
    };
    let sentence = format!("{who} on CPU 0, which the operating system uses for other work first.");
    let evidence = json!({ "cards": cards });
    findings.add(card, FindingKind::FirstProcessor, severity, sentence, evidence);
}

fn shared_cores(
    cpus: &BTreeMap<Processor, &Cpu>,
    placements: &[(&Adapter, Placement)],
    findings: &mut Findings,
) {
    // Two CPUs are on one core if the machine says so; a CPU that it does not know is a core of its own.
    let core = |processor: &Processor| match cpus.get(processor) {
        Some(cpu) => (0, cpu.socket, cpu.core),
        None => (1, processor.0, processor.1),
    };
    let cores: Vec<(&Adapter, BTreeSet<_>)> = placements
        .iter()
        .map(|(card, placement)| (*card, placement.processors.iter().map(core).collect()))
        .collect();
    let mut pairs = 0;
    for (position, (card, mine)) in cores.iter().enumerate() {
        for (other, others) in cores.iter().skip(position + 1) {
            let cores = length(mine.intersection(others).count());
            if cores > 0 && pairs < PAIRS_MAX && !is_one_adapter(card, other) {
                pairs += 1;
                let severity = if usize::try_from(cores) == Ok(mine.len()) {
                    Severity::High
                } else {
                    Severity::Medium
                };
                let sentence = format!(
                    "Its queues share {} with those of {}.",
                    count(cores, "core"),
                    other.name
                );
                let evidence = json!({ "other": other.name, "cores": cores });
                findings.add(Some(card), FindingKind::SharedCores, severity, sentence, evidence);
            }
        }
    }
}

/// A team and its members have the same CPUs.
fn is_one_adapter(one: &Adapter, other: &Adapter) -> bool {
    one.master.as_ref() == Some(&other.name) || other.master.as_ref() == Some(&one.name)
}
