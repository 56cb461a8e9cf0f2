//! What overload is: docs/method/overload.md says it in one sentence, this is its code.
//!
//! FSCT calls a server overloaded when users can no longer keep their schedule; Lovinger and
//! Kruse (SDC 2010) when they "cannot maintain the scheduling rate". Both are shares here, and the
//! larger one is the step's overload: users that are behind their schedule, and scenarios that
//! remain undone. The former alone needs long steps: a server asked for 5 % more than it can do
//! lets the time of a scenario grow by less than 5 s a minute, and a user is late only when that
//! time reaches the interval between scenarios. The latter alone would let users be late for ever
//! as long as they are not later every minute.

use serde::{Deserialize, Serialize};

/// The state of the users of a step at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When, in nanoseconds on the run's clock.
    pub time_ns: i64,
    /// Users.
    pub users: u64,
    /// Scenarios that were due until then, since the users began.
    pub due: u64,
    /// Scenarios due that had begun.
    pub begun: u64,
    /// Scenarios that had begun before their user's next one was due.
    pub on_time: u64,
    /// Begun scenarios that had ended, failed ones included.
    pub ended: u64,
    /// Users with a scenario not begun that was due longer ago than one mean interval.
    pub users_behind: u64,
}

impl Snapshot {
    /// Scenarios due that have not ended.
    pub fn open(&self) -> u64 {
        self.due.saturating_sub(self.ended)
    }

    /// Two shares of the users of one run (`--shard`), at the same moment.
    pub fn and(&self, other: &Snapshot) -> Snapshot {
        Snapshot {
            time_ns: self.time_ns.max(other.time_ns),
            users: self.users + other.users,
            due: self.due + other.due,
            begun: self.begun + other.begun,
            on_time: self.on_time + other.on_time,
            ended: self.ended + other.ended,
            users_behind: self.users_behind + other.users_behind,
        }
    }
}

/// The bounds in the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Mean interval between two scenarios of a user, in nanoseconds (3,600 s / 331 for
    /// `homefolder`): a user who has not begun what was due longer ago is behind.
    pub interval_ns: i64,
    /// A step with more overload than this is overloaded, in percent.
    pub limit_percent: f64,
}

impl Rule {
    /// The sentence's own bounds for a workload's mean interval.
    pub fn new(interval_ns: i64) -> Rule {
        Rule { interval_ns: interval_ns.max(1), limit_percent: 2.0 }
    }

    /// Scenarios that this many users have due in this time, on average.
    pub fn expected_due(&self, users: u64, duration_ns: i64) -> f64 {
        users as f64 * duration_ns as f64 / self.interval_ns as f64
    }

    /// Growth of the number of open scenarios that is not overload, for the number that was due: the
    /// limit's share, and at least what the schedule itself varies by (a Poisson variable's
    /// standard deviation), so that few users in a short step are not overloaded by chance.
    pub fn growth_allowed(&self, due: f64) -> f64 {
        (due * self.limit_percent / 100.0).max(due.max(0.0).sqrt())
    }

    /// What the measured window between two moments shows.
    pub fn judge(&self, begin: &Snapshot, end: &Snapshot) -> Assessment {
        let due = end.due.saturating_sub(begin.due);
        let growth = end.open() as f64 - begin.open() as f64;
        let behind_percent = percent(end.users_behind as f64, end.users as f64);
        let undone_percent = if growth > self.growth_allowed(due as f64) {
            percent(growth, due as f64)
        } else {
            0.0
        };
        let overload_percent = behind_percent.max(undone_percent);
        Assessment {
            users_behind: end.users_behind,
            behind_percent,
            undone_percent,
            overload_percent,
            overloaded: overload_percent > self.limit_percent,
        }
    }
}

/// How overloaded a step was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// Users behind their schedule at the end of the window.
    pub users_behind: u64,
    /// The same in percent of all users.
    pub behind_percent: f64,
    /// Growth of open scenarios in percent of those that were due in the window; zero when chance
    /// explains it.
    pub undone_percent: f64,
    /// The larger of the two.
    pub overload_percent: f64,
    /// Whether it exceeds the limit.
    pub overloaded: bool,
}

