//! How long requests wait for a resource by how busy it is, and how waits are spread over requests: queues with
//! random arrivals. How busy it is is the module's above, with what it rests on.

use super::capacity::{PROCESSORS, Resource};

/// What is waited longer is nonsense that a damaged file holds; sums of this do not overflow.
const WAIT_MAX_NS: i64 = 1_000_000_000_000_000;

/// How a resource is loaded, today and with other users.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// Share of it that is busy.
    pub busy: (f64, f64),
    /// Share of the requests that wait for it.
    pub share: f64,
    /// What one scenario waits for it, s.
    pub wait_s: (f64, f64),
    /// The same with the other users where all need a tenth more of it than was seen; none where it has no time then.
    pub tenth_more_s: Option<f64>,
}

impl Load {
    /// What requests wait more, where a scenario has so many, and faster processors have left so much of what was
    /// waited for them: that was in the slices.
    pub fn wait(&self, requests: f64, left: f64) -> Wait {
        let left = if self.name == PROCESSORS { left } else { 1.0 };
        let more_s = (self.wait_s.1 - left * self.wait_s.0) / requests;
        match self.share > 0.0 {
            true => Wait { share: self.share, mean_s: more_s / self.share },
            false => Wait::default(),
        }
    }
}

/// What is waited more than today: so many wait, so long on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    /// Share of those that wait.
    pub share: f64,
    /// Of those, s; below zero where they wait less.
    pub mean_s: f64,
}

impl Wait {
    /// What one of many waits more, ns; exponential, and always the same for the same number.
    pub(crate) fn draw_ns(&self, number: u64) -> i64 {
        // SplitMix64 (Steele, Lea, Flood 2014): each bit of the number changes all of the result.
        let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = (((bits ^ (bits >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        if drawn >= self.share {
            return 0;
        }
        let ns = (-1e9 * self.mean_s * (drawn / self.share).ln()) as i64;
        ns.clamp(-WAIT_MAX_NS, WAIT_MAX_NS)
    }
}

/// How long is waited for a resource, in times of what is needed of it.
pub(super) struct Queue {
    servers: u64,
    /// From one queue for all servers to one for each, 0 to 1.
    apart: f64,
}

impl Queue {
    /// As it was seen when the resource was so busy.
    pub(super) fn of(resource: &Resource, busy: f64) -> Queue {
        let all = Queue { servers: resource.servers, apart: 0.0 };
        let [least, most] = [0.0, 1.0].map(|apart| Queue { apart, ..all }.waiting(busy));
        match resource.wait_s {
            // More is not due to the load: a processor that sleeps takes time to wake up.
            Some(wait_s) if most > least => {
                let apart = (wait_s / resource.demand_s - least) / (most - least);
                Queue { apart: apart.clamp(0.0, 1.0), ..all }
            }
            _ => all,
        }
    }

    pub(super) fn waiting(&self, busy: f64) -> f64 {
        let [all, each] = [self.servers, 1].map(|servers| waiting(servers, busy));
        all + self.apart * (each - all)
    }
}

/// What M/M/c waits in service times.
pub(super) fn waiting(servers: u64, busy: f64) -> f64 {
    erlang_c(servers, busy) / (servers as f64 * (1.0 - busy))
}

/// Probability that an arrival has to wait (Erlang 1917), by the recursion of Erlang's B.
pub(super) fn erlang_c(servers: u64, utilization: f64) -> f64 {
    let servers = servers.max(1);
    let load = servers as f64 * utilization;
    let mut blocked = 1.0;
    for place in 1..=servers {
        blocked = load * blocked / (place as f64 + load * blocked);
    }
    blocked / (1.0 - utilization * (1.0 - blocked))
}
