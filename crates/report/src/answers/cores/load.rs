//! The load of each CPU before and after a plan, from a trace: what text and page say about it.

use smbscope_plan::cores::load::{Basis, CpuLoad, Load};

use super::before_after::BeforeAfter;
use super::topology::build::Busy;
use super::words::cpu;
use super::{CoresPlan, Lines};
use crate::document::{Block, Section};
use crate::value::format;

/// CPUs with their load that are listed, and the share of the time above which one is.
const LISTED: usize = 64;
const SHOWN_PERCENT: f64 = 0.05;

/// How busy CPUs are today and as planned, where a trace says it.
pub(super) fn busy(plan: &CoresPlan) -> Option<[Busy; 2]> {
    let load = plan.load.as_ref()?;
    let of = |receive: fn(&CpuLoad) -> f64| {
        let share = |one: &CpuLoad| ((receive(one) + one.other_percent) / 100.0).clamp(0.0, 1.0);
        load.cpus.iter().map(|one| (one.cpu, share(one))).collect()
    };
    Some([of(|one| one.receive_before_percent), of(|one| one.receive_after_percent)])
}

fn heading(load: &Load) -> String {
    format!("Load of each CPU, from {:.1} s of the trace", load.length_ns as f64 / 1e9)
}

/// CPUs that have receive work, today or as planned, and the number of the others.
fn listed(load: &Load) -> (Vec<&CpuLoad>, usize) {
    let has_work = |one: &&CpuLoad| {
        one.receive_before_percent >= SHOWN_PERCENT || one.receive_after_percent >= SHOWN_PERCENT
    };
    let listed: Vec<_> = load.cpus.iter().filter(has_work).collect();
    let others = load.cpus.len() - listed.len();
    (listed, others)
}

/// What the numbers mean.
fn sentences(load: &Load) -> Vec<String> {
    let mut sentences = vec![format!(
        "The busiest receives {:.0} % of the time before, {:.0} % after.",
        load.busiest_before_percent, load.busiest_after_percent
    )];
    if let (Some(packets), Some(ns)) = (load.packets, load.packet_ns) {
        let packets = format::count(packets);
        sentences.push(format!("A packet costs {:.2} µs (mean of {packets}).", ns / 1e3));
    }
    sentences.push(match load.basis {
        Basis::Connections => "After: the recorded connections go where the hash sends them. The time of a packet is assumed to stay the same.",
        Basis::Table => "After: with many connections, which the hash spreads evenly; one connection stays on one core (--recording shows yours). The time of a packet is assumed to stay the same.",
    }.to_owned());
    if !load.full.is_empty() {
        let full: Vec<_> = load.full.iter().map(|id| cpu(*id)).collect();
        sentences.push(format!(
            "CPU {} had no room: what they could not do is not in the trace, so more may arrive, and the load after is a lower bound.",
            full.join(", ")
        ));
    }
    sentences.push(format!("Counted as receive work: {}.", load.counted.join(", ")));
    sentences
}

pub(super) fn text(text: &mut Lines, load: &Load) {
    text.heading(&heading(load));
    text.code(2, "CPU       receive before    after   other work");
    let (listed, others) = listed(load);
    for one in listed.iter().take(LISTED) {
        let other = if one.is_idle_known {
            format!("{:.1} %", one.other_percent)
        } else {
            "not known".to_owned()
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
    if listed.len() > LISTED {
        text.line(2, &format!("and {} more (--format json has all)", listed.len() - LISTED));
    }
    if others > 0 {
        text.line(2, &format!("{} without receive work.", format::counted(others, "CPU")));
    }
    for sentence in sentences(load) {
        text.line(2, &sentence);
    }
}

pub(super) fn section(load: &Load) -> Section {
    let (mut listed, others) = listed(load);
    let left_out = listed.len().saturating_sub(LISTED);
    listed.truncate(LISTED);
    let row = |one: &&CpuLoad| {
        let name = format!("CPU {}", cpu(one.cpu));
        (name, one.receive_before_percent / 100.0, one.receive_after_percent / 100.0)
    };
    let mut blocks = vec![Block::drawing(BeforeAfter {
        caption: heading(load),
        help: "Time in receive work, of the CPU's time.".to_owned(),
        rows: listed.iter().map(row).collect(),
    })];
    if left_out > 0 {
        blocks.push(Block::Note(format!("{left_out} more are not drawn.")));
    }
    if others > 0 {
        blocks
            .push(Block::Note(format!("{} without receive work.", format::counted(others, "CPU"))));
    }
    blocks.extend(sentences(load).into_iter().map(Block::Note));
    Section {
        id: "load",
        title: "Load before and after",
        help: "From a trace of the CPUs: where the receive work ran, and where it runs as planned.",
        blocks,
    }
}
