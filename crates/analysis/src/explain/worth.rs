//! Which candidates are worth a word: what costs too little, what is chance, and what another finding
//! explains better.

use smbscope_findings::Confidence;

use super::account::NOTICED_NS as NOTICED_BURST_NS;
use super::candidate::Candidate;
use super::data::{Effect, Finding, FindingKind};

/// Nothing that costs less in all is called slow, ns.
const COST_MIN_NS: i64 = 50_000_000;
/// The same as a share of the recording's length, which counts up to ...
const COST_MIN_SHARE: f64 = 0.01;
/// ... this cost, ns,
const COST_ENOUGH_NS: i64 = 5_000_000_000;
/// and for operations of which each costs less than a person notices, ns.
const NOTICED_NS: i64 = 100_000_000;
/// What round trips must cost in one burst of a connection to be more than the price of distance, ns: half of
/// the ten seconds after which people turn to something else (J. Nielsen, Usability Engineering, 1993).
const BURST_MIN_NS: i64 = 5_000_000_000;

/// From which time in one burst on a person notices what a finding costs, ns. Avoidable round trips are a habit of all
/// clients: only long ones are worth a headline.
pub(super) fn noticed_ns(kind: FindingKind) -> i64 {
    match kind {
        // A transfer that takes a second or more and could take half of it.
        FindingKind::SmallReads | FindingKind::SmallWrites | FindingKind::OneAtATime => {
            NOTICED_BURST_NS / 2
        }
        kind if OF_ROUND_TRIPS.contains(&kind) => BURST_MIN_NS,
        _ => NOTICED_BURST_NS,
    }
}

/// A finding that explains this share of round trips in a row is better than their number.
const ROUNDS_SHARE: f64 = 0.25;

/// These only say that something is slow: a cause that is known explains it better.
pub(super) const OF_UNKNOWN_CAUSE: [FindingKind; 5] = [
    FindingKind::SlowFilesystem,
    FindingKind::ServerQueueing,
    FindingKind::Stragglers,
    FindingKind::SlowLogon,
    FindingKind::SlowFlush,
];

/// These are about what distance and the network cost each request: avoidable round trips, and the rate of short
/// transfers, which the sender's pacing limits too.
const OF_ROUND_TRIPS: [FindingKind; 9] = [
    FindingKind::BandwidthLimited,
    FindingKind::SmallReads,
    FindingKind::SmallWrites,
    FindingKind::RepeatedLookups,
    FindingKind::RepeatedListings,
    FindingKind::FailingLookups,
    FindingKind::OpenCloseChurn,
    FindingKind::NoCompounding,
    FindingKind::PerEntryRequests,
];

/// Whether what a finding costs is worth a word. Operations that are slow for a person count however
/// long the recording is.
pub(super) fn is_enough(candidate: &Candidate, length_ns: i64) -> bool {
    let finding = &candidate.finding;
    if finding.details.effect == Effect::Broken {
        return finding.details.operations > 0;
    }
    // Short bursts of round trips are the price of distance.
    let least_burst_ns = BURST_MIN_NS.min(length_ns / 10);
    if OF_ROUND_TRIPS.contains(&finding.kind) && candidate.burst_ns() < least_burst_ns {
        return false;
    }
    let operations = finding.details.operations.max(1) as i64;
    let is_noticed = finding.saved_ns() / operations >= NOTICED_NS;
    let least_ns = if finding.details.is_of_events || is_noticed {
        COST_MIN_NS
    } else {
        ((COST_MIN_SHARE * length_ns as f64) as i64).clamp(COST_MIN_NS, COST_ENOUGH_NS)
    };
    finding.saved_ns() >= least_ns
}

/// Lowers the confidence of what may be chance.
pub(super) fn judge_number(finding: &mut Finding) {
    let operations = finding.details.operations;
    // What hangs or fails is evidence by itself.
    if finding.details.effect == Effect::Broken {
        return;
    }
    let is_measured = finding.confidence == Some(Confidence::Measured);
    match finding.saved_error_ns() {
        Some(error_ns) if error_ns >= finding.saved_ns() => {
            finding.because.push_str("; so few operations cause it that it may be chance");
        }
        None if !finding.details.is_of_events && !is_measured => {
            let them = if operations == 1 { "operation" } else { "operations" };
            finding.because.push_str(&format!("; only {operations} {them}: it may be chance"));
        }
        _ => return,
    }
    finding.confidence = Some(Confidence::Possible);
}

/// While nothing passes on the path, operations stand still at no fault of the server.
pub(super) fn drop_stalls_of_paths(candidates: &mut Vec<Candidate>) {
    let period = |one: &Candidate| one.finding.first_ns.zip(one.finding.last_ns);
    let outage =
        candidates.iter().find(|one| one.finding.kind == FindingKind::PathOutage).and_then(period);
    let Some((begin, end)) = outage else { return };
    candidates.retain(|one| {
        let overlaps = period(one).is_some_and(|(first, last)| first < end && begin < last);
        one.finding.kind != FindingKind::Stall || !overlaps
    });
}

/// Round trips in a row are described best by the finding that names what is avoidable among them.
pub(super) fn drop_explained_rounds(candidates: &mut Vec<Candidate>) {
    let of = |one: &Candidate| one.finding.kind == FindingKind::SerialRequests;
    let Some(serial_ns) = candidates.iter().find(|one| of(one)).map(|one| one.finding.saved_ns())
    else {
        return;
    };
    let is_better = |one: &Candidate| {
        !of(one)
            && one.finding.confidence > Some(Confidence::Possible)
            && one.finding.saved_ns() as f64 >= ROUNDS_SHARE * serial_ns as f64
    };
    if candidates.iter().any(is_better) {
        candidates.retain(|one| !of(one));
    }
}

/// Subtracts the stragglers' time from the findings about the whole server, so that one slow file
/// does not make the server slow.
pub(super) fn subtract_stragglers(candidates: &mut [Candidate]) {
    let stragglers = candidates.iter().find(|one| one.finding.kind == FindingKind::Stragglers);
    let Some(stragglers_ns) = stragglers.map(|one| one.finding.saved_ns()) else { return };
    for one in candidates {
        if matches!(one.finding.kind, FindingKind::SlowFilesystem | FindingKind::ServerQueueing) {
            one.scale_part(0.0, stragglers_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use smbscope_findings::Weight;

    use super::super::attribution::Attribution;
    use super::super::data::Contributor;
    use super::*;

    #[test]
    fn stragglers_are_subtracted_from_the_breakdown_too() {
        let one = |kind, saved_ns| {
            let attribution = Attribution::default();
            let mut one = Candidate::new(kind, "", attribution, Confidence::Possible, "");
            one.finding.weight = Weight::Saved { saved_ns, saved_error_ns: None, share: 0.0 };
            let client = Contributor { name: "c".into(), operations: 9, saved_ns };
            one.finding.details.clients = vec![client];
            one
        };
        let mut all = [one(FindingKind::SlowFilesystem, 1_000), one(FindingKind::Stragglers, 900)];
        subtract_stragglers(&mut all);
        let saved = all
            .each_ref()
            .map(|one| (one.finding.saved_ns(), one.finding.details.clients[0].saved_ns));
        assert_eq!(saved, [(100, 100), (900, 900)]);
    }
}
