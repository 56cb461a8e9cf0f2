//! What Windows, its SMB server and its client logged on their own: how often each thing happened, to whom, and what to do.
//!
//! These events have no operations, so they have no share of the time; they are listed after the findings.

mod kinds;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use smbscope_findings::Kind as _;
use smbscope_tables::tables::ServerEvent;

use kinds::LoggedKind;

/// Names of each kind that are counted.
const NAMES_MAX: usize = 10_000;
/// Names that are shown.
const NAMES_SHOWN: usize = 3;

/// Events of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Logged {
    /// The word in the table `server_events`.
    pub kind: &'static str,
    pub title: &'static str,
    pub count: u64,
    pub first_ns: i64,
    pub last_ns: i64,
    /// The longest duration, or time until what was lost came back; null if the events have none.
    pub longest_ns: Option<i64>,
    /// From which duration on such an event is written; null if the events do not say it.
    pub threshold_ns: Option<i64>,
    /// Servers or shares that were lost and did not come back within the log.
    pub not_restored: u64,
    /// The most frequent ones first, at most three.
    pub commands: Vec<String>,
    pub clients: Vec<String>,
    pub users: Vec<String>,
    pub servers: Vec<String>,
    pub shares: Vec<String>,
    pub paths: Vec<String>,
    pub statuses: Vec<String>,
    /// The side that can change something: client, server or network.
    pub side: &'static str,
    pub remedy: &'static str,
}

/// Events that report no trouble, of one number.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoggedOther {
    /// SMBServer or SMBClient.
    pub provider: String,
    pub event: u64,
    /// What the event says; null if it is not known here.
    pub title: Option<&'static str>,
    pub count: u64,
    pub first_ns: i64,
    pub last_ns: i64,
}

/// What some events say that report no trouble.
const OTHER: [(u64, &str); 10] = [
    (1_010, "an endpoint was added"),
    (1_011, "an endpoint was removed"),
    (1_025, "null sessions are allowed"),
    (1_027, "the ports of file sharing are closed in the firewall"),
    (30_806, "a lost session was set up again"),
    (30_808, "a lost share was connected again"),
    (30_810, "a network interface arrived"),
    (30_811, "a network interface was removed"),
    (30_812, "a NetBIOS interface arrived"),
    (30_813, "a NetBIOS interface was removed"),
];

/// The kind of what was lost, and whether it came back, by the kind of event.
const OUTAGES: [(&str, (LoggedKind, bool)); 4] = [
    ("session_lost", (LoggedKind::SessionLost, false)),
    ("session_restored", (LoggedKind::SessionLost, true)),
    ("share_lost", (LoggedKind::ShareLost, false)),
    ("share_restored", (LoggedKind::ShareLost, true)),
];
/// Beginnings and ends of outages that are kept, and numbers of events that are counted.
const OUTAGES_MAX: usize = 100_000;
const OTHER_MAX: usize = 1_000;

/// Events so far.
#[derive(Debug, Default)]
pub(crate) struct LoggedTally {
    kinds: HashMap<LoggedKind, Tally>,
    other: BTreeMap<(String, u64), LoggedOther>,
    /// What was lost or came back: the recording, the server or share in small letters, the time.
    outages: BTreeMap<(LoggedKind, String, String), Vec<(i64, bool)>>,
    outage_events: usize,
}

#[derive(Debug, Default)]
struct Tally {
    row: Logged,
    /// Commands, clients, users, servers, shares, paths, statuses.
    names: [HashMap<String, u64>; 7],
}

impl LoggedTally {
    /// Adds events. Those of an unknown kind are counted by their number.
    pub(crate) fn add(&mut self, events: &[ServerEvent]) {
        for event in events {
            self.add_outage(event);
            match LoggedKind::from_id(kind(event)) {
                Some(kind) => self.kinds.entry(kind).or_default().add(event),
                None => self.add_other(event),
            }
        }
    }

