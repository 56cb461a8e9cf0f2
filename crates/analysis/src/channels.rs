//! The timeline of channels: since when each connection of a session carried what, what the paths
//! carried together, what holds the slowest one back, and what a second path brought.
//!
//! Reads rows of `channels`, `interfaces` and `counters`; owns neither how they are made
//! (`smbscope_tables::channels`) nor how they are shown. Definitions are in
//! docs/method/channels.md; fairness is R. Jain, D. Chiu and W. Hawe, DEC-TR-301 (1984).

mod data;
mod findings;
mod machine;
mod plateau;
mod session;
mod versus;

use std::collections::{BTreeMap, HashSet};

use smbscope_tables::tables::{Channel, Counter, Interface};

pub use data::*;
pub use findings::ChannelFindingKind;
use machine::Machines;
use session::SessionTally;

/// Sessions that are followed, and connections of all of them.
const SESSIONS_MAX: usize = 1_024;
const CONNECTIONS_MAX: usize = 16_384;
/// Other sessions, which are only counted.
const OTHERS_MAX: usize = 65_536;
/// Bins of all connections together, about.
const BINS_ALL: usize = 1 << 18;
/// Bins of a connection.
const BINS_MIN: usize = 64;
const BINS_MAX: usize = 4_096;
/// Sessions that are listed.
const LISTED_MAX: usize = 16;
/// Rows of interfaces that are kept.
const INTERFACES_MAX: usize = 1_024;

/// Recording and session.
type Key = (String, Option<u64>);

/// A timeline in progress.
#[derive(Default)]
pub struct Timeline {
    sessions: BTreeMap<Key, SessionTally>,
    connections: usize,
    others: HashSet<Key>,
    interfaces: Vec<Interface>,
    machines: Machines,
}

impl Timeline {
    /// Adds what channels carried.
    pub fn channels(&mut self, rows: &[Channel]) {
        for row in rows {
            let key = (row.recording.to_string(), row.session_id);
            if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&key) {
                if self.others.len() < OTHERS_MAX {
                    self.others.insert(key);
                }
                continue;
            }
            let session = self.sessions.entry(key).or_default();
            let before = session.connections();
            let bins = (BINS_ALL / self.connections.max(1)).clamp(BINS_MIN, BINS_MAX);
            session.add(row, bins, self.connections < CONNECTIONS_MAX);
            self.connections += session.connections() - before;
        }
    }

    /// Adds interfaces that servers offered.
    pub fn interfaces(&mut self, rows: &[Interface]) {
        let room = INTERFACES_MAX.saturating_sub(self.interfaces.len());
        self.interfaces.extend(rows.iter().take(room).cloned());
    }

    /// Adds samples of counters: processes, idle states, RDMA.
    pub fn counters(&mut self, rows: &[Counter]) {
        rows.iter().for_each(|row| self.machines.add(row));
    }

    /// The numbers; `None` if no session has more than one connection or is a run that moves bulk
    /// data, and no interfaces were offered.
    pub fn finish(mut self) -> Option<Channels> {
        // A connection without a session has no timeline of its own.
        self.sessions.retain(|key, one| key.1.is_some() && one.has_rows());
        let offered = |key: &Key| {
            let is_of = |row: &&Interface| row.recording == key.0 && row.session_id == key.1;
            self.interfaces.iter().filter(is_of).cloned().collect::<Vec<_>>()
        };
        let paths_most = self.sessions.values().map(SessionTally::connections).max().unwrap_or(0);
        let has_run = self.sessions.values().any(SessionTally::is_run);
        if paths_most < 2 && !has_run && self.interfaces.is_empty() {
            return None;
        }
        let mut spans: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for ((recording, _), tally) in &self.sessions {
            if let Some((first, last)) = tally.span() {
                let span = spans.entry(recording.clone()).or_insert((first, last));
                *span = (span.0.min(first), span.1.max(last));
            }
        }
        self.machines.join(&spans);
        let mut sessions: Vec<_> = (self.sessions.iter())
            .filter_map(|(key, tally)| {
                let offered = offered(key);
                let one = tally.finish(key, &offered, &self.machines);
                let is_shown = one.is_worth_showing() || tally.is_run() || !offered.is_empty();
                is_shown.then_some(one)
            })
            .collect();
        // Runs with one path are shown next to those with several, if they moved as much.
        let most = |one: &SessionTimeline| (one.channels.len() > 1, one.bytes());
        sessions.sort_by_key(|one| (std::cmp::Reverse(most(one)), one.start_ns));
        let others = (self.others.len() + sessions.len().saturating_sub(LISTED_MAX)) as u64;
        sessions.truncate(LISTED_MAX);
        sessions.sort_by_key(|one| (one.recording.clone(), one.start_ns));
        versus::compare(&mut sessions);
        let findings = findings::findings(&sessions, &self.interfaces);
        let interfaces = self.interfaces.iter().map(OfferedInterface::from_row).collect();
        Some(Channels { sessions, others, interfaces, findings })
    }
}

/// Rounded to six decimals; 0 of what is not a number.
fn rounded(value: f64) -> f64 {
    match value.is_finite() {
        true if value.abs() > 1e15 => value,
        true => (value * 1e6).round() / 1e6,
        false => 0.0,
    }
}