fn percent(part: f64, of: f64) -> f64 {
    if of > 0.0 { (100.0 * part / of).min(100.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{Server, World};
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn snapshot(users: u64, due: u64, ended: u64, users_behind: u64) -> Snapshot {
        Snapshot { time_ns: 0, users, due, begun: ended, on_time: ended, ended, users_behind }
    }

    #[test]
    fn the_sentence_word_by_word() {
        let rule = Rule::new(10 * SECOND);
        // Behind: two of a hundred users are not more than 2 %, three are.
        let begin = snapshot(100, 300, 297, 0);
        assert!(!rule.judge(&begin, &snapshot(100, 900, 897, 2)).overloaded);
        let judgement = rule.judge(&begin, &snapshot(100, 900, 897, 3));
        assert!(judgement.overloaded);
        assert_eq!((judgement.users_behind, judgement.overload_percent), (3, 3.0));
        // Undone: 200 of 10,000 are not more than 2 %, 201 are.
        assert!(!rule.judge(&begin, &snapshot(100, 10_300, 10_097, 0)).overloaded);
        let judgement = rule.judge(&begin, &snapshot(100, 10_300, 10_096, 0));
        assert!(judgement.overloaded);
        assert!((judgement.undone_percent - 2.01).abs() < 1e-9);
        // Chance: 20 of 400 are not more than the root, 21 are.
        assert!(!rule.judge(&begin, &snapshot(100, 700, 677, 0)).overloaded);
        let judgement = rule.judge(&begin, &snapshot(100, 700, 676, 0));
        assert!(judgement.overloaded);
        assert_eq!(judgement.overload_percent, 5.25);
        // Nothing due, nothing wrong; fewer open scenarios are not overload.
        assert_eq!(rule.judge(&begin, &begin), Assessment::default());
        assert_eq!(rule.judge(&begin, &snapshot(100, 900, 900, 0)), Assessment::default());
        assert_eq!(rule.judge(&Snapshot::default(), &Snapshot::default()), Assessment::default());
    }

    #[test]
    fn shards_add_up() {
        let both = snapshot(10, 100, 90, 1).and(&snapshot(20, 200, 190, 2));
        assert_eq!(both, snapshot(30, 300, 280, 3));
    }

    /// How many of `runs` steps are overloaded.
    fn overloaded(server: &Server, users: u64, seconds: i64, runs: u64) -> u64 {
        (1..=runs)
            .filter(|&seed| {
                let mut world = World::new(server, users, seed);
                world.judge(30 * SECOND, seconds * SECOND).overloaded
            })
            .count() as u64
    }

    // A server that carries 100 users: its operations are served by two cores, the users' time
    // without load is 0.16 s a scenario near by and 2.2 s far away (27 round trips of 80 ms).

    #[test]
    fn a_server_with_reserves_shows_no_overload() {
        for rtt_ms in [0, 80] {
            let server = Server::for_users(100, 2).rtt_ms(rtt_ms);
            for users in [1, 5, 60] {
                assert_eq!(overloaded(&server, users, 60, 40), 0, "{users} users, {rtt_ms} ms");
            }
            // At four fifths of what it carries a queue of twenty forms by chance, now and then.
            assert!(overloaded(&server, 80, 60, 40) <= 2, "{rtt_ms} ms");
        }
    }

    #[test]
    fn slotted_users_are_judged_more_sharply() {
        for rtt_ms in [0, 80] {
            let server = Server::for_users(100, 2).rtt_ms(rtt_ms).slotted();
            assert_eq!(overloaded(&server, 90, 60, 40), 0, "{rtt_ms} ms");
            assert!(overloaded(&server, 115, 60, 40) >= 36, "{rtt_ms} ms");
        }
    }

    #[test]
    #[ignore = "a measurement: prints the table of docs/measurements/overload.md"]
    fn overloaded_by_load() {
        for (users, seconds) in [(100, 60), (1_000, 60), (100, 600)] {
            for slotted in [true, false] {
                let server = Server::for_users(users, 2);
                let server = if slotted { server.slotted() } else { server };
                let shares = [50, 80, 90, 95, 100, 105, 110, 120].map(|load| {
                    let runs = 60_000 / (users * seconds as u64) * 10 + 20;
                    let steps = overloaded(&server, users * load / 100, seconds, runs);
                    format!("{load} %: {} of {runs}", steps)
                });
                println!("{users} users, {seconds} s, slotted {slotted}: {}", shares.join(", "));
            }
        }
    }

    #[test]
    fn two_scenarios_at_once_by_chance_are_no_overload() {
        // A single user, for a long time: scenarios are late by chance, he is not overloaded.
        let server = Server::for_users(100, 2).rtt_ms(20);
        let mut world = World::new(&server, 1, 7);
        assert!(!world.judge(30 * SECOND, 36_000 * SECOND).overloaded);
        assert!(world.late > 50, "{}", world.late);
    }

    #[test]
    fn a_server_asked_for_too_much_is_caught_within_a_minute() {
        for rtt_ms in [0, 80] {
            let server = Server::for_users(100, 2).rtt_ms(rtt_ms);
            assert!(overloaded(&server, 130, 60, 40) >= 39, "{rtt_ms} ms");
            assert!(overloaded(&server, 200, 60, 40) == 40, "{rtt_ms} ms");
        }
        let server = Server::for_users(1_000, 2);
        assert!(overloaded(&server, 1_070, 60, 10) >= 9);
        assert!(overloaded(&server, 930, 60, 10) <= 1);
    }

    #[test]
    fn ten_minutes_tell_five_percent_apart() {
        let server = Server::for_users(200, 2);
        assert!(overloaded(&server, 212, 600, 10) >= 9);
        assert!(overloaded(&server, 188, 600, 10) <= 1);
    }
}