    fn add_other(&mut self, event: &ServerEvent) {
        let key = (event.provider.clone(), event.event);
        if self.other.len() >= OTHER_MAX && !self.other.contains_key(&key) {
            return;
        }
        let row = self.other.entry(key).or_insert_with(|| LoggedOther {
            provider: event.provider.clone(),
            event: event.event,
            title: OTHER.iter().find(|(id, _)| *id == event.event).map(|(_, title)| *title),
            first_ns: event.time,
            last_ns: event.time,
            ..LoggedOther::default()
        });
        row.count += 1;
        row.first_ns = row.first_ns.min(event.time);
        row.last_ns = row.last_ns.max(event.time);
    }

    fn add_outage(&mut self, event: &ServerEvent) {
        let known = OUTAGES.iter().find(|(id, _)| *id == kind(event));
        let Some(&(_, (lost, is_back))) = known else { return };
        if self.outage_events >= OUTAGES_MAX {
            return;
        }
        self.outage_events += 1;
        let whose = event.share.as_ref().or(event.server.as_ref()).map(|name| name.to_lowercase());
        let key = (lost, event.recording.clone(), whose.unwrap_or_default());
        self.outages.entry(key).or_default().push((event.time, is_back));
    }

    /// The kinds that occurred, the most costly ones first; and what reports no trouble, the most frequent first.
    pub(crate) fn finish(mut self) -> (Vec<Logged>, Vec<LoggedOther>) {
        for ((kind, ..), times) in std::mem::take(&mut self.outages) {
            if let Some(tally) = self.kinds.get_mut(&kind) {
                tally.outages(times);
            }
        }
        let mut other: Vec<_> = self.other.into_values().collect();
        other.sort_by_key(|row| std::cmp::Reverse(row.count));
        let logged = LoggedKind::ALL.iter().filter_map(|kind| {
            let Tally { row, names } = self.kinds.remove(kind)?;
            let [commands, clients, users, servers, shares, paths, statuses] = names.map(most);
            let (side, remedy) = kind.info().remedies.first().copied()?;
            Some(Logged {
                kind: kind.id(),
                title: kind.title(),
                commands,
                clients,
                users,
                servers,
                shares,
                paths,
                statuses,
                side,
                remedy,
                ..row
            })
        });
        (logged.collect(), other)
    }
}

/// The kind of an event. Datasets of earlier versions named the losses of sessions and shares otherwise.
fn kind(event: &ServerEvent) -> &str {
    match (event.kind.as_str(), event.event) {
        ("session_failed", _) => "session_lost",
        ("share_failed", 31_010) => "share_refused",
        ("share_failed", _) => "share_lost",
        (kind, _) => kind,
    }
}

impl Tally {
    fn add(&mut self, event: &ServerEvent) {
        let row = &mut self.row;
        if row.count == 0 {
            (row.first_ns, row.last_ns) = (event.time, event.time);
        }
        row.count += 1;
        row.first_ns = row.first_ns.min(event.time);
        row.last_ns = row.last_ns.max(event.time);
        row.longest_ns = row.longest_ns.max(event.duration_ns);
        row.threshold_ns = row.threshold_ns.or(event.threshold_ns);
        let status = event.status.filter(|status| *status != 0);
        let status = status.map(|code| {
            let code = smbscope_wire::status::Status(code as u32);
            code.name().map_or_else(|| format!("{:#010x}", code.0), str::to_owned)
        });
        let names = [
            event.command.as_ref(),
            event.client.as_ref(),
            event.user.as_ref(),
            event.server.as_ref(),
            event.share.as_ref(),
            event.path.as_ref(),
            status.as_ref(),
        ];
        for (counts, name) in self.names.iter_mut().zip(names) {
            let Some(name) = name else { continue };
            if counts.len() < NAMES_MAX || counts.contains_key(name) {
                *counts.entry(name.clone()).or_default() += 1;
            }
        }
    }

