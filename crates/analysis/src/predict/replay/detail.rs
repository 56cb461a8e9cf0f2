//! What recorded operations consist of: the distribution of each part by command and size, the data
//! rates, and what one execution of a scenario needs.

use super::Map;
use super::data::{Part, Times};
use super::request::{OperationTime, Request};
use super::tally::{Side, error_ns};

/// Operations of a command and a size, with their parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizes {
    /// As in the table of operations.
    pub command: String,
    /// Least and most bytes that they moved: sizes up to twice the least are one group. None for all operations of the
    /// command.
    pub bytes: Option<(u64, u64)>,
    /// How long they took.
    pub whole: Times,
    /// The parts that any of them has, each over the operations that have it. The sums add up to the sum of the
    /// whole.
    pub parts: Vec<(Part, Times)>,
}

/// A part of the mean operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Mean, ns; the means of all parts add up to that of the whole.
    pub mean_ns: f64,
    /// Standard deviation, ns.
    pub stddev_ns: f64,
    /// Half of the mean's 95 % interval, ns; none for a single operation.
    pub error_ns: Option<f64>,
}

impl Sizes {
    /// A part over all operations; it is 0 in those that do not have it.
    pub fn share(&self, part: &Times) -> Share {
        let n = self.whole.distribution.n.max(1) as f64;
        let with = part.distribution.n as f64;
        let own = part.mean_ns().unwrap_or(0.0);
        let mean_ns = part.distribution.sum_ns as f64 / n;
        let scatter = part.stddev_ns().unwrap_or(0.0).powi(2) * (with - 1.0).max(0.0);
        let squares = scatter + with * own * own;
        let variance = ((squares - n * mean_ns * mean_ns) / (n - 1.0).max(1.0)).max(0.0);
        Share { mean_ns, stddev_ns: variance.sqrt(), error_ns: error_ns(n, mean_ns, squares) }
    }
}

/// Bytes in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// On the wire, in total.
    pub bytes: u64,
    /// Most in one second.
    pub most: u64,
}

/// What the executions of a scenario sent, or all clients where there is no scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// None outside of scenarios.
    pub scenario: Option<String>,
    /// Requests that were sent while nothing else of the client was in flight.
    pub rounds: u64,
    /// Requests with a time of their own by command; a compound counts for its first operation.
    pub requests: Vec<(String, u64)>,
}

/// The parts of all recorded operations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// By command, most time first: all sizes together, then each size if there are several.
    pub sizes: Vec<Sizes>,
    /// To the server, to the clients.
    pub rates: [Rate; 2],
    /// From the first request to the last reply of each recording, ns; overlapping time counts once.
    pub lasted_ns: i64,
    /// Duration of the recording, summed over all clients (sessions) with counted requests, ns.
    pub clients_ns: f64,
    /// By scenario, or one for all where there is none.
    pub needs: Vec<Needs>,
}

/// Collects the detail.
#[derive(Default)]
pub(super) struct DetailCollector {
    cells: Map<(u32, u32), Cell>,
    rates: [Rate; 2],
    /// By recording: they may be years apart.
    spans: Map<u32, Span>,
    /// By client: the last end of what it sent.
    ends: Map<u32, i64>,
    needs: Map<Option<u32>, (u64, Map<u32, u64>)>,
}

/// A recording's time.
struct Span {
    first: i64,
    last: i64,
    clients: u64,
    /// The current second: its number and bytes.
    second: (i64, [u64; 2]),
}

/// One command and size.
struct Cell {
    bytes: (u64, u64),
    whole: Side,
    parts: [Option<Box<Side>>; Part::ALL.len()],
}

impl Cell {
    fn new(bytes: u64) -> Cell {
        let parts = [const { None }; Part::ALL.len()];
        Cell { bytes: (bytes, bytes), whole: Side::coarse(), parts }
    }

    fn add(&mut self, bytes: u64, timed: &OperationTime) {
        self.bytes = (self.bytes.0.min(bytes), self.bytes.1.max(bytes));
        self.whole.record(timed.before_ns);
        for (part, (ns, _)) in self.parts.iter_mut().zip(timed.parts) {
            if ns != 0 {
                part.get_or_insert_with(|| Box::new(Side::coarse())).record(ns);
            }
        }
    }

    fn absorb(&mut self, other: &Cell) {
        self.bytes = (self.bytes.0.min(other.bytes.0), self.bytes.1.max(other.bytes.1));
        self.whole.absorb(&other.whole);
        for (part, other) in self.parts.iter_mut().zip(&other.parts) {
            if let Some(other) = other {
                part.get_or_insert_with(|| Box::new(Side::coarse())).absorb(other);
            }
        }
    }

