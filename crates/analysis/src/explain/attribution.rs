//! Which clients, connections, shares and files a finding concerns: sums by name, within a limit,
//! and the operations that cost most.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;
use smbscope_tables::tables::Wait;

use super::data::{Contributor, Example, INTERVAL_MIN, TimeClass};
use super::in_a_row::InARow;
use super::operation::{Operation, TextId, text_id};
use super::savings::Savings;
use crate::stats::latency::BOUNDS_NS;

/// Most names of one kind for which a finding keeps sums.
const NAMES_MAX: usize = 4096;
/// The same for observations that exist once for each connection or place, until it is known which
/// of them become findings.
const NAMES_FEW: usize = 64;
/// Names of one kind that a finding lists.
const NAMES_LISTED: usize = 5;
/// Operations that a finding lists.
const EXAMPLES: usize = 5;
/// The operations of a connection that belong to a finding.
#[derive(Default)]
struct OnConnection {
    /// Its client and its server.
    ends: [Option<(TextId, Box<str>)>; 2],
    operations: u64,
    saved_ns: i64,
    /// They, and what would be saved in the burst that the last of them belongs to, ns.
    row: InARow,
    burst_ns: i64,
}

/// Sums by name.
struct SumsByName {
    sums: HashMap<TextId, Sums, foldhash::fast::RandomState>,
    names_max: usize,
}

struct Sums {
    name: Box<str>,
    operations: u64,
    saved_ns: i64,
}

impl Default for SumsByName {
    fn default() -> SumsByName {
        SumsByName { sums: HashMap::default(), names_max: NAMES_MAX }
    }
}

impl SumsByName {
    fn few() -> SumsByName {
        SumsByName { names_max: NAMES_FEW, ..SumsByName::default() }
    }

    fn add(&mut self, id: TextId, operations: u64, saved_ns: i64, name: impl FnOnce() -> Box<str>) {
        let has_room = self.sums.len() < self.names_max;
        let sums = match self.sums.get_mut(&id) {
            Some(sums) => sums,
            None if has_room => {
                self.sums.entry(id).or_insert(Sums { name: name(), operations: 0, saved_ns: 0 })
            }
            // The first names represent all: what costs much comes early and often.
            None => return,
        };
        sums.operations += operations;
        sums.saved_ns = sums.saved_ns.saturating_add(saved_ns);
    }

    fn merge(&mut self, other: SumsByName) {
        for (id, Sums { name, operations, saved_ns }) in other.sums {
            self.add(id, operations, saved_ns, || name);
        }
    }

    fn finish(self) -> Vec<Contributor> {
        let rows = self.sums.into_iter();
        let mut rows: Vec<_> = rows
            .map(|(_, Sums { name, operations, saved_ns })| Contributor {
                name: name.into(),
                operations,
                saved_ns,
            })
            .collect();
        rows.sort_by(|one, other| {
            (other.saved_ns, other.operations, &one.name).cmp(&(
                one.saved_ns,
                one.operations,
                &other.name,
            ))
        });
        rows.truncate(NAMES_LISTED);
        rows
    }
}

/// When an operation began and ended.
fn period(op: &Operation) -> Option<(i64, i64)> {
    op.start.map(|start| (start, start.saturating_add(op.elapsed_ns)))
}

fn name(name: Option<&str>) -> Box<str> {
    name.unwrap_or_default().into()
}

/// A wait as an example of a finding.
fn words(row: &Wait) -> String {
    match &row.subject {
        Some(subject) => format!("{} {subject}", row.protocol),
        None => format!("{} {} to port {}", row.protocol, row.kind, row.port),
    }
}

/// What an example costs, its number among the operations that are kept for replaying, and it; the cheapest one compares as the greatest, so that a heap drops it
/// first.
#[derive(PartialEq, Eq)]
struct RankedExample(i64, Option<u32>, Example);

impl Ord for RankedExample {
    fn cmp(&self, other: &RankedExample) -> std::cmp::Ordering {
        other.0.cmp(&self.0).then_with(|| self.2.operation.cmp(&other.2.operation))
    }
}

