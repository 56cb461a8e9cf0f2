//! The counters of one group of operations (or executions of a scenario) in one recording, and
//! groups by name with their limit.

use hashbrown::HashMap;

use super::data::Measured;
use crate::stats::clusters::{Clock, Clusters, Estimates, Unit};
use crate::stats::latency::{Grain, Latency, Sample};

/// What one operation adds.
#[derive(Clone, Copy, Default)]
pub(super) struct Fact {
    pub(super) at: Option<i64>,
    /// Null for operations that wait by design.
    pub(super) elapsed: Option<Sample>,
    pub(super) server_ns: Option<i64>,
    pub(super) bytes: u64,
    pub(super) error: bool,
    /// The cluster of the connection or user.
    pub(super) cluster: u16,
}

/// One group.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) operations: u64,
    pub(super) elapsed: Latency,
    pub(super) clusters: Clusters,
    errors: u64,
    bytes: u64,
    server_n: u64,
    server_sum_ns: i64,
}

impl Group {
    pub(super) fn new(grain: Grain) -> Group {
        Group {
            operations: 0,
            elapsed: Latency::new(grain),
            clusters: Clusters::default(),
            errors: 0,
            bytes: 0,
            server_n: 0,
            server_sum_ns: 0,
        }
    }

    #[inline]
    pub(super) fn add(&mut self, fact: &Fact, clock: &Clock) {
        self.operations += 1;
        self.errors += u64::from(fact.error);
        self.bytes = self.bytes.saturating_add(fact.bytes);
        if let Some(elapsed) = &fact.elapsed {
            self.elapsed.record(elapsed);
            self.clusters.add(fact.cluster, fact.at, clock, elapsed.value);
        }
        if let Some(server_ns) = fact.server_ns {
            self.server_n += 1;
            self.server_sum_ns = self.server_sum_ns.saturating_add(server_ns);
        }
    }

    pub(super) fn absorb(&mut self, other: &Group) {
        self.operations += other.operations;
        self.errors += other.errors;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.server_n += other.server_n;
        self.server_sum_ns = self.server_sum_ns.saturating_add(other.server_sum_ns);
        self.elapsed.absorb(&other.elapsed);
        self.clusters.absorb(&other.clusters);
    }

    pub(super) fn timed(&self) -> u64 {
        self.elapsed.n()
    }

    /// As data; rates are over `seconds`.
    pub(super) fn measured(&self, seconds: Option<f64>, is_scenario: bool) -> Measured {
        let times = self.elapsed.distribution(false);
        let of = |ns: Option<i64>| ns.map(|ns| ns as f64 / 1e9);
        let per = |sum: f64, n: u64| (n > 0).then(|| sum / n as f64);
        Measured {
            operations: self.operations,
            timed: times.n,
            mean_s: per(times.sum_ns as f64 / 1e9, times.n),
            p50_s: of(times.p50_ns),
            p95_s: of(times.p95_ns),
            p99_s: of(times.p99_ns),
            server_mean_s: per(self.server_sum_ns as f64 / 1e9, self.server_n),
            bytes_per_operation: per(self.bytes as f64, self.operations).filter(|_| !is_scenario),
            errors_per_operation: per(self.errors as f64, self.operations),
            operations_per_second: seconds.map(|seconds| self.operations as f64 / seconds),
            unit: None,
            clusters: None,
        }
    }

    pub(super) fn estimates(&self, member_unit: Unit) -> Estimates {
        Estimates {
            member: self.clusters.by_member(),
            block: self.clusters.by_block(),
            member_unit,
        }
    }
}

/// Groups by name. The first is for operations without a name, the second for those beyond
/// the limit.
pub(super) struct Groups {
    pub(super) groups: Vec<(String, Group)>,
    index: HashMap<String, u32, foldhash::fast::RandomState>,
    limit: usize,
    grain: Grain,
}

impl Groups {
    const NONE: u32 = 0;
    const OTHERS: u32 = 1;

    pub(super) fn new(limit: usize, grain: Grain) -> Groups {
        let fixed = ["", "(others)"].map(|name| (name.to_owned(), Group::new(grain)));
        Groups { groups: fixed.into(), index: HashMap::default(), limit, grain }
    }

    /// The number of a group.
    pub(super) fn resolve(&mut self, name: Option<&str>) -> u32 {
        let Some(name) = name else { return Self::NONE };
        if let Some(&number) = self.index.get(name) {
            return number;
        }
        if self.index.len() >= self.limit {
            return Self::OTHERS;
        }
        let number = self.groups.len() as u32;
        self.groups.push((name.to_owned(), Group::new(self.grain)));
        self.index.insert(name.to_owned(), number);
        number
    }

    #[inline]
    pub(super) fn add(&mut self, number: u32, fact: &Fact, clock: &Clock) {
        if let Some((_, group)) = self.groups.get_mut(number as usize) {
            group.add(fact, clock);
        }
    }

    /// Operations of groups past the limit.
    pub(super) fn others(&self) -> u64 {
        self.groups.get(Self::OTHERS as usize).map_or(0, |(_, group)| group.operations)
    }

    /// All groups in one.
    pub(super) fn all(&self) -> Group {
        let mut all = Group::new(self.grain);
        self.groups.iter().for_each(|(_, group)| all.absorb(group));
        all
    }

    pub(super) fn finish(&mut self, clock: &Clock) {
        self.groups.iter_mut().for_each(|(_, group)| group.clusters.finish(clock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_past_the_limit_are_counted_together() {
        let mut groups = Groups::new(2, Grain::Coarse);
        for name in [Some("a"), Some("b"), None, Some("c"), Some("d"), Some("a")] {
            let number = groups.resolve(name);
            groups.add(number, &Fact::default(), &Clock::default());
        }
        let counts: Vec<_> =
            groups.groups.iter().map(|(name, group)| (name.as_str(), group.operations)).collect();
        assert_eq!(counts, [("", 1), ("(others)", 2), ("a", 2), ("b", 1)]);
        assert_eq!((groups.others(), groups.all().operations), (2, 6));
    }
}
