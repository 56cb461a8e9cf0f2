//! Rules about settings and counters: whether receive-side scaling is on, what works against it, and what was lost.

use super::super::topology::{Card, Kind, Machine, System};
use super::{Findings, Severity, Trouble, cards};

/// Delay of an interrupt above which requests of some kilobytes wait for it longer than for the network.
const DELAY_USECS_MAX: u32 = 200;
/// One squeeze in this number of frames is usual.
const FRAMES_PER_SQUEEZE: u64 = 1000;

pub(super) fn find(machine: &Machine, findings: &mut Findings) {
    for card in cards(machine) {
        rss_off(card, findings);
        beyond_table(card, findings);
        profile(card, findings);
        if machine.system == System::Linux {
            interrupts(machine, card, findings);
            software_steering(machine, card, findings);
        }
        moderation(card, findings);
        losses(card, findings);
        path(card, findings);
    }
    squeezes(machine, findings);
    team(machine, findings);
    let governor = machine
        .governors
        .iter()
        .find(|governor| matches!(governor.as_str(), "powersave" | "conservative"));
    if let Some(governor) = governor {
        findings.add(None, Severity::Low, Trouble::PowerSaving { governor: governor.clone() });
    }
}

fn rss_off(card: &Card, findings: &mut Findings) {
    let has_one_queue =
        card.rss.queues == Some(1) && card.queues_max.is_some_and(|queues| queues > 1);
    if card.rss.is_enabled == Some(false) || has_one_queue {
        let severity = if card.queues_max == Some(1) { Severity::Medium } else { Severity::High };
        findings.add(Some(card), severity, Trouble::RssOff { queues_max: card.queues_max });
    }
}

fn beyond_table(card: &Card, findings: &mut Findings) {
    let queues = card.rss.queues.into_iter().chain(card.rss.rings).max();
    let Some((queues, limit)) = queues.zip(card.rss_queue_limit) else { return };
    if queues > limit {
        findings.add(Some(card), Severity::Low, Trouble::QueuesBeyondTable { queues, limit });
    }
}

/// "Standardized INF Keywords for RSS": the NUMA profiles ignore `*NumaNodeId`; with the balanced one, base, maximum and node
/// cannot be set.
fn profile(card: &Card, findings: &mut Findings) {
    let rss = &card.rss;
    let Some(profile) = &rss.profile else { return };
    let has_base = rss.base.is_some_and(|base| base != (0, 0));
    let ignored: Vec<&'static str> = match profile.as_str() {
        "NUMA" | "NUMAStatic" => rss.node.map(|_| "NumaNode").into_iter().collect(),
        "Balanced" => {
            let base = has_base.then_some("BaseProcessorNumber");
            // A last processor is always reported; it is a setting where a base is one too.
            let last = rss.last.filter(|_| has_base).map(|_| "MaxProcessorNumber");
            base.into_iter().chain(last).chain(rss.node.map(|_| "NumaNode")).collect()
        }
        _ => Vec::new(),
    };
    if !ignored.is_empty() {
        let trouble = Trouble::ProfileIgnores { profile: profile.clone(), settings: ignored };
        findings.add(Some(card), Severity::Medium, trouble);
    }
}

fn interrupts(machine: &Machine, card: &Card, findings: &mut Findings) {
    let all = &card.rss.interrupts;
    match machine.irqbalance {
        Some(true) => {
            let free: Vec<_> = all
                .iter()
                .filter(|(number, _)| !machine.irqbalance_banned.contains(number))
                .collect();
            let pinned = free.iter().filter(|(_, cpus)| cpus.len() == 1).count();
            if !free.is_empty() {
                let trouble = Trouble::IrqbalanceActive {
                    interrupts: length(all.len()),
                    pinned: length(pinned),
                };
                findings.add(
                    Some(card),
                    if pinned > 0 { Severity::Medium } else { Severity::Low },
                    trouble,
                );
            }
        }
        Some(false) => {
            let floating = all.iter().filter(|(_, cpus)| cpus.len() > 1).count();
            if floating > 0 {
                findings.add(
                    Some(card),
                    Severity::Low,
                    Trouble::InterruptsFloat { interrupts: length(floating) },
                );
            }
        }
        None => {}
    }
}