impl PartialOrd for RankedExample {
    fn partial_cmp(&self, other: &RankedExample) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The operations of a finding, the time that would be saved, and where.
#[derive(Default)]
pub(super) struct Attribution {
    pub(super) operations: u64,
    pub(super) saved_ns: i64,
    squares: f64,
    clients: SumsByName,
    servers: SumsByName,
    connections: HashMap<(u32, u64), OnConnection, foldhash::fast::RandomState>,
    /// The most time that would be saved in one burst of a connection, ns.
    burst_ns: i64,
    shares: SumsByName,
    paths: SumsByName,
    examples: BinaryHeap<RankedExample>,
    /// Operations by time, between the bounds of the small histograms.
    times: Times,
    savings: Savings,
    /// When the first of its operations began and the last one ended, ns since 1970.
    pub(super) period: Option<(i64, i64)>,
}

/// Counts below the first bound, between each two, and from the last bound on.
type Times = [u64; BOUNDS_NS.len() + 1];

/// The same in the order of the time that would be saved, cut to what is listed.
pub(super) struct Ranking {
    pub(super) burst_ns: i64,
    pub(super) savings: Savings,
    pub(super) clients: Vec<Contributor>,
    pub(super) servers: Vec<Contributor>,
    pub(super) connections: Vec<((u32, u64), u64, i64)>,
    pub(super) shares: Vec<Contributor>,
    pub(super) paths: Vec<Contributor>,
    pub(super) examples: Vec<(Option<u32>, Example)>,
    pub(super) times: Vec<TimeClass>,
}

impl Attribution {
    /// One of many, with a low limit of names.
    pub(super) fn with_few_names() -> Attribution {
        let [clients, servers, shares, paths] = std::array::from_fn(|_| SumsByName::few());
        Attribution { clients, servers, shares, paths, ..Attribution::default() }
    }

    /// Adds everything from `other`.
    pub(super) fn merge(&mut self, other: Attribution) {
        self.operations += other.operations;
        self.saved_ns = self.saved_ns.saturating_add(other.saved_ns);
        self.squares += other.squares;
        self.clients.merge(other.clients);
        self.servers.merge(other.servers);
        for (key, on) in other.connections {
            self.add_connection(key, on.operations, on.saved_ns, None, || on.ends);
        }
        self.burst_ns = self.burst_ns.max(other.burst_ns);
        self.shares.merge(other.shares);
        self.paths.merge(other.paths);
        self.savings.merge(other.savings);
        if let Some((first, last)) = other.period {
            self.widen(first, last);
        }
        self.times.iter_mut().zip(other.times).for_each(|(one, other)| *one += other);
        self.examples.extend(other.examples);
        while self.examples.len() > EXAMPLES {
            self.examples.pop();
        }
    }

    /// Reduces the time that would be saved to this share.
    pub(super) fn scale(&mut self, share: f64) {
        let scaled = |ns: i64| (ns as f64 * share) as i64;
        self.saved_ns = scaled(self.saved_ns);
        self.burst_ns = scaled(self.burst_ns);
        self.squares *= share * share;
        self.savings.scale(share);
        self.sums().for_each(|(_, ns)| *ns = scaled(*ns));
    }

    /// Keeps the time and sets the numbers of operations to zero: they are counted elsewhere.
    pub(super) fn without_operations(mut self) -> Attribution {
        self.operations = 0;
        self.times = Times::default();
        self.sums().for_each(|(operations, _)| *operations = 0);
        self
    }

    /// Adds an operation that would take `saved_ns` less of its busy time.
    pub(super) fn add(&mut self, op: &Operation, saved_ns: i64) {
        let saved_ns = saved_ns.max(0);
        self.savings.add(op, saved_ns);
        self.add_place(op, period(op), saved_ns, 1);
    }

    /// Adds a period in which one direction of the operation's connection stood still, so that
    /// everything in flight waited. `direction` is 0 if it waited for data from the server; the times
    /// are the whole period and what would be saved of it, ns.
    pub(super) fn add_stall(
        &mut self,
        op: &Operation,
        direction: usize,
        begin: i64,
        time: (i64, i64),
    ) {
        let (ns, saved_ns) = (time.0, time.1.max(0));
        self.savings.add_stall(op, direction, begin, (ns, saved_ns));
        self.add_place(op, period(op), saved_ns, 1);
    }

