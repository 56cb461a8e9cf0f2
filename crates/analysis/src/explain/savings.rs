//! How much less time each operation of the sample would take without a trouble. Replaying the
//! sample with that shows what its clients would gain ([`super::what_if`]).

use hashbrown::{HashMap, HashSet};

use super::operation::Operation;

/// Time that operations would take less.
#[derive(Default)]
pub(super) struct Savings {
    /// Numbers in the sample, and the time that each takes less by itself, ns.
    own: Vec<(u32, i64)>,
    stalls: Vec<Stall>,
    /// Saved time of connections, ns: of the sample, and of all operations.
    pub(super) sampled_ns: i64,
    pub(super) all_ns: i64,
}

/// One direction of a connection stood still, and everything in flight on it waited.
struct Stall {
    direction: usize,
    /// An operation of that connection.
    number: u32,
    begin: i64,
    ns: i64,
    /// How much shorter it would be.
    saved_ns: i64,
}

/// An operation of the sample.
#[derive(Clone, Copy)]
pub(super) struct SampledOperation {
    connection: (u32, u64),
    start: i64,
    end: i64,
    pub(super) busy_ns: i64,
    /// Part of `busy_ns`: round trips in the network, where they are known.
    network_ns: i64,
}

impl SampledOperation {
    pub(super) fn from_op(op: &Operation) -> SampledOperation {
        let start = op.start.unwrap_or(0);
        let end = start.saturating_add(op.elapsed_ns);
        let connection = (op.recording, op.connection);
        let network_ns = op.split().map_or(0, |(_, network)| op.of_busy(network));
        SampledOperation { connection, start, end, busy_ns: op.busy_ns, network_ns }
    }

    /// Its busy time without round trips in the network if it took `ns` less, ns.
    pub(super) fn busy_without(&self, ns: i64) -> i64 {
        let here_ns = (self.busy_ns - self.network_ns).max(0);
        let elapsed = self.end.saturating_sub(self.start);
        if elapsed <= 0 {
            return here_ns;
        }
        let left = (1.0 - ns as f64 / elapsed as f64).clamp(0.0, 1.0);
        ((self.busy_ns as f64 * left) as i64).min(here_ns)
    }
}

impl Savings {
    /// Adds an operation that takes `busy_ns` less of its busy time. Operations without a time of
    /// their own, such as those that wait by design, are not replayed.
    pub(super) fn add(&mut self, op: &Operation, busy_ns: i64) {
        if let Some(number) = self.count(op, busy_ns) {
            self.own.push((number, op.of_own(busy_ns)));
        }
    }

    /// Adds a period in which the operation's connection stood still.
    pub(super) fn add_stall(
        &mut self,
        op: &Operation,
        direction: usize,
        begin: i64,
        (ns, saved_ns): (i64, i64),
    ) {
        if let Some(number) = self.count(op, saved_ns) {
            self.stalls.push(Stall { direction, number, begin, ns, saved_ns });
        }
    }

    /// Adds to the sums, and returns the operation's number in the sample.
    fn count(&mut self, op: &Operation, saved_ns: i64) -> Option<u32> {
        if !op.is_timed || saved_ns <= 0 {
            return None;
        }
        self.all_ns = self.all_ns.saturating_add(saved_ns);
        let number = op.number?;
        self.sampled_ns = self.sampled_ns.saturating_add(saved_ns);
        Some(number)
    }

    pub(super) fn merge(&mut self, other: Savings) {
        self.all_ns = self.all_ns.saturating_add(other.all_ns);
        self.sampled_ns = self.sampled_ns.saturating_add(other.sampled_ns);
        self.own.extend(other.own);
        self.stalls.extend(other.stalls);
    }

    pub(super) fn scale(&mut self, share: f64) {
        let own = self.own.iter_mut().map(|one| &mut one.1);
        let stalls = self.stalls.iter_mut().map(|stall| &mut stall.saved_ns);
        for ns in own.chain(stalls).chain([&mut self.all_ns, &mut self.sampled_ns]) {
            *ns = (*ns as f64 * share) as i64;
        }
    }

