//! Rates of long messages: what network and TCP cost. Bytes at the rate of the network link; receive
//! windows below the bandwidth-delay product; losses, after which TCP sends less at once.
//!
//! A direction of a connection is limited by the window if rate times round trip fills it; and by the
//! link if its long messages keep to one rate, or all connections together do while messages are in
//! flight all the time. Neither is reported for a client and server on one machine.
//!
//! One observation for three troubles, because a direction has one limit: `findings/` has
//! `bandwidth_limited`, `window_limited` and `loss`.

use hashbrown::HashMap;

use super::attribution::Attribution;
use super::candidate::Candidate;
use super::connections::ConnectionFacts;
use super::detector::{Context, Detector};
use super::findings::{bandwidth_limited, loss, window_limited};
use super::operation::Operation;
use super::rate;
use super::shared_link::SharedLink;
use crate::predict::replay::tcp::window_of_losses;

/// Messages up to this size fit into a usual window, and run at the link's rate whatever it is.
const BURST_BYTES: u64 = 48 << 10;
/// Fewest messages and bytes to judge a direction by.
const MESSAGES_MIN: u64 = 10;
const BYTES_MIN: u64 = 1 << 20;
/// Most connections with long messages that are followed.
const CONNECTIONS_MAX: usize = 1024;
/// Classes of rates, a quarter of an octave each, up to 2^40 bits/s.
const RATES: usize = 160;
/// Rates within half an octave count as one rate: they differ by jitter, and by messages that share
/// the link.
const SAME_RATE: usize = 2;
/// With this share of the time at one rate, the link limits.
pub(super) const STEADY: f64 = 0.7;
/// Rate times round trip over the largest window, if the window is full: less if the window grew,
/// more if the round trip was measured too short.
const FULL: std::ops::Range<f64> = 0.6..1.5;
/// Fewest retransmitted segments to estimate the loss rate by.
const RETRANSMITTED_MIN: u64 = 5;
/// Below this round-trip time, any window is large enough, ns.
const RTT_MIN_NS: i64 = 1_000_000;
/// How many times as fast a link would have to be to no longer limit.
const FASTER: f64 = 10.0;

/// Long messages of one direction of a connection.
struct Flow {
    attribution: Attribution,
    /// The part of operations that lost packets.
    lossy: Attribution,
    messages: u64,
    bytes: u64,
    ns: i64,
    /// Bytes and time by rate, and the sum of that time.
    rates: Box<[(u64, i64); RATES]>,
    rated_ns: i64,
    /// Bytes and time of bursts.
    bursts: (u64, i64),
}

impl Default for Flow {
    fn default() -> Flow {
        Flow {
            attribution: Attribution::with_few_names(),
            lossy: Attribution::with_few_names(),
            messages: 0,
            bytes: 0,
            ns: 0,
            rates: Box::new([(0, 0); RATES]),
            rated_ns: 0,
            bursts: (0, 0),
        }
    }
}

/// Long messages of all connections, and the time in which streams stood still after losses.
#[derive(Default)]
pub(super) struct TransferRates {
    flows: HashMap<(u32, u64), [Flow; 2], foldhash::fast::RandomState>,
    shared_link: SharedLink,
    stalls: Attribution,
    stalled_ns: i64,
}

/// What limits a flow.
enum Limit {
    Window {
        bytes: u64,
        rtt_ns: i64,
    },
    Link,
    /// What TCP sends at once after losses.
    Loss,
}

impl Detector for TransferRates {
    fn see(&mut self, op: &Operation) {
        let recovery_ns = op.recovery_ns();
        if recovery_ns > 0 && op.is_timed {
            self.stalled_ns = self.stalled_ns.saturating_add(recovery_ns);
            self.stalls.add(op, op.of_busy(recovery_ns));
        }
        for (direction, message) in op.long_messages().into_iter().enumerate() {
            if let (Some((bytes, ns)), true) = (message, op.is_timed) {
                // Without the recovery from losses, if the message includes it.
                let ns = ns.min(op.elapsed_ns);
                let sending_ns = if recovery_ns < ns { ns - recovery_ns } else { ns };
                self.add_message(op, direction, bytes, (ns, sending_ns));
            }
        }
    }

