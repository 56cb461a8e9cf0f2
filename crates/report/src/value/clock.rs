//! Times of day: UTC, or the local time of the reader.
//!
//! One offset holds for a whole report, that of its beginning, so that its times can be compared even
//! where clocks were changed during the recording. The program looks it up; nothing here reads the
//! machine's settings.

use smbscope_tables::date::civil;

const SECOND_NS: i64 = 1_000_000_000;

/// How times are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    offset_s: i32,
    zone: String,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { offset_s: 0, zone: "UTC".to_owned() }
    }
}

impl Clock {
    /// A zone that is this many seconds ahead of UTC.
    pub fn ahead(offset_s: i32) -> Clock {
        if offset_s == 0 {
            return Clock::default();
        }
        let minutes = offset_s.unsigned_abs() / 60;
        let sign = if offset_s < 0 { '-' } else { '+' };
        Clock { offset_s, zone: format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60) }
    }

    /// `UTC`, or `+02:00`.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Seconds ahead of UTC.
    pub fn offset_s(&self) -> i32 {
        self.offset_s
    }

    /// A point in time, to the millisecond: `2026-11-20 18:01:08.123 UTC`.
    pub fn time(&self, ns: i64) -> String {
        format!("{} {} {}", self.date(ns), self.of_day(ns, 3), self.zone)
    }

    /// Likewise to the second.
    pub fn second(&self, ns: i64) -> String {
        format!("{} {} {}", self.date(ns), self.of_day(ns, 0), self.zone)
    }

    /// A point in time without its date: `14:05:12 (+02:00)`.
    pub fn of_day_and_zone(&self, ns: i64) -> String {
        format!("{} ({})", self.of_day(ns, 0), self.zone)
    }

    /// From one point in time to another: `14:05:12 to 14:07:41 (UTC)`, with dates if they are on different
    /// days. The end is rounded up, so that the period contains the last point.
    pub fn period(&self, first: i64, last: i64) -> String {
        let last = last.saturating_add(SECOND_NS - 1);
        let is_one_day = self.date(first) == self.date(last);
        let shown = |ns| {
            let time = self.of_day(ns, 0);
            if is_one_day { time } else { format!("{} {time}", self.date(ns)) }
        };
        format!("{} to {} ({})", shown(first), shown(last), self.zone)
    }

    /// A point in time to the microsecond, as logs have it: `2026-11-20T18:01:08.123456+02:00`, or with `Z`.
    pub fn exact(&self, ns: i64) -> String {
        let us = self.local_ns(ns).rem_euclid(SECOND_NS) / 1000;
        let zone = if self.offset_s == 0 { "Z" } else { &self.zone };
        format!("{}T{}.{us:06}{zone}", self.date(ns), self.of_day(ns, 0))
    }

    /// `2026-11-20`.
    pub fn date(&self, ns: i64) -> String {
        let (year, month, day) = civil(self.local_ns(ns).div_euclid(86_400 * SECOND_NS));
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// A mark of an axis whose marks are `step_ns` apart.
    pub(crate) fn mark(&self, ns: i64, step_ns: i64) -> String {
        match step_ns {
            step if step >= 86_400 * SECOND_NS => {
                self.date(ns).split_once('-').map_or_else(String::new, |(_, day)| day.to_owned())
            }
            step if step >= 60 * SECOND_NS => self.of_day(ns, 0).chars().take(5).collect(),
            step if step >= SECOND_NS => self.of_day(ns, 0),
            _ => self.of_day(ns, 3),
        }
    }

    /// Nanoseconds that the clock shows.
    pub(crate) fn local_ns(&self, ns: i64) -> i64 {
        ns.saturating_add(i64::from(self.offset_s) * SECOND_NS)
    }

    fn of_day(&self, ns: i64, decimals: usize) -> String {
        let local = self.local_ns(ns);
        let second = local.div_euclid(SECOND_NS).rem_euclid(86_400);
        let millis = local.rem_euclid(SECOND_NS) / 1_000_000;
        let whole = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        if decimals == 0 { whole } else { format!("{whole}.{millis:03}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_zone() {
        let ns = 1_709_164_800_123_456_789;
        assert_eq!(Clock::default().time(ns), "2024-02-29 00:00:00.123 UTC");
        assert_eq!(Clock::ahead(-19_800).time(ns), "2024-02-28 18:30:00.123 -05:30");
        assert_eq!(Clock::ahead(7_200).second(ns), "2024-02-29 02:00:00 +02:00");
        assert_eq!(Clock::ahead(0), Clock::default());
        assert_eq!(Clock::default().time(i64::MAX), "2262-04-11 23:47:16.854 UTC");
        assert_eq!(Clock::ahead(7_200).of_day_and_zone(ns), "02:00:00 (+02:00)");
        assert_eq!(Clock::ahead(7_200).exact(ns), "2024-02-29T02:00:00.123456+02:00");
        assert_eq!(Clock::default().exact(-1), "1969-12-31T23:59:59.999999Z");
        assert!(Clock::default().exact(i64::MIN).starts_with("1677-09-21T"));
    }

    #[test]
    fn a_period_contains_its_last_point() {
        let (utc, ns) = (Clock::default(), 1_709_164_800_123_456_789);
        assert_eq!(utc.period(ns, ns), "00:00:00 to 00:00:01 (UTC)");
        let before = utc.period(ns - SECOND_NS, ns);
        assert_eq!(before, "2024-02-28 23:59:59 to 2024-02-29 00:00:01 (UTC)");
        assert_eq!(Clock::ahead(-60).period(ns - SECOND_NS, ns), "23:58:59 to 23:59:01 (-00:01)");
    }

    #[test]
    fn marks_are_as_exact_as_their_distance() {
        let ns = 1_709_164_800_123_456_789;
        let mark = |step| Clock::default().mark(ns, step);
        assert_eq!(mark(86_400 * SECOND_NS), "02-29");
        assert_eq!(mark(60 * SECOND_NS), "00:00");
        assert_eq!(mark(5 * SECOND_NS), "00:00:00");
        assert_eq!(mark(10_000_000), "00:00:00.123");
    }
}
