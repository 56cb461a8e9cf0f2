//! How long a client had nothing under way (a pause on one of a session's connections is none while another
//! one is busy), and how long a connection was silent.

use hashbrown::HashMap;

use super::operation::Seen;

/// Longer pauses are those of people, ns.
const PAUSE_MAX_NS: i64 = 1_000_000_000;
/// Clients, and connections, that are followed at once; beyond that all are forgotten.
const CLIENTS_MAX: usize = 65_536;

/// The last end of what each session, or connection without one, sent.
#[derive(Default)]
pub(super) struct Pauses(HashMap<(u32, bool, u64), i64, foldhash::fast::RandomState>);

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
        if self.0.len() >= CLIENTS_MAX {
            self.0.clear();
        }
        let end = start.saturating_add(seen.elapsed_ns);
        let before = self.0.insert(key, end);
        let (Some(before), Some(gap)) = (before, seen.columns.client_gap_ns.get(seen.row)) else {
            return 0;
        };
        let pause = gap.min(start.saturating_sub(before));
        if (1..PAUSE_MAX_NS).contains(&pause) { pause } else { 0 }
    }
}
