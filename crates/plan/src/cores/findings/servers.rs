//! Rules about the server's processes: whether they run, and have their memory, on the node where packets arrive.
//!
//! The node of an adapter is where its packets arrive once the layout is applied. A machine with one node has no rule
//! here, and nor has one whose adapters' nodes are unknown.

use std::collections::{BTreeMap, BTreeSet};

use super::super::processes::Process;
use super::super::topology::{Machine, System};
use super::{Findings, Severity, Trouble, cards};

/// A share of the memory, in percent, below which memory on another node is not reported.
const MEMORY_PERCENT_MIN: u64 = 25;

/// The nodes of the adapters that may carry traffic.
pub(in crate::cores) fn card_nodes(machine: &Machine) -> BTreeSet<u32> {
    cards(machine).filter_map(|card| card.node).collect()
}

/// The servers of user space that are placed badly, with all of their processes.
pub(in crate::cores) fn misplaced(machine: &Machine) -> BTreeMap<&str, Vec<&Process>> {
    let mut findings = Findings { found: Vec::new() };
    find(machine, &mut findings);
    let mut servers = servers(machine);
    servers.retain(|(name, is_kernel), _| {
        let is_misplaced = findings.found.iter().any(|finding| match &finding.trouble {
            Trouble::ServerConfined { server, .. }
            | Trouble::ServerSpread { server, .. }
            | Trouble::ServerMemory { server, .. } => server == name,
            _ => false,
        });
        is_misplaced && !is_kernel
    });
    servers.into_iter().map(|((name, _), processes)| (name, processes)).collect()
}

fn servers(machine: &Machine) -> BTreeMap<(&str, bool), Vec<&Process>> {
    let mut servers: BTreeMap<(&str, bool), Vec<&Process>> = BTreeMap::new();
    for process in &machine.processes.list {
        servers.entry((process.name.as_str(), process.is_kernel)).or_default().push(process);
    }
    servers
}

pub(super) fn find(machine: &Machine, findings: &mut Findings) {
    let nodes: BTreeSet<u32> = machine.cpus.iter().map(|cpu| cpu.node).collect();
    let homes = card_nodes(machine);
    if nodes.len() < 2 || homes.is_empty() {
        return;
    }
    let node_of: BTreeMap<_, _> =
        machine.cpus.iter().map(|cpu| ((cpu.group, cpu.number), cpu.node)).collect();
    for ((name, is_kernel), processes) in servers(machine) {
        let server = name.to_owned();
        if machine.system == System::Windows && is_kernel {
            let trouble = Trouble::ServerInSystem { server, adapter_nodes: list(&homes) };
            findings.add(None, Severity::Low, trouble);
            continue;
        }
        if homes.len() > 1 && !is_kernel {
            let trouble = Trouble::ServerOfSeveralNodes {
                server: server.clone(),
                processes: length(processes.len()),
                adapter_nodes: list(&homes),
            };
            findings.add(None, Severity::Low, trouble);
        }
        let mut confined = BTreeSet::new();
        let (mut confined_count, mut by_node) = (0, BTreeMap::new());
        for process in &processes {
            let allowed: BTreeSet<u32> =
                process.allowed.iter().filter_map(|cpu| node_of.get(cpu)).copied().collect();
            if !allowed.is_empty() && allowed.is_disjoint(&homes) {
                confined_count += 1;
                confined.extend(allowed);
            } else if let Some(node) = process.last.and_then(|cpu| node_of.get(&cpu)) {
                *by_node.entry(*node).or_insert(0_u32) += 1;
            }
        }
        if confined_count > 0 {
            let trouble = Trouble::ServerConfined {
                server: server.clone(),
                processes: confined_count,
                of: length(processes.len()),
                nodes: list(&confined),
                adapter_nodes: list(&homes),
            };
            findings.add(None, Severity::High, trouble);
        }
        if by_node.keys().any(|node| !homes.contains(node)) {
            let severity = if is_kernel { Severity::Low } else { Severity::Medium };
            let trouble = Trouble::ServerSpread {
                server: server.clone(),
                by_node: by_node.into_iter().collect(),
                adapter_nodes: list(&homes),
                is_kernel,
            };
            findings.add(None, severity, trouble);
        }
        memory(&server, &processes, &homes, findings);
    }
}

fn memory(server: &str, processes: &[&Process], homes: &BTreeSet<u32>, findings: &mut Findings) {
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    for (node, size) in processes.iter().flat_map(|process| &process.memory) {
        let sum = bytes.entry(*node).or_default();
        *sum = sum.saturating_add(*size);
    }
    let sum = |is_home: bool| {
        let of = bytes.iter().filter(|(node, _)| homes.contains(node) == is_home);
        of.fold(0_u64, |sum, (_, size)| sum.saturating_add(*size))
    };
    let (home, foreign) = (sum(true), sum(false));
    let forbidden = processes.iter().filter(|process| {
        !process.memory_nodes.is_empty()
            && process.memory_nodes.iter().all(|node| !homes.contains(node))
    });
    let forbidden = length(forbidden.count());
    let percent = foreign.saturating_mul(100) / home.saturating_add(foreign).max(1);
    if forbidden > 0 || percent >= MEMORY_PERCENT_MIN {
        let trouble = Trouble::ServerMemory {
            server: server.to_owned(),
            bytes_by_node: bytes.into_iter().collect(),
            measured: length(processes.iter().filter(|p| !p.memory.is_empty()).count()),
            forbidden,
            adapter_nodes: list(homes),
        };
        findings.add(None, Severity::Medium, trouble);
    }
}

fn list(nodes: &BTreeSet<u32>) -> Vec<u32> {
    nodes.iter().copied().collect()
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
