//! Rules about the server's processes: whether they run, and have their memory, on the node where packets arrive.
//!
//! The node of an adapter is where its packets arrive once the layout is applied. A machine with one node has no rule
//! here, and nor has one whose adapters' nodes are unknown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use smbscope_findings::KindInfo;

use super::super::processes::Process;
use super::super::topology::{Machine, System};
use super::{FindingKind, Findings, Severity, cards};

pub(super) const SERVER_CONFINED: KindInfo =
    KindInfo::new("server-confined", "Processes of the server may not run on the adapters' nodes");
pub(super) const SERVER_SPREAD: KindInfo =
    KindInfo::new("server-spread", "Processes of the server ran last on several nodes");
pub(super) const SERVER_MEMORY: KindInfo =
    KindInfo::new("server-memory", "Memory of the server is on other nodes than the adapters'");
pub(super) const SERVER_OF_SEVERAL_NODES: KindInfo = KindInfo::new(
    "server-of-several-nodes",
    "One instance of a server takes connections of adapters on several nodes",
);
pub(super) const SERVER_IN_SYSTEM: KindInfo =
    KindInfo::new("server-in-system", "Windows: the server's threads are the system's");

/// A share of the memory, in percent, below which memory on another node is not reported.
const MEMORY_PERCENT_MIN: u64 = 25;

/// The nodes of the adapters that may carry traffic.
pub(crate) fn card_nodes(machine: &Machine) -> BTreeSet<u32> {
    cards(machine).filter_map(|card| card.node).collect()
}

/// The servers of user space that are placed badly, with all of their processes.
pub(crate) fn misplaced(machine: &Machine) -> BTreeMap<&str, Vec<&Process>> {
    let mut findings = Findings { found: Vec::new() };
    find(machine, &mut findings);
    let mut servers = servers(machine);
    servers.retain(|(name, is_kernel), _| {
        let is_misplaced = findings.found.iter().any(|finding| {
            let kinds =
                [FindingKind::ServerConfined, FindingKind::ServerSpread, FindingKind::ServerMemory];
            kinds.contains(&finding.kind)
                && finding.details.evidence.get("server") == Some(&Json::from(*name))
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
        let mut add = |kind, severity, sentence, evidence| {
            findings.add(None, kind, severity, sentence, with_server(evidence, name));
        };
        if machine.system == System::Windows && is_kernel {
            let sentence = format!(
                "The SMB server of Windows runs in {name}, whose threads cannot be placed: choose the node for receive-side \
                 scaling instead. Packets arrive on {}.",
                named(&homes)
            );
            let evidence = json!({ "adapter_nodes": homes });
            add(FindingKind::ServerInSystem, Severity::Low, sentence, evidence);
            continue;
        }
        if homes.len() > 1 && !is_kernel {
            let sentence = format!(
                "Adapters are on {}, and one instance of {name} ({}) serves all: half of the data or more crosses between nodes. \
                 An instance for each node avoids it: bound to the adapters of its node, with state directories, CPUAffinity= and \
                 NUMAMask= of its own.",
                named(&homes),
                counted(processes.len())
            );
            let evidence = json!({ "processes": processes.len(), "adapter_nodes": homes });
            add(FindingKind::ServerOfSeveralNodes, Severity::Low, sentence, evidence);
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
            let sentence = format!(
                "{confined_count} of {} of {name} may run on {} only, and packets arrive on {}: all their data crosses between nodes.",
                counted(processes.len()),
                named(&confined),
                named(&homes)
            );
            let evidence = json!({
                "processes": confined_count,
                "of": processes.len(),
                "nodes": confined,
                "adapter_nodes": homes,
            });
            add(FindingKind::ServerConfined, Severity::High, sentence, evidence);
        }
        if by_node.keys().any(|node| !homes.contains(node)) {
            let severity = if is_kernel { Severity::Low } else { Severity::Medium };
            let ran: Vec<String> = by_node
                .iter()
                .map(|(node, processes)| format!("{processes} on node {node}"))
                .collect();
            let mut sentence = format!(
                "{} of {name} ran last: {}. Packets arrive on {}: data of the others crosses between nodes.",
                if is_kernel { "Kernel threads" } else { "Processes" },
                ran.join(", "),
                named(&homes)
            );
            if is_kernel {
                sentence.push_str(
                    " The kernel places them: move the adapters' queues, not these threads.",
                );
            }
            let by_node =
                by_node.iter().map(|(node, number)| json!({ "node": node, "processes": number }));
            let evidence = json!({
                "by_node": by_node.collect::<Vec<_>>(),
                "adapter_nodes": homes,
                "is_kernel": is_kernel,
            });
            add(FindingKind::ServerSpread, severity, sentence, evidence);
        }
        memory(name, &processes, &homes, findings);
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
    let forbidden = forbidden.count();
    let percent = foreign.saturating_mul(100) / home.saturating_add(foreign).max(1);
    if forbidden > 0 || percent >= MEMORY_PERCENT_MIN {
        let measured = processes.iter().filter(|p| !p.memory.is_empty()).count();
        let mut sentences = Vec::new();
        if forbidden > 0 {
            sentences.push(format!(
                "{} of {server} may not use memory of {}, where packets arrive.",
                counted(forbidden),
                named(homes)
            ));
        }
        if measured > 0 {
            let of: Vec<String> = bytes
                .iter()
                .map(|(node, bytes)| format!("{} MiB on node {node}", bytes >> 20))
                .collect();
            sentences.push(format!(
                "Memory of {server} ({} measured): {}. Packets arrive on {}.",
                counted(measured),
                of.join(", "),
                named(homes)
            ));
        }
        let by_node = bytes.iter().map(|(node, bytes)| json!({ "node": node, "bytes": bytes }));
        let evidence = json!({
            "bytes_by_node": by_node.collect::<Vec<_>>(),
            "measured": measured,
            "forbidden": forbidden,
            "adapter_nodes": homes,
        });
        let (kind, evidence) = (FindingKind::ServerMemory, with_server(evidence, server));
        findings.add(None, kind, Severity::Medium, sentences.join(" "), evidence);
    }
}

fn with_server(mut evidence: Json, server: &str) -> Json {
    evidence["server"] = server.into();
    evidence
}

fn counted(processes: usize) -> String {
    format!("{processes} process{}", if processes == 1 { "" } else { "es" })
}

fn named(nodes: &BTreeSet<u32>) -> String {
    let words: Vec<String> = nodes.iter().map(u32::to_string).collect();
    format!("node{} {}", if nodes.len() == 1 { "" } else { "s" }, words.join(" and "))
}
