//! When a step may end before its time because its verdict is certain.
//!
//! Two rules, both fed with snapshots of the running step, once a second or so:
//!
//! - *Overloaded*, by stochastic curtailment (Lan, Simon, Halperin 1982): open scenarios are taken
//!   for a random walk whose steps are those of a busy queue (arrivals and departures each with
//!   Poisson's variance), the least trend of the three thirds of the time so far is carried on to
//!   the end of the window, and the step ends when even 3 standard errors less (of the trend and
//!   of what is to come) would be overload. The least of three, because a server that stalls for
//!   some seconds and recovers is not overloaded.
//! - *Kept*, by a bound on the trend: the mean number of open scenarios in consecutive blocks of
//!   time gets a straight line, and the step ends when the upper 99.9 % limit of its slope (t
//!   distribution) would not make a quarter of the limit, no user is behind, and open scenarios
//!   are few. A server near its limit has a queue that wanders, whose blocks scatter far too much
//!   for that. What builds up slowly (a write cache that fills in minutes) needs the whole window:
//!   the search lets only those steps end this way that lie far from the answer.

use super::overload::{Rule, Snapshot};

/// Neither rule speaks before this share of the window, 10 s at least.
const WINDOW_SHARE_MIN: f64 = 0.1;
const WINDOW_NS_MIN: i64 = 10_000_000_000;
/// Standard errors for "overloaded".
const Z_OVERLOADED: f64 = 3.0;
/// Blocks of the straight line.
const BLOCK_NS: i64 = 5_000_000_000;
const BLOCKS_MIN: usize = 6;
/// Snapshots that are kept: six hours of one a second; later ones change nothing.
const SNAPSHOTS_MAX: usize = 21_600;
/// Upper 99.9 % point of Student's t by degrees of freedom, from 4.
const T_999: [f64; 17] = [
    7.173, 5.893, 5.208, 4.785, 4.501, 4.297, 4.144, 4.025, 3.930, 3.852, 3.787, 3.733, 3.686,
    3.646, 3.610, 3.579, 3.552,
];

/// A verdict that the rest of the window would not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certain {
    /// The users cannot keep their schedule.
    Overloaded,
    /// They keep it.
    Kept,
}

/// Watches one running step.
#[derive(Clone, Debug)]
pub struct Early {
    rule: Rule,
    window_ns: i64,
    may_keep: bool,
    begin: Snapshot,
    open: Vec<(i64, f64)>,
}

impl Early {
    /// For a step whose measured window began with `begin` and is to last `window_ns`. Only with
    /// `may_keep` it may end early because it is not overloaded.
    pub fn new(rule: Rule, begin: Snapshot, window_ns: i64, may_keep: bool) -> Early {
        Early { rule, window_ns, may_keep, begin, open: vec![(0, begin.open() as f64)] }
    }

    /// Takes a look; snapshots are to come at a steady pace.
    pub fn look(&mut self, now: &Snapshot) -> Option<Certain> {
        let elapsed_ns = now.time_ns - self.begin.time_ns;
        let last_ns = self.open.last().map_or(0, |last| last.0);
        if elapsed_ns <= last_ns || self.open.len() >= SNAPSHOTS_MAX {
            return None;
        }
        self.open.push((elapsed_ns, now.open() as f64));
        let least_ns = ((self.window_ns as f64 * WINDOW_SHARE_MIN) as i64).max(WINDOW_NS_MIN);
        if elapsed_ns < least_ns || elapsed_ns >= self.window_ns {
            return None;
        }
        if self.overloaded(elapsed_ns) {
            return Some(Certain::Overloaded);
        }
        (self.may_keep && now.users_behind == 0 && self.kept()).then_some(Certain::Kept)
    }

    fn overloaded(&self, elapsed_ns: i64) -> bool {
        let Some(&(_, open)) = self.open.last() else { return false };
        // Number of open scenarios at the ends of the three thirds of the time so far.
        let mut ends = [0.0; 4];
        for (third, end) in ends.iter_mut().enumerate() {
            let time_ns = elapsed_ns / 3 * third as i64;
            let at = self.open.partition_point(|&(t, _)| t < time_ns).min(self.open.len() - 1);
            *end = self.open[at].1;
        }
        ends[3] = open;
        let third_ns = elapsed_ns as f64 / 3.0;
        let trend = ends.windows(2).map(|e| e[1] - e[0]).fold(f64::MAX, f64::min) / third_ns;
        let left_ns = (self.window_ns - elapsed_ns) as f64;
        // The variance of the difference of two Poisson counts, per nanosecond.
        let variance = 2.0 * self.begin.users as f64 / self.rule.interval_ns as f64;
        let growth = open - ends[0] + trend * left_ns;
        let error = (variance * left_ns * (1.0 + left_ns / third_ns)).sqrt();
        let due = self.rule.expected_due(self.begin.users, self.window_ns);
        growth - Z_OVERLOADED * error > self.rule.growth_allowed(due)
    }