fn software_steering(machine: &Machine, card: &Card, findings: &mut Findings) {
    let rss = &card.rss;
    let rps: std::collections::BTreeSet<u32> = rss.rps.iter().flatten().copied().collect();
    let queues =
        rss.queues.or_else(|| Some(length(rss.interrupts.len())).filter(|queues| *queues > 0));
    if let Some(queues) = queues.filter(|queues| *queues > 1 && !rps.is_empty()) {
        let online = length(machine.cpus.iter().filter(|cpu| cpu.is_online).count());
        // With a queue for each processor it is redundant; with fewer it may help.
        let severity =
            if online > 0 && queues >= online { Severity::Medium } else { Severity::Low };
        findings.add(
            Some(card),
            severity,
            Trouble::RpsOnRss { queues, processors: length(rps.len()) },
        );
    }
    if rss.xps.len() > 1 && rss.xps.iter().all(Vec::is_empty) {
        findings.add(
            Some(card),
            Severity::Low,
            Trouble::XpsMissing { queues: length(rss.xps.len()) },
        );
    }
    for (is_on, is_ntuple) in [(card.has_ntuple_filters, true), (card.has_flow_director, false)] {
        if is_on == Some(true) {
            findings.add(Some(card), Severity::Low, Trouble::FlowFilters { is_ntuple });
        }
    }
}

fn moderation(card: &Card, findings: &mut Findings) {
    let moderation = card.moderation;
    let each_frame =
        moderation.delay_usecs == Some(0) && moderation.frames.is_none_or(|frames| frames <= 1);
    let is_adaptive = moderation.is_adaptive == Some(true);
    if moderation.is_on == Some(false)
        || (each_frame && !is_adaptive && card.kind == Kind::Physical)
    {
        findings.add(Some(card), Severity::Medium, Trouble::ModerationOff);
    } else if let Some(delay_usecs) =
        moderation.delay_usecs.filter(|delay| *delay > DELAY_USECS_MAX && !is_adaptive)
    {
        findings.add(Some(card), Severity::Medium, Trouble::ModerationHigh { delay_usecs });
    }
}

/// Drivers count a lost frame under several names: the largest counter is reported, not their sum.
fn losses(card: &Card, findings: &mut Findings) {
    let Some((counter, frames)) =
        card.losses.iter().max_by_key(|(_, frames)| *frames).filter(|(_, frames)| *frames > 0)
    else {
        return;
    };
    let severity = match card.received {
        Some(received) if frames.saturating_mul(1000) >= received => Severity::High,
        Some(received) if frames.saturating_mul(1_000_000) < received => Severity::Low,
        _ => Severity::Medium,
    };
    let trouble = Trouble::RingLosses {
        counter: counter.clone(),
        frames: *frames,
        received: card.received,
        ring: card.ring,
        ring_max: card.ring_max,
    };
    findings.add(Some(card), severity, trouble);
}

fn path(card: &Card, findings: &mut Findings) {
    if let Some(master) = &card.master {
        findings.add(Some(card), Severity::Medium, Trouble::Teamed { master: master.clone() });
    }
    match card.kind {
        Kind::Physical => {}
        Kind::VirtualFunction => findings.add(Some(card), Severity::Low, Trouble::VirtualFunction),
        Kind::Virtual => findings.add(Some(card), Severity::Low, Trouble::VirtualAdapter),
    }
}

/// A team whose members are not known.
fn team(machine: &Machine, findings: &mut Findings) {
    if let Some(master) = &machine.team {
        findings.add(None, Severity::Medium, Trouble::Teamed { master: master.clone() });
    }
}

fn squeezes(machine: &Machine, findings: &mut Findings) {
    let sum = |value: fn(&crate::cores::read::SoftnetRow) -> u32| {
        machine.softnet.iter().map(|row| u64::from(value(row))).sum::<u64>()
    };
    let (processed, dropped, squeezed) =
        (sum(|row| row.processed), sum(|row| row.dropped), sum(|row| row.squeezed));
    if dropped == 0 && squeezed.saturating_mul(FRAMES_PER_SQUEEZE) < processed.max(1) {
        return;
    }
    let processors =
        length(machine.softnet.iter().filter(|row| row.dropped > 0 || row.squeezed > 0).count());
    let severity =
        if dropped.saturating_mul(1000) >= processed { Severity::High } else { Severity::Medium };
    let severity = if dropped == 0 { Severity::Medium } else { severity };
    findings.add(None, severity, Trouble::Squeezed { processors, squeezed, dropped, processed });
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
