//! The network carries as much as it can. The observation is [`super::super::transfer_rates`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;

pub(crate) const COMPRESS: (&str, &str) = (
    "server",
    "compress transfers: robocopy /COMPRESS and SMB compression (Windows Server 2022 and Windows 11)",
);

pub(crate) const KIND: KindInfo = KindInfo::new("bandwidth-limited", "network link saturated")
    .with_actor(Actor::Network)
    .with_remedies(&[
    (
        "network",
        "a faster link, or less traffic: `Where` lists the clients, shares and files with most of it",
    ),
    (
        "client",
        "cache what is read often: offline files, BranchCache, a cache near the users",
    ),
    COMPRESS,
]);

/// `rate` is the rate that the link carries, `faster` that of a link that would not limit, bits/s.
pub(crate) fn finish(attribution: Attribution, rate: f64, faster: f64) -> Candidate {
    Candidate::new(
        FindingKind::BandwidthLimited,
        "The network link is saturated: transfers run at one rate, whichever client or file they are for",
        attribution,
        Confidence::Likely,
        "long messages, or all connections together, keep to one rate below what the TCP windows allow; a limit in \
         the sender looks the same",
    )
    .with_figures([("rate", rate, "bits/s", "the link carries {}"), ("rate_without_limit", faster, "bits/s", "a link of {} would not limit")])
}
