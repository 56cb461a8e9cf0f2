//! Packets are lost and retransmitted (RFC 6298: after the loss of the last segment TCP waits for a
//! timer; M. Mathis, J. Semke, J. Mahdavi and T. Ott, CCR 27(3), 1997: TCP then sends less at once).
//! The observation is [`super::super::transfer_rates`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;

pub(crate) const KIND: KindInfo = KindInfo::new("loss", "packet loss")
    .with_actor(Actor::Network)
    .with_remedies(&[
    (
        "network",
        "look for errors and drops at both ends and on each switch (ethtool -S, Get-NetAdapterStatistics): duplex, \
         cable, a queue that is too short",
    ),
    (
        "server",
        "net.ipv4.tcp_congestion_control = bbr suffers less from loss that is not congestion",
    ),
]);

/// `stalls` is the time in which streams stood still, `slower` that of the reduced rate afterwards
/// (bits/s), `retransmitted` the segments that were retransmitted and all segments.
pub(crate) fn finish(
    mut stalls: Attribution,
    stalled_ns: i64,
    slower: Attribution,
    slower_rate: f64,
    retransmitted: (u64, u64),
) -> Candidate {
    let (confidence, because) = match slower.saved_ns {
        0 => (
            Confidence::Measured,
            "the TCP stream stood still until the lost segment arrived or was acknowledged; the lower rate \
             afterwards is not included",
        ),
        slower_ns => (
            if slower_ns > stalls.saved_ns { Confidence::Likely } else { Confidence::Measured },
            "the TCP stream stood still until the lost segment arrived or was acknowledged; afterwards the rate is \
             what TCP allows at this loss rate",
        ),
    };
    stalls.merge(slower);
    Candidate::new(
        FindingKind::Loss,
        "Packets are lost in the network: data waits until they are retransmitted, and TCP sends less at once \
         afterwards",
        stalls,
        confidence,
        because,
    )
    .with_figures([
        ("segments_sent_again", retransmitted.0 as f64, "", "segments retransmitted: {}"),
        ("segments", retransmitted.1 as f64, "", "segments in total: {}"),
        ("standstill", stalled_ns as f64, "ns", "streams stood still for {}"),
    ])
    .with_figures((slower_rate > 0.0).then_some(("rate_afterwards", slower_rate, "bits/s", "{} afterwards")))
}
