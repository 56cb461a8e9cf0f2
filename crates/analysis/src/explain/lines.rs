//! What the line and TCP cost: bytes at the line's rate, receive windows smaller than the bandwidth-delay
//! product (RFC 7323 section 1.1), and losses (RFC 6298: what is lost last waits for a timer; after each TCP sends
//! less at once, M. Mathis, J. Semke, J. Mahdavi and T. Ott, CCR 27(3), 1997).
//!
//! A way of a connection is limited by the window where rate times round trip fills it; and by the line where
//! long messages keep to one rate, or all connections together do while messages are under way all the time.
//! Neither is said of a client and server on one machine.

use hashbrown::HashMap;

use super::attribution::Gathered;
use super::connections::{Connections, Known};
use super::data::{Confidence, Figure, Trouble};
use super::operation::Seen;
use super::shared_link::Together;
use super::{Found, finding, rate};
use crate::predict::replay::tcp::window_of_losses;

/// Messages of at most this are in a usual window, and go at the line's rate whatever the window is.
const BURST_BYTES: u64 = 48 << 10;
/// Ways of connections without which nothing is said: messages and bytes.
const LEAST: (u64, u64) = (10, 1 << 20);
/// Connections with long messages that are followed.
const LINES_MAX: usize = 1024;
/// Rates in steps of a quarter of an octave, up to 2^40 bit/s.
const STEPS: usize = 160;
/// Rates of half an octave are one rate: jitter, and messages that share the line.
const SAME: usize = 2;
/// So much of the time at one rate makes it the line's.
pub(super) const FLAT: f64 = 0.7;
/// Rate times round trip, of the largest window: less where the window grew, more where the round trip was
/// measured on the short side.
const FULL: std::ops::Range<f64> = 0.6..1.5;
/// Segments sent again without which the share of those lost is not known.
const LOST_LEAST: u64 = 5;
/// Distances below this need no window to speak of, ns.
const FAR_NS: i64 = 1_000_000;
/// A line that is no trouble is so many times as fast.
const FASTER: f64 = 10.0;

/// One direction of a connection.
struct Way {
    gathered: Gathered,
    /// The same of operations that lost something.
    lossy: Gathered,
    messages: u64,
    bytes: u64,
    ns: i64,
    /// Bytes and time by rate, and all of that time.
    rates: Box<[(u64, i64); STEPS]>,
    rated_ns: i64,
    /// Bytes and time of bursts.
    bursts: (u64, i64),
}

impl Default for Way {
    fn default() -> Way {
        Way {
            gathered: Gathered::few(),
            lossy: Gathered::few(),
            messages: 0,
            bytes: 0,
            ns: 0,
            rates: Box::new([(0, 0); STEPS]),
            rated_ns: 0,
            bursts: (0, 0),
        }
    }
}

/// All of it.
#[derive(Default)]
pub(super) struct Lines {
    ways: HashMap<(u32, u64), [Way; 2], foldhash::fast::RandomState>,
    together: Together,
    losses: Gathered,
    recovery_ns: i64,
}

/// What limits a way.
enum Limit {
    Window {
        bytes: u64,
        rtt_ns: i64,
    },
    Line,
    /// What TCP sends at once after losses.
    Loss,
}

impl Lines {
    pub(super) fn see(&mut self, seen: &Seen) {
        let recovery_ns = seen.recovery_ns();
        if recovery_ns > 0 && seen.is_timed {
            self.recovery_ns = self.recovery_ns.saturating_add(recovery_ns);
            self.losses.add(seen, seen.of_busy(recovery_ns));
        }
        for (place, message) in seen.long_messages().into_iter().enumerate() {
            if let (Some((bytes, ns)), true) = (message, seen.is_timed) {
                // Without what losses cost, if that lies in it.
                let ns = ns.min(seen.elapsed_ns);
                let sending_ns = if recovery_ns < ns { ns - recovery_ns } else { ns };
                self.way(seen, place, bytes, (ns, sending_ns));
            }
        }
    }

    /// A message that took so long, and was sent for so long of it at least.
    fn way(&mut self, seen: &Seen, place: usize, bytes: u64, (ns, sending_ns): (i64, i64)) {
        self.together.add(seen, place, bytes, sending_ns);
        let key = (seen.recording, seen.connection);
        if self.ways.len() >= LINES_MAX && !self.ways.contains_key(&key) {
            return;
        }
        let way = &mut self.ways.entry(key).or_default()[place];
        // Messages of one way do not overlap, however many requests are in flight.
        let gathered = if seen.recovery_ns() > 0 { &mut way.lossy } else { &mut way.gathered };
        gathered.add_stop(seen, place, seen.message_begin(place, ns), (ns, sending_ns));
        way.messages += 1;
        way.bytes = way.bytes.saturating_add(bytes);
        way.ns = way.ns.saturating_add(ns);
        // What came within one tick of the clock, or in one frame, has no rate of its own.
        way.rated_ns = way.rated_ns.saturating_add(sending_ns);
        let step = (8e9 * bytes as f64 / sending_ns as f64).log2() * 4.0;
        let step = &mut way.rates[(step as usize).min(STEPS - 1)];
        *step = (step.0.saturating_add(bytes), step.1.saturating_add(sending_ns));
        if bytes <= BURST_BYTES {
            way.bursts = (way.bursts.0 + bytes, way.bursts.1.saturating_add(sending_ns));
        }
    }

