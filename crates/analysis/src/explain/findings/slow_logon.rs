//! Logons and tree connections are slow. The observation is [`super::super::server_time`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::remedy;

pub(in super::super) const TITLE: &str = "slow logons";

pub(in super::super) const ACTOR: Actor = Actor::Server;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "server",
        "measure how long its domain controller and name servers take to answer; a logon needs both",
    ),
    remedy(
        "client",
        "connect to the server's name, not its address, so that Kerberos is used; look for a firewall that drops \
         packets instead of rejecting them",
    ),
];

/// `is_measured`: whether any of the time was recorded inside the server.
pub(in super::super) fn finish(attribution: Attribution, is_measured: bool) -> Candidate {
    Candidate::new(
        Trouble::SlowLogon,
        "Logging on and connecting to shares is slow",
        attribution,
        Confidence::Medium,
        match is_measured {
            true => {
                "measured inside the server, which may itself be waiting for a domain controller"
            }
            false => {
                "the server's time from outside; the server may itself be waiting for a domain controller"
            }
        },
    )
}
