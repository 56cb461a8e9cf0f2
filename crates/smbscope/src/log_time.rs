//! Times of log lines, exact and sortable. All other numbers for people are `report::format`'s.

use smbscope_tables::date::civil;

const NS_PER_S: i64 = 1_000_000_000;

/// A point in time as `2026-11-20T18:22:27.000001Z`: UTC, microseconds, ISO 8601.
pub fn utc(ns: i64) -> String {
    let (seconds, below) = (ns.div_euclid(NS_PER_S), ns.rem_euclid(NS_PER_S));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let us = below / 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{us:06}Z")
}

/// A point in time, or a distance between two, as seconds with microseconds.
pub fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let us = ns.unsigned_abs() / 1000;
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_known_answer() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000Z");
        // date -u -d @1709210096 +%FT%TZ
        assert_eq!(utc(1_709_210_096_123_456_789), "2024-02-29T12:34:56.123456Z");
        assert_eq!(utc(-1), "1969-12-31T23:59:59.999999Z");
        assert!(utc(i64::MIN).starts_with("1677-09-21T"));
        assert!(utc(i64::MAX).starts_with("2262-04-11T"));
        assert_eq!(seconds(1_500_001_000), "1.500001");
        assert_eq!(seconds(-1_500), "-0.000001");
    }
}
