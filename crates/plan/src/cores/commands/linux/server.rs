//! Commands that place the server's processes on the node of the adapters.
//!
//! Owns the drop-in file of the service, for its next start, and the affinity of the processes that run. Adapters on several
//! nodes have no such commands: no place is right for all of their connections. Nor have adapters that stay as they are and
//! receive on another node than their own, because the processes would move away from the packets.
//!
//! systemd.exec(5) (`CPUAffinity=`, `NUMAPolicy=`, `NUMAMask=`, since systemd 243), taskset(1), cpuset(7).

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::findings::servers::{card_nodes, misplaced};
use super::super::super::layout::{AdapterLayout, nodes_today};
use super::super::super::processes::Process;
use super::super::super::topology::{Adapter, Machine};
use super::super::{Details, Interruption, Kind, Step};
use super::masks::list;
use crate::script::{Check, quote};

/// Longest name of a unit (systemd.unit(5)).
const UNIT_BYTES_MAX: usize = 255;

/// The steps, for adapters of which these are planned: none unless all receive on one node then.
pub(super) fn steps(machine: &Machine, planned: &[&AdapterLayout]) -> Vec<Step> {
    let mut homes = card_nodes(machine).into_iter();
    let (Some(node), None) = (homes.next(), homes.next()) else { return Vec::new() };
    if !arrives_on(machine, planned, node) {
        return Vec::new();
    }
    let wanted: Vec<u32> = machine
        .cpus
        .iter()
        .filter(|cpu| machine.is_usable(cpu) && cpu.node == node)
        .map(|cpu| cpu.number)
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let servers = misplaced(machine);
    // systemd starts nothing on CPUs that the service's control group does not have.
    let may = |process: &Process| -> Vec<u32> {
        let cpuset = &process.cpuset;
        wanted.iter().copied().filter(|cpu| cpuset.is_empty() || cpuset.contains(cpu)).collect()
    };
    let servers: BTreeMap<&str, Vec<&Process>> = servers
        .into_iter()
        .map(|(name, mut processes)| {
            processes.retain(|process| !may(process).is_empty());
            (name, processes)
        })
        .collect();
    let all: Vec<&Process> = servers.values().flatten().copied().collect();
    let mut steps: Vec<Step> = units(&all)
        .into_iter()
        .map(|unit| {
            let of_unit = all.iter().find(|process| process.unit() == Some(unit));
            unit_step(unit, &of_unit.map_or_else(|| wanted.clone(), |one| may(one)), node)
        })
        .collect();
    steps.extend(servers.iter().filter_map(|(name, processes)| running(name, processes, &may)));
    steps
}

/// Whether all adapters receive on this node: those that are planned once they are, others today.
fn arrives_on(machine: &Machine, planned: &[&AdapterLayout], node: u32) -> bool {
    let counts =
        |card: &Adapter| card.is_up != Some(false) && !card.is_team() && !machine.is_minor(card);
    let mut cards = machine.cards.iter().enumerate().filter(|(_, card)| counts(card));
    cards.all(|(index, card)| match planned.iter().find(|layout| layout.card == index) {
        Some(layout) => layout.node == node,
        None => nodes_today(machine, card).into_iter().eq([node]),
    })
}

/// The services of processes, each once.
fn units<'a>(processes: &[&'a Process]) -> Vec<&'a str> {
    let mut units: Vec<&str> = processes
        .iter()
        .filter_map(|process| process.unit())
        .filter(|unit| is_unit(unit))
        .collect();
    units.sort_unstable();
    units.dedup();
    units
}

/// Whether a name, of a unit or a program, becomes neither an option nor a path nor a line of its own.
fn is_unit(unit: &str) -> bool {
    unit.len() <= UNIT_BYTES_MAX
        && unit.starts_with(|c: char| c.is_ascii_alphanumeric())
        && unit.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.@-".contains(&byte))
}

fn unit_step(unit: &str, wanted: &[u32], node: u32) -> Step {
    let quoted = quote::sh(unit);
    let processors = list(wanted);
    Step {
        does: format!(
            "Let {unit} start on the CPUs of node {node}, where packets arrive, with memory of that node first; it takes effect when \
             you restart the service"
        ),
        apply: vec![format!("place_service {quoted} {processors} {node}")],
        undo: vec![
            format!(
                "rm -f {}",
                quote::sh(&format!("/etc/systemd/system/{unit}.d/smbscope-cores.conf"))
            ),
            "systemctl daemon-reload".into(),
        ],
        checks: vec![Check {
            command: format!("systemctl show -p CPUAffinity -p NUMAPolicy -p NUMAMask {quoted}"),
            expected: format!("CPUAffinity={processors}, NUMAPolicy=preferred, NUMAMask={node}"),
        }],
        details: Details { card: None, kind: Kind::ServerUnit, interrupts: Interruption::None },
    }
}

/// The processes that run now. Those that they start later inherit it.
fn running(
    name: &str,
    processes: &[&Process],
    may: &impl Fn(&Process) -> Vec<u32>,
) -> Option<Step> {
    let shown: BTreeSet<u32> = processes.iter().flat_map(|process| may(process)).collect();
    let shown: Vec<u32> = shown.into_iter().collect();
    let (mut apply, mut undo) = (Vec::new(), Vec::new());
    let set =
        |id: u32, cpus: &[u32]| format!("place_process {id} {} {}", quote::sh(name), list(cpus));
    for process in processes {
        let wanted = &may(process);
        let found: Vec<u32> = process.allowed.iter().map(|cpu| cpu.1).collect();
        if !found.is_empty() && list(&found) != list(wanted) {
            apply.push(set(process.id, wanted));
            undo.push(set(process.id, &found));
        }
    }
    let first = processes.first()?.id;
    // A bundle may have been changed: its names are in comments of the script too.
    (!apply.is_empty() && is_unit(name)).then(|| Step {

        does: format!(
            "Let the processes of {name} that run now, and those that they start, use the CPUs {} (a cpuset of `cset shield` or of the \
             service's slice is the alternative)",
            list(&shown)
        ),
        apply,
        undo,
        checks: vec![Check {
            command: format!("taskset -acp {first}"),
            expected: format!("{} for each thread", list(&shown)),
        }],
        details: Details { card: None, kind: Kind::ServerProcesses, interrupts: Interruption::None, },
    })
}
