//! Opens wait until other clients give up what they cache of the file (MS-SMB2 sections 3.3.4.6 and
//! 3.3.4.7).

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::remedy;

pub(in super::super) const TITLE: &str = "oplock or lease break waits";

pub(in super::super) const ACTOR: Actor = Actor::Application;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "application",
        "do not write the same files from several clients in turn; one writer at a time",
    ),
    remedy("Samba", "for such shares: oplocks = no, smb2 leases = no"),
    remedy("Windows", "Set-SmbShare -LeasingMode None for such shares"),
];

/// `breaks` are those that the recording shows, `slowest_ns` the longest time until one of them was
/// acknowledged.
pub(in super::super) fn finish(
    attribution: Attribution,
    breaks: u64,
    slowest_ns: i64,
) -> Candidate {
    let (confidence, because) = match breaks {
        0 => (
            Confidence::Low,
            "the server answered with a delay; the recording shows no oplock or lease break, so either the other \
             client is not in it, or the file is slow to open: a capture at the server, of all clients, decides",
        ),
        _ => (
            Confidence::Medium,
            "the server answered with a delay, and the recording shows oplock or lease breaks",
        ),
    };
    let slowest = (slowest_ns > 0).then_some(("slowest_acknowledgement", slowest_ns as f64, "ns"));
    Candidate::new(
        Trouble::BreakWaits,
        "Opens wait until other clients have given up what they cache of the file",
        attribution,
        confidence,
        because,
    )
    .of_events()
    .with_figures([("breaks", breaks as f64, "")])
    .with_figures(slowest)
}
