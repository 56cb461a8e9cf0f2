//! How many users a server carries when a scenario needs more or less of its CPUs.

use super::{Capacity, PROCESSORS, Use};

/// Error of what is added, as a share of it: calibrations of the same machine differ by this much
/// (docs/measurements).
const CALIBRATION_ERROR: f64 = 0.1;
/// A scenario is assumed to need at least this share of what it needs today.
const DEMAND_MIN: f64 = 0.05;

/// How changes alter what a scenario needs of the CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DemandChange {
    /// Share of today's CPU time that is left of everything.
    pub left: f64,
    /// CPU time that is added to a scenario at the server and at the client, s; negative where it is saved.
    pub more_s: (f64, f64),
}

impl DemandChange {
    /// Whether anything changes.
    pub fn is_other(&self) -> bool {
        *self != DemandChange { left: 1.0, more_s: (0.0, 0.0) }
    }

    fn of(&self, used: Use, more: f64) -> Use {
        let each = self.left * used.each;
        Use {
            idle: used.idle.map(|idle| self.left * idle),
            each: (each + more).max(DEMAND_MIN * each),
            more: self.left * used.more,
        }
    }
}

impl Capacity {
    /// The capacity with this demand. The client's CPU time counts where it runs on the server's machine.
    pub fn with_demand(&self, change: DemandChange) -> Capacity {
        let more_s = change.more_s.0 + if self.clients_beside { change.more_s.1 } else { 0.0 };
        let throughput = self.users_recorded * self.rate;
        let mut capacity = self.clone();
        for one in capacity.resources.iter_mut().filter(|one| one.name == PROCESSORS) {
            let more = more_s / one.servers as f64;
            let users = |used: Use| used.full() / self.rate;
            let (used, other) =
                (change.of(one.used, more), change.of(one.used, (1.0 + CALIBRATION_ERROR) * more));
            // The uncertainty of today's demand does not apply to what is added.
            let share = change.left * one.used.each / used.each;
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