    /// Adds the outages of one server or share: from the first loss until it came back.
    fn outages(&mut self, mut times: Vec<(i64, bool)>) {
        times.sort_unstable();
        let mut lost_ns = None;
        for (time_ns, is_back) in times {
            match (is_back, lost_ns) {
                (false, None) => lost_ns = Some(time_ns),
                (true, Some(since_ns)) => {
                    self.row.longest_ns = self.row.longest_ns.max(Some(time_ns - since_ns));
                    lost_ns = None;
                }
                _ => {}
            }
        }
        self.row.not_restored += u64::from(lost_ns.is_some());
    }
}

/// The most frequent names.
fn most(counts: HashMap<String, u64>) -> Vec<String> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.into_iter().take(NAMES_SHOWN).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_by_kind_and_name() {
        let event = |kind: &str, time, client: &str, duration_ns| ServerEvent {
            kind: kind.to_owned(),
            time,
            client: Some(client.to_owned()),
            duration_ns,
            status: Some(0xc000_006d),
            ..ServerEvent::default()
        };
        let mut tally = LoggedTally::default();
        tally.add(&[
            event("smb1_access", 9, "a", None),
            event("slow_file_system", 5, "b", Some(16)),
            event("slow_file_system", 3, "a", Some(31)),
            event("slow_file_system", 4, "a", Some(17)),
            event("other", 4, "a", None),
        ]);
        let (logged, other) = tally.finish();
        assert_eq!((other.len(), other[0].count), (1, 1));
        let names: Vec<_> = logged.iter().map(|row| row.kind).collect();
        assert_eq!(names, ["slow_file_system", "smb1_access"]);
        let slow = &logged[0];
        assert_eq!((slow.count, slow.first_ns, slow.last_ns), (3, 3, 5));
        assert_eq!((slow.longest_ns, &slow.clients[..]), (Some(31), &["a".into(), "b".into()][..]));
        assert_eq!(slow.statuses, ["STATUS_LOGON_FAILURE"]);
    }

    /// The outage of a real log: lost at 11:59:34.837, back 21.088 s later.
    #[test]
    fn an_outage_ends_when_the_session_is_back() {
        let event = |kind: &str, event, time, server: &str| ServerEvent {
            kind: kind.to_owned(),
            event,
            time,
            server: Some(server.to_owned()),
            ..ServerEvent::default()
        };
        let mut tally = LoggedTally::default();
        tally.add(&[
            // The loss of an outage before the log is not in it.
            event("session_restored", 30_806, 5, "win10-client01"),
            event("session_restored", 30_806, 55_924_621_000, "WIN10-client01"),
            event("session_lost", 30_805, 34_837_217_000, "win10-client01"),
            event("session_lost", 30_805, 34_900_000_000, "win10-client01"),
            event("session_failed", 30_805, 60_000_000_000, "rootdc1"),
            event("share_failed", 31_010, 7, "rootdc1"),
            event("other", 30_810, 7, ""),
        ]);
        let (logged, other) = tally.finish();
        let of = |row: &Logged| (row.kind, row.count, row.longest_ns, row.not_restored);
        let expected =
            [("session_lost", 3, Some(21_087_404_000), 1), ("share_refused", 1, None, 0)];
        assert_eq!(logged.iter().map(of).collect::<Vec<_>>(), expected);
        let of = |row: &LoggedOther| (row.event, row.count, row.title.is_some());
        let expected = [(30_806, 2, true), (30_810, 1, true)];
        assert_eq!(other.iter().map(of).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_kind_of_the_table_is_known() {
        let doc = ServerEvent::specs().into_iter().find(|spec| spec.name == "kind").unwrap().doc;
        let listed = doc.split(": ").nth(1).unwrap().trim_end_matches('.').split(", ");
        let mut listed: Vec<_> = listed.collect();
        let mut known: Vec<_> = LoggedKind::ALL.iter().map(|kind| kind.id()).collect();
        known.extend(["session_restored", "share_restored", "other"]);
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }
}