    pub(super) fn finish(self, connections: &Connections) -> Vec<Found> {
        let mut connections_of: HashMap<u32, u32, foldhash::fast::RandomState> = HashMap::default();
        self.ways.keys().for_each(|key| *connections_of.entry(key.0).or_default() += 1);
        let is_shared = |recording| connections_of.get(&recording).is_some_and(|n| *n > 1);
        let together = self.together.finish(is_shared);
        let mut all = Limited::default();
        let mut ways: Vec<_> = self.ways.into_iter().collect();
        ways.sort_unstable_by_key(|one| one.0);
        for (key, ways) in ways {
            let Some(known) = connections.get(key) else { continue };
            for (place, way) in ways.into_iter().enumerate() {
                let shared = together.get(&(key.0, place)).filter(|_| !known.is_one_machine);
                let limit = way.limit(known, place).or(shared.map(|_| Limit::Line));
                let held_up = || way.is_held_up(known, place).then_some(Limit::Loss);
                all.together = all.together.max(shared.copied().unwrap_or(0.0));
                if let Some(limit) = limit.or_else(held_up) {
                    all.add(way, known.stood_ns[place], &limit);
                }
            }
        }
        let Limited { line, window, losses, .. } = all;
        let line = line.line(all.together);
        let window = window.window(all.windows, all.is_guess);
        vec![line, window, losses.losses(self.losses, self.recovery_ns, connections.lost())]
    }
}

/// Ways by what limits them.
#[derive(Default)]
struct Limited {
    line: Slow,
    window: Slow,
    losses: Slow,
    /// Rate that connections have together, bit/s.
    together: f64,
    /// Ways that a window limits, and sums of windows and round trips.
    windows: (u64, u64, i64),
    /// Whether what the line carries was not seen of one of them.
    is_guess: bool,
}

/// What is slow for one reason: bytes and time.
#[derive(Default)]
struct Slow {
    gathered: Gathered,
    bytes: u64,
    ns: i64,
}

impl Limited {
    /// Adds a way, which stood still for so long.
    fn add(&mut self, mut way: Way, stood_ns: u64, limit: &Limit) {
        let sending_ns = way.sending_ns(stood_ns);
        let keeps = match *limit {
            Limit::Line | Limit::Loss => 1.0 / FASTER,
            Limit::Window { bytes, rtt_ns } => {
                let (ways, windows, trips) = self.windows;
                self.windows =
                    (ways + 1, windows.saturating_add(bytes), trips.saturating_add(rtt_ns));
                // What a burst shows is the line; without any it is not known.
                let line = rate(way.bursts.0, way.bursts.1);
                self.is_guess |= line.is_none();
                let own = rate(way.bytes, sending_ns).unwrap_or(0.0);
                line.map_or(1.0 / FASTER, |line| (own / line).min(1.0))
            }
        };
        let slow = match limit {
            Limit::Line => &mut self.line,
            Limit::Window { .. } => &mut self.window,
            Limit::Loss => {
                // What lost something is counted by that.
                way.lossy = way.lossy.uncounted();
                &mut self.losses
            }
        };
        way.gathered.merge(way.lossy);
        way.gathered.scale((1.0 - keeps) * sending_ns as f64 / way.rated_ns.max(1) as f64);
        slow.gathered.merge(way.gathered);
        slow.bytes = slow.bytes.saturating_add(way.bytes);
        slow.ns = slow.ns.saturating_add(sending_ns);
    }
}

fn figure(name: &'static str, value: f64, unit: &'static str) -> Figure {
    Figure { name, value, error: None, unit }
}

impl Slow {
    fn rate(&self) -> f64 {
        rate(self.bytes, self.ns).unwrap_or(0.0)
    }

    /// Those that a line limits, which carries so much for all connections.
    fn line(self, together: f64) -> Found {
        let rate = self.rate().max(together);
        let mut found = finding(
            Trouble::BandwidthLimited,
            "The line is full: bytes go at one rate, whoever asks for what".to_owned(),
            self.gathered,
            Confidence::Medium,
            "long messages, or all connections together, keep to one rate below what the windows allow; a limit in the \
             sender looks alike",
        );
        found.finding.figures = vec![
            figure("rate", rate, "bits/s"),
            figure("rate_without_limit", rate * FASTER, "bits/s"),
        ];
        found
    }

