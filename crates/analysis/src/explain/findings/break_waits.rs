//! Opens wait until other clients give up what they cache of the file (MS-SMB2 sections 3.3.4.6 and
//! 3.3.4.7).

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::account::REQUEST_HANG_NS;
use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;

pub(crate) const KIND: KindInfo = KindInfo::new("break-waits", "oplock or lease break waits")
    .with_actor(Actor::Application)
    .with_remedies(&[
        (
            "application",
            "do not write the same files from several clients in turn; one writer at a time",
        ),
        ("Samba", "for such shares: oplocks = no, smb2 leases = no"),
        ("Windows", "Set-SmbShare -LeasingMode None for such shares"),
    ]);

/// `breaks` are those that the recording shows, `slowest_ns` the longest time until one of them was
/// acknowledged.
pub(crate) fn finish(attribution: Attribution, breaks: u64, slowest_ns: i64) -> Candidate {
    let (confidence, because) = match breaks {
        0 => (
            Confidence::Possible,
            "the server answered with a delay; the recording shows no oplock or lease break, so either the other \
             client is not in it, or the file is slow to open: a capture at the server, of all clients, decides",
        ),
        _ => (
            Confidence::Likely,
            "the server answered with a delay, and the recording shows oplock or lease breaks",
        ),
    };
    let slowest = (slowest_ns > 0).then_some((
        "slowest_acknowledgement",
        slowest_ns as f64,
        "ns",
        "the slowest acknowledgement took {}",
    ));
    let candidate = Candidate::new(
        FindingKind::BreakWaits,
        "Opens wait until other clients have given up what they cache of the file",
        attribution,
        confidence,
        because,
    )
    .of_events()
    .with_figures([("breaks", breaks as f64, "", "breaks of oplocks or leases: {}")])
    .with_figures(slowest);
    // A holder that answers after this time keeps others from work.
    if slowest_ns >= REQUEST_HANG_NS { candidate.broken() } else { candidate }
}
