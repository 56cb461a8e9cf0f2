//! The stage of a server in which one process or thread serves the messages of a connection one after the other, and signs
//! and encrypts them (Samba). Requests that are in flight together wait for each other in it.
//!
//! The time between two replies is the server's as far as it served the request in it; the rest is that of other stages
//! (client, network, disks), which continue while the server signs. Replies may be seen several at once, so both are
//! clocks over all replies since the connection was idle.

use super::request::duration;

/// One request and its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// When it was sent: recorded, and with the changes, ns.
    pub(super) sent: (i64, i64),
    /// When it ends: recorded, and with the changes, without the wait in this stage, ns.
    pub(super) ends: (i64, i64),
    /// How much longer the server signs and encrypts; negative if it is less, ns.
    pub(super) more_ns: i64,
    /// The server's time for it today, signing and encryption included, ns; none where it is not known.
    pub(super) serves_ns: Option<i64>,
    /// Shortest time between its reply and the one before: that of its bytes on the way to the client, ns.
    pub(super) least_ns: i64,
    /// Round trip with the changes, ns.
    pub(super) rtt_ns: i64,
}

/// The stage of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SerialStage {
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    /// End of the last reply: recorded, and with the changes, ns.
    ends: (i64, i64),
    /// When the server has served it, and when the other stages are done, with the changes, ns.
    served: i64,
    others: i64,
    /// Recorded time between replies in which the server is not known to have served, ns.
    idle_ns: i64,
    /// What is saved of replies that were seen together with the one before, ns.
    owed_ns: i64,
}

impl SerialStage {
    /// How much longer a request waits in the stage than without it, ns.
    pub(super) fn wait_ns(&mut self, one: &Served) -> i64 {
        let (was, then) = one.ends;
        let overlapping = self.last.filter(|last| one.sent.0 < last.ends.0);
        let Some(last) = overlapping else {
            let ends = match self.last {
                Some(last) => (last.ends.0.max(was), last.ends.1.max(then)),
                None => one.ends,
            };
            self.last = Some(Last { ends, served: then, others: then, idle_ns: 0, owed_ns: 0 });
            return 0;
        };
        let apart_ns = duration(was.saturating_sub(last.ends.0));
        let mut next = last;
        let end = if one.more_ns >= 0 {
            let available_ns = apart_ns.saturating_add(last.idle_ns);
            let serves_ns = one.serves_ns.map_or(available_ns, |ns| ns.clamp(0, available_ns));
            next.idle_ns = duration(available_ns - serves_ns);
            next.served = last.served.max(one.sent.1).saturating_add(serves_ns + one.more_ns);
            next.others = last.others.saturating_add(apart_ns);
            then.max(next.served).max(next.others).max(last.ends.1)
        } else {
            let left_ns = apart_ns + one.more_ns + last.owed_ns;
            next.owed_ns = left_ns.clamp(-super::request::DURATION_MAX_NS, 0);
            let left_ns = left_ns.max(one.least_ns.min(apart_ns)).max(0);
            let alone = one.sent.1.saturating_add(one.rtt_ns);
            last.ends.1.max(alone).saturating_add(left_ns)
        };
        if one.more_ns < 0 {
            (next.served, next.others) = (end, end);
        }
        next.ends = (last.ends.0.max(was), end);
        self.last = Some(next);
        end.saturating_sub(then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1_000;

    /// The mean time between replies (µs) of a client with `depth` requests in flight, whose replies were `apart` recorded.
    fn between(apart: &[i64], depth: usize, change: impl Fn(Served) -> Served) -> f64 {
        let mut stage = SerialStage::default();
        let (mut was, mut then) = (vec![0], vec![0]);
        for number in 0..2_000 {
            let ended = was[number] + apart[number % apart.len()] * US;
            let place = (number + 1).saturating_sub(depth);
            let sent = (was[place], then[place]);
            let one = Served {
                sent,
                ends: (ended, 0),
                more_ns: 0,
                serves_ns: None,
                least_ns: 0,
                rtt_ns: 20 * US,
            };
            let mut one = change(one);
            one.ends.1 = sent.1 + ended - sent.0 + one.more_ns;
            then.push(one.ends.1 + stage.wait_ns(&one));
            was.push(ended);
        }
        // A multiple of the number of replies that are seen together.
        (then[1_999] - then[1_000]) as f64 / 999.0 / US as f64
    }

    #[test]
    fn what_the_server_does_more_is_done_for_each_request() {
        let more = |served| Served { more_ns: 500 * US, ..served };
        assert_eq!(between(&[400], 8, more), 900.0);
        // Replies that are seen together were served one after the other.
        assert_eq!(between(&[1_200, 0, 0], 8, more), 900.0);
    }

    #[test]
    fn a_server_that_waited_for_others_has_time_to_sign() {
        let of = |serves: i64, more: i64| {
            move |served| Served { more_ns: more * US, serves_ns: Some(serves * US), ..served }
        };
        let near = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}")
        };
        near(between(&[400], 8, of(300, 500)), 800.0);
        near(between(&[1_200, 0, 0], 8, of(300, 500)), 800.0);
        // Everything in the time for which it waited: only the latency of each grows, once for all that are in flight.
        near(between(&[400], 8, of(100, 200)), 425.0);
        // It served all the time.
        near(between(&[400], 8, of(700, 500)), 900.0);
    }

    #[test]
    fn what_the_server_does_less_is_saved_for_each_request() {
        let less = |served| Served { more_ns: -500 * US, ..served };
        assert_eq!(between(&[800], 8, less), 300.0);
        assert_eq!(between(&[2_400, 0, 0], 8, less), 300.0);
        // The bytes take as long as before.
        assert_eq!(between(&[800], 8, |one| Served { least_ns: 600 * US, ..less(one) }), 600.0);
    }

    #[test]
    fn nothing_overflows() {
        let far = i64::MAX / 3;
        let mut stage = SerialStage::default();
        for (sent, ended) in [(-far, far), (-far, -far), (far, far), (-far, far)] {
            for more_ns in [-far, 0, far] {
                stage.wait_ns(&Served {
                    sent: (sent, ended),
                    ends: (ended, sent),
                    more_ns,
                    serves_ns: Some(-far),
                    least_ns: far,
                    rtt_ns: far,
                });
            }
        }
    }
}
