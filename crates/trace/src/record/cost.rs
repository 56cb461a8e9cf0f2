//! What the recorder costs: when that is too much, it samples less.

use std::time::Duration;

/// Share of one CPU above which the recorder samples less.
pub const SHARE_MAX: f64 = 0.03;
/// Shorter times are not judged.
const INTERVAL: Duration = Duration::from_secs(1);
/// Samples are taken at least every this number of ticks.
const EVERY_MAX: u32 = 32;

/// Judges the recorder's own time.
#[derive(Debug)]
pub struct Cost {
    before: Spent,
    /// Every how many ticks of the clock a sample is taken.
    every: u32,
    notes: Vec<String>,
    switches: bool,
    first: Spent,
}

/// Time so far, ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// On the clock.
    pub now: u64,
    /// This process on CPUs.
    pub own: u64,
    /// BPF programs on CPUs.
    pub kernel: u64,
}

/// What to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Less {
    /// Take a sample every this number of ticks.
    SampleEvery(u32),
    /// Record no more context switches.
    NoSwitches,
}

impl Cost {
    /// Begins; `switches` says whether context switches are recorded.
    pub fn new(begin: Spent, switches: bool) -> Cost {
        Cost { before: begin, every: 1, notes: Vec::new(), switches, first: begin }
    }

    /// Looks at the time spent, and decides.
    pub fn judge(&mut self, spent: Spent, hz: u32) -> Option<Less> {
        let elapsed = spent.now.saturating_sub(self.before.now);
        if u128::from(elapsed) < INTERVAL.as_nanos() {
            return None;
        }
        let share = share(self.before, spent);
        self.before = spent;
        if share <= SHARE_MAX {
            return None;
        }
        let percent = share * 100.0;
        let seconds = spent.now.saturating_sub(self.first.now) / 1_000_000_000;
        if self.every < EVERY_MAX && hz > 0 {
            self.every *= 2;
            let hz = f64::from(hz) / f64::from(self.every);
            self.notes.push(format!(
                "the recorder used {percent:.1} % of a CPU: {hz:.0} samples each second from second {seconds} on"
            ));
            return Some(Less::SampleEvery(self.every));
        }
        if self.switches {
            self.switches = false;
            self.notes.push(format!(
                "the recorder used {percent:.1} % of a CPU: no context switches from second {seconds} on"
            ));
            return Some(Less::NoSwitches);
        }
        None
    }

    /// Share of one CPU since the beginning.
    pub fn share(&self, spent: Spent) -> f64 {
        share(self.first, spent)
    }

    /// The changes, for people: the last one includes those before it.
    pub fn note(&self) -> Option<&str> {
        self.notes.last().map(String::as_str)
    }
}

fn share(before: Spent, after: Spent) -> f64 {
    let spent = |of: fn(&Spent) -> u64| of(&after).saturating_sub(of(&before)) as f64;
    let elapsed = spent(|at| at.now);
    if elapsed > 0.0 { (spent(|at| at.own) + spent(|at| at.kernel)) / elapsed } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn spent(seconds: u64, own: u64, kernel: u64) -> Spent {
        Spent { now: seconds * S, own: own * S / 1000, kernel: kernel * S / 1000 }
    }

    #[test]
    fn samples_become_fewer_until_only_switches_can_be_left_out() {
        let mut cost = Cost::new(spent(0, 0, 0), true);
        // 30 ms in a second are three per cent.
        assert_eq!(cost.judge(spent(1, 20, 10), 99), None);
        let mut less = Vec::new();
        for second in 2..10 {
            less.extend(cost.judge(spent(second, second * 20, second * 20), 99));
        }
        let every = [2, 4, 8, 16, 32].map(Less::SampleEvery);
        assert_eq!(less[..5], every);
        assert_eq!(less[5..], [Less::NoSwitches]);
        assert!(cost.note().unwrap().contains("4.0 % of a CPU: no context switches"));
        assert!((cost.share(spent(10, 200, 200)) - 0.04).abs() < 1e-9);
    }

    #[test]
    fn short_times_are_not_judged() {
        let mut cost = Cost::new(spent(5, 100, 0), false);
        assert_eq!(cost.judge(Spent { now: 5 * S + S / 2, own: S, kernel: 0 }, 99), None);
        assert_eq!(cost.note(), None);
        assert_eq!(cost.judge(spent(6, 200, 0), 99), Some(Less::SampleEvery(2)));
        assert!(cost.note().unwrap().contains("50 samples each second from second 1"));
        assert_eq!(cost.share(spent(5, 100, 0)), 0.0);
    }
}
