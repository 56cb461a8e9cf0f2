//! The clock of a log: ticks of the performance counter, of system time or of CPU cycles, and
//! their conversion to nanoseconds since 1970.

/// What the timestamps of a log count (`ReservedFlags` of TRACE_LOGFILE_HEADER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// Ticks of QueryPerformanceCounter.
    PerformanceCounter,
    /// System time in units of 100 ns since 1601.
    SystemTime,
    /// Cycles of the CPU.
    Cycles,
}

impl ClockKind {
    /// The kind by its number.
    pub fn from_number(number: u32) -> Option<ClockKind> {
        match number {
            1 => Some(ClockKind::PerformanceCounter),
            2 => Some(ClockKind::SystemTime),
            3 => Some(ClockKind::Cycles),
            _ => None,
        }
    }

    /// Its name in the coverage.
    pub fn name(self) -> &'static str {
        match self {
            ClockKind::PerformanceCounter => "performance counter",
            ClockKind::SystemTime => "system time",
            ClockKind::Cycles => "processor cycles",
        }
    }
}

/// A time in units of 100 ns since 1601 as nanoseconds since 1970; `None` if it is not said (zero) or cannot be.
pub fn filetime_ns(filetime: i64) -> Option<i64> {
    (filetime > 0).then(|| filetime.checked_sub(EPOCH_FILETIME)?.checked_mul(100)).flatten()
}

/// Converts ticks.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Ticks and time of the same instant.
    ticks: i64,
    time_ns: i64,
    ticks_per_second: i64,
    /// Nanoseconds of one tick, if that is a whole number.
    tick_ns: i64,
}

const SECOND_NS: i64 = 1_000_000_000;
const FILETIME_PER_SECOND: i64 = 10_000_000;
/// 1970-01-01 in units of 100 ns since 1601.
pub const EPOCH_FILETIME: i64 = 116_444_736_000_000_000;

/// Whether a clock can have this frequency: the slowest one is that of the timer of a PC (1.19 MHz).
pub fn is_rate(ticks_per_second: i64) -> bool {
    (1_000_000..=20_000_000_000).contains(&ticks_per_second)
}

/// Whether a log can have this time (FILETIME): from 1990 to 2200.
pub fn is_date(filetime: i64) -> bool {
    const YEAR: i64 = 315_576_000_000_000;
    (EPOCH_FILETIME + 20 * YEAR..EPOCH_FILETIME + 230 * YEAR).contains(&filetime)
}

impl Clock {
    /// A clock that shows `ticks` at `filetime` and counts `ticks_per_second`.
    pub fn new(kind: ClockKind, ticks: i64, filetime: i64, ticks_per_second: i64) -> Clock {
        if kind == ClockKind::SystemTime {
            return Clock::with(EPOCH_FILETIME, 0, FILETIME_PER_SECOND);
        }
        let time_ns = filetime.saturating_sub(EPOCH_FILETIME).saturating_mul(100);
        // Another frequency is damage; 10 MHz is what Windows reports on current machines.
        let is_rate = is_rate(ticks_per_second);
        let rate = if is_rate { ticks_per_second } else { FILETIME_PER_SECOND };
        Clock::with(ticks, time_ns, rate)
    }

    fn with(ticks: i64, time_ns: i64, ticks_per_second: i64) -> Clock {
        let is_whole = SECOND_NS % ticks_per_second == 0;
        let tick_ns = if is_whole { SECOND_NS / ticks_per_second } else { 0 };
        Clock { ticks, time_ns, ticks_per_second, tick_ns }
    }

    /// The first tick at or after a time, ns since 1970.
    pub fn ticks_at(&self, time_ns: i64) -> i64 {
        let since_ns = i128::from(time_ns) - i128::from(self.time_ns);
        let (per, of) = match self.tick_ns {
            0 => (i128::from(self.ticks_per_second), i128::from(SECOND_NS)),
            tick_ns => (1, i128::from(tick_ns)),
        };
        let since = -(-since_ns * per).div_euclid(of);
        let ticks = i128::from(self.ticks).saturating_add(since);
        i64::try_from(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX })
    }

    /// Ticks of a duration, at least one.
    pub fn ticks(&self, duration_ns: i64) -> i64 {
        let ticks = i128::from(duration_ns) * i128::from(self.ticks_per_second);
        i64::try_from(ticks / i128::from(SECOND_NS)).unwrap_or(i64::MAX).max(1)
    }

    /// Nanoseconds since 1970, rounded down.
    pub fn time_ns(&self, ticks: i64) -> i64 {
        let since = ticks.saturating_sub(self.ticks);
        let since_ns = if self.tick_ns != 0 {
            since.saturating_mul(self.tick_ns)
        } else {
            let seconds = since.div_euclid(self.ticks_per_second);
            let rest = i128::from(since.rem_euclid(self.ticks_per_second));
            let rest_ns = rest * i128::from(SECOND_NS) / i128::from(self.ticks_per_second);
            seconds.saturating_mul(SECOND_NS).saturating_add(rest_ns as i64)
        };
        self.time_ns.saturating_add(since_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = EPOCH_FILETIME + 7;

    #[test]
    fn each_kind_of_clock_gives_nanoseconds_since_1970() {
        let counter = Clock::new(ClockKind::PerformanceCounter, 1_000, START, 10_000_000);
        assert_eq!(counter.time_ns(1_001), 700 + 100);
        assert_eq!(counter.time_ns(999), 700 - 100);
        let cycles = Clock::new(ClockKind::Cycles, 0, START, 2_600_000_000);
        assert_eq!(cycles.time_ns(26), 700 + 10);
        assert_eq!(cycles.time_ns(27), 700 + 10, "rounded down");
        assert_eq!(cycles.time_ns(-1), 700 - 1, "rounded down before the start, too");
        assert_eq!(cycles.time_ns(2_600_000_000 * 3_600), 700 + 3_600 * SECOND_NS);
        let system = Clock::new(ClockKind::SystemTime, 5, START, 3);
        assert_eq!(system.time_ns(EPOCH_FILETIME + 12), 1_200);
        for (clock, ticks) in [(counter, 1_001), (cycles, 26), (system, EPOCH_FILETIME + 12)] {
            assert_eq!(clock.ticks_at(clock.time_ns(ticks)), ticks);
            assert!(clock.time_ns(clock.ticks_at(clock.time_ns(ticks) + 1)) > clock.time_ns(ticks));
        }
        assert_eq!((filetime_ns(0), filetime_ns(START)), (None, Some(700)));
    }

    #[test]
    fn no_value_overflows() {
        for rate in [i64::MIN, 0, 1, 3, i64::MAX] {
            for ticks in [i64::MIN, 0, i64::MAX] {
                let clock = Clock::new(ClockKind::Cycles, ticks, i64::MIN, rate);
                clock.time_ns(i64::MIN);
                clock.time_ns(i64::MAX);
                clock.ticks_at(i64::MIN);
                clock.ticks_at(i64::MAX);
            }
        }
    }
}
