//! Recorded operations once more, as they would have gone with a change.
//!
//! What a client sent next, it sent because of what it had just received: an operation is taken to
//! follow the last reply that its client (session) had before it, and keeps the time that the client
//! then took. So requests that were sent side by side stay side by side, and what waited for another
//! still does. An operation's own time is the measured one, less what the line and the changed slices
//! cost today, plus what they cost then ([`tcp`]): without a change the measured value comes out.
//! The scenarios of a load run begin when they did, or when the user's one before has ended.
//!
//! Times are those of the client, wherever they were recorded: a capture taken at the server is
//! moved by the round trip on the client's side. Operations must come in the order in which they
//! ended, as every source gives them. Memory follows the number of connections and of executions of
//! scenarios, not that of operations.

mod blocks;
mod cache_hits;
mod caches;
mod client;
mod data;
mod depth;
mod detail;
mod durability;
mod lookups;
mod network;
mod opens;
mod protection;
mod request;
mod role;
mod rows;
mod tally;
pub mod tcp;

use hashbrown::{HashMap, HashSet};
use smbscope_tables::run::{MEASURED, Scenario};
use smbscope_tables::tables::{Connection, Tree};

use super::plan::Plan;
pub(crate) use blocks::Direction;
pub use blocks::Learnt;
use blocks::{Blocks, Cut};
pub use cache_hits::Hits;
use caches::Caches;
use client::{Client, Execution};
pub use data::{Cached, Lessons, Part, PartRow, Prediction, Row, Sent, Times};
pub use depth::DEPTH_MAX;
use depth::{Depths, Turn};
pub use detail::{Detail, Needs, Rate, Share, Sizes};
use durability::Durable;
pub use durability::{AtRisk, Stable};
pub use network::CHANNELS_MAX;
use network::{Known, Link};
pub use opens::Opens;
pub use protection::Protected;
use protection::Turn as Protection;
use request::{Call, DURATION_MAX_NS, Timed, duration, point, times};
use role::Role;
pub use rows::columns;
use tally::{Names, Tally};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Executions of scenarios that are kept; of others operations count, but no response times.
const EXECUTIONS_MAX: usize = 8_000_000;

/// Pauses between two requests on one open up to which the later one could have gone with the earlier
/// one, ns: a client that looks at the first reply takes longer, or another user's turn came.
const CHAIN_MAX_NS: i64 = 1_000_000;

/// Requests that a larger one becomes of which each is followed: then the window is open, and all others
/// take what the last one takes.
const PIECES: u64 = 64;

/// Recorded operations that are being replayed.
pub struct Replay {
    plan: Plan,
    recordings: Names,
    scenarios: Names,
    executions: Map<(u32, u64), Execution>,
    executions_left_out: u64,
    /// Recordings of which only operations of measured scenarios count.
    loads: Vec<bool>,
    /// Recordings of which users follow no schedule.
    unpaced: HashSet<u32, foldhash::fast::RandomState>,
    known: Map<(u32, u64), Known>,
    /// Trees of continuously available shares.
    available: HashSet<(u32, u64, u64), foldhash::fast::RandomState>,
    links: Vec<Link>,
    link_of: Map<(u32, u64), u32>,
    last_link: Option<((u32, u64), u32)>,
    clients: Vec<Client>,
    client_of: Map<(u32, u64), u32>,
    lines: network::Lines,
    /// Leads of compounds whose members may still come, by connection.
    held: Map<u32, Call>,
    /// Whether it is to learn.
    learns: bool,
    lessons: Lessons,
    learning: opens::Learning,
    blocks: Blocks,
    depths: Depths,
    durable: Durable,
    /// Requests of executions.
    requests: u64,
    reads: cache_hits::Learning,
    moving: cache_hits::Moving,
    caches: Option<Caches>,
    /// Members of compounds more or fewer.
    chained: u64,
    protected: Protected,
    tally: Tally,
    gathering: Option<detail::Gathering>,
}

/// What an operation takes less, ns, and how long its connection was busy with it, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spare {
    pub(crate) ns: i64,
    pub(crate) busy_ns: i64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It stays.
    Same,
    /// It is a part of the request before.
    Joined,
    /// It becomes so many requests.
    Split(u64),
    /// It goes along with the request before.
    Chained,
    /// It is sent in so many messages, one after the other.
    Unchained(u64),
    /// It is sent and served at other times.
    Turn(Turn),
    /// It is not sent.
    Gone,
}

