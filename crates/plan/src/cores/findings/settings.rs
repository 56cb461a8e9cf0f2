//! Rules about settings and counters: whether receive-side scaling is on, what works against it, and what was lost.

use serde_json::json;
use smbscope_findings::KindInfo;

use super::super::topology::{Adapter, Kind, Machine, System};
use super::{FindingKind, Findings, Severity, cards, count, length};

pub(super) const RSS_OFF: KindInfo = KindInfo::new("rss-off", "Receive-side scaling is off");
pub(super) const PROFILE_IGNORES: KindInfo =
    KindInfo::new("profile-ignores", "The profile ignores settings");
pub(super) const IRQBALANCE_ACTIVE: KindInfo =
    KindInfo::new("irqbalance-active", "irqbalance may move interrupts that are placed");
pub(super) const INTERRUPTS_FLOAT: KindInfo =
    KindInfo::new("interrupts-float", "Interrupts may go to any CPU, and irqbalance does not run");
pub(super) const RPS_ON_RSS: KindInfo =
    KindInfo::new("rps-on-rss", "RPS is set although RSS spreads");
pub(super) const XPS_MISSING: KindInfo =
    KindInfo::new("xps-missing", "Transmit queues without CPUs");
pub(super) const TEAMED: KindInfo = KindInfo::new("teamed", "A team or bond is in the path");
pub(super) const MODERATION_OFF: KindInfo =
    KindInfo::new("moderation-off", "Each frame is an interrupt");
pub(super) const MODERATION_HIGH: KindInfo =
    KindInfo::new("moderation-high", "Interrupts come late");
pub(super) const RING_LOSSES: KindInfo = KindInfo::new("ring-losses", "Receive rings lost frames");
pub(super) const SQUEEZED: KindInfo =
    KindInfo::new("squeezed", "Receive work ran out of its budget, or backlogs were full");
pub(super) const FLOW_FILTERS: KindInfo =
    KindInfo::new("flow-filters", "Filters place flows in addition to RSS");
pub(super) const POWER_SAVING: KindInfo =
    KindInfo::new("power-saving", "Governors of the frequency save power");
pub(super) const QUEUES_BEYOND_TABLE: KindInfo = KindInfo::new(
    "queues-beyond-table",
    "The adapter has more queues than its indirection table can name",
);
pub(super) const VIRTUAL_FUNCTION: KindInfo =
    KindInfo::new("virtual-function", "A virtual function");
pub(super) const VIRTUAL_ADAPTER: KindInfo =
    KindInfo::new("virtual-adapter", "An adapter of a hypervisor");

/// Delay of an interrupt above which requests of some kilobytes wait for it longer than for the network.
const DELAY_USECS_MAX: u32 = 200;
/// One squeeze in this number of frames is usual.
const FRAMES_PER_SQUEEZE: u64 = 1000;

pub(super) fn find(machine: &Machine, findings: &mut Findings) {
    for card in cards(machine) {
        rss_off(machine, card, findings);
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
        let sentence = format!(
            "CPUs use the frequency governor {governor}, which lowers the frequency between bursts."
        );
        let evidence = json!({ "governor": governor });
        findings.add(None, FindingKind::PowerSaving, Severity::Low, sentence, evidence);
    }
}

fn rss_off(machine: &Machine, card: &Adapter, findings: &mut Findings) {
    let has_one_queue =
        card.rss.queues == Some(1) && card.queues_max.is_some_and(|queues| queues > 1);
    if card.rss.is_enabled == Some(false) || has_one_queue {
        let severity = match card.queues_max {
            _ if machine.is_minor(card) => Severity::Low,
            Some(1) => Severity::Medium,
            _ => Severity::High,
        };
        let rest = card.queues_max.map_or(String::new(), |queues| {
            format!(", and the adapter has {}", count(queues, "queue"))
        });
        let sentence = format!("Receive-side scaling is off: one CPU does all receive work{rest}.");
        let evidence = json!({ "queues_max": card.queues_max });
        findings.add(Some(card), FindingKind::RssOff, severity, sentence, evidence);
    }
}

