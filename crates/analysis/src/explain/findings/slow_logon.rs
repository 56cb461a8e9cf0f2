//! Logons and tree connections are slow. The observation is [`super::super::server_time`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::account::REQUEST_HANG_NS;
use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;

pub(crate) const KIND: KindInfo = KindInfo::new("slow-logon", "slow logons")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "measure how long its domain controller and name servers take to answer; a logon needs both",
    ),
    (
        "client",
        "connect to the server's name, not its address, so that Kerberos is used; look for a firewall that drops \
         packets instead of rejecting them",
    ),
]);

/// After this time a resolver gives up a query to a name server and tries again (resolv.conf), ns.
const NAME_QUERY_NS: i64 = 5_000_000_000;
/// Most queries that are tried.
const QUERIES_MAX: i64 = 12;

/// How many queries to a name server were given up within this time, if it is a multiple of their
/// timeout.
fn name_queries(ns: i64) -> Option<i64> {
    let queries = (ns + NAME_QUERY_NS / 2) / NAME_QUERY_NS;
    let apart = (ns - queries * NAME_QUERY_NS).abs();
    ((1..=QUERIES_MAX).contains(&queries) && apart < NAME_QUERY_NS / 50).then_some(queries)
}

/// `is_measured`: whether any of the time was recorded inside the server; `longest_ns`: the longest of
/// these operations.
pub(crate) fn finish(attribution: Attribution, is_measured: bool, longest_ns: i64) -> Candidate {
    let measured = if is_measured { "measured inside the server, which may itself be waiting for a domain controller" } else {
            "the server's time from outside; it may itself wait for a domain controller or a name server: a capture of its \
                  own queries (ports 53, 88, 389) decides"
        };
    let queries = name_queries(longest_ns);
    let because = match queries {
        None => measured.to_owned(),
        Some(queries) => format!(
            "the longest took {:.2} s, {queries} times the 5 s after which a query to a name server is given up: the \
             server probably looks up the client's address or name at a name server that does not answer; {measured}",
            longest_ns as f64 / 1e9
        ),
    };
    let what = "Logging on and connecting to shares is slow";
    let confidence = Confidence::Likely;
    let candidate = Candidate::new(FindingKind::SlowLogon, what, attribution, confidence, because)
        .with_figures([("longest", longest_ns as f64, "ns", "the longest took {}")]);
    // A timeout is not chance.
    let candidate = if queries.is_some() { candidate.of_events() } else { candidate };
    if longest_ns >= REQUEST_HANG_NS { candidate.broken() } else { candidate }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_the_resolvers_timeout_are_recognised() {
        let of = |ms: i64| name_queries(ms * 1_000_000);
        assert_eq!([of(5_004), of(10_020), of(15_050)], [Some(1), Some(2), Some(3)]);
        assert_eq!([of(400), of(7_500), of(10_400), of(90_000)], [None; 4]);
    }
}
