//! Limits on response times that a number of users must keep (`--max-response`).
//!
//! Owns their text form and the comparison with what a step measured. It does not own the
//! measurement: response times of scenarios count from the scheduled time, latencies of commands
//! from the request's first byte.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smbscope_tables::quantity::{duration_text, parse_duration};

use crate::stats::Summary;

/// Which value of a distribution is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The median.
    P50,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The longest.
    Max,
}

impl Statistic {
    /// All, with their names.
    const ALL: [(Statistic, &'static str); 5] = [
        (Statistic::Mean, "mean"),
        (Statistic::P50, "p50"),
        (Statistic::P95, "p95"),
        (Statistic::P99, "p99"),
        (Statistic::Max, "max"),
    ];

    /// Its name, as in `p95<2s`.
    pub fn name(self) -> &'static str {
        Statistic::ALL.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    /// Its value, ns.
    pub fn value(self, summary: &Summary) -> i64 {
        match self {
            Statistic::Mean => summary.mean_ns,
            Statistic::P50 => summary.p50_ns,
            Statistic::P95 => summary.p95_ns,
            Statistic::P99 => summary.p99_ns,
            Statistic::Max => summary.max_ns,
        }
    }
}

/// A limit on a response time: `p95<2s`, or of a scenario or command `ExplorerNavigate:p95<1s`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The scenario or command; all scenarios together without one.
    pub name: Option<String>,
    /// Which value.
    pub statistic: Statistic,
    /// The response time must be shorter than this.
    pub below_ns: i64,
}

/// A text that is not a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected for example p95<2s, Read:p99<50ms or \"max<10s\" (mean, p50, p95, p99, max): {0}"
)]
pub struct BadLimit(String);

impl FromStr for Limit {
    type Err = BadLimit;

    fn from_str(text: &str) -> Result<Limit, BadLimit> {
        let bad = |why: &str| BadLimit(why.to_owned());
        let (left, right) = text.split_once('<').ok_or_else(|| bad("there is no '<'"))?;
        let (name, statistic) = match left.rsplit_once(':') {
            Some((name, statistic)) => (Some(name.trim().to_owned()), statistic),
            None => (None, left),
        };
        if name.as_deref() == Some("") {
            return Err(bad("the name before ':' is empty"));
        }
        let statistic = statistic.trim().to_ascii_lowercase();
        let found = Statistic::ALL.iter().find(|(_, known)| *known == statistic);
        let (statistic, _) = found.ok_or_else(|| bad(&format!("{statistic:?} is not known")))?;
        // Also `<=`, which means the same within a nanosecond.
        let right = right.trim_start_matches('=').trim();
        let below = parse_duration(right).map_err(|error| bad(&error.to_string()))?;
        let below_ns = i64::try_from(below).map_err(|_| bad("the duration is too long"))?;
        if below_ns == 0 {
            return Err(bad("no response takes less than 0"));
        }
        Ok(Limit { name, statistic: *statistic, below_ns })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}:")?;
        }
        let below = duration_text(self.below_ns.unsigned_abs());
        write!(f, "{}<{below}", self.statistic.name())
    }
}

/// A limit that a step did not keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceeded {
    /// The limit.
    pub limit: Limit,
    /// What was measured instead, ns; none when nothing ended at all.
    pub measured_ns: Option<i64>,
}

impl Limit {
    /// Whether the distribution keeps the limit; what was measured if it does not.
    pub fn check(&self, measured: Option<&Summary>) -> Option<Exceeded> {
        let measured_ns = measured.map(|summary| self.statistic.value(summary));
        let kept = measured_ns.is_some_and(|ns| ns < self.below_ns);
        (!kept).then(|| Exceeded { limit: self.clone(), measured_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_written() {
        let text = |text: &str| text.parse::<Limit>().map(|limit| limit.to_string());
        assert_eq!(text("p95<2s"), Ok("p95<2 s".replace(' ', "")));
        assert_eq!(text(" P99 <= 50ms"), Ok("p99<50ms".to_owned()));
        let limit: Limit = "ExplorerNavigate:mean<1.5s".parse().unwrap();
        assert_eq!(limit.name.as_deref(), Some("ExplorerNavigate"));
        assert_eq!((limit.statistic, limit.below_ns), (Statistic::Mean, 1_500_000_000));
        for bad in ["", "p95", "p95<", "p94<1s", "<1s", ":p95<1s", "p95<0s", "p95<1", "p95>2s"] {
            assert!(text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_takes_as_long_as_the_limit_does_not_keep_it() {
        let limit: Limit = "p95<2s".parse().unwrap();
        let with =
            |p95_ns| Summary { count: 9, mean_ns: 0, p50_ns: 0, p95_ns, p99_ns: 0, max_ns: 0 };
        assert_eq!(limit.check(Some(&with(1_999_999_999))), None);
        let exceeded = limit.check(Some(&with(2_000_000_000))).unwrap();
        assert_eq!(exceeded.measured_ns, Some(2_000_000_000));
        // A step in which nothing ended keeps no limit.
        assert_eq!(limit.check(None).unwrap().measured_ns, None);
    }
}
