//! The recorded operations, replayed as they would have gone with changes.
//!
//! A client sends its next request because of what it just received: an operation follows the last
//! reply that its client (session) had before it, after the time that the client then took. So
//! requests that were sent in parallel stay parallel, and requests that waited for a reply still
//! do. An operation takes its measured time, minus what the network and the changed slices cost in
//! the recording, plus what they cost with the changes ([`tcp`]); without a change the measured
//! value comes out. The scenarios of a load run begin when they did, or when the user's previous one has
//! ended.
//!
//! A request passes through these stages, each in its own file: `recorded` (what it took and why),
//! `transform` (how and when it is sent), `server` (waits, durability, protection) and `response`
//! (the network, and where it is counted). `rows` makes requests of the table's rows.
//!
//! Times are those of the client, wherever they were recorded: a capture taken at the server is
//! shifted by the round trip on the client's side. Operations must come in the order in which they
//! ended, as every source provides them. Memory grows with the number of connections and of executions of
//! scenarios, not with the number of operations.

mod behind;
mod blocks;
mod cache_hits;
mod caches;
mod client;
mod data;
mod depth;
mod detail;
mod durability;
mod in_order;
mod lookups;
mod network;
mod opens;
mod protection;
mod recorded;
mod replicas;
mod request;
mod response;
mod role;
mod rows;
mod serial;
mod server;
mod tally;
pub mod tcp;
mod transform;

use hashbrown::{HashMap, HashSet};
use smbscope_tables::run::{MEASURED, Scenario};
use smbscope_tables::tables::{Connection, Tree};

use super::plan::Plan;
use blocks::Blocks;
pub use blocks::SizeCosts;
pub use cache_hits::Hits;
use caches::Caches;
use client::{Client, Execution};
pub use data::{Baseline, Cached, Part, PartRow, Prediction, Row, Sent, Times};
pub use depth::DEPTH_MAX;
use depth::Depths;
pub use detail::{Detail, Needs, Rate, Share, Sizes};
use durability::Durability;
pub use durability::{AtRisk, StableCosts};
use in_order::InOrder;
pub use network::CHANNELS_MAX;
use network::{ConnectionFacts, TcpConnection};
pub use opens::Opens;
pub use protection::ProtectionEffect;
pub use replicas::{ReplicaTimes, Replicas};
use request::{Request, point};
pub use rows::columns;
use tally::{Names, Tally};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Most executions of scenarios that are kept; the operations of all others count, but they have no response times.
const EXECUTIONS_MAX: usize = 8_000_000;

/// Longest pause between two requests on one open that could have been one compound, ns: a client that looks at the
/// first reply takes longer.
const CHAIN_MAX_NS: i64 = 1_000_000;

/// Pieces of a split request that are followed one by one: after them the window is open, and all others take as
/// long as the last one.
const PIECES: u64 = 64;

/// A replay of recorded operations.
pub struct Replay {
    plan: Plan,
    recordings: Names,
    scenarios: Names,
    executions: Map<(u32, u64), Execution>,
    executions_left_out: u64,
    /// Recordings of load runs: only operations of measured scenarios count.
    loads: Vec<bool>,
    /// Recordings whose users follow no schedule.
    unpaced: HashSet<u32, foldhash::fast::RandomState>,
    known: Map<(u32, u64), ConnectionFacts>,
    /// Trees of continuously available shares.
    available: HashSet<(u32, u64, u64), foldhash::fast::RandomState>,
    links: Vec<TcpConnection>,
    link_of: Map<(u32, u64), u32>,
    last_link: Option<((u32, u64), u32)>,
    clients: Vec<Client>,
    client_of: Map<(u32, u64), u32>,
    lines: network::ClientLinks,
    /// Leads of compounds whose members may still follow, by connection.
    held: Map<u32, Request>,
    /// What rows of load runs say, in the order of time.
    turns: InOrder<Turn>,
    /// Whether it has no changes, and learns what requests cost.
    is_baseline: bool,
    baseline: Baseline,
    learning: opens::OpenLearning,
    blocks: Blocks,
    depths: Depths,
    durable: Durability,
    /// Requests of executions of scenarios.
    requests: u64,
    reads: cache_hits::HitLearning,
    moving: cache_hits::HitShift,
    caches: Option<Caches>,
    /// Members of compounds that are added or removed.
    chained: u64,
    protected: ProtectionEffect,
    tally: Tally,
    gathering: Option<detail::DetailCollector>,
    replicas: Option<replicas::ReplicaCollector>,
}

