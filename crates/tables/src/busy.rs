//! The busy clock of a connection: the source of the column `busy_ns`.

/// Reading of a message that is not on the clock: its share is not counted.
pub const NOT_ON_CLOCK: i64 = i64::MIN;

/// A time that is earlier by more than this is not that of a packet recorded late, ns.
const STEP_BACK_NS: i64 = 1_000_000_000;

/// Divides time among the messages in flight (CPU sharing). The share of a request is the
/// clock's reading at its response minus the reading at its start, however many were in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct BusyClock {
    in_flight: u32,
    time: i64,
    /// In 1/1024 ns, so that division loses nothing significant.
    reading: i64,
}

impl BusyClock {
    /// Advances to `time`; an earlier time changes nothing, unless the recorder's clock stepped back.
    #[inline]
    fn advance(&mut self, time: i64) {
        let passed = time.saturating_sub(self.time);
        if passed > 0 {
            let passed = passed.saturating_mul(1024);
            self.reading = self.reading.wrapping_add(match self.in_flight {
                0 => 0,
                // The usual case; a division is slow.
                1 => passed,
                several => passed / i64::from(several),
            });
            self.time = time;
        } else if passed < -STEP_BACK_NS {
            self.time = time;
        }
    }

    /// Time of the last begin or end, ns.
    pub fn time(&self) -> i64 {
        self.time
    }

    /// Messages in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Begins a request and returns the clock's reading.
    #[inline]
    pub fn begin(&mut self, time: i64) -> i64 {
        self.advance(time);
        self.in_flight += 1;
        self.reading
    }

    /// The reading with which a request continues after a pause: from the present reading and the
    /// request's share so far, in nanoseconds.
    pub fn resume(reading: i64, share: i64) -> i64 {
        reading.wrapping_sub(share.saturating_mul(1024))
    }

    /// Ends a request (also one that begins to wait by design) and returns its share in nanoseconds.
    #[inline]
    pub fn end(&mut self, time: i64, begun: i64) -> i64 {
        self.advance(time);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.reading.wrapping_sub(begun) / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_a_request_is_in_nobodys_share() {
        let mut clock = BusyClock::default();
        let paused = clock.begin(1_000);
        let share = clock.end(3_000, paused);
        let other = clock.begin(5_000);
        let resumed = BusyClock::resume(clock.begin(6_000), share);
        assert_eq!(clock.end(8_000, other), 1_000 + 1_000);
        assert_eq!(clock.end(9_000, resumed), 2_000 + 1_000 + 1_000);
    }

    #[test]
    fn busy_shares_add_up_to_the_busy_time() {
        let mut clock = BusyClock::default();
        let a = clock.begin(1_000);
        let b = clock.begin(2_000);
        let share_b = clock.end(4_000, b);
        let c = clock.begin(5_000);
        let share_a = clock.end(6_000, a);
        let share_c = clock.end(9_000, c);
        let idle = clock.begin(20_000);
        assert_eq!(clock.end(20_500, idle), 500);
        assert_eq!((share_a, share_b, share_c), (1_000 + 1_000 + 1_000 + 500, 1_000, 500 + 3_000));
        assert_eq!(share_a + share_b + share_c, 8_000);
    }
}
