//! A mean and how certain it is if operations are not independent: sums by connection or user,
//! and by block of time, and what follows from them.
//!
//! Owns the sums, the choice between the two kinds, and the contrast of two sides; [`crate::compare`]
//! says which statistics these are and why.

use std::collections::BTreeMap;

use serde::Serialize;

use super::student;

/// Most clusters. Later connections and users share them, which is not an error: a shared cluster is
/// still independent of the others.
pub(crate) const CLUSTERS_MAX: usize = 1024;
/// Blocks of time; the recording is cut into at least half as many.
const BLOCKS_MAX: i64 = 40;
/// Connections or users are preferred to blocks of time if their effective number is at least this:
/// slightly less than eight, because eight of nearly equal size are worth a little less.
const ENOUGH: f64 = 7.5;
/// With fewer clusters there is no interval.
const FEWEST: usize = 3;

/// The unit that is assumed to be independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// The users of a load run, each in A and in B.
    UserPair,
    /// The users of a load run.
    User,
    /// TCP connections.
    Connection,
    /// Pieces of the recording of equal length.
    TimeBlock,
    /// The same pieces of two load runs, counted from the start of the run.
    TimeBlockPair,
}

impl Unit {
    /// The name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Unit::UserPair => "user-pair",
            Unit::User => "user",
            Unit::Connection => "connection",
            Unit::TimeBlock => "time-block",
            Unit::TimeBlockPair => "time-block-pair",
        }
    }
}

/// Durations of one cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    n: u64,
    sum_ns: i64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.n += other.n;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
}

/// The width of blocks of time: a power of two of nanoseconds, so wide that few blocks hold all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// The time from which blocks are counted: the start of a load run.
    pub(crate) origin: i64,
    shift: u32,
    seen: Option<(i64, i64)>,
}

impl Clock {
    pub(crate) fn see(&mut self, at: i64) {
        let at = at.saturating_sub(self.origin);
        let (first, last) = self.seen.map_or((at, at), |(a, b)| (a.min(at), b.max(at)));
        while (last >> self.shift).saturating_sub(first >> self.shift) >= BLOCKS_MAX {
            self.shift += 1;
        }
        self.seen = Some((first, last));
    }

    /// Makes the blocks of both as wide as the wider ones.
    pub(crate) fn align(&mut self, other: &mut Clock) {
        let shift = self.shift.max(other.shift);
        (self.shift, other.shift) = (shift, shift);
    }
}

/// One group's durations by cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clusters {
    /// By number of the connection's or user's cluster.
    sums: Vec<Sum>,
    shift: u32,
    blocks: BTreeMap<i64, Sum>,
}

impl Clusters {
    #[inline]
    pub(crate) fn add(&mut self, cluster: u16, at: Option<i64>, clock: &Clock, ns: i64) {
        let sum = Sum { n: 1, sum_ns: ns };
        self.add_member(usize::from(cluster), sum);
        if let Some(at) = at {
            self.widen(clock.shift);
            let at = at.saturating_sub(clock.origin);
            self.blocks.entry(at >> self.shift).or_default().add(sum);
        }
    }

    pub(crate) fn absorb(&mut self, other: &Clusters) {
        for (place, sum) in other.sums.iter().enumerate() {
            self.add_member(place, *sum);
        }
        self.widen(other.shift);
        for (block, sum) in &other.blocks {
            self.blocks.entry(block >> (self.shift - other.shift)).or_default().add(*sum);
        }
    }

    fn add_member(&mut self, place: usize, sum: Sum) {
        if place >= self.sums.len() && place < CLUSTERS_MAX {
            self.sums.resize(place + 1, Sum::default());
        }
        if let Some(slot) = self.sums.get_mut(place) {
            slot.add(sum);
        }
    }

    fn widen(&mut self, shift: u32) {
        if shift <= self.shift {
            return;
        }
        for (block, sum) in std::mem::take(&mut self.blocks) {
            self.blocks.entry(block >> (shift - self.shift)).or_default().add(sum);
        }
        self.shift = shift;
    }

    /// With the blocks of the clock as it is at the end.
    pub(crate) fn finish(&mut self, clock: &Clock) {
        self.widen(clock.shift);
    }