    /// The numbers of the operations of the sample.
    pub(super) fn numbers(&self) -> HashSet<u32> {
        let stalls = self.stalls.iter().map(|stall| stall.number);
        self.own.iter().map(|one| one.0).chain(stalls).collect()
    }

    /// Removes these operations of the sample; returns their number and the time that they would save, ns.
    pub(super) fn remove(&mut self, numbers: &HashSet<u32>) -> (u64, i64) {
        let (mut operations, mut removed_ns) = (0, 0_i64);
        let mut is_kept = |number: &u32, ns: i64| {
            let is_removed = numbers.contains(number);
            if is_removed {
                operations += 1;
                removed_ns = removed_ns.saturating_add(ns);
            }
            !is_removed
        };
        self.own.retain(|(number, ns)| is_kept(number, *ns));
        self.stalls.retain(|stall| is_kept(&stall.number, stall.saved_ns));
        let removed_ns = removed_ns.min(self.sampled_ns);
        self.sampled_ns -= removed_ns;
        (operations, removed_ns)
    }

    /// Operations of the sample that show it.
    pub(super) fn operations(&self) -> usize {
        self.numbers().len()
    }

    /// By how much each operation of the sample gets shorter, ns.
    pub(super) fn by_operation(&self, sample: &[SampledOperation]) -> Vec<i64> {
        let mut shorter_ns = vec![0_i64; sample.len()];
        for (number, ns) in &self.own {
            if let Some(sum) = shorter_ns.get_mut(*number as usize) {
                *sum = sum.saturating_add(*ns);
            }
        }
        let mut connections: HashMap<_, [Vec<&Stall>; 2], foldhash::fast::RandomState> =
            HashMap::default();
        for stall in &self.stalls {
            if let Some(sampled) = sample.get(stall.number as usize) {
                let directions = connections.entry(sampled.connection).or_default();
                directions[stall.direction.min(1)].push(stall);
            }
        }
        let connections: HashMap<_, _, foldhash::fast::RandomState> = connections
            .into_iter()
            .map(|(key, stalls)| (key, stalls.map(Stalls::from_stalls)))
            .collect();
        if !connections.is_empty() {
            for (shorter_ns, sampled) in shorter_ns.iter_mut().zip(sample) {
                let Some(directions) = connections.get(&sampled.connection) else { continue };
                // Both directions may stand still at the same time.
                let stalled = directions.each_ref().map(|stalls| {
                    stalls
                        .saved_until(sampled.end)
                        .saturating_sub(stalls.saved_until(sampled.start))
                });
                *shorter_ns = shorter_ns.saturating_add(stalled[0].max(stalled[1]));
            }
        }
        shorter_ns
    }
}

/// The stalls of one direction of a connection in the order of their begin, each with what the ones
/// before it save. They do not overlap.
struct Stalls<'a>(Vec<(&'a Stall, i64)>);

impl Stalls<'_> {
    fn from_stalls(mut stalls: Vec<&Stall>) -> Stalls<'_> {
        stalls.sort_unstable_by_key(|stall| stall.begin);
        let mut sum = 0_i64;
        let each = stalls.into_iter().map(|stall| {
            let before = sum;
            sum = sum.saturating_add(stall.saved_ns);
            (stall, before)
        });
        Stalls(each.collect())
    }

    /// What is saved up to a point in time, ns.
    fn saved_until(&self, at: i64) -> i64 {
        let begun = self.0.partition_point(|(stall, _)| stall.begin <= at);
        let Some((stall, before)) = begun.checked_sub(1).and_then(|last| self.0.get(last)) else {
            return 0;
        };
        let part = at.saturating_sub(stall.begin) as f64 / stall.ns.max(1) as f64;
        before.saturating_add((stall.saved_ns as f64 * part.min(1.0)) as i64)
    }
}
