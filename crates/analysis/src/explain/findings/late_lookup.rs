//! The name of the server is looked up for long before a client can connect: a name server does not answer, so
//! that the resolver asks the next one after its timeouts (RFC 1034 section 5.3.3; Windows: 1, 1, 2, 4 and 7 s;
//! Linux: resolv.conf(5), 5 s and two attempts).

use std::collections::BTreeSet;

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::account::NOTICED_NS;
use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::list_names;
use super::super::data::FindingKind;
use super::super::waiting::{Until, attribution};

pub(crate) const KIND: KindInfo = KindInfo::new("late-lookup", "name found late")
    .with_actor(Actor::NameService)
    .with_remedies(&[
    (
        "client",
        "remove the name server that does not answer from the list, or put one that answers first: Windows \
         Set-DnsClientServerAddress, Linux resolvectl dns or /etc/resolv.conf",
    ),
    (
        "name server",
        "find out why it does not answer: is it running, does a firewall drop UDP port 53, does it wait for a forwarder?",
    ),
    (
        "measurement",
        "dig @SERVER NAME +tries=1 for each server of the list; Windows Resolve-DnsName NAME -Server SERVER -DnsOnly",
    ),
]);

/// Lookups that took long.
#[derive(Default)]
pub(crate) struct Lookups {
    attribution: Attribution,
    names: BTreeSet<String>,
    silent: BTreeSet<String>,
    /// Errors that came late.
    errors: BTreeSet<String>,
    answered_by: BTreeSet<String>,
    longest_ns: i64,
    packets: u64,
    times: u64,
}

impl Lookups {
    /// Adds what a client waited for before one connection.
    pub(crate) fn add(&mut self, waits: &[Until], lookup_ns: i64) {
        self.times += 1;
        self.longest_ns = self.longest_ns.max(lookup_ns);
        for row in waits.iter().map(|wait| wait.row).filter(|row| row.kind == "name_lookup") {
            self.names.extend(row.subject.clone());
            self.packets += row.attempts;
            // An error that comes late is as bad as no answer.
            let is_late_error = row.outcome == "failed" && row.waited_ns() >= NOTICED_NS;
            if is_late_error {
                self.errors.extend(row.result.clone());
            } else {
                self.answered_by.extend(row.answered_by.clone());
            }
            if is_late_error || row.answered_by.as_deref() != Some(row.server.as_str()) {
                self.silent.insert(row.server.clone());
            }
        }
        self.attribution.merge(attribution(waits));
    }
}

pub(crate) fn finish(lookups: Lookups) -> Option<Candidate> {
    if lookups.times == 0 {
        return None;
    }
    let name = list_names(&lookups.names);
    let silent: BTreeSet<_> = lookups.silent.difference(&lookups.answered_by).cloned().collect();
    let (what, names) = if silent.is_empty() {
        let servers = list_names(&lookups.answered_by);
        (
            format!("The name server {servers} answers late, so that the name {name} is found late: the client connects only then"),
            lookups.answered_by.iter().cloned().collect(),
        )
    } else {
        let servers = list_names(&silent);
        let errors = match list_names(&lookups.errors) {
            errors if errors.is_empty() => String::new(),
            errors => format!(" or only with {errors} after seconds"),
        };
        (
            format!("The name server {servers} does not answer{errors}, so that the name {name} is found late: the client connects only then"),
            silent.iter().take(3).cloned().collect(),
        )
    };
    let saved_ns = lookups.attribution.saved_ns;
    let candidate = Candidate::new(
        FindingKind::LateLookup,
        what,
        lookups.attribution,
        Confidence::Measured,
        "the queries, their repetitions and the answer are in the recording, and the connection to the file server begins \
         right after the answer",
    );
    Some(
        candidate
            .of_events()
            .beyond_busy(saved_ns)
            .with_owner(Actor::NameService, names)
            .with_figures([
                ("longest_lookup", lookups.longest_ns as f64, "ns", "the longest lookup took {}"),
                ("queries", lookups.packets as f64, "", "queries: {}"),
                ("times", lookups.times as f64, "", "before {} connections"),
            ]),
    )
}
