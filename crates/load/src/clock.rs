//! The run's clock: nanoseconds since 1970 that never go back.
//!
//! The wall clock is read once; from then on the monotonic clock counts, so that a step of the
//! wall clock does not reach the rows. Tests may run it on tokio's virtual time.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// A clock that all tasks of a run share.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall_ns: i64,
    base: Instant,
}

impl Clock {
    /// A clock set by the wall clock now.
    pub fn start() -> Clock {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall_ns = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
        Clock { wall_ns, base: Instant::now() }
    }

    /// Now, in nanoseconds since 1970-01-01 00:00 UTC.
    #[inline]
    pub fn now(&self) -> i64 {
        self.at(Instant::now())
    }

    /// An instant as nanoseconds since 1970.
    #[inline]
    pub fn at(&self, instant: Instant) -> i64 {
        match instant.checked_duration_since(self.base) {
            Some(after) => self.wall_ns.saturating_add(nanoseconds(after)),
            None => self.wall_ns.saturating_sub(nanoseconds(self.base - instant)),
        }
    }

    /// The instant of a time, for timers; times before the clock's start are its start.
    pub fn instant(&self, time: i64) -> Instant {
        self.base + Duration::from_nanos(time.saturating_sub(self.wall_ns).max(0) as u64)
    }
}

/// A duration in nanoseconds, at most what 64 bits hold.
pub fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn counts_with_the_monotonic_clock() {
        let clock = Clock::start();
        let begin = clock.now();
        tokio::time::advance(Duration::from_millis(5)).await;
        assert_eq!(clock.now() - begin, 5_000_000);
        assert_eq!(clock.at(clock.instant(begin + 77)), begin + 77);
        assert_eq!(clock.at(clock.instant(begin - 77)), begin);
    }
}
