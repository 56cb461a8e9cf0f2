//! Work consists of requests that wait for each other over a distance, for many seconds and without a pause of the
//! client: copies of many small files, searches, tools that walk a tree. Each costs a round trip; nothing is wrong at
//! the server. A person's clicks have pauses between them and are not counted.
//!
//! A recorder at the server sees the same: there the distance is in the time before each request.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;
use smbscope_wire::status::Status;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::list_names;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};

pub(crate) const KIND: KindInfo = KindInfo::new("serial-requests", "requests in a row over a distance")
    .with_actor(Actor::Client)
    .with_remedies(&[
        (
            "application",
            "several files at once (robocopy /MT:16, rsync in parallel, several copy streams), or one archive instead of many small \
             files",
        ),
        ("client", "work next to the server (terminal server, branch cache, a replica), or synchronise in the background"),
    ]);

/// Where nearly all names are missing.
const SEARCH: (&str, &str) = (
    "application",
    "take the share out of the path that the program searches (PATH, the folder that it starts in, its plug-in and library folders)",
);

/// A client that sends the next request within this time has not paused, ns.
const AT_ONCE_NS: i64 = 5_000_000;
/// Round trips in a row take this long before people turn to something else, ns (J. Nielsen, Usability Engineering, 1993).
const LONG_NS: i64 = 10_000_000_000;
/// The distance takes at least this share of that time.
const DISTANCE_SHARE: f64 = 0.8;
/// At least this share of the requests asks in vain: a search.
const SEARCH_SHARE: f64 = 0.8;
/// Requests that could be in flight at once.
const DEPTH: f64 = 8.0;
/// Most connections, and runs, that are followed.
const CONNECTIONS_MAX: usize = 16_384;
const RUNS_MAX: usize = 4_096;

/// Requests that follow each other without a pause.
#[derive(Clone, Copy, Default)]
struct Run {
    start: i64,
    end: i64,
    requests: u64,
    missing: u64,
    distance_ns: i64,
    /// Part of it before requests.
    before_ns: i64,
    frames: (u64, u64),
}

#[derive(Default)]
pub(crate) struct SerialRequests {
    current: HashMap<(u32, u64), Run, foldhash::fast::RandomState>,
    long: Vec<((u32, u64), Run)>,
}

impl Run {
    fn is_long(&self) -> bool {
        let ns = self.end.saturating_sub(self.start);
        self.distance_ns >= LONG_NS && self.distance_ns as f64 >= DISTANCE_SHARE * ns as f64
    }

    /// The run with at most one round trip before each request, as far as the round trip is known.
    fn within(self, rtt_ns: Option<i64>) -> Run {
        let requests = i64::try_from(self.requests).unwrap_or(i64::MAX);
        let before_ns = self.before_ns.min(rtt_ns.unwrap_or(0).saturating_mul(requests));
        let distance_ns = self.distance_ns - self.before_ns + before_ns;
        Run { before_ns, distance_ns, ..self }
    }
}

impl Detector for SerialRequests {
    fn see(&mut self, op: &Operation) {
        let key = (op.recording, op.connection);
        let (Some(start), Some((_, network_ns)), true) = (op.start, op.split(), op.is_timed) else { return };
        if self.current.len() >= CONNECTIONS_MAX && !self.current.contains_key(&key) {
            return;
        }
        let end = start.saturating_add(op.elapsed_ns);
        let run = self.current.entry(key).or_default();
        let is_first = run.end == 0;
        let gap_ns = op.columns.client_gap_ns.get(op.row).unwrap_or(i64::MAX);
        let before_ns = start.saturating_sub(run.end).saturating_sub(gap_ns).max(0);
        let is_alone = op.columns.outstanding.get(op.row).unwrap_or(0) == 0;
        let is_data = matches!(op.act, Act::Read | Act::Write) && op.bytes >= 1 << 16;
        if is_first || !is_alone || is_data || gap_ns > AT_ONCE_NS || op.explained.is_some() || start < run.end {
            let done = std::mem::replace(run, Run { start, end, frames: frames(op), ..Run::default() });
            if done.is_long() && self.long.len() < RUNS_MAX {
                self.long.push((key, done));
            }
            return;
        }
        run.end = end;
        run.requests += 1;
        run.missing += u64::from(op.status.is_some_and(|status| status == Status::OBJECT_NAME_NOT_FOUND.0));
        run.distance_ns = run.distance_ns.saturating_add(network_ns).saturating_add(before_ns);
        run.before_ns = run.before_ns.saturating_add(before_ns);
        run.frames.1 = frames(op).1;
    }

    fn finish(mut self, context: &mut Context) -> Vec<Candidate> {
        let last = self.current.into_iter().filter(|(_, run)| run.is_long());
        self.long.extend(last);
        self.long.sort_unstable_by_key(|(key, run)| (*key, run.start));
        let mut attribution = Attribution::with_few_names();
        let mut clients = BTreeSet::new();
        let (mut requests, mut missing, mut distance_ns, mut beyond_ns) = (0, 0, 0_i64, 0_i64);
        for (key, run) in &self.long {
            let Some(facts) = context.connections.get(*key) else { continue };
            let run = run.within(facts.rtt_ns);
            if !run.is_long() {
                continue;
            }
            requests += run.requests;
            missing += run.missing;
            distance_ns = distance_ns.saturating_add(run.distance_ns);
            beyond_ns = beyond_ns.saturating_add(run.before_ns);
            clients.insert(facts.client.to_string());
            let saved_ns = (run.distance_ns as f64 * (1.0 - 1.0 / DEPTH)) as i64;
            attribution.add_wait(&row(&run, &facts.client, &facts.server, key.1), key.0, run.end, saved_ns, saved_ns);
        }
        if requests == 0 {
            return Vec::new();
        }
        let is_search = missing as f64 >= SEARCH_SHARE * requests as f64;
        let rest = if is_search { "nearly all of them for names that do not exist" } else { "one after the other" };
        let what = format!(
            "{requests} requests of {} wait for each other over the distance, {rest}: nothing is wrong at the server",
            list_names(&clients)
        );
        let because = "each request leaves as soon as the reply to the one before is there, nothing else is in flight, and nearly all of \
                       the time is round trips";
        let actor = if is_search { Actor::Application } else { Actor::Client };
        let each_ns = distance_ns as f64 / requests as f64;
        let kind = FindingKind::SerialRequests;
        let candidate = Candidate::new(kind, what, attribution, Confidence::Likely, because)
            .of_events()
            .beyond_busy(beyond_ns)
            .with_owner(actor, clients.into_iter().take(3).collect())
            .with_figures([
                ("requests", requests as f64, "", "requests: {}"),
                ("distance", distance_ns as f64, "ns", "{} of round trips"),
                ("round", each_ns, "ns", "{} each"),
            ]);
        vec![if is_search { candidate.with_remedies(&[SEARCH]) } else { candidate }]
    }
}

fn frames(op: &Operation) -> (u64, u64) {
    let first = op.columns.request_frame.get(op.row).unwrap_or(0);
    (first, op.columns.response_frame.get(op.row).unwrap_or(first))
}

/// A run as a wait.
fn row(run: &Run, client: &str, server: &str, connection: u64) -> Wait {
    Wait {
        client: client.to_owned(),
        server: server.to_owned(),
        connection: Some(connection),
        kind: "operation".to_owned(),
        protocol: format!("{} requests", run.requests),
        subject: Some("one after the other".to_owned()),
        start: run.start,
        last_attempt: run.start,
        first_frame: run.frames.0,
        last_frame: run.frames.1,
        ..Wait::default()
    }
}
