//! Data are retransmitted again and again without an acknowledgement, whatever their size: for that time nothing passed on
//! the path, or the other machine was gone (RFC 6298 section 5, RFC 1122 section 4.2.3.5).

use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;

use super::super::account::{Accounts, HANG_NS, NOTICED_NS};
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::waiting::{Until, attribution, union_ns};

pub(crate) const KIND: KindInfo = KindInfo::new("path-outage", "path interrupted")
    .with_actor(Actor::Network)
    .with_remedies(&[
    (
        "network",
        "look for what happened at that time: a link that went down, a switch or firewall that restarted, a changed route, Wi-Fi",
    ),
    (
        "measurement",
        "record on both sides at once: the side on which the packets are missing shows where they are lost",
    ),
]);

/// A segment that was sent this often met more than chance.
const ATTEMPTS_MIN: u64 = 3;

/// Data that were retransmitted.
pub(crate) fn find(resent: &[&(u32, Wait)], accounts: &Accounts) -> Option<Candidate> {
    let mut waits: Vec<_> = resent
        .iter()
        .filter(|(_, row)| row.attempts >= ATTEMPTS_MIN && row.waited_ns() >= NOTICED_NS)
        .map(|(recording, row)| Until {
            row,
            recording: *recording,
            until: row.end.unwrap_or(row.last_attempt),
        })
        .collect();
    waits.sort_by_key(|wait| wait.row.start);
    let waited_ns = union_ns(&waits);
    if waited_ns < NOTICED_NS {
        return None;
    }
    let lost = waits.iter().filter(|wait| wait.row.is_unanswered()).count();
    let attempts: u64 = waits.iter().map(|wait| wait.row.attempts).sum();
    let what = if lost > 0 {
        "Data are retransmitted again and again and never acknowledged: nothing passes on the path, or the other machine is gone"
    } else {
        "Data are retransmitted again and again until they are acknowledged: for that time nothing passed on the path"
    };
    let candidate = Candidate::new(
        FindingKind::PathOutage,
        what,
        attribution(&waits),
        Confidence::Likely,
        "the same data were sent at least three times, at growing intervals; one side does not show whether the path or \
         the other machine was gone",
    );
    let mut candidate = candidate
        .of_events()
        .beyond_busy(waited_ns)
        .with_figures([
            ("sent", attempts as f64, "", "sent {} times"),
            ("interrupted", waited_ns as f64, "ns", "interrupted for {} in total"),
        ]);
    let on_them = waits.iter().filter_map(|wait| Some((wait.recording, wait.row.connection?)));
    candidate.explains =
        (&[FindingKind::Loss], on_them.flat_map(|key| accounts.recovered(key)).collect());
    let longest = waits.iter().map(Until::ns).max().unwrap_or(0);
    Some(if lost > 0 || longest >= HANG_NS { candidate.broken() } else { candidate })
}