impl From<Cut> for Fate {
    fn from(cut: Cut) -> Fate {
        match cut {
            Cut::Same => Fate::Same,
            Cut::Joined => Fate::Joined,
            Cut::Split(requests) => Fate::Split(requests),
        }
    }
}

impl Replay {
    /// Nothing yet. Some changes need what a replay without changes has learnt ([`Plan::learns`]).
    pub fn new(plan: Plan, lessons: Lessons) -> Replay {
        let opens = lessons.opens.clone();
        Replay {
            learns: plan == Plan::default(),
            held: Map::default(),
            learning: opens::Learning::default(),
            blocks: Blocks::default(),
            depths: Depths::default(),
            durable: Durable::default(),
            requests: 0,
            reads: cache_hits::Learning::default(),
            moving: cache_hits::Moving::default(),
            caches: plan.cache.map(|option| Caches::new(option, opens)),
            chained: 0,
            protected: Protected::default(),
            lessons,
            lines: network::Lines::new(&plan),
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

    /// Gathers what operations are made of today, for [`Prediction::detail`].
    pub fn in_detail(mut self) -> Replay {
        self.gathering = Some(detail::Gathering::default());
        self
    }

    /// Adds connections, before their operations: they know the round trips.
    pub fn connections(&mut self, rows: &[Connection]) {
        for row in rows {
            let recording = self.recordings.number(&row.recording);
            self.known.insert((recording, row.connection), Known::of(row));
        }
    }

    /// Adds trees, before their operations: what is written to a continuously available share is stable
    /// when it is answered, whatever the write asks for (MS-SMB2 section 3.3.5.13).
    pub fn trees(&mut self, rows: &[Tree]) {
        for row in rows.iter().filter(|row| row.continuous_availability == Some(true)) {
            let recording = self.recordings.number(&row.recording);
            self.available.insert((recording, row.session_id, row.tree_id));
        }
    }

    /// Says of a load run, before its scenarios, that each began when the user's one before had ended.
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

    /// Goes on with a lead whose members have all been seen.
    fn release(&mut self, link: u32) {
        if !self.held.is_empty()
            && let Some(call) = self.held.remove(&link)
        {
            self.call(&call);
        }
    }

    /// One request message and its reply.
    fn call(&mut self, call: &Call) {
        let (Some(link), Some(client)) =
            (self.links.get_mut(call.link as usize), self.clients.get_mut(call.client as usize))
        else {
            return;
        };
        let ways = link.ways;
        // As the client sees it.
        let start = call.start - link.to_client_ns / 2;
        let before_ns = call.elapsed_ns + link.to_client_ns;
        if let Some((ended, scenario)) = client.turn(call.run, call.execution.as_ref())
            && ended.is_counted
        {
            self.tally.scenario(scenario, &ended);
        }
        self.requests += u64::from(call.execution.is_some());
        let mut timed = Timed { before_ns, requests: 1, ..Timed::default() };
        let at_server = if call.has_slices {
            let is_read = call.role == Role::Move(Direction::Read);
            let served = match (self.plan.cache_hit, &self.lessons.hits) {
                (Some(share), Some(hits)) if is_read => {
                    self.moving.factor(hits, share, &call.slices)
                }
                _ => 1.0,
            };
            if self.learns && is_read {
                self.reads.add(&call.slices);
            }
            timed.set_slices(&call.slices, &self.plan, served)
        } else {
            (0, 0)
        };
        // What the server is known to have taken is not the line's.
        let mut today = link.today(start, call.bytes, before_ns - at_server.0);
        let mut spread_ns = match link.is_other {
            true => link.spread_ns(call.bytes, &today, call.sending_ns),
            false => 0,
        };
        spread_ns = spread_ns.min(before_ns - today.sum() - at_server.0).max(0);
        // On a line of another rate the bytes take what they take there, whether more or less.
        if self.plan.bandwidth_bits.is_some() {
            today.more_ns += std::mem::take(&mut spread_ns);
        }
        let beside_ns = before_ns - today.sum();
        timed.set(Part::Network, (today.rtt_ns, 0));
        timed.set(Part::Windows, (today.more_ns, 0));
        // What was seen of the server as a whole and is in no slice.
        let server = (call.server_ns.min(beside_ns) - at_server.0).max(0);
        timed.set(Part::Server, (server, server));

        let access = call.access(start, before_ns);
        if let Some(access) = &access {
            self.tally.moves[access.kind as usize] += 1;
        }
        match call.role {
            Role::Move(direction) if self.learns => {
                self.blocks.learn(direction, call.transferred, beside_ns);
            }
            Role::Other if self.learns && call.members == 1 => self.blocks.learn_small(beside_ns),
            _ => {}
        }
        let protection = match self.plan.is_other_protection() {
            true => Protection::of(&self.plan, ways, call),
            false => None,
        };
        let (signs_ns, verifies_ns) = protection.as_ref().map_or((0, 0), Protection::client);
        let usual = client.then(start, signs_ns);
        let fate = match &access {
            _ if call.answered >= call.members => Fate::Gone,
            Some(access) if self.learns || self.plan.is_other_blocks() => {
                self.blocks.cut(access, self.plan.block(access.kind)).into()
            }
            _ => Fate::Same,
        };
        let fate = match (fate, self.plan.compound, &access, self.plan.depth) {
            (Fate::Same, _, Some(access), Some(depth)) => {
                self.depths.turn(access, usual, depth).map_or(fate, Fate::Turn)
            }
            (Fate::Same, Some(false), ..) if call.members > 1 => {
                self.chained += call.members - 1;
                Fate::Unchained(call.members.min(PIECES))
            }
            (Fate::Same, Some(true), ..) if client.follows(call, start) => {
                self.chained += 1;
                Fate::Chained
            }
            _ => fate,
        };
        let then = match fate {
            // At once after the pieces before.
            Fate::Joined | Fate::Chained => client.last_then().unwrap_or(start),
            Fate::Turn(turn) => turn.sent,
            _ => usual,
        };
        let mut saved = at_server.0 - at_server.1;
        if !self.plan.waits.is_empty() {
            // Each request has a number of its own, and each resource.
            let number = (call.start as u64).rotate_left(20) ^ u64::from(call.link);
            let waits = (0..).zip(&self.plan.waits);
            let more_ns = waits.map(|(place, wait)| wait.draw_ns(number.rotate_right(place))).sum();
            saved += timed.wait(more_ns);
        }
        if self.learns || self.plan.is_other_durability() {
            let stable = &self.lessons.stable;
            let requests = match fate {
                Fate::Joined | Fate::Gone => 0,
                Fate::Split(requests) => requests,
                _ => 1,
            };
            let at = (then, requests);
            let extra = self.durable.change(&self.plan, stable, call, beside_ns, at);
            saved += timed.make_stable(&extra);
        }
        if let Some(protection) = protection {
            let less_ns = protection.server(&self.plan, call, &mut timed, &mut self.protected);
            saved += less_ns;
            if call.execution.is_some() && fate != Fate::Gone {
                self.protected.add(-less_ns, (signs_ns, verifies_ns));
            }
        }
        let learnt = call.role.moves().map(|way| self.lessons.sizes[way as usize]);
        let request_ns = match fate {
            Fate::Joined => learnt.and_then(|one| Some(one.line?.0)),
            Fate::Split(_) => learnt.and_then(|one| one.piece_ns),
            _ => None,
        };
        let request_ns = request_ns.map_or(0, |ns| (ns as i64).min(beside_ns));
        // What is faster is so for requests more or fewer as for this one.
        let left = 1.0 - (at_server.0 - at_server.1) as f64 / beside_ns.max(1) as f64;
        let request_ns = times(request_ns, left.max(0.0));
        let Some(link) = self.links.get_mut(call.link as usize) else { return };
        let lines = &mut self.lines;
        let mut line = match fate {
            Fate::Gone => network::Cost::default(),
            Fate::Same | Fate::Turn(_) if !link.is_other => today,
            Fate::Same | Fate::Turn(_) => link.then(lines, then, call.bytes, false),
            Fate::Joined | Fate::Chained => link.then(lines, then, call.bytes, true),
            Fate::Split(pieces) | Fate::Unchained(pieces) => {
                link.pieces(lines, then, call.bytes, pieces, request_ns)
            }
        };
        if link.is_other && matches!(fate, Fate::Same | Fate::Turn(_)) {
            line = line.absorbs(today, spread_ns);
        }
        let beside_then = (beside_ns - saved).max(0);
        timed.requests += match fate {
            Fate::Joined | Fate::Gone => -1,
            Fate::Split(requests) => requests as i64 - 1,
            _ => 0,
        };
        timed.after_ns = match fate {
            Fate::Gone => 0,
            // It waits for those that are served before it. What is saved is of its own.
            Fate::Turn(turn) => {
                let own_ns = beside_then.min(turn.own_ns.saturating_sub(saved).max(0));
                let waits_ns = turn.served_from.saturating_sub(turn.sent) - line.sum();
                timed.serve(own_ns, waits_ns.max(0));
                own_ns + line.sum() + waits_ns.max(0)
            }
            _ => {
                let more_ns = more(timed.requests - 1, request_ns);
                timed.stretch(beside_then, more_ns);
                beside_then + line.sum() + more_ns
            }
        };
        if fate == Fate::Gone {
            timed.parts.iter_mut().for_each(|part| part.1 = 0);
        } else {
            timed.parts[Part::Network as usize].1 = line.rtt_ns;
            timed.parts[Part::Windows as usize].1 = line.more_ns;
        }
        timed.after_ns = (timed.after_ns - duration(call.spared.ns)).max(0);
        timed.set_rest();
        let (ended, ends_then) = (start + before_ns, point(then.saturating_add(timed.after_ns)));
        if let (Some(depth), Some(access)) = (self.plan.depth, &access) {
            self.depths.ended(access.handle, ends_then, depth);
        }
        let has_rtt = link.is_known;
        let Some(client) = self.clients.get_mut(call.client as usize) else { return };
        client.ended(ended, ends_then, verifies_ns);
        client.did(call, ended, fate != Fate::Gone);
        if call.is_counted {
            client.waited((start, before_ns), (then, timed.after_ns), call.spared.busy_ns);
            let scenario = call.execution.map(|one| one.scenario);
            self.tally.timed(call.command, scenario, &timed, has_rtt);
            if let Some(gathering) = &mut self.gathering {
                gathering.add(call, start, &timed);
            }
            if call.lead_answered && fate != Fate::Gone {
                self.tally.more(call.command, -1);
            }
        }
    }

    /// What came out.
    pub fn finish(mut self) -> Prediction {
        let mut held: Vec<_> = self.held.drain().map(|(_, call)| call).collect();
        held.sort_unstable_by_key(|call| (call.start, call.link));
        held.iter().for_each(|call| self.call(call));
        let mut spared_busy_ns = 0.0;
        for client in &mut self.clients {
            if let Some((ended, scenario)) = client.turn(None, None)
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
        let gathering = self.gathering.take();
        let detail = gathering.map(|all| all.finish(&self.tally.names.0, &self.scenarios.0));
        let mut prediction = self.tally.finish(&self.scenarios.0, rtt, self.executions_left_out);
        prediction.detail = detail;
        prediction.spared_busy_ns = spared_busy_ns;
        let answered = prediction.sent.iter().map(|one| one.before - one.after).sum();
        let creates = caches.map_or(0, |caches| caches.known);
        prediction.cached = Cached { answered, breaks, creates };
        prediction.stable = self.durable.asked;
        prediction.chained = self.chained;
        prediction.turned = self.depths.turned;
        prediction.protected = self.protected;
        prediction.executions = self.executions.len() as u64;
        prediction.requests = self.requests;
        prediction.at_risk = self.durable.at_risk();
        prediction.lessons = match self.learns {
            true => Lessons {
                sizes: self.blocks.learnt(),
                opens: self.learning.finish(),
                stable: self.durable.learnt(),
                hits: self.reads.finish(),
            },
            false => self.lessons,
        };
        prediction
    }
}

/// What so many requests more cost, or fewer save.
fn more(requests: i64, request_ns: i64) -> i64 {
    requests.saturating_mul(request_ns).clamp(-DURATION_MAX_NS, DURATION_MAX_NS)
}
