//! The client's own pauses: how long it had nothing under way (a pause on one of a session's connections is none
//! while another one is busy; think time, J. D. C. Little 1961); and how long a connection was silent.

use hashbrown::HashMap;

use super::attribution::Gathered;
use super::data::{Confidence, Figure, Trouble, Whole};
use super::operation::Seen;
use super::{Found, finding};

/// Longer pauses are those of people, ns.
const PAUSE_MAX_NS: i64 = 1_000_000_000;
/// Clients, and connections, that are followed at once; beyond that all are forgotten.
const CLIENTS_MAX: usize = 65_536;

/// All of them.
#[derive(Default)]
pub(super) struct Pauses {
    /// The last end of what each session, or connection without one, sent.
    last: HashMap<(u32, bool, u64), i64, foldhash::fast::RandomState>,
    gathered: Gathered,
}

/// The last end of a reply on each connection.
#[derive(Default)]
pub(super) struct Replies(HashMap<(u32, u64), i64, foldhash::fast::RandomState>);

impl Replies {
    /// How long nothing had come on the connection before an operation's reply, ns, as far as the operation
    /// waited.
    pub(super) fn silent_ns(&mut self, seen: &Seen) -> i64 {
        let (Some(start), Some(turnaround), true) =
            (seen.start, seen.turnaround_ns(), seen.is_timed)
        else {
            return 0;
        };
        if self.0.len() >= CLIENTS_MAX {
            self.0.clear();
        }
        let end = start.saturating_add(seen.elapsed_ns);
        let replied = end.saturating_sub(seen.reply_ns());
        match self.0.insert((seen.recording, seen.connection), end) {
            Some(before) => replied.saturating_sub(before).clamp(0, turnaround),
            None => turnaround,
        }
    }
}

impl Pauses {
    /// The pause before an operation, ns; 0 without one. Operations come in the order of their ends.
    pub(super) fn before(&mut self, seen: &Seen) -> i64 {
        let session = seen.columns.session_id.get(seen.row).filter(|id| *id != 0);
        let key = (seen.recording, session.is_some(), session.unwrap_or(seen.connection));
        let (Some(start), true) = (seen.start, seen.is_timed) else { return 0 };
        if self.last.len() >= CLIENTS_MAX {
            self.last.clear();
        }
        let end = start.saturating_add(seen.elapsed_ns);
        let before = self.last.insert(key, end);
        let (Some(before), Some(gap)) = (before, seen.columns.client_gap_ns.get(seen.row)) else {
            return 0;
        };
        let pause = gap.min(start.saturating_sub(before));
        if (1..PAUSE_MAX_NS).contains(&pause) { pause } else { 0 }
    }

    pub(super) fn see(&mut self, seen: &Seen) {
        if seen.pause_ns > 0 {
            self.gathered.add_pause(seen, seen.pause_ns);
        }
    }

    pub(super) fn finish(self, whole: &Whole) -> Found {
        let pauses = self.gathered.operations;
        let mean_ns = self.gathered.saved_ns as f64 / pauses.max(1) as f64;
        // Recordings of the same time, one after the other, are not one sequence.
        let idle = (1.0 - whole.active_ns as f64 / whole.lasted_ns.max(1) as f64).max(0.0);
        let mut found = finding(
            Trouble::SlowClient,
            "The client takes its time between an answer and the next request: the server waits for it"
                .to_owned(),
            self.gathered,
            Confidence::Medium,
            "pauses of less than a second with nothing under way; the application, its disk or its processor",
        );
        found.finding.figures = [
            ("pauses", pauses as f64, ""),
            ("mean_pause", mean_ns, "ns"),
            ("share_of_time_with_nothing_in_flight", idle, "share"),
        ]
        .map(|(name, value, unit)| Figure { name, value, error: None, unit })
        .to_vec();
        found
    }
}
