//! How long requests wait for a resource, from how busy it is, and how waits are spread over requests: queues with
//! random arrivals. How busy a resource is comes from [`capacity`](super::capacity).

use super::capacity::{PROCESSORS, Resource};

/// Longest wait: longer ones come from damaged files. Sums of this do not overflow.
const WAIT_MAX_NS: i64 = 1_000_000_000_000_000;

/// How a resource is loaded, today and with the changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    pub name: String,
    /// Busy share.
    pub busy: (f64, f64),
    /// Share of the requests that wait for it.
    pub share: f64,
    /// How long one scenario waits for it, s.
    pub wait_s: (f64, f64),
    /// The wait with the changes if every scenario needs a tenth more of it than measured, s; none where it then has
    /// no time left.
    pub tenth_more_s: Option<f64>,
}

impl Load {
    /// How much longer the `requests` of a scenario wait. Faster CPUs have already left only the share `left` of
    /// the wait for them, which is in the slices.
    pub fn wait(&self, requests: f64, left: f64) -> Wait {
        let left = if self.name == PROCESSORS { left } else { 1.0 };
        let more_s = (self.wait_s.1 - left * self.wait_s.0) / requests;
        if self.share > 0.0 {
            Wait { share: self.share, mean_s: more_s / self.share }
        } else {
            Wait::default()
        }
    }
}

/// How much longer requests wait than today.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    /// Share of the requests that wait.
    pub share: f64,
    /// Mean of those, s; negative where they wait less.
    pub mean_s: f64,
}

impl Wait {
    /// How much longer one request waits, ns; exponential, and always the same for the same number.
    pub(crate) fn draw_ns(&self, number: u64) -> i64 {
        // SplitMix64 (Steele, Lea, Flood 2014): each bit of the number affects the whole result.
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

/// The queue of a resource: the wait for it as a multiple of the demand on it.
pub(super) struct Queue {
    servers: u64,
    /// From one queue for all servers (0) to one for each (1).
    separation: f64,
}

impl Queue {
    /// From the wait that was recorded while the resource was this busy.
    pub(super) fn from_resource(resource: &Resource, busy: f64) -> Queue {
        let all = Queue { servers: resource.servers, separation: 0.0 };
        let [least, most] = [0.0, 1.0].map(|separation| Queue { separation, ..all }.waiting(busy));
        match resource.wait_s {
            // A longer wait is not due to the load: a sleeping CPU takes time to wake up.
            Some(wait_s) if most > least => {
                let separation = (wait_s / resource.demand_s - least) / (most - least);
                Queue { separation: separation.clamp(0.0, 1.0), ..all }
            }
            _ => all,
        }
    }

    pub(super) fn waiting(&self, busy: f64) -> f64 {
        let [all, each] = [self.servers, 1].map(|servers| waiting(servers, busy));
        all + self.separation * (each - all)
    }
}

/// The mean wait of M/M/c in service times.
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
