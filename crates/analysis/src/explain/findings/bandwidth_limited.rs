//! The network carries as much as it can. The observation is [`super::super::transfer_rates`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::remedy;

pub(in super::super) const TITLE: &str = "network link saturated";

pub(in super::super) const ACTOR: Actor = Actor::Network;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "network",
        "a faster link, or less traffic: `Where` lists the clients, shares and files with most of it",
    ),
    remedy(
        "client",
        "cache what is read often: offline files, BranchCache, a cache near the users",
    ),
    remedy(
        "server",
        "compress transfers: robocopy /COMPRESS and SMB compression (Windows Server 2022 and Windows 11)",
    ),
];

/// `rate` is the rate that the link carries, `faster` that of a link that would not limit, bits/s.
pub(in super::super) fn finish(attribution: Attribution, rate: f64, faster: f64) -> Candidate {
    Candidate::new(
        Trouble::BandwidthLimited,
        "The network link is saturated: transfers run at one rate, whichever client or file they are for",
        attribution,
        Confidence::Medium,
        "long messages, or all connections together, keep to one rate below what the TCP windows allow; a limit in \
         the sender looks the same",
    )
    .with_figures([("rate", rate, "bits/s"), ("rate_without_limit", faster, "bits/s")])
}