    fn finish(self, context: &mut Context) -> Vec<Candidate> {
        let connections = context.connections;
        let mut connections_of: HashMap<u32, u32, foldhash::fast::RandomState> = HashMap::default();
        self.flows.keys().for_each(|key| *connections_of.entry(key.0).or_default() += 1);
        let is_shared = |recording| connections_of.get(&recording).is_some_and(|n| *n > 1);
        let shared_rates = self.shared_link.finish(is_shared);
        let mut limited = LimitedFlows::default();
        let mut flows: Vec<_> = self.flows.into_iter().collect();
        flows.sort_unstable_by_key(|one| one.0);
        for (key, flows) in flows {
            let Some(facts) = connections.get(key) else { continue };
            for (direction, flow) in flows.into_iter().enumerate() {
                let shared_rate = shared_rates.get(&(key.0, direction));
                let shared_rate = shared_rate.filter(|_| !facts.is_one_machine);
                let limit = flow.limit(facts, direction).or(shared_rate.map(|_| Limit::Link));
                let by_loss = || flow.is_limited_by_loss(facts, direction).then_some(Limit::Loss);
                limited.shared_rate = limited.shared_rate.max(shared_rate.copied().unwrap_or(0.0));
                if let Some(limit) = limit.or_else(by_loss) {
                    limited.add(flow, facts.stalled_ns[direction], &limit);
                }
            }
        }
        let LimitedFlows { link, window, slower, shared_rate, .. } = limited;
        let link_rate = link.rate().max(shared_rate);
        let window_rate = window.rate();
        let slower_rate = slower.rate();
        let windows = limited.windows;
        let flows = windows.flows.max(1) as f64;
        let window_mean = (windows.bytes as f64 / flows, windows.rtt_ns as f64 / flows);
        let retransmitted = connections.retransmitted();
        vec![
            bandwidth_limited::finish(link.attribution, link_rate, link_rate * FASTER),
            window_limited::finish(
                window.attribution,
                window_rate,
                window_mean,
                !windows.is_link_unknown,
            ),
            loss::finish(
                self.stalls,
                self.stalled_ns,
                slower.attribution,
                slower_rate,
                retransmitted,
            ),
        ]
    }
}

impl TransferRates {
    /// A message with its time, and how long of it bytes arrived.
    fn add_message(
        &mut self,
        op: &Operation,
        direction: usize,
        bytes: u64,
        (ns, sending_ns): (i64, i64),
    ) {
        self.shared_link.add(op, direction, bytes, sending_ns);
        let key = (op.recording, op.connection);
        if self.flows.len() >= CONNECTIONS_MAX && !self.flows.contains_key(&key) {
            return;
        }
        let flow = &mut self.flows.entry(key).or_default()[direction];
        // Messages of one direction do not overlap, however many requests are in flight.
        let attribution =
            if op.recovery_ns() > 0 { &mut flow.lossy } else { &mut flow.attribution };
        attribution.add_stall(op, direction, op.message_begin(direction, ns), (ns, sending_ns));
        flow.messages += 1;
        flow.bytes = flow.bytes.saturating_add(bytes);
        flow.ns = flow.ns.saturating_add(ns);
        // A message within one tick of the clock, or in one frame, has no rate of its own.
        flow.rated_ns = flow.rated_ns.saturating_add(sending_ns);
        let class = (8e9 * bytes as f64 / sending_ns as f64).log2() * 4.0;
        let class = &mut flow.rates[(class as usize).min(RATES - 1)];
        *class = (class.0.saturating_add(bytes), class.1.saturating_add(sending_ns));
        if bytes <= BURST_BYTES {
            flow.bursts = (flow.bursts.0 + bytes, flow.bursts.1.saturating_add(sending_ns));
        }
    }
}

/// Flows by what limits them.
#[derive(Default)]
struct LimitedFlows {
    link: FlowSum,
    window: FlowSum,
    /// Slower after losses.
    slower: FlowSum,
    /// The rate of all connections together, bits/s.
    shared_rate: f64,
    windows: WindowSum,
}

/// Sums over the flows that a window limits.
#[derive(Clone, Copy, Default)]
struct WindowSum {
    flows: u64,
    bytes: u64,
    rtt_ns: i64,
    /// Whether one of them did not show the rate of the link.
    is_link_unknown: bool,
}

/// Sums over the flows that are slow for one reason.
#[derive(Default)]
struct FlowSum {
    attribution: Attribution,
    bytes: u64,
    ns: i64,
}