    fn finish(&self, command: &str, bytes: Option<(u64, u64)>) -> Sizes {
        let parts = Part::ALL.iter().zip(&self.parts);
        Sizes {
            command: command.to_owned(),
            bytes,
            whole: self.whole.finish(),
            parts: parts
                .filter_map(|(part, side)| Some((*part, side.as_ref()?.finish())))
                .collect(),
        }
    }
}

impl Span {
    fn lasted_ns(&self) -> i64 {
        self.last - self.first
    }

    fn end_second(&mut self, rates: &mut [Rate; 2]) {
        for (rate, now) in rates.iter_mut().zip(&mut self.second.1) {
            rate.most = rate.most.max(*now);
            *now = 0;
        }
    }
}

impl DetailCollector {
    /// Adds a request that its client sent at `start`.
    pub(super) fn add(&mut self, request: &Request, start: i64, timed: &OperationTime) {
        let (class, bytes) = match request.role.moves() {
            Some(_) => (u64::BITS - request.transferred.leading_zeros(), request.transferred),
            None => (0, 0),
        };
        let cell = self.cells.entry((request.command, class)).or_insert_with(|| Cell::new(bytes));
        cell.add(bytes, timed);

        let end = start + timed.before_ns;
        let second = end.div_euclid(1_000_000_000);
        let new = Span { first: start, last: end, clients: 0, second: (second, [0; 2]) };
        let span = self.spans.entry(request.recording).or_insert(new);
        (span.first, span.last) = (span.first.min(start), span.last.max(end));
        // Operations of a recording come in the order of their ends.
        if second > span.second.0 {
            span.end_second(&mut self.rates);
            span.second.0 = second;
        }
        let ways = self.rates.iter_mut().zip(&mut span.second.1);
        for ((rate, now), bytes) in ways.zip([request.bytes.0, request.bytes.1]) {
            rate.bytes += bytes;
            *now += bytes;
        }

        let before = self.ends.entry(request.client).or_insert_with(|| {
            span.clients += 1;
            i64::MIN
        });
        let is_round = start >= *before;
        *before = end.max(*before);
        let (rounds, requests) =
            self.needs.entry(request.execution.map(|one| one.scenario)).or_default();
        *rounds += u64::from(is_round);
        *requests.entry(request.command).or_default() += 1;
    }

    /// The result.
    pub(super) fn finish(mut self, commands: &[String], scenarios: &[String]) -> Detail {
        let mut spans: Vec<_> = self.spans.into_values().collect();
        spans.iter_mut().for_each(|span| span.end_second(&mut self.rates));
        spans.sort_unstable_by_key(|span| (span.first, span.last));
        let (mut lasted_ns, mut until) = (0_i64, i64::MIN);
        for span in &spans {
            lasted_ns = lasted_ns.saturating_add((span.last - span.first.max(until)).max(0));
            until = until.max(span.last);
        }
        let clients_ns =
            spans.iter().map(|span| span.clients as f64 * span.lasted_ns() as f64).sum();
        let name =
            |names: &[String], number: u32| names.get(number as usize).cloned().unwrap_or_default();
        let mut cells: Vec<_> = self.cells.into_iter().collect();
        cells.sort_unstable_by_key(|(key, _)| *key);
        let mut by_command = Vec::new();
        for group in cells.chunk_by(|one, other| one.0.0 == other.0.0) {
            let Some(((command, _), first)) = group.first() else { continue };
            let command = name(commands, *command);
            let mut all = Cell::new(first.bytes.0);
            group.iter().for_each(|(_, cell)| all.absorb(cell));
            let mut rows = vec![all.finish(&command, None)];
            if group.len() > 1 {
                rows.extend(group.iter().map(|(_, cell)| cell.finish(&command, Some(cell.bytes))));
            }
            by_command.push(rows);
        }
        let time = |rows: &[Sizes]| rows.first().map(|row| row.whole.distribution.sum_ns);
        by_command.sort_by_key(|rows| std::cmp::Reverse(time(rows)));
        let mut needs: Vec<_> = self
            .needs
            .into_iter()
            .map(|(scenario, (rounds, requests))| {
                let mut requests: Vec<_> =
                    requests.into_iter().map(|(command, n)| (name(commands, command), n)).collect();
                requests.sort_unstable();
                let scenario = scenario.map(|number| name(scenarios, number));
                Needs { scenario, rounds, requests }
            })
            .collect();
        needs.sort_by(|one, other| one.scenario.cmp(&other.scenario));
        Detail {
            sizes: by_command.into_iter().flatten().collect(),
            rates: self.rates,
            lasted_ns,
            clients_ns,
            needs,
        }
    }
}