    /// Those that windows limit: how many, and sums of windows and round trips.
    fn window(self, (ways, windows, trips): (u64, u64, i64), is_guess: bool) -> Found {
        let rate = self.rate();
        let mut found = finding(
            Trouble::WindowLimited,
            "The receiver's TCP window is too small for the distance: the sender waits each round trip until it \
             may go on"
                .to_owned(),
            self.gathered,
            if is_guess { Confidence::Medium } else { Confidence::High },
            match is_guess {
                true => "rate times round trip fills the window; what the line carries was not seen",
                false => "rate times round trip fills the window, and shorter messages go faster",
            },
        );
        let ways = ways.max(1) as f64;
        let (window, rtt_ns) = (windows as f64 / ways, trips as f64 / ways);
        found.finding.figures = vec![
            figure("window", window, "bytes"),
            figure("round_trip", rtt_ns, "ns"),
            figure("rate", rate, "bits/s"),
            figure("most_that_the_window_allows", 8e9 * window / rtt_ns.max(1.0), "bits/s"),
        ];
        found
    }

    /// Those that go slower after losses, beside the standstills; and segments sent again, of all.
    fn losses(self, mut stood: Gathered, standstill_ns: i64, sent: (u64, u64)) -> Found {
        let rate = self.rate();
        let (confidence, because) = match self.gathered.saved_ns {
            0 => (
                Confidence::High,
                "TCP's stream stood still until the lost segment came, or was acknowledged; that it goes slower \
                 afterwards is not in it",
            ),
            slower_ns => (
                if slower_ns > stood.saved_ns { Confidence::Medium } else { Confidence::High },
                "TCP's stream stood still until the lost segment came, or was acknowledged; afterwards bytes go at \
                 the rate that so many losses allow",
            ),
        };
        stood.merge(self.gathered);
        let mut found = finding(
            Trouble::Loss,
            "Packets are lost on the way: bytes wait until they are sent again, and TCP sends less at once \
             afterwards"
                .to_owned(),
            stood,
            confidence,
            because,
        );
        found.finding.figures = vec![
            figure("segments_sent_again", sent.0 as f64, ""),
            figure("segments", sent.1 as f64, ""),
            figure("standstill", standstill_ns as f64, "ns"),
        ];
        if rate > 0.0 {
            found.finding.figures.push(figure("rate_afterwards", rate, "bits/s"));
        }
        found
    }
}

impl Way {
    /// Time in which its bytes came, where it stood still for so long: of requests in flight together each has what
    /// all of them waited for, and short messages, too, stand still.
    fn sending_ns(&self, stood_ns: u64) -> i64 {
        self.rated_ns.max(self.ns.saturating_sub_unsigned(stood_ns))
    }

    /// Whether rate times round trip is the congestion window that the losses allow.
    fn is_held_up(&self, known: &Known, place: usize) -> bool {
        let (again, all) = known.sent[place];
        let (Some(segment), Some(rtt_ns @ FAR_NS..)) = (known.segment, known.rtt_ns) else {
            return false;
        };
        if known.is_one_machine || again < LOST_LEAST || self.messages < LEAST.0 {
            return false;
        }
        let lost = again as f64 / all.max(again) as f64;
        let window = window_of_losses(lost, rtt_ns) * segment as f64;
        let each = self.bytes as f64 / self.messages as f64;
        let sending_ns = self.sending_ns(known.stood_ns[place]).max(1);
        let in_flight = self.bytes as f64 / sending_ns as f64 * rtt_ns as f64;
        each > FULL.start * window && FULL.contains(&(in_flight / window))
    }

    fn limit(&self, known: &Known, place: usize) -> Option<Limit> {
        let Way { messages, bytes, rated_ns, rates, .. } = self;
        if known.is_one_machine || *messages < LEAST.0 || *bytes < LEAST.1 {
            return None;
        }
        let sending_ns = self.sending_ns(known.stood_ns[place]).max(1);
        let each_ns = *bytes as f64 / sending_ns as f64;
        let message = bytes / messages;
        if let (Some(window @ 1..), Some(rtt_ns @ FAR_NS..)) = (known.windows[place], known.rtt_ns)
            && message > window
            && FULL.contains(&(each_ns * rtt_ns as f64 / window as f64))
        {
            return Some(Limit::Window { bytes: window, rtt_ns });
        }
        // The rate that only a tenth of the bytes exceeds.
        let mut above = 0;
        let peak = rates.iter().rposition(|(bytes_at, _)| {
            above += bytes_at;
            above as f64 >= 0.1 * *bytes as f64
        })?;
        let near = rates[peak.saturating_sub(SAME)..].iter();
        let at_rate = near.fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        (at_rate as f64 >= FLAT * *rated_ns as f64).then_some(Limit::Line)
    }
}
