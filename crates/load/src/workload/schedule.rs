//! When a user's executions are due, counted from the user's begin.
//!
//! *Slotted* (the default): one execution in every interval, started at a random point in the
//! interval's first part, and each user's intervals shifted by a random share of one. Every user has
//! exactly its rate at any time, many users together are as evenly mixed as independent ones, and with
//! a jitter of 0.5 two executions of a user are never closer than half an interval (5.4 s in
//! `homefolder`): a user that is late is late because of the server and not because two executions came
//! close together by chance. *Exponential* intervals (a Poisson process) have bursts that make a user
//! late on an idle server; they are for questions of queueing. Either way a due time follows from
//! (seed, user, run) alone, never from clocks, threads or machines.

use std::time::Duration;

use super::model::Pacing;
use crate::fileset::random::{Stream, mix};

// Purposes of keys; the numbers never change.
const PURPOSE_PHASE: u64 = 17;
const PURPOSE_DUE: u64 = 18;

/// The due times of all users.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pacing: Pacing,
    mean: f64,
    seed: u64,
}

impl Schedule {
    pub fn new(pacing: Pacing, mean: Duration, seed: u64) -> Schedule {
        Schedule { pacing, mean: mean.as_secs_f64(), seed }
    }

    /// When a run is due.
    pub fn due(&self, user: u64, run: u64) -> Duration {
        match self.pacing {
            Pacing::Slotted { jitter } => {
                let phase = Stream::new(mix(mix(self.seed, user), PURPOSE_PHASE)).unit();
                let begin = phase + run as f64 + jitter * self.draw(user, run);
                Duration::from_secs_f64((begin * self.mean).min(1e9))
            }
            Pacing::Exponential => {
                (0..=run).fold(Duration::ZERO, |due, run| due + self.exponential(user, run))
            }
        }
    }

    /// When a run is due, given that the run before it was due at `before`.
    pub fn next(&self, user: u64, run: u64, before: Duration) -> Duration {
        match self.pacing {
            Pacing::Slotted { .. } => self.due(user, run),
            Pacing::Exponential => before + self.exponential(user, run),
        }
    }

    fn exponential(&self, user: u64, run: u64) -> Duration {
        Duration::from_secs_f64(-(1.0 - self.draw(user, run)).ln() * self.mean)
    }

    fn draw(&self, user: u64, run: u64) -> f64 {
        Stream::new(mix(mix(mix(self.seed, user), PURPOSE_DUE), run)).unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Duration = Duration::from_millis(10_880);

    fn dues(pacing: Pacing, user: u64, runs: u64) -> Vec<f64> {
        let schedule = Schedule::new(pacing, MEAN, 1);
        let mut due = schedule.due(user, 0);
        let mut dues = vec![due.as_secs_f64()];
        for run in 1..runs {
            due = schedule.next(user, run, due);
            assert_eq!(due, schedule.due(user, run));
            dues.push(due.as_secs_f64());
        }
        dues
    }

    #[test]
    fn slots_keep_the_rate_and_a_distance() {
        for user in 0..50 {
            let dues = dues(Pacing::Slotted { jitter: 0.5 }, user, 400);
            assert!(dues.windows(2).all(|pair| (5.43..16.33).contains(&(pair[1] - pair[0]))));
            // 331 per hour, for every user.
            let hour = dues.iter().filter(|&&due| due < 3600.0).count();
            assert!((329..=331).contains(&hour), "{hour}");
        }
    }

    #[test]
    fn users_are_spread_over_the_interval() {
        let mut tenths = [0; 10];
        for user in 0..1_000 {
            let due = dues(Pacing::Slotted { jitter: 0.5 }, user, 8)[7];
            tenths[(due / 10.88 * 10.0) as usize % 10] += 1;
        }
        assert!(tenths.iter().all(|&count| (70..130).contains(&count)), "{tenths:?}");
    }

    #[test]
    fn exponential_distances_have_their_mean() {
        let dues = dues(Pacing::Exponential, 3, 1_000);
        let mean = dues[999] / 1_000.0;
        assert!((10.0..11.8).contains(&mean), "{mean}");
        let short = dues.windows(2).filter(|pair| pair[1] - pair[0] < 1.0).count();
        assert!((60..120).contains(&short), "{short}");
    }
}