    pub(crate) fn by_member(&self) -> Option<Estimate> {
        Estimate::from_sums((0..).zip(self.sums.iter().copied()))
    }

    pub(crate) fn by_block(&self) -> Option<Estimate> {
        Estimate::from_sums(self.blocks.iter().map(|(&block, &sum)| (block, sum)))
    }
}

/// A mean and what each cluster contributes to its error.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    pub(crate) mean_ns: f64,
    pub(crate) parts: Vec<Contribution>,
}

/// One cluster's part in an estimate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contribution {
    pub(crate) key: i64,
    /// Its share of the operations.
    pub(crate) weight: f64,
    /// By how much it moves the logarithm of the mean.
    pub(crate) influence: f64,
}

impl Estimate {
    /// The ratio of sums; none without operations, and if the mean is not above zero.
    fn from_sums(sums: impl Iterator<Item = (i64, Sum)> + Clone) -> Option<Estimate> {
        let used = sums.filter(|(_, sum)| sum.n > 0);
        let mut all = (0u64, 0i128);
        for (_, sum) in used.clone() {
            all = (all.0 + sum.n, all.1 + i128::from(sum.sum_ns));
        }
        if all.0 == 0 || all.1 <= 0 {
            return None;
        }
        let (n, sum_ns) = (all.0 as f64, all.1 as f64);
        let parts = used.map(|(key, sum)| {
            let weight = sum.n as f64 / n;
            Contribution { key, weight, influence: sum.sum_ns as f64 / sum_ns - weight }
        });
        Some(Estimate { mean_ns: sum_ns / n, parts: parts.collect() })
    }

    /// The mean of several, each with its weight; the weights are taken as given.
    pub(crate) fn weighted(of: &[(f64, &Estimate)]) -> Option<Estimate> {
        let whole: f64 = of.iter().map(|(weight, _)| weight).sum();
        let mean_ns = of.iter().map(|(weight, one)| weight * one.mean_ns).sum::<f64>() / whole;
        if !(mean_ns.is_finite() && mean_ns > 0.0) {
            return None;
        }
        let mut parts: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for (weight, one) in of {
            let of_time = weight / whole * one.mean_ns / mean_ns;
            for part in &one.parts {
                let sums = parts.entry(part.key).or_default();
                sums.0 += weight / whole * part.weight;
                sums.1 += of_time * part.influence;
            }
        }
        let parts = parts.into_iter().map(|(key, (weight, influence))| Contribution {
            key,
            weight,
            influence,
        });
        Some(Estimate { mean_ns, parts: parts.collect() })
    }

    /// Clusters of equal size that would be worth as much (Kish).
    fn effective(&self) -> f64 {
        effective(self.parts.iter().map(|part| part.weight))
    }

    fn is_enough(&self) -> bool {
        self.parts.len() >= FEWEST && self.effective() >= 2.0
    }

    /// The variance of the logarithm of the mean.
    fn variance(&self) -> f64 {
        variance(self.parts.iter().map(|part| part.influence))
    }
}

fn effective(weights: impl Iterator<Item = f64>) -> f64 {
    let (sum, squares) =
        weights.fold((0.0, 0.0), |(a, b), weight| (a + weight, b + weight * weight));
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

fn variance(influences: impl Iterator<Item = f64>) -> f64 {
    let (n, squares) = influences.fold((0.0, 0.0), |(n, sum), it| (n + 1.0, sum + it * it));
    if n > 1.0 { squares * n / (n - 1.0) } else { 0.0 }
}

/// One side's mean by both kinds of clusters.
#[derive(Clone, Debug)]
pub(crate) struct Estimates {
    pub(crate) member: Option<Estimate>,
    pub(crate) block: Option<Estimate>,
    pub(crate) member_unit: Unit,
}

impl Estimates {
    /// Connections or users if there are enough, unless blocks of time make the mean less certain;
    /// otherwise whichever has more effective clusters.
    fn best(&self) -> Option<(&Estimate, Unit)> {
        let member = self.member.as_ref().map(|it| (it, self.member_unit));
        let block = self.block.as_ref().map(|it| (it, Unit::TimeBlock));
        let (member, block) = match (member, block) {
            (Some(member), Some(block)) => (member, block),
            (member, block) => return member.or(block),
        };
        let is_block = if member.0.effective() >= ENOUGH {
            block.0.effective() >= ENOUGH && block.0.variance() > member.0.variance()
        } else {
            block.0.effective() > member.0.effective()
        };
        Some(if is_block { block } else { member })
    }
}

/// Which clusters a contrast used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) units: [Option<Unit>; 2],
    pub(crate) clusters: [u64; 2],
}

