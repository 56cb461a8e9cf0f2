//! The run's clock: nanoseconds since 1970 that never go back.
//!
//! The wall clock is read once; from then on the monotonic clock counts, so that a step of the wall
//! clock does not reach the rows. It also wakes tasks that wait for a time. Tests may run it on tokio's
//! virtual time.

#[cfg(target_os = "linux")]
mod alarms;

#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep_until};

/// A clock that all tasks of a run share.
#[derive(Clone, Debug)]
pub struct Clock {
    wall_ns: i64,
    base: Instant,
    #[cfg(target_os = "linux")]
    alarms: Option<Arc<alarms::Alarms>>,
}

impl Clock {
    /// A clock set from the wall clock now, which wakes tasks at whole milliseconds.
    pub fn start() -> Clock {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall_ns = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
        Clock {
            wall_ns,
            base: Instant::now(),
            #[cfg(target_os = "linux")]
            alarms: None,
        }
    }

    /// A clock set from the wall clock now, which wakes the tasks of this runtime to the microsecond
    /// where the system can (Linux). Not for virtual time.
    pub fn precise() -> Clock {
        Clock {
            #[cfg(target_os = "linux")]
            alarms: alarms::Alarms::new().ok(),
            ..Clock::start()
        }
    }

    /// Waits for an instant.
    pub async fn wait(&self, due: Instant) {
        #[cfg(target_os = "linux")]
        if let Some(alarms) = &self.alarms {
            return alarms.wait(due).await;
        }
        sleep_until(due).await;
    }

    /// Now, in nanoseconds since 1970-01-01 00:00 UTC.
    #[inline]
    pub fn now(&self) -> i64 {
        self.ns_at(Instant::now())
    }

    /// An instant as nanoseconds since 1970.
    #[inline]
    pub fn ns_at(&self, instant: Instant) -> i64 {
        match instant.checked_duration_since(self.base) {
            Some(after) => self.wall_ns.saturating_add(nanoseconds(after)),
            None => self.wall_ns.saturating_sub(nanoseconds(self.base - instant)),
        }
    }

    /// The instant of a time, for timers; times before the clock's start map to its start.
    pub fn instant(&self, time: i64) -> Instant {
        self.base + Duration::from_nanos(time.saturating_sub(self.wall_ns).max(0) as u64)
    }
}

/// A duration in nanoseconds; saturates at 64 bits.
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
        assert_eq!(clock.ns_at(clock.instant(begin + 77)), begin + 77);
        assert_eq!(clock.ns_at(clock.instant(begin - 77)), begin);
    }

    /// Wake-up times of tasks that wait for times within two milliseconds, started in reverse order. `None` if the machine was
    /// so busy that one of them began after the first was due: a task that is late already does not wait.
    #[cfg(target_os = "linux")]
    async fn woken(clock: &Clock) -> Option<Vec<Instant>> {
        let begin = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for place in (0..20).rev() {
            let clock = clock.clone();
            let due = begin + Duration::from_micros(5_000 + 100 * place);
            tasks.spawn(async move {
                let began = Instant::now();
                clock.wait(due).await;
                (due, Instant::now(), began)
            });
        }
        let due = begin + Duration::from_millis(4);
        let gives_up = tokio::time::timeout(Duration::from_millis(1), clock.wait(due)).await;
        assert!(gives_up.is_err() || Instant::now() >= due);
        let mut woken = tasks.join_all().await;
        woken.sort();
        assert!(woken.iter().all(|(due, at, _)| at >= due));
        let first = begin + Duration::from_millis(5);
        let is_in_time = woken.iter().all(|(_, _, began)| *began < first);
        is_in_time.then(|| woken.into_iter().map(|(_, at, _)| at).collect())
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn wakes_each_when_it_is_due() {
        let clock = Clock::precise();
        // A busy machine delays some of them, but not in every try: timers of whole milliseconds never pass.
        let mut tries = 0;
        loop {
            let woken = woken(&clock).await;
            assert!(woken.as_ref().is_none_or(|woken| woken.is_sorted()), "{woken:?}");
            let short = Duration::from_micros(50)..Duration::from_micros(500);
            let count = |woken: &Vec<Instant>| {
                woken.windows(2).filter(|two| short.contains(&(two[1] - two[0]))).count()
            };
            if woken.as_ref().map_or(0, count) >= 5 {
                break;
            }
            tries += 1;
            assert!(tries < 200, "{woken:?}");
        }
        // A time in the past is not waited for.
        clock.wait(Instant::now() - Duration::from_millis(5)).await;
    }
}
