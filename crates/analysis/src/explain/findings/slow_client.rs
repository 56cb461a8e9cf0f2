//! The client pauses between a reply and its next request (think time, J. D. C. Little 1961). A pause
//! on one connection of a session does not count while another connection of it is busy.

use hashbrown::HashMap;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Confidence, Remedy, Trouble, Whole};
use super::super::operation::Operation;
use super::remedy;

pub(in super::super) const TITLE: &str = "slow client";

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "client",
        "check its processor, its disk and its virus scanner; the server is idle in the meantime",
    ),
    remedy(
        "application",
        "request the next data before it has processed the last (read ahead, several threads)",
    ),
];

/// Longer pauses are taken to be those of people, ns.
const PAUSE_MAX_NS: i64 = 1_000_000_000;
/// Most sessions that are followed; when there are more, all are forgotten.
const SESSIONS_MAX: usize = 65_536;

/// The pauses of all clients.
#[derive(Default)]
pub(in super::super) struct SlowClient {
    /// When the last operation of each session, or of a connection without one, ended.
    last: HashMap<(u32, bool, u64), i64, foldhash::fast::RandomState>,
    attribution: Attribution,
}

impl SlowClient {
    /// The client's pause before an operation, ns; 0 if there is none. Operations come in the order
    /// in which they ended.
    pub(in super::super) fn pause_before(&mut self, op: &Operation) -> i64 {
        let session = op.columns.session_id.get(op.row).filter(|id| *id != 0);
        let key = (op.recording, session.is_some(), session.unwrap_or(op.connection));
        let (Some(start), true) = (op.start, op.is_timed) else { return 0 };
        if self.last.len() >= SESSIONS_MAX {
            self.last.clear();
        }
        let end = start.saturating_add(op.elapsed_ns);
        let before = self.last.insert(key, end);
        let (Some(before), Some(gap)) = (before, op.columns.client_gap_ns.get(op.row)) else {
            return 0;
        };
        let pause = gap.min(start.saturating_sub(before));
        if (1..PAUSE_MAX_NS).contains(&pause) { pause } else { 0 }
    }

    pub(in super::super) fn see(&mut self, op: &Operation) {
        // The pauses of simulated users are their schedule.
        let is_simulated = op.columns.scenario_run.get(op.row).is_some();
        if op.pause_ns > 0 && !is_simulated {
            self.attribution.add_pause(op, op.pause_ns);
        }
    }

    pub(in super::super) fn finish(self, whole: &Whole) -> Candidate {
        let pauses = self.attribution.operations;
        let mean_ns = self.attribution.saved_ns as f64 / pauses.max(1) as f64;
        // Recordings of the same period are read one after the other: not from their pauses.
        let idle = (1.0 - whole.active_ns as f64 / whole.lasted_ns.max(1) as f64).max(0.0);
        Candidate::new(
            Trouble::SlowClient,
            "The client pauses between a reply and its next request: the server waits for it",
            self.attribution,
            Confidence::Medium,
            "pauses of less than a second with nothing in flight; the cause is the application, its disk or its \
             processor",
        )
        .with_figures([
            ("pauses", pauses as f64, ""),
            ("mean_pause", mean_ns, "ns"),
            ("share_of_time_with_nothing_in_flight", idle, "share"),
        ])
    }
}
