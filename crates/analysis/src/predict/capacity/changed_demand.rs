//! What a server carries once a scenario needs more or less of its processors.

use super::{Capacity, PROCESSORS, Use};

/// How wrong what is added may be: calibrations of the same machine differ by so much (docs/predictions.md).
const CALIBRATED: f64 = 0.1;
/// No scenario is thought to need less than this share of what it needs today.
const LEAST: f64 = 0.05;

/// What changes do to a scenario's need of the processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Then {
    /// They take so much of today's time for everything.
    pub left: f64,
    /// Then the server takes so much longer for a scenario, and the client, s; below zero where they take less.
    pub more_s: (f64, f64),
}

impl Then {
    /// Whether anything is another.
    pub fn is_other(&self) -> bool {
        *self != Then { left: 1.0, more_s: (0.0, 0.0) }
    }

    fn of(&self, used: Use, more: f64) -> Use {
        let each = self.left * used.each;
        Use {
            idle: used.idle.map(|idle| self.left * idle),
            each: (each + more).max(LEAST * each),
            more: self.left * used.more,
        }
    }
}

impl Capacity {
    /// With such a need. Clients count where they are on the server's machine.
    pub fn then(&self, then: Then) -> Capacity {
        let more_s = then.more_s.0 + if self.clients_beside { then.more_s.1 } else { 0.0 };
        let throughput = self.users_recorded * self.rate;
        let mut capacity = self.clone();
        for one in capacity.resources.iter_mut().filter(|one| one.name == PROCESSORS) {
            let more = more_s / one.servers as f64;
            let users = |used: Use| used.full() / self.rate;
            let (used, other) =
                (then.of(one.used, more), then.of(one.used, (1.0 + CALIBRATED) * more));
            // What is not known of today's need is no more for what is added.
            let share = then.left * one.used.each / used.each;
            let error = share * one.users_error / one.users * users(used);
            one.users_error = error.hypot(users(other) - users(used));
            (one.used, one.users) = (used, users(used));
            one.demand_s = used.demand_s(throughput, one.servers);
            one.utilization = used.at(throughput).min(1.0);
            one.wait_s = None;
        }
        capacity.resources.sort_by(|one, other| one.users.total_cmp(&other.users));
        capacity
    }
}
