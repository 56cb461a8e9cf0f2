//! Rules about processors: where an adapter's queues are, and whose neighbours they are.
//!
//! Where they are is in [`current`](super::super::current).

use std::collections::{BTreeMap, BTreeSet};

use super::super::current::{Placement, placement};
use super::super::topology::{Card, Cpu, Machine, System};
use super::{Findings, Processor, Severity, Trouble, cards};

/// Pairs of adapters on the same cores that are reported.
const PAIRS_MAX: usize = 1000;

pub(super) fn find(machine: &Machine, findings: &mut Findings) {
    let cpus: BTreeMap<Processor, &Cpu> =
        machine.cpus.iter().map(|cpu| ((cpu.group, cpu.number), cpu)).collect();
    let placements: Vec<(&Card, Placement)> =
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

fn one_processor(machine: &Machine, card: &Card, placement: &Placement, findings: &mut Findings) {
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
        findings.add(
            Some(card),
            severity,
            Trouble::OneProcessor { processor: *processor, queues, queues_max: card.queues_max },
        );
    }
}

fn few_queues(machine: &Machine, card: &Card, placement: &Placement, findings: &mut Findings) {
    let used = length(placement.shares.len());
    let entries = placement.shares.values().sum();
    // On Windows each processor of the table has a queue, as far as there are queues.
    let queues = match machine.system {
        System::Windows => card.rss.queues,
        System::Linux => card.rss.queues.into_iter().chain(card.rss.rings).max(),
    };
    let Some(queues) = queues.filter(|queues| used > 0 && used < *queues) else { return };
    let severity = if used.saturating_mul(4) <= queues { Severity::High } else { Severity::Medium };
    findings.add(Some(card), severity, Trouble::FewQueuesInTable { used, queues, entries });
}

fn siblings(
    cpus: &BTreeMap<Processor, &Cpu>,
    card: &Card,
    placement: &Placement,
    findings: &mut Findings,
) {
    let known: Vec<&&Cpu> =
        placement.processors.iter().filter_map(|processor| cpus.get(processor)).collect();
    let cores: BTreeSet<(u32, u32)> = known.iter().map(|cpu| (cpu.socket, cpu.core)).collect();
    if cores.len() < known.len() {
        let trouble =
            Trouble::SiblingThreads { processors: length(known.len()), cores: length(cores.len()) };
        findings.add(Some(card), Severity::Medium, trouble);
    }
}

fn foreign_node(
    cpus: &BTreeMap<Processor, &Cpu>,
    card: &Card,
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
        let trouble = Trouble::ForeignNode { foreign, processors, node: card.node, distance_max };
        findings.add(Some(card), severity, trouble);
    }
}

fn uneven(card: &Card, placement: &Placement, findings: &mut Findings) {
    let (Some(least), Some(most)) =
        (placement.shares.values().min(), placement.shares.values().max())
    else {
        return;
    };
    if least < most {
        let severity = if (most - least) * 4 >= *most { Severity::Medium } else { Severity::Low };
        let entries = placement.shares.values().sum();
        let targets = length(placement.shares.len());
        findings.add(
            Some(card),
            severity,
            Trouble::UnevenTable { entries, targets, least: *least, most: *most },
        );
    }
}

fn more_processors_than_queues(
    machine: &Machine,
    card: &Card,
    placement: &Placement,
    findings: &mut Findings,
) {
    let processors = length(placement.processors.len());
    let queues =
        card.rss.queues.filter(|queues| machine.system == System::Windows && processors > *queues);
    if let Some(queues) = queues {
        findings.add(
            Some(card),
            Severity::Medium,
            Trouble::MoreProcessorsThanQueues { processors, queues },
        );
    }
}

fn first_processor(
    cpus: &BTreeMap<Processor, &Cpu>,
    placements: &[(&Card, Placement)],
    findings: &mut Findings,
) {
    let on_first: Vec<&Card> = placements
        .iter()
        .filter(|(_, placement)| placement.processors.contains(&(0, 0)))
        .map(|(card, _)| *card)
        .collect();
    // On a machine with one processor there is no other.
    if on_first.is_empty() || cpus.len() == 1 {
        return;
    }
    let cards = length(on_first.len());
    if let [only] = on_first[..] {
        findings.add(Some(only), Severity::Low, Trouble::FirstProcessor { cards });
    } else {
        findings.add(None, Severity::Medium, Trouble::FirstProcessor { cards });
    }
}

fn shared_cores(
    cpus: &BTreeMap<Processor, &Cpu>,
    placements: &[(&Card, Placement)],
    findings: &mut Findings,
) {
    // Two processors are on one core if the machine says so; a processor that it does not know is a core of its own.
    let core = |processor: &Processor| match cpus.get(processor) {
        Some(cpu) => (0, cpu.socket, cpu.core),
        None => (1, processor.0, processor.1),
    };
    let cores: Vec<(&Card, BTreeSet<_>)> = placements
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
                findings.add(
                    Some(card),
                    severity,
                    Trouble::SharedCores { other: other.name.clone(), cores },
                );
            }
        }
    }
}

/// A team and its members have the same processors.
fn is_one_adapter(one: &Card, other: &Card) -> bool {
    one.master.as_ref() == Some(&other.name) || other.master.as_ref() == Some(&one.name)
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