/// What is done in the order of time.
enum Turn {
    Request(Box<Request>),
    /// An open ended.
    Closed((u32, u64)),
}

/// How much less time an operation takes, ns, and how long its connection was busy with it, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saving {
    pub(crate) ns: i64,
    pub(crate) busy_ns: i64,
}

impl Replay {
    /// An empty replay. Some changes need the baseline that a replay without changes has learnt
    /// ([`Plan::needs_baseline`]).
    pub fn new(plan: Plan, baseline: Baseline) -> Replay {
        let opens = baseline.opens.clone();
        Replay {
            is_baseline: plan == Plan::default(),
            held: Map::default(),
            turns: InOrder::default(),
            learning: opens::OpenLearning::default(),
            blocks: Blocks::default(),
            depths: Depths::default(),
            durable: Durability::default(),
            requests: 0,
            reads: cache_hits::HitLearning::default(),
            moving: cache_hits::HitShift::default(),
            caches: plan.cache.map(|option| Caches::new(option, opens)),
            chained: 0,
            protected: ProtectionEffect::default(),
            baseline,
            lines: network::ClientLinks::new(&plan),
            replicas: plan.replication.map(|_| replicas::ReplicaCollector::default()),
            plan,
            recordings: Names::default(),
            scenarios: Names::default(),
            executions: Map::default(),
            executions_left_out: 0,
            loads: Vec::new(),
            unpaced: HashSet::default(),
            known: Map::default(),
            available: HashSet::default(),
            links: Vec::new(),
            link_of: Map::default(),
            last_link: None,
            clients: Vec::new(),
            client_of: Map::default(),
            tally: Tally::default(),
            gathering: None,
        }
    }

    /// Collects the parts of recorded operations, for [`Prediction::detail`].
    pub fn in_detail(mut self) -> Replay {
        self.gathering = Some(detail::DetailCollector::default());
        self
    }

    /// Adds connections, before their operations; they have the round trips.
    pub fn connections(&mut self, rows: &[Connection]) {
        for row in rows {
            let recording = self.recordings.number(&row.recording);
            self.known.insert((recording, row.connection), ConnectionFacts::from_row(row));
        }
    }

    /// Adds trees, before their operations: data written to a continuously available share is stable before the
    /// reply, whatever the write requests (MS-SMB2 section 3.3.5.13).
    pub fn trees(&mut self, rows: &[Tree]) {
        for row in rows.iter().filter(|row| row.continuous_availability == Some(true)) {
            let recording = self.recordings.number(&row.recording);
            self.available.insert((recording, row.session_id, row.tree_id));
        }
    }

    /// Marks a load run, before its scenarios, as one in which each scenario begins when the user's previous one has
    /// ended.
    pub fn unpaced(&mut self, recording: &str) {
        let recording = self.recordings.number(recording);
        self.unpaced.insert(recording);
    }

    /// Adds executions of scenarios, before their operations.
    pub fn scenarios(&mut self, rows: &[Scenario]) {
        let window = self.plan.window;
        for row in rows {
            let recording = self.recordings.number(&row.recording);
            let loads = &mut self.loads;
            loads.resize(loads.len().max(recording as usize + 1), false);
            loads[recording as usize] = true;
            if self.executions.len() >= EXECUTIONS_MAX {
                self.executions_left_out += 1;
                continue;
            }
            let (Some(started_at), Some(ended_at)) = (row.started_at, row.ended_at) else {
                continue;
            };
            let execution = Execution {
                scenario: self.scenarios.number(&row.scenario),
                is_counted: row.phase == MEASURED
                    && window.is_none_or(|(start, end)| (start..end).contains(&row.scheduled_at)),
                is_paced: !self.unpaced.contains(&recording),
                scheduled_at: point(row.scheduled_at),
                started_at: point(started_at),
                ended_at: point(ended_at),
            };
            self.executions.insert((recording, row.scenario_run), execution);
        }
    }

