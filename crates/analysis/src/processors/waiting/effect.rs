//! How many times as long operations took that began while a CPU was held, and how certain that is.
//!
//! Neighbouring operations are alike for many reasons: the same files, the same program, the same load. So they are not
//! independent samples, and neither are the periods in which a CPU was held. How much the ratio varies by chance is
//! seen when the held periods are moved along the operations (circular shifts: a randomisation test that keeps the
//! dependence within both; E. S. Edgington, P. Onghena, "Randomization Tests", 4th edition, 2007). The ratio itself is
//! removed before, so that a real effect is not taken for variation.
//!
//! An operation belongs to the bin in which it began, however long it lasted: long ones meet more bins.

use std::collections::BTreeMap;

use crate::stats::student;

/// Fewest operations of a command on each side to compare them.
const MIN: f64 = 10.0;
/// Fewest bins with operations on each side.
const MIN_BINS: usize = 3;

/// How many times as long, with a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    pub(super) times: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Operations of one command in one bin: their number, and the sum of the logarithms of their times.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: f64,
    logs: f64,
}

/// Operations by command and bin.
#[derive(Debug, Default)]
pub(super) struct ByBin {
    commands: BTreeMap<String, Vec<Sum>>,
}

impl ByBin {
    /// Adds an operation that began in a bin.
    pub(super) fn add(&mut self, command: &str, bin: usize, bins: usize, elapsed_ns: i64) {
        let sums = match self.commands.get_mut(command) {
            Some(sums) => sums,
            None => self
                .commands
                .entry(command.to_owned())
                .or_insert_with(|| vec![Sum::default(); bins]),
        };
        if let Some(sum) = sums.get_mut(bin) {
            sum.count += 1.0;
            sum.logs += (elapsed_ns.max(1) as f64).ln();
        }
    }

    /// The geometric mean over commands of the ratios of times in held bins to others; `None` with too few of either.
    pub(super) fn times(&self, held: &[bool]) -> Option<Times> {
        let usable: Vec<_> = self
            .commands
            .values()
            .filter(|sums| {
                let (of_held, of_other) = sides(sums, held, 0);
                of_held.count >= MIN && of_other.count >= MIN
            })
            .collect();
        let used = |bin: &usize| {
            usable.iter().any(|sums| sums.get(*bin).is_some_and(|sum| sum.count > 0.0))
        };
        let (of_held, of_other): (Vec<usize>, Vec<usize>) =
            (0..held.len()).filter(used).partition(|bin| held.get(*bin).copied().unwrap_or(false));
        if of_held.len() < MIN_BINS.min(periods(held)).max(1) || of_other.len() < MIN_BINS {
            return None;
        }
        let log = ratio(&usable, held, 0)?;
        // Without the effect, and without the difference of commands.
        let rest: Vec<Vec<Sum>> = usable
            .iter()
            .map(|sums| {
                let sums: Vec<Sum> = sums
                    .iter()
                    .zip(held)
                    .map(|(sum, is_held)| Sum {
                        logs: sum.logs - if *is_held { log * sum.count } else { 0.0 },
                        ..*sum
                    })
                    .collect();
                let all = total(&sums);
                let mean = all.logs / all.count.max(1.0);
                sums.iter().map(|sum| Sum { logs: sum.logs - mean * sum.count, ..*sum }).collect()
            })
            .collect();
        let rest: Vec<&Vec<Sum>> = rest.iter().collect();
        // Shifts by less than a held period are not another arrangement.
        let bins = held.len();
        let length = held.iter().filter(|is_held| **is_held).count() / periods(held).max(1);
        let near = length.max(1).min(bins / 4);
        let moved = (near..=bins.saturating_sub(near)).filter_map(|by| ratio(&rest, held, by));
        let mut by_chance: Vec<f64> = moved.map(f64::abs).collect();
        if by_chance.len() < MIN_BINS {
            return None;
        }
        let squares: f64 = by_chance.iter().map(|log| log * log).sum();
        let deviation = (squares / by_chance.len() as f64).sqrt();
        by_chance.sort_by(f64::total_cmp);
        let greatest = by_chance.get(by_chance.len() * 95 / 100).copied().unwrap_or(0.0);
        // As many independent arrangements as periods of that length fit.
        let degrees = (bins / length.max(1)).saturating_sub(2).max(1).min(of_other.len());
        let error = greatest.max(deviation * student::quantile(0.05, degrees as f64));
        Some(Times { times: log.exp(), low: (log - error).exp(), high: (log + error).exp() })
    }
}