    fn kept(&self) -> bool {
        let blocks = self.blocks();
        let n = blocks.len() as f64;
        if blocks.len() < BLOCKS_MIN {
            return false;
        }
        let mean = blocks.iter().sum::<f64>() / n;
        let middle = (n - 1.0) / 2.0;
        let squares: f64 = (0..blocks.len()).map(|i| (i as f64 - middle).powi(2)).sum();
        let products: f64 =
            blocks.iter().enumerate().map(|(i, open)| (i as f64 - middle) * (open - mean)).sum();
        let slope = products / squares;
        let residuals: f64 = blocks
            .iter()
            .enumerate()
            .map(|(i, open)| (open - mean - slope * (i as f64 - middle)).powi(2))
            .sum();
        let freedom = blocks.len() - 2;
        // With no scatter at all (nothing was ever open) one scenario a block is assumed.
        let scatter = (residuals / freedom as f64).max(0.01 / n);
        let t = T_999[(freedom - 4).min(T_999.len() - 1)];
        let upper = slope + t * (scatter / squares).sqrt();
        let due = self.rule.expected_due(self.begin.users, BLOCK_NS);
        let users = self.begin.users as f64;
        // A quarter of the users busy: the scenarios may be long only because of a queue.
        upper < due * self.rule.limit_percent / 100.0 / 4.0 && mean < (users / 4.0).max(1.0)
    }

    /// Mean number of open scenarios in each block of time that is complete.
    fn blocks(&self) -> Vec<f64> {
        let mut blocks: Vec<(f64, u32)> = Vec::new();
        for &(time_ns, open) in self.open.iter().skip(1) {
            let block = ((time_ns - 1) / BLOCK_NS) as usize;
            if block >= blocks.len() {
                blocks.resize(block + 1, (0.0, 0));
            }
            blocks[block].0 += open;
            blocks[block].1 += 1;
        }
        let complete = self.open.last().map_or(0, |last| last.0 / BLOCK_NS) as usize;
        blocks.truncate(complete);
        blocks.iter().filter(|block| block.1 > 0).map(|&(sum, n)| sum / f64::from(n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{INTERVAL_NS, Server, World};
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    struct Errors {
        runs: u32,
        early: u32,
        wrong: u32,
        seconds: i64,
    }

    /// Runs steps to their end and sees whether what was certain early came true.
    fn errors(server: &Server, users: u64, window_s: i64, runs: u64) -> Errors {
        let rule = Rule::new(INTERVAL_NS);
        let mut errors = Errors { runs: runs as u32, early: 0, wrong: 0, seconds: 0 };
        for seed in 1..=runs {
            let mut world = World::new(server, users, seed * 31);
            let begin = world.run(30 * SECOND);
            let mut early = Early::new(rule, begin, window_s * SECOND, true);
            let mut certain = None;
            for second in 1..=window_s {
                let now = world.run((30 + second) * SECOND);
                if certain.is_none() {
                    certain = early.look(&now);
                    errors.seconds += 1;
                }
            }
            let end = world.run((30 + window_s) * SECOND);
            let overloaded = rule.judge(&begin, &end).overloaded;
            errors.early += u32::from(certain.is_some());
            errors.wrong +=
                u32::from(certain.is_some_and(|c| (c == Certain::Overloaded) != overloaded));
        }
        errors
    }

    #[test]
    fn what_is_certain_comes_true() {
        let (mut wrong, mut runs) = (0, 0);
        for (capacity, rtt_ms) in [(60, 0), (60, 20), (300, 0)] {
            let server = Server::for_users(capacity, 2).rtt_ms(rtt_ms);
            for load in [50, 80, 95, 102, 105, 120] {
                let errors = errors(&server, capacity * load / 100, 120, 15);
                println!(
                    "{capacity} users, {rtt_ms} ms, {load} %: {} of {} early, {} wrong, {} s",
                    errors.early,
                    errors.runs,
                    errors.wrong,
                    errors.seconds / i64::from(errors.runs)
                );
                assert!(errors.wrong <= 1, "{capacity} at {load} %: {}", errors.wrong);
                wrong += errors.wrong;
                runs += errors.runs;
            }
        }
        assert!(f64::from(wrong) < 0.01 * f64::from(runs), "{wrong} of {runs}");
    }

    #[test]
    fn far_from_the_limit_it_is_certain_soon() {
        let server = Server::for_users(200, 2);
        let idle = errors(&server, 60, 600, 5);
        assert_eq!((idle.early, idle.wrong), (5, 0));
        assert!(idle.seconds / 5 < 300, "{} s", idle.seconds / 5);
        println!("30 % of the capacity: {} s", idle.seconds / 5);
        let overloaded = errors(&server, 400, 600, 5);
        println!("200 % of the capacity: {} s", overloaded.seconds / 5);
        assert_eq!((overloaded.early, overloaded.wrong), (5, 0));
        assert!(overloaded.seconds / 5 < 100, "{} s", overloaded.seconds / 5);
    }

    #[test]
    fn a_stall_of_ten_seconds_decides_nothing() {
        // Open scenarios rise for ten seconds and are worked off in the next ten.
        let rule = Rule::new(10 * SECOND);
        let begin = Snapshot { users: 1_000, due: 100, ended: 90, ..Snapshot::default() };
        let mut early = Early::new(rule, begin, 600 * SECOND, true);
        for second in 1..=120 {
            let due = 100 + 100 * second;
            let stalled = (second - 60_i64).clamp(0, 10) - (second - 70).clamp(0, 10);
            let open = 10 + 100 * stalled;
            let now = Snapshot {
                time_ns: second * SECOND,
                due: due as u64,
                ended: (due - open) as u64,
                ..begin
            };
            let verdict = early.look(&now);
            assert_ne!(verdict, Some(Certain::Overloaded), "after {second} s");
        }
    }

    #[test]
    fn snapshots_out_of_order_are_ignored() {
        let begin = Snapshot { users: 10, time_ns: 100 * SECOND, ..Snapshot::default() };
        let mut early = Early::new(Rule::new(10 * SECOND), begin, 60 * SECOND, true);
        assert_eq!(early.look(&Snapshot::default()), None);
        assert_eq!(early.look(&Snapshot { time_ns: i64::MAX, ..begin }), None);
    }
}