/// How B's mean compares with A's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contrast {
    pub(crate) log_ratio: f64,
    /// Its 95 % interval.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p: Option<f64>,
    pub(crate) degrees: Option<f64>,
    pub(crate) used: Used,
}

/// Compares two means. `paired` if clusters with the same number are the same users, and blocks with
/// the same number the same part of the schedule.
pub(crate) fn contrast(a: &Estimates, b: &Estimates, paired: bool) -> Option<Contrast> {
    if paired {
        let of = |a: &Option<Estimate>, b: &Option<Estimate>, unit| {
            Pairs::from_rows(a.as_ref()?, b.as_ref()?, unit)
        };
        let users = of(&a.member, &b.member, Unit::UserPair);
        let blocks = of(&a.block, &b.block, Unit::TimeBlockPair);
        // The larger error of the two counts.
        let wider =
            users.into_iter().chain(blocks).max_by(|a, b| a.variance.total_cmp(&b.variance));
        if let Some(pairs) = wider {
            let log_ratio = (pairs.means.1 / pairs.means.0).ln();
            return Some(judged(log_ratio, pairs.variance, pairs.worth - 1.0, pairs.used));
        }
    }
    let ((one, unit_a), (other, unit_b)) = (a.best()?, b.best()?);
    let used = Used {
        units: [Some(unit_a), Some(unit_b)],
        clusters: [one.parts.len() as u64, other.parts.len() as u64],
    };
    let log_ratio = (other.mean_ns / one.mean_ns).ln();
    if !one.is_enough() || !other.is_enough() {
        return Some(Contrast { log_ratio, interval: None, p: None, degrees: None, used });
    }
    let (va, vb) = (one.variance(), other.variance());
    // Welch and Satterthwaite.
    let parts = va * va / (one.effective() - 1.0) + vb * vb / (other.effective() - 1.0);
    let degrees = (va + vb).powi(2) / parts;
    Some(judged(log_ratio, va + vb, degrees, used))
}

/// The same users or blocks in both.
struct Pairs {
    means: (f64, f64),
    variance: f64,
    worth: f64,
    used: Used,
}

impl Pairs {
    /// None if there are too few.
    fn from_rows(a: &Estimate, b: &Estimate, unit: Unit) -> Option<Pairs> {
        let mut pairs: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for (side, sign) in [(a, -1.0), (b, 1.0)] {
            for part in &side.parts {
                let sums = pairs.entry(part.key).or_default();
                sums.0 += part.weight;
                sums.1 += sign * part.influence;
            }
        }
        let worth = effective(pairs.values().map(|pair| pair.0));
        let n = pairs.len() as u64;
        (worth >= ENOUGH).then(|| Pairs {
            means: (a.mean_ns, b.mean_ns),
            variance: variance(pairs.values().map(|pair| pair.1)),
            worth,
            used: Used { units: [Some(unit); 2], clusters: [n; 2] },
        })
    }
}

fn judged(log_ratio: f64, variance: f64, degrees: f64, used: Used) -> Contrast {
    let error = variance.sqrt();
    if error > 0.0 && degrees.is_finite() {
        let reach = student::quantile(0.05, degrees) * error;
        let p = student::two_sided(log_ratio / error, degrees);
        let interval = Some((log_ratio - reach, log_ratio + reach));
        return Contrast { log_ratio, interval, p: Some(p), degrees: Some(degrees), used };
    }
    // No spread at all: equal means are equal, and different ones have no known error.
    let equal = log_ratio == 0.0;
    Contrast {
        log_ratio,
        interval: equal.then_some((0.0, 0.0)),
        p: equal.then_some(1.0),
        degrees: None,
        used,
    }
}

#[cfg(test)]
mod tests;
