//! A program between client and server holds requests or replies: the recording shows the same
//! request on both of its sides (same SessionId, MessageId and command, one within the other).

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::durations::Durations;
use super::super::operation::{Operation, TextId, text_id};

pub(crate) const KIND: KindInfo = KindInfo::new("proxy-delay", "time in a proxy")
    .with_actor(Actor::Proxy)
    .with_remedies(&[
    (
        "proxy",
        "look for a timeout or a blocking read in the program that forwards the connection (relay, VPN, WAN \
         accelerator, tunnel, inspection)",
    ),
    (
        "client",
        "connect to the server directly to confirm: the server has answered long before",
    ),
]);

/// Most requests of the server's side that are remembered; when there are more, all are forgotten.
const REQUESTS_MAX: usize = 65_536;
/// Most pairs of addresses.
const PAIRS_MAX: usize = 4_096;
/// Fewest requests that must be seen on both sides.
const REQUESTS_MIN: u64 = 3;
/// Fewest delays that make a timer.
const TIMER_MIN: u64 = 3;
/// Held replies that may yet turn out to be released by a request that was sent just before.
const HELD_MAX: usize = 64;
/// A request releases a reply if the reply follows it within this time, ns.
const RELEASED_NS: i64 = 2_000_000;
/// Delays below this say nothing about timers, ns.
const DELAY_MIN_NS: i64 = 20_000_000;

type Set<T> = HashSet<T, foldhash::fast::RandomState>;
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A request as the server's side of a proxy shows it.
struct Forwarded {
    connection: u64,
    client: TextId,
    start: i64,
    end: i64,
    elapsed_ns: i64,
    server: Box<str>,
}

/// The requests that were seen on both sides.
#[derive(Default)]
pub(crate) struct ProxyDelay {
    pairs: Set<(TextId, TextId)>,
    clients: Set<TextId>,
    servers: Set<TextId>,
    /// Whether a computer is the client of one connection and the server of another.
    may_forward: bool,
    forwarded: Map<TextId, Forwarded>,
    requests: u64,
    before_ns: i64,
    after_ns: i64,
    within_ns: i64,
    delays: Durations,
    /// Connections and ends of replies that were held, the last ones.
    held: VecDeque<(u32, u64, i64)>,
    /// Replies that were held, and those that followed the client's next request at once.
    held_replies: u64,
    released: u64,
    attribution: Attribution,
    /// Address and port of the proxy, and of the server behind it.
    ends: Option<(String, String)>,
}

impl Detector for ProxyDelay {
    fn claim(&mut self, op: &Operation) -> Option<FindingKind> {
        let (client, server) = (op.client?, op.server_text?);
        if self.pairs.len() < PAIRS_MAX && self.pairs.insert((client, server)) {
            self.clients.insert(client);
            self.servers.insert(server);
            self.may_forward = self.clients.intersection(&self.servers).next().is_some();
        }
        let start = op.start.filter(|_| self.may_forward && op.is_timed)?;
        // An Echo has no session.
        self.release(op, start);
        let columns = op.columns;
        let session = columns.session_id.get(op.row).filter(|id| *id != 0)?;
        let message = columns.message_id.get(op.row)?;
        let end = start.saturating_add(op.elapsed_ns);
        let key = text_id((op.recording, session, message, op.act as u8));
        let address = || {
            let port = columns.server_port.get(op.row).unwrap_or(0);
            format!("{}:{port}", op.server_name().unwrap_or_default())
        };
        // The server's side ends first.
        if let Some(inner) = self.forwarded.remove(&key)
            && inner.connection != op.connection
            && inner.client == server
            && inner.start >= start
            && inner.end <= end
            && *inner.server != *address()
        {
            let (before, after) = (inner.start - start, end - inner.end);
            self.requests += 1;
            self.before_ns = self.before_ns.saturating_add(before);
            self.after_ns = self.after_ns.saturating_add(after);
            self.within_ns = self.within_ns.saturating_add(inner.elapsed_ns);
            let delay = before.saturating_add(after);
            if delay >= DELAY_MIN_NS {
                self.delays.add(delay);
                self.held_replies += 1;
                if self.held.len() >= HELD_MAX {
                    self.held.pop_front();
                }
                self.held.push_back((op.recording, op.connection, end));
            }
            self.attribution.add(op, op.of_busy(delay));
            if self.ends.is_none() {
                self.ends = Some((address(), inner.server.into()));
            }
            return (delay > op.elapsed_ns / 2).then_some(FindingKind::ProxyDelay);
        }
        if self.forwarded.len() >= REQUESTS_MAX {
            self.forwarded.clear();
        }
        let (connection, elapsed_ns) = (op.connection, op.elapsed_ns);
        let server = address().into();
        self.forwarded
            .insert(key, Forwarded { connection, client, start, end, elapsed_ns, server });
        None
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        self.candidate().into_iter().collect()
    }
}

impl ProxyDelay {
    fn candidate(self) -> Option<Candidate> {
        let (proxy, server) = self.ends.filter(|_| self.requests >= REQUESTS_MIN)?;
        let mean = |sum: i64| sum as f64 / self.requests.max(1) as f64;
        let held = if self.before_ns > self.after_ns { "requests" } else { "replies" };
        let timer = self.delays.constants(|_| TIMER_MIN).into_iter().next();
        let what = format!(
            "The program at {proxy} forwards requests to {server} and holds {held}: the server behind it answers \
             much sooner than the client receives the reply"
        );
        let mut because =
            format!("the recording shows {} requests on both sides of {proxy}", self.requests);
        if let Some(timer) = timer {
            because.push_str(&format!(
                "; {} of the delays have the same length, as those of a timer do",
                timer.n
            ));
        }
        if self.released > 0 && self.released.saturating_mul(2) >= self.held_replies {
            because.push_str(&format!(
                "; {} of {} held replies follow the client's next request at once: that request releases them",
                self.released, self.held_replies
            ));
        }
        let candidate = Candidate::new(
            FindingKind::ProxyDelay,
            what,
            self.attribution,
            Confidence::Measured,
            because,
        );
        let timer = timer.map(|timer| ("timer", timer.mean_ns, "ns", "a timer of {}"));
        let figures = [
            ("requests_on_both_sides", self.requests as f64, "", "requests seen on both sides: {}"),
            (
                "mean_time_of_the_server",
                mean(self.within_ns),
                "ns",
                "the server takes {} on average",
            ),
            (
                "mean_delay_of_requests",
                mean(self.before_ns),
                "ns",
                "requests are delayed by {} on average",
            ),
            ("mean_delay_of_replies", mean(self.after_ns), "ns", "replies by {}"),
        ];
        Some(
            candidate
                .of_events()
                .with_owner(Actor::Proxy, vec![proxy])
                .with_figures(figures)
                .with_figures(timer),
        )
    }

    /// Counts held replies that came just after this request was sent. It ends after them.
    fn release(&mut self, op: &Operation, start: i64) {
        let before = self.held.len();
        self.held.retain(|(recording, connection, end)| {
            let is_here = (*recording, *connection) == (op.recording, op.connection);
            !(is_here && (0..RELEASED_NS).contains(&end.saturating_sub(start)))
        });
        self.released += (before - self.held.len()) as u64;
    }
}