fn beyond_table(card: &Adapter, findings: &mut Findings) {
    let queues = card.rss.queues.into_iter().chain(card.rss.rings).max();
    let Some((queues, limit)) = queues.zip(card.rss_queue_limit) else { return };
    if queues > limit {
        let sentence = format!(
            "It has {queues} queues, and its indirection table can name {limit}: receive-side scaling spreads over {limit} at most."
        );
        let evidence = json!({ "queues": queues, "limit": limit });
        findings.add(Some(card), FindingKind::QueuesBeyondTable, Severity::Low, sentence, evidence);
    }
}

/// "Standardized INF Keywords for RSS": the NUMA profiles ignore `*NumaNodeId`; with the balanced one, base, maximum and node
/// cannot be set.
fn profile(card: &Adapter, findings: &mut Findings) {
    let rss = &card.rss;
    let Some(profile) = &rss.profile else { return };
    let has_base = rss.base.is_some_and(|base| base != (0, 0));
    let ignored: Vec<&'static str> = match profile.as_str() {
        "NUMA" | "NUMAStatic" => rss.node.map(|_| "NumaNode").into_iter().collect(),
        "Balanced" => {
            let base = has_base.then_some("BaseProcessorNumber");
            // A last CPU is always reported; it is a setting where a base is one too.
            let last = rss.last.filter(|_| has_base).map(|_| "MaxProcessorNumber");
            base.into_iter().chain(last).chain(rss.node.map(|_| "NumaNode")).collect()
        }
        _ => Vec::new(),
    };
    if !ignored.is_empty() {
        let sentence =
            format!("The profile {profile} ignores what is set: {}.", ignored.join(", "));
        let evidence = json!({ "profile": profile, "settings": ignored });
        findings.add(Some(card), FindingKind::ProfileIgnores, Severity::Medium, sentence, evidence);
    }
}

fn interrupts(machine: &Machine, card: &Adapter, findings: &mut Findings) {
    let all = &card.rss.interrupts;
    match machine.irqbalance {
        Some(true) => {
            let free: Vec<_> = all
                .iter()
                .filter(|(number, _)| !machine.irqbalance_banned.contains(number))
                .collect();
            let pinned = free.iter().filter(|(_, cpus)| cpus.len() == 1).count();
            if !free.is_empty() {
                let interrupts = count(length(all.len()), "interrupt");
                let (severity, sentence) = if pinned == 0 {
                    (Severity::Low, format!("irqbalance runs and may move its {interrupts}."))
                } else {
                    let sentence = format!(
                        "irqbalance runs and may move {pinned} of its {interrupts} that are pinned to a CPU."
                    );
                    (Severity::Medium, sentence)
                };
                let evidence = json!({ "interrupts": all.len(), "pinned": pinned });
                let kind = FindingKind::IrqbalanceActive;
                findings.add(Some(card), kind, severity, sentence, evidence);
            }
        }
        Some(false) => {
            let floating = all.iter().filter(|(_, cpus)| cpus.len() > 1).count();
            if floating > 0 {
                let sentence = format!(
                    "{} may go to several CPUs, and irqbalance does not run: the interrupt controller chooses.",
                    count(length(floating), "interrupt")
                );
                let evidence = json!({ "interrupts": floating });
                let kind = FindingKind::InterruptsFloat;
                findings.add(Some(card), kind, Severity::Low, sentence, evidence);
            }
        }
        None => {}
    }
}

fn software_steering(machine: &Machine, card: &Adapter, findings: &mut Findings) {
    let rss = &card.rss;
    let rps: std::collections::BTreeSet<u32> = rss.rps.iter().flatten().copied().collect();
    let queues =
        rss.queues.or_else(|| Some(length(rss.interrupts.len())).filter(|queues| *queues > 0));
    if let Some(queues) = queues.filter(|queues| *queues > 1 && !rps.is_empty()) {
        let online = length(machine.cpus.iter().filter(|cpu| cpu.is_online).count());
        // With a queue for each CPU it is redundant; with fewer it may help.
        let severity =
            if online > 0 && queues >= online { Severity::Medium } else { Severity::Low };
        let sentence = format!(
            "RPS sends frames to {} although RSS spreads over {}: each frame costs an interrupt between CPUs.",
            count(length(rps.len()), "CPU"),
            count(queues, "queue")
        );
        let evidence = json!({ "queues": queues, "processors": rps.len() });
        findings.add(Some(card), FindingKind::RpsOnRss, severity, sentence, evidence);
    }
    if rss.xps.len() > 1 && rss.xps.iter().all(Vec::is_empty) {
        let sentence = format!(
            "XPS is not set for {}: CPUs share transmit queues and their locks.",
            count(length(rss.xps.len()), "transmit queue")
        );
        let evidence = json!({ "queues": rss.xps.len() });
        findings.add(Some(card), FindingKind::XpsMissing, Severity::Low, sentence, evidence);
    }
    let filters = [
        (card.has_ntuple_filters, true, "ntuple filters are on: they place flows before RSS does."),
        (
            card.has_flow_director,
            false,
            "The flow director (ATR) is on: it moves flows to the queue of the CPU that sends, not to RSS's.",
        ),
    ];
    for (is_on, is_ntuple, sentence) in filters {
        if is_on == Some(true) {
            let evidence = json!({ "is_ntuple": is_ntuple });
            let kind = FindingKind::FlowFilters;
            findings.add(Some(card), kind, Severity::Low, sentence.to_owned(), evidence);
        }
    }
}

