//! A logon waits for domain controllers: the client for its ticket (RFC 4120 section 7.2.1: the next KDC after a timeout), or the
//! server for what it asks while the client waits (Kerberos, LDAP, names). Before the connection, these waits are
//! among those of [`super::providers_first`].

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};
use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;

use super::super::account::{Logon, NOTICED_NS};
use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::list_names;
use super::super::data::FindingKind;
use super::super::waiting::{Until, attribution, is_of_directory, union_ns};

pub(crate) const KIND: KindInfo = KindInfo::new("late-ticket", "logon waits for a domain controller")
    .with_actor(Actor::NameService)
    .with_remedies(&[
    (
        "domain controller",
        "find out why it does not answer: is it running, does a firewall drop port 88 or 389 (UDP and TCP)? Windows nltest \
         /dsgetdc:DOMAIN /force and nltest /sc_query:DOMAIN; Samba wbinfo --ping-dc",
    ),
    (
        "client and server",
        "ask a domain controller of its own site: check the subnets of the sites (nltest /dsgetsite), _kerberos and _ldap in DNS; Linux \
         /etc/krb5.conf, kdc",
    ),
    (
        "measurement",
        "time kinit USER@REALM (Windows klist purge, then klist get cifs/SERVER) on the machine that waits",
    ),
]);

/// A server waits for this share of a logon's time at least: then the logon waits for that.
const OF_LOGON: f64 = 0.5;

/// Most waits of one logon: those of many logons at once would be counted for each.
const WAITS_MAX: usize = 64;

/// Requests to domain controllers that were answered late or not at all.
#[derive(Default)]
pub(crate) struct Tickets {
    attribution: Attribution,
    subjects: BTreeSet<String>,
    silent: BTreeSet<String>,
    late: BTreeSet<String>,
    longest_ns: i64,
    packets: u64,
    times: u64,
    /// Logons in which the server waited, among the operations that are kept for replaying.
    numbers: HashSet<u32>,
}

impl Tickets {
    /// Adds what a logon waited for.
    pub(crate) fn add(&mut self, waits: &[Until]) {
        self.times += 1;
        self.longest_ns = self.longest_ns.max(union_ns(waits));
        for row in waits.iter().map(|wait| wait.row) {
            self.subjects.extend(row.subject.clone());
            self.packets += row.attempts;
            let servers = if row.is_unanswered() { &mut self.silent } else { &mut self.late };
            servers.insert(row.server.clone());
        }
        self.attribution.merge(attribution(waits));
    }
}

/// What clients asked before they logged on.
pub(crate) fn finish(tickets: Tickets) -> Option<Candidate> {
    candidate(tickets, "the client logs on only afterwards")
}

/// What servers asked while clients logged on to them.
pub(crate) fn of_servers(rows: &[(u32, Wait)], logons: &[Logon]) -> Option<Candidate> {
    let mut tickets = Tickets::default();
    let mut asked = HashMap::<(u32, &str), Vec<&(u32, Wait)>>::new();
    for one in rows.iter().filter(|(_, row)| is_of_directory(row) || row.kind == "name_lookup") {
        asked.entry((one.0, &one.1.client)).or_default().push(one);
    }
    asked.values_mut().for_each(|rows| rows.sort_by_key(|(_, row)| row.start));
    for logon in logons.iter().filter(|logon| logon.end - logon.start >= NOTICED_NS) {
        let Some(rows) = asked.get(&(logon.recording, logon.server.as_str())) else { continue };
        let first = rows.partition_point(|(_, row)| row.start < logon.start);
        let waits: Vec<_> = rows
            .iter()
            .skip(first)
            .take_while(|(_, row)| row.start < logon.end)
            .take(WAITS_MAX)
            .map(|(recording, row)| Until {
                row,
                recording: *recording,
                until: row.end.unwrap_or(logon.end).min(logon.end),
            })
            .collect();
        let waited_ns = union_ns(&waits);
        if waited_ns >= NOTICED_NS && waited_ns as f64 >= OF_LOGON * (logon.end - logon.start) as f64 {
            tickets.add(&waits);
            tickets.numbers.extend(logon.number);
        }
    }
    candidate(tickets, "the file server answers the logon only afterwards")
}

fn candidate(tickets: Tickets, then: &str) -> Option<Candidate> {
    if tickets.times == 0 {
        return None;
    }
    let silent: BTreeSet<_> = tickets.silent.difference(&tickets.late).cloned().collect();
    let (servers, verb) =
        if silent.is_empty() { (&tickets.late, "answers late") } else { (&silent, "does not answer") };
    let about = match list_names(&tickets.subjects) {
        names if names.is_empty() => String::new(),
        names => format!(" when asked for {names}"),
    };
    let what = format!("The domain controller {} {verb}{about}: {then}", list_names(servers));
    let names = servers.iter().take(3).cloned().collect();
    let saved_ns = tickets.attribution.saved_ns;
    let mut candidate = Candidate::new(
        FindingKind::LateTicket,
        what,
        tickets.attribution,
        Confidence::Measured,
        "the requests to the domain controller, their repetitions and answers are in the recording, and the logon continues right \
         after them",
    )
    .of_events()
    .with_owner(Actor::NameService, names)
    .with_figures([
        ("longest", tickets.longest_ns as f64, "ns", "the longest took {}"),
        ("requests", tickets.packets as f64, "", "requests: {}"),
        ("times", tickets.times as f64, "", "logons: {}"),
    ]);
    candidate.explains = (&[FindingKind::SlowLogon], tickets.numbers);
    let is_before = candidate.explains.1.is_empty();
    Some(if is_before { candidate.beyond_busy(saved_ns) } else { candidate })
}
