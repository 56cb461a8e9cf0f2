//! What each operation of the sample would take less without a trouble, so that replaying tells what its clients
//! would gain ([`super::what_if`]).

use hashbrown::HashMap;

use super::operation::Seen;

/// What operations would take less.
#[derive(Default)]
pub(super) struct Spared {
    /// Numbers in the sample, and time that each takes less by itself, ns.
    own: Vec<(u32, i64)>,
    stops: Vec<Stop>,
    /// Time of connections, ns, in the sample and beyond it.
    pub(super) sampled_ns: i64,
    pub(super) all_ns: i64,
}

/// A connection stood still in one direction, and whatever was in flight on it waited.
struct Stop {
    way: usize,
    /// An operation of that connection.
    number: u32,
    begin: i64,
    ns: i64,
    /// So much shorter it would be.
    saved_ns: i64,
}

/// An operation of the sample.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    connection: (u32, u64),
    start: i64,
    end: i64,
    pub(super) busy_ns: i64,
}

impl Kept {
    pub(super) fn of(seen: &Seen) -> Kept {
        let start = seen.start.unwrap_or(0);
        let end = start.saturating_add(seen.elapsed_ns);
        let connection = (seen.recording, seen.connection);
        Kept { connection, start, end, busy_ns: seen.busy_ns }
    }
}

impl Spared {
    /// Adds an operation that takes so much less of its busy time. One without a time of its own, as a wait
    /// by design, is not replayed.
    pub(super) fn add(&mut self, seen: &Seen, busy_ns: i64) {
        if let Some(number) = self.count(seen, busy_ns) {
            self.own.push((number, seen.of_own(busy_ns)));
        }
    }

    /// Adds a time in which the operation's connection stood still.
    pub(super) fn add_stop(
        &mut self,
        seen: &Seen,
        way: usize,
        begin: i64,
        (ns, saved_ns): (i64, i64),
    ) {
        if let Some(number) = self.count(seen, saved_ns) {
            self.stops.push(Stop { way, number, begin, ns, saved_ns });
        }
    }

    /// Gives its number in the sample.
    fn count(&mut self, seen: &Seen, saved_ns: i64) -> Option<u32> {
        if !seen.is_timed || saved_ns <= 0 {
            return None;
        }
        self.all_ns = self.all_ns.saturating_add(saved_ns);
        let number = seen.number?;
        self.sampled_ns = self.sampled_ns.saturating_add(saved_ns);
        Some(number)
    }

    pub(super) fn merge(&mut self, other: Spared) {
        self.all_ns = self.all_ns.saturating_add(other.all_ns);
        self.sampled_ns = self.sampled_ns.saturating_add(other.sampled_ns);
        self.own.extend(other.own);
        self.stops.extend(other.stops);
    }

    pub(super) fn scale(&mut self, share: f64) {
        let own = self.own.iter_mut().map(|one| &mut one.1);
        let stops = self.stops.iter_mut().map(|stop| &mut stop.saved_ns);
        for ns in own.chain(stops).chain([&mut self.all_ns, &mut self.sampled_ns]) {
            *ns = (*ns as f64 * share) as i64;
        }
    }

    /// Operations of the sample that show it.
    pub(super) fn operations(&self) -> usize {
        let own = self.own.iter().map(|one| one.0);
        let mut numbers: Vec<_> = own.chain(self.stops.iter().map(|stop| stop.number)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    }

    /// What each operation of the sample takes less, ns.
    pub(super) fn less(&self, sample: &[Kept]) -> Vec<i64> {
        let mut less = vec![0_i64; sample.len()];
        for (number, ns) in &self.own {
            if let Some(sum) = less.get_mut(*number as usize) {
                *sum = sum.saturating_add(*ns);
            }
        }
        let mut connections: HashMap<_, [Vec<&Stop>; 2], foldhash::fast::RandomState> =
            HashMap::default();
        for stop in &self.stops {
            if let Some(kept) = sample.get(stop.number as usize) {
                let ways = connections.entry(kept.connection).or_default();
                ways[stop.way.min(1)].push(stop);
            }
        }
        let connections: HashMap<_, _, foldhash::fast::RandomState> =
            connections.into_iter().map(|(key, ways)| (key, ways.map(Stops::of))).collect();
        if !connections.is_empty() {
            for (less, kept) in less.iter_mut().zip(sample) {
                let Some(ways) = connections.get(&kept.connection) else { continue };
                // Both directions may stand still at once.
                let stood = ways
                    .each_ref()
                    .map(|stops| stops.until(kept.end).saturating_sub(stops.until(kept.start)));
                *less = less.saturating_add(stood[0].max(stood[1]));
            }
        }
        less
    }
}

/// Those of one connection in the order of their begin, each with what those before it save.
struct Stops<'a>(Vec<(&'a Stop, i64)>);

impl Stops<'_> {
    fn of(mut stops: Vec<&Stop>) -> Stops<'_> {
        stops.sort_unstable_by_key(|stop| stop.begin);
        let mut sum = 0_i64;
        let each = stops.into_iter().map(|stop| {
            let before = sum;
            sum = sum.saturating_add(stop.saved_ns);
            (stop, before)
        });
        Stops(each.collect())
    }

    /// What is saved up to a point in time, ns. Those of one direction do not overlap.
    fn until(&self, at: i64) -> i64 {
        let over = self.0.partition_point(|(stop, _)| stop.begin <= at);
        let Some((stop, before)) = over.checked_sub(1).and_then(|last| self.0.get(last)) else {
            return 0;
        };
        let part = at.saturating_sub(stop.begin) as f64 / stop.ns.max(1) as f64;
        before.saturating_add((stop.saved_ns as f64 * part.min(1.0)) as i64)
    }
}
