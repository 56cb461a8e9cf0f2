//! A simulated server and its users on a virtual clock, for the tests of this module.
//!
//! Scenarios are 27 operations, one after another, each a round trip and an exponential time on
//! one of the server's cores, which take operations in the order of their arrival (M/M/k with
//! users that wait for their replies). Users have exponential spacing, the worst case for a
//! schedule kept by chance, or slotted spacing as `homefolder` has it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::overload::{Assessment, Rule, Snapshot};
use super::schedule_log::ScheduleLog;

/// A small generator of random numbers (splitmix64, S. Vigna).
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.uniform().ln()
    }
}

pub const INTERVAL_NS: i64 = 3_600_000_000_000 / 331;
const OPERATIONS: u32 = 27;

/// A server.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    cores: usize,
    service_ns: f64,
    rtt_ns: i64,
    slotted: bool,
}

impl Server {
    /// One whose cores are just busy all the time with that many users.
    pub fn for_users(users: u64, cores: usize) -> Server {
        let operations_per_ns = users as f64 * f64::from(OPERATIONS) / INTERVAL_NS as f64;
        Server { cores, service_ns: cores as f64 / operations_per_ns, rtt_ns: 0, slotted: false }
    }

    /// The same at a distance.
    pub fn rtt_ms(self, rtt_ms: i64) -> Server {
        Server { rtt_ns: rtt_ms * 1_000_000, ..self }
    }

    /// The same for users with one scenario in each interval, in its first half.
    pub fn slotted(self) -> Server {
        Server { slotted: true, ..self }
    }

    /// When a user's scenario is due, from when the one before it was: it follows from the seed,
    /// the user and the number, so that the log can ask for it as well.
    fn due_ns(&self, seed: u64, user: usize, number: u64, before_ns: i64) -> i64 {
        let draw = |number: u64| {
            let mut random = Random(seed ^ (user as u64) << 40 ^ number << 8);
            random.next();
            random
        };
        if self.slotted {
            let phase = draw(u64::MAX >> 8).uniform();
            let begin = phase + number as f64 + 0.5 * draw(number).uniform();
            (begin * INTERVAL_NS as f64) as i64
        } else {
            before_ns + draw(number).exponential(INTERVAL_NS as f64) as i64
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Due(usize),
    Arrival(usize),
    Served(usize),
    Reply(usize),
}

#[derive(Clone, Copy, Debug)]
struct User {
    due_ns: i64,
    left: u32,
}

/// Users and their server.
pub struct World {
    server: Server,
    rule: Rule,
    log: ScheduleLog,
    users: Vec<User>,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    queue: VecDeque<usize>,
    busy: usize,
    random: Random,
    seed: u64,
    /// Scenarios that began late.
    pub late: u64,
}

impl World {
    pub fn new(server: &Server, users: u64, seed: u64) -> World {
        let first: Vec<i64> =
            (0..users as usize).map(|user| server.due_ns(seed, user, 0, 0)).collect();
        World {
            server: *server,
            rule: Rule::new(INTERVAL_NS),
            log: ScheduleLog::new(INTERVAL_NS, first.iter().copied()),
            users: first.iter().map(|&due_ns| User { due_ns, left: 0 }).collect(),
            events: first.iter().enumerate().map(|(u, &t)| Reverse((t, Event::Due(u)))).collect(),
            queue: VecDeque::new(),
            busy: 0,
            random: Random(seed.wrapping_mul(77)),
            seed,
            late: 0,
        }
    }

    /// Runs until then.
    pub fn run(&mut self, until_ns: i64) -> Snapshot {
        while let Some(&Reverse((now, event))) = self.events.peek()
            && now <= until_ns
        {
            self.events.pop();
            self.event(now, event);
        }
        let (seed, server) = (self.seed, self.server);
        self.log.snapshot(until_ns, |user, number, due_ns| {
            Some(server.due_ns(seed, user, number + 1, due_ns))
        })
    }

    /// A whole step: what its window shows.
    pub fn judge(&mut self, warm_up_ns: i64, window_ns: i64) -> Assessment {
        let begin = self.run(warm_up_ns);
        let end = self.run(warm_up_ns + window_ns);
        self.rule.judge(&begin, &end)
    }

    fn schedule(&mut self, time_ns: i64, event: Event) {
        self.events.push(Reverse((time_ns, event)));
    }

    fn serve(&mut self, now: i64, user: usize) {
        let service_ns = self.random.exponential(self.server.service_ns) as i64;
        self.schedule(now + service_ns, Event::Served(user));
    }

    fn event(&mut self, now: i64, event: Event) {
        match event {
            Event::Due(user) => {
                if self.users[user].left == 0 && self.users[user].due_ns <= now {
                    self.begin(now, user);
                }
            }
            Event::Arrival(user) if self.busy < self.server.cores => {
                self.busy += 1;
                self.serve(now, user);
            }
            Event::Arrival(user) => self.queue.push_back(user),
            Event::Served(user) => {
                match self.queue.pop_front() {
                    Some(next) => self.serve(now, next),
                    None => self.busy -= 1,
                }
                self.schedule(now + self.server.rtt_ns / 2, Event::Reply(user));
            }
            Event::Reply(user) => {
                self.users[user].left -= 1;
                if self.users[user].left > 0 {
                    self.schedule(now + self.server.rtt_ns / 2, Event::Arrival(user));
                } else {
                    self.log.end(user);
                    if self.users[user].due_ns <= now {
                        self.late += 1;
                        self.begin(now, user);
                    }
                }
            }
        }
    }

    fn begin(&mut self, now: i64, user: usize) {
        let number = {
            // The number of the scenario that begins: the log counts them as well.
            let state = &mut self.users[user];
            state.left = OPERATIONS;
            self.log.begun(user)
        };
        let before_ns = self.users[user].due_ns;
        let next_due_ns = self.server.due_ns(self.seed, user, number + 1, before_ns);
        self.users[user].due_ns = next_due_ns;
        self.log.begin(user, now, Some(next_due_ns));
        self.schedule(next_due_ns.max(now), Event::Due(user));
        self.schedule(now + self.server.rtt_ns / 2, Event::Arrival(user));
    }
}
