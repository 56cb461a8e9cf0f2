//! Commands that place the server's processes on the node of the adapters.
//!
//! Owns the drop-in file of the service, for its next start, and the affinity of the processes that run. Adapters on several
//! nodes have no such commands: no place is right for all of their connections.
//!
//! systemd.exec(5) (`CPUAffinity=`, `NUMAPolicy=`, `NUMAMask=`, since systemd 243), taskset(1), cpuset(7).

use super::super::super::findings::servers::{card_nodes, misplaced};
use super::super::super::processes::Process;
use super::super::super::topology::Machine;
use super::super::{Details, Interruption, Kind, Step};
use super::masks::list;
use crate::script::{Check, quote};

/// Longest name of a unit (systemd.unit(5)).
const UNIT_BYTES_MAX: usize = 255;

pub(super) fn steps(machine: &Machine) -> Vec<Step> {
    let mut homes = card_nodes(machine).into_iter();
    let (Some(node), None) = (homes.next(), homes.next()) else { return Vec::new() };
    let wanted: Vec<u32> = machine
        .cpus
        .iter()
        .filter(|cpu| cpu.is_online && cpu.node == node)
        .map(|cpu| cpu.number)
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let servers = misplaced(machine);
    let mut steps: Vec<Step> = units(&servers.values().flatten().copied().collect::<Vec<_>>())
        .into_iter()
        .map(|unit| unit_step(unit, &wanted, node))
        .collect();
    steps.extend(servers.iter().filter_map(|(name, processes)| running(name, processes, &wanted)));
    steps
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
fn running(name: &str, processes: &[&Process], wanted: &[u32]) -> Option<Step> {
    let (mut apply, mut undo) = (Vec::new(), Vec::new());
    let set =
        |id: u32, cpus: &[u32]| format!("place_process {id} {} {}", quote::sh(name), list(cpus));
    for process in processes {
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
            list(wanted)
        ),
        apply,
        undo,
        checks: vec![Check {
            command: format!("taskset -acp {first}"),
            expected: format!("{} for each thread", list(wanted)),
        }],
        details: Details { card: None, kind: Kind::ServerProcesses, interrupts: Interruption::None, },
    })
}