    /// Replays the lead of a compound of which all members were seen.
    fn release(&mut self, link: u32) {
        if !self.held.is_empty()
            && let Some(request) = self.held.remove(&link)
        {
            self.request_in_turn(request);
        }
    }

    fn request_in_turn(&mut self, request: Request) {
        if self.loads.is_empty() {
            self.replay(&request)
        } else {
            let ended = request.start + request.elapsed_ns;
            self.in_turn(ended, Turn::Request(Box::new(request)));
        }
    }

    /// Takes what ended at that time in its turn: rows of captures come in the order in which their operations ended,
    /// those of a load run by thread.
    fn in_turn(&mut self, ended: i64, turn: Turn) {
        if self.loads.is_empty() {
            return self.take(turn);
        }
        self.turns.add(ended, turn);
        while let Some((_, turn)) = self.turns.next(false) {
            self.take(turn);
        }
    }

    fn take(&mut self, turn: Turn) {
        match turn {
            Turn::Request(request) => self.replay(&request),
            Turn::Closed(handle) => self.blocks.closed(handle),
        }
    }

    /// Replays one request message and its reply, stage by stage; each stage has a file.
    fn replay(&mut self, request: &Request) {
        let Some(mut recorded) = self.recorded(request) else { return };
        let protection = self.other_protection(request);
        let Some(sent) = self.send(request, &recorded, protection.as_ref()) else { return };
        let saved_ns = self.change_server(request, &mut recorded, &sent, protection.as_ref());
        let Some(after_ns) = self.respond(request, &mut recorded, &sent, saved_ns) else { return };
        self.count(request, &recorded, &sent, after_ns);
    }

    /// The result.
    pub fn finish(mut self) -> Prediction {
        let mut held: Vec<_> = self.held.drain().map(|(_, request)| request).collect();
        held.sort_unstable_by_key(|request| (request.start, request.link));
        held.into_iter().for_each(|request| self.request_in_turn(request));
        while let Some((_, turn)) = self.turns.next(true) {
            self.take(turn);
        }
        let mut spared_busy_ns = 0.0;
        for client in &mut self.clients {
            if let Some((ended, scenario)) = client.begin_scenario(None, None)
                && ended.is_counted
            {
                self.tally.scenario(scenario, &ended);
            }
            self.tally.waited(client.waiting());
            spared_busy_ns += client.spared_busy_ns();
        }
        let rtt = data::round_trips(&self.links);
        let caches = self.caches.as_ref();
        let (breaks, late) = caches.map_or((0, 0), |caches| (caches.breaks, caches.late_closes));
        let close = self.tally.command("Close");
        self.tally.more(close, late as i64);
        let replicas = self.replicas.take().map(|all| all.finish(&self.tally.names.0));
        let gathering = self.gathering.take();
        let detail = gathering.map(|all| all.finish(&self.tally.names.0, &self.scenarios.0));
        let mut prediction = self.tally.finish(&self.scenarios.0, rtt, self.executions_left_out);
        prediction.detail = detail;
        prediction.replicas = replicas;
        prediction.spared_busy_ns = spared_busy_ns;
        let answered = prediction.sent.iter().map(|one| one.before - one.after).sum();
        let creates = caches.map_or(0, |caches| caches.known);
        prediction.cached = Cached { answered, breaks, creates };
        prediction.stable = self.durable.asked;
        prediction.chained = self.chained;
        prediction.contiguous = self.depths.contiguous;
        prediction.protected = self.protected;
        prediction.executions = self.executions.len() as u64;
        prediction.requests = self.requests;
        prediction.at_risk = self.durable.at_risk(self.plan.replication.as_ref());
        prediction.baseline = if self.is_baseline {
            Baseline {
                sizes: self.blocks.learnt(),
                opens: self.learning.finish(),
                stable: self.durable.learnt(),
                hits: self.reads.finish(),
            }
        } else {
            self.baseline
        };
        prediction
    }
}
