//! Which candidates are worth a word: what costs too little, what is chance, and what another finding
//! explains better.

use super::candidate::Candidate;
use super::data::{Confidence, Finding, Trouble};

/// Nothing that costs less in all is called slow, ns.
const COST_LEAST_NS: i64 = 50_000_000;
/// The same as a share of the recording's length, which counts up to ...
const COST_LEAST_SHARE: f64 = 0.01;
/// ... this cost, ns,
const COST_ENOUGH_NS: i64 = 5_000_000_000;
/// and for operations of which each costs less than a person notices, ns.
const NOTICED_NS: i64 = 100_000_000;
/// What round trips must cost in one burst of a connection to be more than the price of distance, ns: after
/// ten seconds people turn to something else (J. Nielsen, Usability Engineering, 1993).
const BURST_LEAST_NS: i64 = 10_000_000_000;

/// Whether a finding only says that something is slow: a cause that is known explains it better.
pub(super) fn is_of_unknown_cause(trouble: Trouble) -> bool {
    matches!(
        trouble,
        Trouble::SlowFilesystem
            | Trouble::ServerQueueing
            | Trouble::Stragglers
            | Trouble::SlowLogon
            | Trouble::SlowFlush
    )
}

/// Whether a finding is about what distance and the network cost each request: avoidable round trips, and
/// the rate of short transfers, which the sender's pacing limits too.
fn is_of_round_trips(trouble: Trouble) -> bool {
    matches!(
        trouble,
        Trouble::BandwidthLimited
            | Trouble::SmallReads
            | Trouble::SmallWrites
            | Trouble::RepeatedLookups
            | Trouble::RepeatedListings
            | Trouble::FailingLookups
            | Trouble::OpenCloseChurn
            | Trouble::NoCompounding
            | Trouble::PerEntryRequests
    )
}

/// Whether what a finding costs is worth a word. Operations that are slow for a person count however
/// long the recording is.
pub(super) fn is_enough(candidate: &Candidate, length_ns: i64) -> bool {
    let finding = &candidate.finding;
    // Short bursts of round trips are the price of distance.
    let least_burst_ns = BURST_LEAST_NS.min(length_ns / 10);
    if is_of_round_trips(finding.trouble) && candidate.burst_ns() < least_burst_ns {
        return false;
    }
    let is_noticed = finding.saved_ns / finding.operations.max(1) as i64 >= NOTICED_NS;
    let least_ns = match finding.is_of_events || is_noticed {
        true => COST_LEAST_NS,
        false => {
            ((COST_LEAST_SHARE * length_ns as f64) as i64).clamp(COST_LEAST_NS, COST_ENOUGH_NS)
        }
    };
    finding.saved_ns >= least_ns
}

/// Lowers the confidence of what may be chance.
pub(super) fn judge_number(finding: &mut Finding) {
    let Finding { saved_ns, saved_error_ns, operations, is_of_events, .. } = finding;
    let is_measured = finding.confidence == Confidence::High;
    match saved_error_ns {
        Some(error_ns) if error_ns >= saved_ns => {
            finding.because.push_str("; so few operations cause it that it may be chance");
        }
        None if !*is_of_events && !is_measured => {
            let them = if *operations == 1 { "operation" } else { "operations" };
            finding.because.push_str(&format!("; only {operations} {them}: it may be chance"));
        }
        _ => return,
    }
    finding.confidence = Confidence::Low;
}

/// Subtracts the stragglers' time from the findings about the whole server, so that one slow file
/// does not make the server slow.
pub(super) fn subtract_stragglers(candidates: &mut [Candidate]) {
    let stragglers = candidates.iter().find(|one| one.finding.trouble == Trouble::Stragglers);
    let Some(stragglers_ns) = stragglers.map(|one| one.finding.saved_ns) else { return };
    for Candidate { finding, .. } in candidates {
        if [Trouble::SlowFilesystem, Trouble::ServerQueueing].contains(&finding.trouble) {
            finding.scale_part(0.0, stragglers_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::attribution::Attribution;
    use super::super::data::Contributor;
    use super::*;

    #[test]
    fn stragglers_are_subtracted_from_the_breakdown_too() {
        let one = |trouble, saved_ns| {
            let attribution = Attribution::default();
            let mut one = Candidate::new(trouble, "", attribution, Confidence::Low, "");
            one.finding.saved_ns = saved_ns;
            one.finding.clients = vec![Contributor { name: "c".into(), operations: 9, saved_ns }];
            one
        };
        let mut all = [one(Trouble::SlowFilesystem, 1_000), one(Trouble::Stragglers, 900)];
        subtract_stragglers(&mut all);
        let saved =
            all.each_ref().map(|one| (one.finding.saved_ns, one.finding.clients[0].saved_ns));
        assert_eq!(saved, [(100, 100), (900, 900)]);
    }
}