    /// Adds several operations, of which `op` is the last, with the savings of each; `at` is when the first
    /// of them began.
    pub(super) fn add_many(
        &mut self,
        op: &Operation,
        at: Option<i64>,
        saved_ns: i64,
        operations: u64,
        savings: Savings,
    ) {
        self.savings.merge(savings);
        let time = at.or(op.start).map(|at| (at, at.saturating_add(saved_ns.max(op.elapsed_ns))));
        self.add_place(op, time, saved_ns.max(0), operations);
    }

    /// Adds a client's pause before an operation; share and file are not responsible for it.
    pub(super) fn add_pause(&mut self, op: &Operation, saved_ns: i64) {
        self.add_time(saved_ns);
        self.add_client(op, period(op), saved_ns, 1);
    }

    /// Adds a wait outside of operations, of which `ns` would be saved. `in_a_row_ns` is how long its client
    /// waited for it and others in a row.
    pub(super) fn add_wait(
        &mut self,
        row: &Wait,
        recording: u32,
        until: i64,
        ns: i64,
        in_a_row_ns: i64,
    ) {
        let ns = ns.max(0);
        self.add_time(until.saturating_sub(row.start).max(0));
        self.operations += 1;
        self.saved_ns = self.saved_ns.saturating_add(ns);
        self.squares += (ns as f64).powi(2);
        self.widen(row.start, until);
        self.burst_ns = self.burst_ns.max(in_a_row_ns);
        self.clients.add(text_id(row.client.as_str()), 1, ns, || row.client.as_str().into());
        self.servers.add(text_id(row.server.as_str()), 1, ns, || row.server.as_str().into());
        if let Some(connection) = row.connection {
            self.add_connection((recording, connection), 1, ns, None, Default::default);
        }
        let example = Example {
            recording: Some(row.recording.clone()),
            command: words(row),
            elapsed_ns: Some(until.saturating_sub(row.start)),
            request_frame: Some(row.first_frame),
            response_frame: row.end.map(|_| row.last_frame),
            ..Example::default()
        };
        self.examples.push(RankedExample(ns, None, example));
        while self.examples.len() > EXAMPLES {
            self.examples.pop();
        }
    }

    fn add_time(&mut self, ns: i64) {
        let place = BOUNDS_NS.partition_point(|&bound| bound <= ns);
        if let Some(count) = self.times.get_mut(place) {
            *count += 1;
        }
    }

    fn add_place(
        &mut self,
        op: &Operation,
        time: Option<(i64, i64)>,
        saved_ns: i64,
        operations: u64,
    ) {
        if op.is_timed {
            self.add_time(op.elapsed_ns);
        }
        if let Some(share) = op.share {
            self.shares.add(share, operations, saved_ns, || name(op.share_name()));
        }
        if let Some(path) = op.path {
            self.paths.add(path, operations, saved_ns, || name(op.path_name()));
        }
        self.add_client(op, time, saved_ns, operations);
    }

    /// Lets the period include these times.
    fn widen(&mut self, first: i64, last: i64) {
        let (begun, ended) = self.period.unwrap_or((first, last));
        self.period = Some((begun.min(first), ended.max(last)));
    }

    /// `time` is when these operations began and ended.
    fn add_client(
        &mut self,
        op: &Operation,
        time: Option<(i64, i64)>,
        saved_ns: i64,
        operations: u64,
    ) {
        self.operations += operations;
        self.saved_ns = self.saved_ns.saturating_add(saved_ns);
        self.squares += (saved_ns as f64).powi(2);
        if let Some((first, last)) = time {
            self.widen(first, last);
        }
        let ends = || {
            let server = TextId::new(u64::from(op.server));
            let (client, names) = (op.client, [op.client_name(), op.server_name()]);
            let mut ends = [client, server].into_iter().zip(names);
            std::array::from_fn(|_| ends.next().and_then(|(id, text)| Some((id?, name(text)))))
        };
        self.add_connection((op.recording, op.connection), operations, saved_ns, time, ends);
        let is_full = self.examples.len() >= EXAMPLES;
        if saved_ns > 0 && !(is_full && self.examples.peek().is_some_and(|one| one.0 >= saved_ns)) {
            if is_full {
                self.examples.pop();
            }
            self.examples.push(RankedExample(saved_ns, op.number, op.example()));
        }
    }

