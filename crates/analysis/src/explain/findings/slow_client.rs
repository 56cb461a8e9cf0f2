//! The client pauses between a reply and its next request (think time, J. D. C. Little 1961). Pauses
//! are context: people and programs have them. Only a client that moves file data, and pauses again and
//! again while it does, is a finding: there the client decides how long the work takes. A pause on one
//! connection of a session does not count while another connection of it is busy.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::ConnectionFacts;
use super::super::data::{FindingKind, Pauses};
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};

pub(crate) const KIND: KindInfo = KindInfo::new("slow-client", "slow client")
    .with_actor(Actor::Client)
    .with_remedies(&[
    (
        "client",
        "check its CPU, its disk and its virus scanner; the server is idle in the meantime",
    ),
    (
        "application",
        "request the next data before it has processed the last (read ahead, several threads)",
    ),
]);

/// Longer pauses are taken to be those of people, ns.
const PAUSE_MAX_NS: i64 = 1_000_000_000;
/// Most sessions that are followed; when there are more, all are forgotten.
const SESSIONS_MAX: usize = 65_536;
/// Fewest pauses between transfers that make a slow client.
const PAUSES_MIN: u64 = 20;
/// A client closes its window at least so often for each pause: once in a while, any receiver does.
const CLOSED_SHARE: f64 = 0.25;
/// They take at least this share of the time in which the clients that have them work and pause.
const PAUSES_SHARE: f64 = 0.5;

/// One session, or a connection without one.
#[derive(Default)]
struct Session {
    /// When its last operation ended.
    last: i64,
    /// Whether it has moved file data since its last pause.
    has_moved: bool,
}

/// The pauses of all clients.
#[derive(Default)]
pub(crate) struct SlowClient {
    sessions: HashMap<(u32, bool, u64), Session, foldhash::fast::RandomState>,
    all: Attribution,
    transfers: Attribution,
}

impl Detector for SlowClient {
    fn see(&mut self, op: &Operation) {
        let id = op.columns.session_id.get(op.row).filter(|id| *id != 0);
        let key = (op.recording, id.is_some(), id.unwrap_or(op.connection));
        let moves = matches!(op.act, Act::Read | Act::Write) && op.bytes > 0;
        let (Some(start), true) = (op.start, op.is_timed) else {
            // A later member of a compound has no time of its own.
            if moves && let Some(session) = self.sessions.get_mut(&key) {
                session.has_moved = true;
            }
            return;
        };
        if self.sessions.len() >= SESSIONS_MAX {
            self.sessions.clear();
        }
        let end = start.saturating_add(op.elapsed_ns);
        let (session, first) = match self.sessions.entry(key) {
            Entry::Occupied(entry) => (entry.into_mut(), false),
            Entry::Vacant(entry) => (entry.insert(Session::default()), true),
        };
        let before = std::mem::replace(&mut session.last, end);
        let has_moved = session.has_moved;
        session.has_moved |= moves;
        // The pauses of simulated users are their schedule.
        let is_simulated = op.columns.scenario_run.get(op.row).is_some();
        let Some(gap) = op.columns.client_gap_ns.get(op.row).filter(|_| !first && !is_simulated)
        else {
            return;
        };
        let pause = gap.min(start.saturating_sub(before));
        if !(1..PAUSE_MAX_NS).contains(&pause) {
            return;
        }
        self.all.add_pause(op, pause);
        if has_moved {
            self.transfers.add_pause(op, pause);
            session.has_moved = moves;
        }
    }

    fn finish(self, context: &mut Context) -> Vec<Candidate> {
        let transfers = self.transfers;
        let pauses = Pauses {
            pauses: self.all.operations,
            sum_ns: self.all.saved_ns,
            clients: self.all.finish().clients,
        };
        let whole = context.whole;
        let all_ns = whole.busy_ns.saturating_add(pauses.sum_ns);
        context.pauses = Some(pauses).filter(|pauses| pauses.pauses > 0);
        let number = transfers.operations;
        let least_ns = PAUSES_SHARE * all_ns as f64;
        // Pauses alone show no cause: a player has its rhythm, a person reads. A client that is busy with the
        // data closes its receive window, or lets it fill.
        let closed = |facts: &ConnectionFacts| facts.client_windows_closed as f64;
        let most = context.connections.all().into_iter().map(|(_, facts)| closed(facts));
        let is_busy = most.fold(0.0, f64::max) >= CLOSED_SHARE * number as f64;
        if number < PAUSES_MIN || (transfers.saved_ns as f64) < least_ns || !is_busy {
            return Vec::new();
        }
        let paused_ns = transfers.saved_ns;
        let mean_ns = transfers.saved_ns as f64 / number.max(1) as f64;
        // Recordings of the same period are read one after the other: not from their pauses.
        let idle = (1.0 - whole.active_ns as f64 / whole.lasted_ns.max(1) as f64).max(0.0);
        let candidate = Candidate::new(
            FindingKind::SlowClient,
            "The client pauses after each piece of file data before it requests the next: the server waits for it",
            transfers,
            Confidence::Likely,
            "pauses of less than a second with nothing in flight, between requests that read or write file data, and a \
             receive window that the client closes: its program, disk or CPU does not keep up",
        );
        let candidate = candidate.with_figures([
            ("pauses", number as f64, "", "pauses: {}"),
            ("mean_pause", mean_ns, "ns", "{} each on average"),
            (
                "share_of_time_with_nothing_in_flight",
                idle,
                "share",
                "nothing in flight for {} of the time",
            ),
        ]);
        // Pauses count where they are a finding.
        vec![candidate.beyond_busy(paused_ns)]
    }
}
