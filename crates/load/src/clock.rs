//! The run's clock: nanoseconds since 1970 that never go back.
//!
//! The wall clock is read once; from then on the monotonic clock counts, so that a step of the
//! wall clock does not reach the rows. Tests may run it on tokio's virtual time.

use std::process::{Command, Stdio};
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

/// What the machine says of its wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synchronised {
    /// Whether something keeps it right.
    pub synchronised: bool,
    /// How wrong it could be, where that is known.
    pub error_ns: Option<i64>,
}

/// Asks chrony, then systemd, whether the wall clock is synchronised; `None` where neither says.
pub fn synchronised() -> Option<Synchronised> {
    let tracking = answer("chronyc", &["-c", "tracking"]);
    tracking.and_then(|text| of_chrony(&text)).or_else(|| {
        let shown = answer("timedatectl", &["show", "--property=NTPSynchronized", "--value"])?;
        let synchronised = match shown.trim() {
            "yes" => true,
            "no" => false,
            _ => return None,
        };
        Some(Synchronised { synchronised, error_ns: None })
    })
}

/// Reads `chronyc -c tracking`: offset, root delay and root dispersion are fields 5, 11 and 12, the
/// leap status the last one (chronyc(1)).
fn of_chrony(text: &str) -> Option<Synchronised> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let seconds = |place: usize| fields.get(place)?.parse::<f64>().ok();
    let error = seconds(4)?.abs() + seconds(10)? / 2.0 + seconds(11)?;
    let synchronised = fields.last().is_some_and(|leap| *leap != "Not synchronised");
    Some(Synchronised {
        synchronised,
        error_ns: (synchronised && error.is_finite()).then_some((error * 1e9) as i64),
    })
}

/// What a command says within a second; `None` when there is none or it does not end.
fn answer(command: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(command)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    for _ in 0..100 {
        if let Ok(Some(status)) = child.try_wait() {
            let output = child.wait_with_output().ok()?;
            return status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
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

    #[test]
    fn chrony_tells_how_wrong_the_clock_may_be() {
        let text = "C0A80001,ntp.lab,3,1795305600.1,0.000001000,-0.000002,0.00002,-12.3,0.01,0.05,0.004000000,0.001000000,64.2,Normal\n";
        let state = of_chrony(text).unwrap();
        assert_eq!(state, Synchronised { synchronised: true, error_ns: Some(3_001_000) });
        let text = "7F7F0101,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised\n";
        let state = of_chrony(text).unwrap();
        assert_eq!(state, Synchronised { synchronised: false, error_ns: None });
        assert_eq!(of_chrony("506 Cannot talk to daemon"), None);
        assert_eq!(answer("no-such-command", &[]), None);
        assert_eq!(answer("echo", &["a"]).as_deref(), Some("a\n"));
    }
}