fn moderation(card: &Adapter, findings: &mut Findings) {
    let moderation = card.moderation;
    let each_frame =
        moderation.delay_usecs == Some(0) && moderation.frames.is_none_or(|frames| frames <= 1);
    let is_adaptive = moderation.is_adaptive == Some(true);
    if moderation.is_on == Some(false)
        || (each_frame && !is_adaptive && card.kind == Kind::Physical)
    {
        let sentence = "Interrupt moderation is off: each frame may cost an interrupt.".to_owned();
        findings.add(Some(card), FindingKind::ModerationOff, Severity::Medium, sentence, json!({}));
    } else if let Some(delay_usecs) =
        moderation.delay_usecs.filter(|delay| *delay > DELAY_USECS_MAX && !is_adaptive)
    {
        let sentence = format!(
            "Interrupts come up to {delay_usecs} µs after a frame, which each SMB request waits for."
        );
        let evidence = json!({ "delay_usecs": delay_usecs });
        findings.add(Some(card), FindingKind::ModerationHigh, Severity::Medium, sentence, evidence);
    }
}

/// Drivers count a lost frame under several names: the largest counter is reported, not their sum.
fn losses(card: &Adapter, findings: &mut Findings) {
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
    let received =
        card.received.map_or(String::new(), |received| format!(" of {received} received"));
    let ring = match (card.ring, card.ring_max) {
        (Some(ring), Some(most)) => format!("; a ring has {ring} of at most {most} descriptors"),
        _ => String::new(),
    };
    let sentence = format!("Receive rings lost {frames} frames ({counter}){received}{ring}.");
    let evidence = json!({
        "counter": counter,
        "frames": frames,
        "received": card.received,
        "ring": card.ring,
        "ring_max": card.ring_max,
    });
    findings.add(Some(card), FindingKind::RingLosses, severity, sentence, evidence);
}

fn path(card: &Adapter, findings: &mut Findings) {
    if let Some(master) = &card.master {
        teamed(Some(card), master, findings);
    }
    let (kind, sentence) = match card.kind {
        Kind::Physical => return,
        Kind::VirtualFunction => (
            FindingKind::VirtualFunction,
            "It is a virtual function (SR-IOV): the host decides how many queues it has.",
        ),
        Kind::Virtual => (
            FindingKind::VirtualAdapter,
            "It is a virtual adapter: the host's CPUs receive first, and their layout counts too.",
        ),
    };
    findings.add(Some(card), kind, Severity::Low, sentence.to_owned(), json!({}));
}

fn teamed(card: Option<&Adapter>, master: &str, findings: &mut Findings) {
    let sentence = format!(
        "{master} is a team, bond or bridge: SMB Multichannel sees one interface, and its hash decides which adapter receives."
    );
    let evidence = json!({ "master": master });
    findings.add(card, FindingKind::Teamed, Severity::Medium, sentence, evidence);
}

/// A team whose members are not known.
fn team(machine: &Machine, findings: &mut Findings) {
    if let Some(master) = &machine.team {
        teamed(None, master, findings);
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
    let sentence = format!(
        "Receive work ended early {squeezed} times and lost {dropped} frames on {}, of {processed} frames.",
        count(processors, "CPU")
    );
    let evidence = json!({
        "processors": processors,
        "squeezed": squeezed,
        "dropped": dropped,
        "processed": processed,
    });
    findings.add(None, FindingKind::Squeezed, severity, sentence, evidence);
}
