//! Rules about what a trace of the CPUs shows: where the receive work really ran.

use serde_json::json;
use smbscope_findings::KindInfo;

use super::super::topology::Machine;
use super::{FindingKind, Findings, Severity, cpu, length, name};

pub(super) const RECEIVED_ON_FEW: KindInfo =
    KindInfo::new("received-on-few", "A trace shows receive work on few CPUs");

/// CPUs that have this part of the receive work have nearly all.
const NEARLY_ALL: f64 = 0.95;
/// At most one of this number of cores is few.
const FEW_PART: usize = 2;
/// A CPU with this part of its time in receive work limits; with the other one it will at a higher load. If one
/// CPU has all of it, a smaller part is worth knowing.
const HIGH_PERCENT: f64 = 50.0;
const MEDIUM_PERCENT: f64 = 20.0;
const LOW_PERCENT: f64 = 1.0;

pub(super) fn find(machine: &Machine, findings: &mut Findings) {
    let Some(received) = machine.received.as_ref().filter(|one| one.length_ns > 0) else { return };
    let mut cpus: Vec<_> = received.cpus.iter().filter(|one| one.receive_ns > 0).collect();
    cpus.sort_by_key(|one| std::cmp::Reverse(one.receive_ns));
    let all: f64 = cpus.iter().map(|one| one.receive_ns as f64).sum();
    let Some(busiest) = cpus.first() else { return };
    let busiest_percent = 100.0 * busiest.receive_ns as f64 / received.length_ns as f64;
    let mut sum = 0.0;
    let mut processors = Vec::new();
    for one in &cpus {
        if sum >= NEARLY_ALL * all {
            break;
        }
        sum += one.receive_ns as f64;
        processors.push(one.cpu);
    }
    processors.sort_unstable();
    let online = machine.cpus.iter().filter(|cpu| cpu.is_online).count();
    let cores = machine.cpus.iter().filter(|cpu| cpu.is_online && cpu.thread == 0).count();
    let least = if processors.len() == 1 { LOW_PERCENT } else { MEDIUM_PERCENT };
    if processors.len() * FEW_PART > cores || busiest_percent < least {
        return;
    }
    let severity = match busiest_percent {
        HIGH_PERCENT.. => Severity::High,
        MEDIUM_PERCENT.. => Severity::Medium,
        _ => Severity::Low,
    };
    let seconds = received.length_ns as f64 / 1e9;
    let names: Vec<_> = processors.iter().map(|one| name(*one)).collect();
    let sentence = format!(
        "In {seconds:.1} s, nearly all receive work ran on {} of {online} CPUs ({}), {} {busiest_percent:.0} % of its time.",
        processors.len(),
        names.join(", "),
        if processors.len() == 1 { "which spent" } else { "the busiest with" }
    );
    let evidence = json!({
        "on": processors.iter().map(|one| cpu(*one)).collect::<Vec<_>>(),
        "online": length(online),
        "busiest_percent": busiest_percent,
        "seconds": seconds,
    });
    findings.add(None, FindingKind::ReceivedOnFew, severity, sentence, evidence);
}