/// Number of held periods.
fn periods(held: &[bool]) -> usize {
    let before = std::iter::once(&false).chain(held);
    before.zip(held).filter(|(before, now)| !**before && **now).count()
}

fn total(sums: &[Sum]) -> Sum {
    sums.iter().fold(Sum::default(), |all, sum| Sum {
        count: all.count + sum.count,
        logs: all.logs + sum.logs,
    })
}

/// Sums of held and of other bins, if the held ones are moved by some bins.
fn sides(sums: &[Sum], held: &[bool], by: usize) -> (Sum, Sum) {
    let moved = held.iter().cycle().skip(held.len().saturating_sub(by)).take(held.len());
    let (mut of_held, mut of_other) = (Sum::default(), Sum::default());
    for (sum, is_held) in sums.iter().zip(moved) {
        let side = if *is_held { &mut of_held } else { &mut of_other };
        side.count += sum.count;
        side.logs += sum.logs;
    }
    (of_held, of_other)
}

/// The mean of the differences of commands, weighted by how many operations tell.
fn ratio(commands: &[&Vec<Sum>], held: &[bool], by: usize) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for sums in commands {
        let (of_held, of_other) = sides(sums, held, by);
        if of_held.count > 0.0 && of_other.count > 0.0 {
            let weight = of_held.count * of_other.count / (of_held.count + of_other.count);
            sum += weight * (of_held.logs / of_held.count - of_other.logs / of_other.count);
            weights += weight;
        }
    }
    (weights > 0.0).then(|| sum / weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random numbers from 0 to 1 (Marsaglia's xorshift).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    const BINS: usize = 240;

    /// Operations whose times drift, as those of a copy of files do; `effect` is how many times as long they take in held
    /// bins, which come in runs of about this length.
    fn seeds(count: u64, length: f64, effect: f64) -> usize {
        let found = |seed: u64| {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            for _ in 0..10 {
                random.next();
            }
            let mut is_held = false;
            let held: Vec<bool> = (0..BINS)
                .map(|_| {
                    let leaves = if is_held { 1.0 / length } else { 0.43 / length };
                    is_held ^= random.next() < leaves;
                    is_held
                })
                .collect();
            let mut by_bin = ByBin::default();
            let mut drift = 0.0;
            for (bin, is_held) in held.iter().enumerate() {
                drift = 0.9 * drift + random.next() - 0.5;
                for operation in 0..30 {
                    let scatter = random.next() - 0.5;
                    let times = if *is_held { effect } else { 1.0 };
                    let elapsed = 1e6 * f64::exp(drift + scatter) * times;
                    let command = if operation % 3 == 0 { "Read" } else { "Write" };
                    by_bin.add(command, bin, BINS, elapsed as i64);
                }
            }
            by_bin.times(&held).is_some_and(|it| it.low > 1.0 || it.high < 1.0)
        };
        (1..=count).filter(|seed| found(*seed)).count()
    }

    #[test]
    fn independent_periods_are_seldom_significant_and_an_effect_is_found() {
        for length in [1.0, 1.5, 6.0] {
            let wrong = seeds(200, length, 1.0);
            assert!(wrong <= 20, "{wrong} of 200 with periods of {length} bins");
            let right = seeds(40, length, 3.0);
            assert!(right >= 36, "{right} of 40 with periods of {length} bins");
        }
    }

    #[test]
    fn too_few_are_not_compared() {
        let mut by_bin = ByBin::default();
        (0..20).for_each(|bin| by_bin.add("Read", bin % 4, 4, 5));
        assert_eq!(by_bin.times(&[true, false, false, false]), None);
        assert_eq!(by_bin.times(&[false; 4]), None);
        assert_eq!(ByBin::default().times(&[]), None);
    }
}
