//! What the line and TCP cost: bytes at the line's rate, receive windows smaller than the bandwidth-delay
//! product (RFC 7323 section 1.1), and losses (RFC 6298: what is lost last waits for a timer).
//!
//! A way of a connection is limited by the window where rate times round trip fills it; and by the line where
//! long messages keep to one rate, or all connections together do while messages are under way all the time.
//! Neither is said of a client and server on one machine.

use hashbrown::HashMap;

use super::connections::{Connections, Known};
use super::culprits::Gathered;
use super::data::{Confidence, Figure, Finding, Trouble};
use super::operation::Seen;
use super::together::Together;
use super::{finding, rate};

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
/// Distances below this need no window to speak of, ns.
const FAR_NS: i64 = 1_000_000;
/// A line that is no trouble is so many times as fast.
const FASTER: f64 = 10.0;

/// One direction of a connection.
struct Way {
    gathered: Gathered,
    bytes: u64,
    ns: i64,
    /// Bytes and time by rate.
    rates: Box<[(u64, i64); STEPS]>,
    /// Bytes and time of bursts.
    bursts: (u64, i64),
}

impl Default for Way {
    fn default() -> Way {
        Way {
            gathered: Gathered::few(),
            bytes: 0,
            ns: 0,
            rates: Box::new([(0, 0); STEPS]),
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
    Window { bytes: u64, rtt_ns: i64 },
    Line,
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
                self.way(seen, place, bytes, sending_ns);
            }
        }
    }

    fn way(&mut self, seen: &Seen, place: usize, bytes: u64, ns: i64) {
        self.together.add(seen, place, bytes, ns);
        let key = (seen.recording, seen.connection);
        if self.ways.len() >= LINES_MAX && !self.ways.contains_key(&key) {
            return;
        }
        let way = &mut self.ways.entry(key).or_default()[place];
        // Messages of one way do not overlap, however many requests are in flight.
        way.gathered.add(seen, ns);
        way.bytes = way.bytes.saturating_add(bytes);
        way.ns = way.ns.saturating_add(ns);
        // What came within one tick of the clock, or in one frame, has no rate of its own.
        let step = (8e9 * bytes as f64 / ns as f64).log2() * 4.0;
        let step = &mut way.rates[(step as usize).min(STEPS - 1)];
        *step = (step.0.saturating_add(bytes), step.1.saturating_add(ns));
        if bytes <= BURST_BYTES {
            way.bursts = (way.bursts.0 + bytes, way.bursts.1.saturating_add(ns));
        }
    }

    pub(super) fn finish(self, connections: &Connections) -> Vec<Finding> {
        let mut connections_of: HashMap<u32, u32, foldhash::fast::RandomState> = HashMap::default();
        self.ways.keys().for_each(|key| *connections_of.entry(key.0).or_default() += 1);
        let is_shared = |recording| connections_of.get(&recording).is_some_and(|n| *n > 1);
        let together = self.together.finish(is_shared);
        let mut most = 0.0_f64;
        let mut full = [Gathered::default(), Gathered::default()];
        let mut sums = [(0_u64, 0_i64); 2];
        let (mut window, mut trip) = ((0, 0_u64), (0, 0_i64));
        let mut is_guess = false;
        let mut ways: Vec<_> = self.ways.into_iter().collect();
        ways.sort_unstable_by_key(|one| one.0);
        for (key, ways) in ways {
            let Some(known) = connections.get(key) else { continue };
            for (place, mut way) in ways.into_iter().enumerate() {
                let shared = together.get(&(key.0, place)).filter(|_| !known.is_one_machine);
                most = most.max(shared.copied().unwrap_or(0.0));
                let own = way.limit(known, place).or(shared.map(|_| Limit::Line));
                let (kind, keeps) = match own {
                    None => continue,
                    Some(Limit::Line) => (0, 1.0 / FASTER),
                    Some(Limit::Window { bytes, rtt_ns }) => {
                        window = (window.0 + 1, window.1.saturating_add(bytes));
                        trip = (trip.0 + 1, trip.1.saturating_add(rtt_ns));
                        // What a burst shows is the line; without any it is not known.
                        let line = rate(way.bursts.0, way.bursts.1);
                        is_guess |= line.is_none();
                        let own = rate(way.bytes, way.ns).unwrap_or(0.0);
                        (1, line.map_or(1.0 / FASTER, |line| (own / line).min(1.0)))
                    }
                };
                let sum = &mut sums[kind];
                *sum = (sum.0.saturating_add(way.bytes), sum.1.saturating_add(way.ns));
                way.gathered.scale(1.0 - keeps);
                full[kind].merge(way.gathered);
            }
        }
        let [line, windows] = full;
        let figure = |name, value, unit| Figure { name, value, error: None, unit };
        let mut rates = sums.map(|(bytes, ns)| rate(bytes, ns).unwrap_or(0.0));
        rates[0] = rates[0].max(most);
        let mut slow = finding(
            Trouble::BandwidthLimited,
            "The line is full: bytes go at one rate, whoever asks for what".to_owned(),
            line,
            Confidence::Medium,
            "long messages, or all connections together, keep to one rate below what the windows allow; a limit in the \
             sender looks alike",
        );
        slow.figures = vec![
            figure("rate", rates[0], "bits/s"),
            figure("rate_without_limit", rates[0] * FASTER, "bits/s"),
        ];
        let mut small = finding(
            Trouble::WindowLimited,
            "The receiver's TCP window is too small for the distance: the sender waits each round trip until it \
             may go on"
                .to_owned(),
            windows,
            if is_guess { Confidence::Medium } else { Confidence::High },
            match is_guess {
                true => "rate times round trip fills the window; what the line carries was not seen",
                false => "rate times round trip fills the window, and shorter messages go faster",
            },
        );
        let window_bytes = window.1 as f64 / f64::from(window.0.max(1));
        let rtt_ns = trip.1 as f64 / f64::from(trip.0.max(1));
        small.figures = vec![
            figure("window", window_bytes, "bytes"),
            figure("round_trip", rtt_ns, "ns"),
            figure("rate", rates[1], "bits/s"),
            figure("most_that_the_window_allows", 8e9 * window_bytes / rtt_ns.max(1.0), "bits/s"),
        ];
        let (sent_again, packets) = connections.lost();
        let mut lost = finding(
            Trouble::Loss,
            "Packets are lost on the way, and bytes wait until they are sent again".to_owned(),
            self.losses,
            Confidence::High,
            "TCP's stream stood still until the lost segment came, or was acknowledged; that it goes slower \
             afterwards is not in it",
        );
        lost.figures = vec![
            figure("segments_sent_again", sent_again as f64, ""),
            figure("segments", packets as f64, ""),
            figure("standstill", self.recovery_ns as f64, "ns"),
        ];
        vec![slow, small, lost]
    }
}

impl Way {
    fn limit(&self, known: &Known, place: usize) -> Option<Limit> {
        let Way { gathered, bytes, ns, rates, .. } = self;
        if known.is_one_machine || gathered.operations < LEAST.0 || *bytes < LEAST.1 {
            return None;
        }
        let each_ns = *bytes as f64 / (*ns).max(1) as f64;
        let message = bytes / gathered.operations;
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
        let at_rate: i64 = rates[peak.saturating_sub(SAME)..].iter().map(|(_, ns)| ns).sum();
        (at_rate as f64 >= FLAT * *ns as f64).then_some(Limit::Line)
    }
}