impl FlowSum {
    fn rate(&self) -> f64 {
        rate(self.bytes, self.ns).unwrap_or(0.0)
    }
}

impl LimitedFlows {
    /// Adds a flow, which stood still for `stalled_ns`.
    fn add(&mut self, mut flow: Flow, stalled_ns: u64, limit: &Limit) {
        let sending_ns = flow.sending_ns(stalled_ns);
        let keeps = match *limit {
            Limit::Link | Limit::Loss => 1.0 / FASTER,
            Limit::Window { bytes, rtt_ns } => {
                self.windows.flows += 1;
                self.windows.bytes = self.windows.bytes.saturating_add(bytes);
                self.windows.rtt_ns = self.windows.rtt_ns.saturating_add(rtt_ns);
                // Bursts show the rate of the link; without any it is not known.
                let link = rate(flow.bursts.0, flow.bursts.1);
                self.windows.is_link_unknown |= link.is_none();
                let own = rate(flow.bytes, sending_ns).unwrap_or(0.0);
                link.map_or(1.0 / FASTER, |link| (own / link).min(1.0))
            }
        };
        let sum = match limit {
            Limit::Link => &mut self.link,
            Limit::Window { .. } => &mut self.window,
            Limit::Loss => {
                // Operations with a loss are counted by their stalls.
                flow.lossy = flow.lossy.without_operations();
                &mut self.slower
            }
        };
        flow.attribution.merge(flow.lossy);
        flow.attribution.scale((1.0 - keeps) * sending_ns as f64 / flow.rated_ns.max(1) as f64);
        sum.attribution.merge(flow.attribution);
        sum.bytes = sum.bytes.saturating_add(flow.bytes);
        sum.ns = sum.ns.saturating_add(sending_ns);
    }
}

impl Flow {
    /// Time in which its bytes arrived, if it stood still for `stalled_ns`. Requests in flight together
    /// each include what all of them waited for, and short messages stand still, too.
    fn sending_ns(&self, stalled_ns: u64) -> i64 {
        self.rated_ns.max(self.ns.saturating_sub_unsigned(stalled_ns))
    }

    /// Whether rate times round trip is the congestion window that the losses allow.
    fn is_limited_by_loss(&self, facts: &ConnectionFacts, direction: usize) -> bool {
        let (again, all) = facts.retransmitted[direction];
        let (Some(segment), Some(rtt_ns @ RTT_MIN_NS..)) = (facts.segment, facts.rtt_ns) else {
            return false;
        };
        if facts.is_one_machine || again < RETRANSMITTED_MIN || self.messages < MESSAGES_MIN {
            return false;
        }
        let lost = again as f64 / all.max(again) as f64;
        let window = window_of_losses(lost, rtt_ns) * segment as f64;
        let each = self.bytes as f64 / self.messages as f64;
        let sending_ns = self.sending_ns(facts.stalled_ns[direction]).max(1);
        let in_flight = self.bytes as f64 / sending_ns as f64 * rtt_ns as f64;
        each > FULL.start * window && FULL.contains(&(in_flight / window))
    }

    /// The window or the link, if one of them limits it.
    fn limit(&self, facts: &ConnectionFacts, direction: usize) -> Option<Limit> {
        let Flow { messages, bytes, rated_ns, rates, .. } = self;
        if facts.is_one_machine || *messages < MESSAGES_MIN || *bytes < BYTES_MIN {
            return None;
        }
        let sending_ns = self.sending_ns(facts.stalled_ns[direction]).max(1);
        let bytes_per_ns = *bytes as f64 / sending_ns as f64;
        let message = bytes / messages;
        if let (Some(window @ 1..), Some(rtt_ns @ RTT_MIN_NS..)) =
            (facts.windows[direction], facts.rtt_ns)
            && message > window
            && FULL.contains(&(bytes_per_ns * rtt_ns as f64 / window as f64))
        {
            return Some(Limit::Window { bytes: window, rtt_ns });
        }
        // The rate that only a tenth of the bytes exceeds.
        let mut above = 0;
        let peak = rates.iter().rposition(|(bytes_at, _)| {
            above += bytes_at;
            above as f64 >= 0.1 * *bytes as f64
        })?;
        let near = rates[peak.saturating_sub(SAME_RATE)..].iter();
        let at_rate = near.fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        (at_rate as f64 >= STEADY * *rated_ns as f64).then_some(Limit::Link)
    }
}