    /// Operations and time of every name.
    fn sums(&mut self) -> impl Iterator<Item = (&mut u64, &mut i64)> {
        let names = [&mut self.clients, &mut self.servers, &mut self.shares, &mut self.paths];
        let names = names.into_iter().flat_map(|names| names.sums.values_mut());
        let names = names.map(|sums| (&mut sums.operations, &mut sums.saved_ns));
        names.chain(self.connections.values_mut().map(|on| (&mut on.operations, &mut on.saved_ns)))
    }

    /// `time` is when the operation began and ended; `ends` are the connection's client and server.
    fn add_connection(
        &mut self,
        key: (u32, u64),
        operations: u64,
        saved_ns: i64,
        time: Option<(i64, i64)>,
        ends: impl FnOnce() -> [Option<(TextId, Box<str>)>; 2],
    ) {
        let has_room = self.connections.len() < self.clients.names_max;
        let on = match self.connections.get_mut(&key) {
            Some(on) => on,
            None if has_room => {
                let on = OnConnection { ends: ends(), ..OnConnection::default() };
                self.connections.entry(key).or_insert(on)
            }
            None => return,
        };
        on.operations += operations;
        on.saved_ns = on.saved_ns.saturating_add(saved_ns);
        if let Some((start, end)) = time {
            let before_ns = if on.row.add(start, end).is_new { 0 } else { on.burst_ns };
            on.burst_ns = before_ns.saturating_add(saved_ns);
            self.burst_ns = self.burst_ns.max(on.burst_ns);
        }
    }

    /// Half of the sum's 95 % interval, with the operations taken as a sample of many similar ones; none
    /// if they are so few that their scatter is not known.
    pub(super) fn error_ns(&self) -> Option<i64> {
        let n = self.operations as f64;
        if self.operations < INTERVAL_MIN {
            return None;
        }
        let mean = self.saved_ns as f64 / n;
        let variance = (self.squares / n - mean * mean).max(0.0) * n / (n - 1.0);
        Some((crate::predict::Z_95 * (n * variance).sqrt()) as i64)
    }

    pub(super) fn finish(mut self) -> Ranking {
        let mut on: Vec<_> = self.connections.iter_mut().collect();
        on.sort_unstable_by_key(|(key, _)| **key);
        for (_, on) in on {
            for (sums, end) in [&mut self.clients, &mut self.servers].into_iter().zip(&mut on.ends)
            {
                if let Some((id, name)) = end.take() {
                    sums.add(id, on.operations, on.saved_ns, || name);
                }
            }
        }
        let mut examples = self.examples.into_vec();
        examples.sort_unstable();
        let connections = self.connections.into_iter();
        let mut connections: Vec<_> =
            connections.map(|(key, on)| (key, on.operations, on.saved_ns)).collect();
        connections.sort_unstable_by_key(|(key, operations, ns)| {
            Reverse((*ns, *operations, Reverse(*key)))
        });
        connections.truncate(NAMES_LISTED);
        Ranking {
            burst_ns: self.burst_ns,
            savings: self.savings,
            clients: self.clients.finish(),
            servers: self.servers.finish(),
            connections,
            shares: self.shares.finish(),
            paths: self.paths.finish(),
            examples: examples.into_iter().map(|one| (one.1, one.2)).collect(),
            times: classes(&self.times),
        }
    }
}

/// The classes that have any operations.
fn classes(times: &Times) -> Vec<TimeClass> {
    let class = |(place, operations): (usize, u64)| TimeClass {
        from_ns: place.checked_sub(1).and_then(|place| BOUNDS_NS.get(place)).copied().unwrap_or(0),
        below_ns: BOUNDS_NS.get(place).copied(),
        operations,
    };
    let counted = times.iter().copied().enumerate().filter(|(_, operations)| *operations > 0);
    counted.map(class).collect()
}
