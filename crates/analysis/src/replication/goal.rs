//! A goal for response times: `Write p99 < 10ms`.

use std::fmt;
use std::str::FromStr;

use smbscope_tables::quantity::{duration_text, parse_duration};

use crate::predict::replay::{Prediction, Row};
use crate::stats::latency::Distribution;

/// A percentile or the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Mean,
    P50,
    P95,
    P99,
    Max,
}

/// A command's or scenario's time that must not be longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// Command or scenario; `all` for all operations.
    of: String,
    figure: Figure,
    /// ns.
    limit_ns: i64,
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Goal, String> {
        let invalid = |why: &str| {
            format!(
                "invalid goal `{text}`: {why}; expected NAME FIGURE < TIME, for example `Write p99 < 10ms`"
            )
        };
        let (left, limit) = text.split_once('<').ok_or_else(|| invalid("there is no `<`"))?;
        let limit = limit.trim_start_matches('=').trim();
        let limit_ns = parse_duration(limit).map_err(|error| invalid(&error.to_string()))?;
        let limit_ns = i64::try_from(limit_ns).map_err(|_| invalid("the time is too long"))?;
        let (of, figure) = left
            .trim()
            .rsplit_once(char::is_whitespace)
            .ok_or_else(|| invalid("the name or the figure is missing"))?;
        let figure = match figure {
            "mean" => Figure::Mean,
            "p50" | "median" => Figure::P50,
            "p95" => Figure::P95,
            "p99" => Figure::P99,
            "max" => Figure::Max,
            other => {
                return Err(invalid(&format!(
                    "unknown figure `{other}` (mean, p50, p95, p99, max)"
                )));
            }
        };
        Ok(Goal { of: of.trim().to_owned(), figure, limit_ns })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = match self.figure {
            Figure::Mean => "mean",
            Figure::P50 => "p50",
            Figure::P95 => "p95",
            Figure::P99 => "p99",
            Figure::Max => "max",
        };
        write!(to, "{} {figure} < {}", self.of, duration_text(self.limit_ns.unsigned_abs()))
    }
}

impl Goal {
    /// The limit, ns.
    pub fn limit_ns(&self) -> i64 {
        self.limit_ns
    }

    /// The time that it is about, today and predicted, ns; none if there is no such command or scenario.
    pub fn times(&self, prediction: &Prediction) -> Option<(i64, i64)> {
        let named = |row: &&Row| row.name.eq_ignore_ascii_case(&self.of);
        let row = if self.of.eq_ignore_ascii_case("all") {
            &prediction.operations
        } else {
            (prediction.commands.iter().find(named))
                .or_else(|| prediction.scenarios.iter().find(named))?
        };
        let of = |distribution: &Distribution| match self.figure {
            Figure::Mean => distribution.mean_ns,
            Figure::P50 => distribution.p50_ns,
            Figure::P95 => distribution.p95_ns,
            Figure::P99 => distribution.p99_ns,
            Figure::Max => distribution.max_ns,
        };
        of(&row.before.distribution).zip(of(&row.after.distribution))
    }

    /// Names that a goal can be about.
    pub fn names(prediction: &Prediction) -> Vec<String> {
        let rows = prediction.commands.iter().chain(&prediction.scenarios);
        rows.map(|row| row.name.clone()).chain(["all".to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_read_and_printed() {
        let goal: Goal = "Write p99 < 10ms".parse().unwrap();
        assert_eq!((goal.limit_ns(), goal.to_string().as_str()), (10_000_000, "Write p99 < 10ms"));
        let scenario: Goal = "Open a document median<=2s".parse().unwrap();
        assert_eq!((scenario.of.as_str(), scenario.figure), ("Open a document", Figure::P50));
        for wrong in
            ["", "Write", "Write p99", "Write < 5ms", "Write p98 < 5ms", "Write p99 < soon"]
        {
            let error = wrong.parse::<Goal>().unwrap_err();
            assert!(error.contains("for example `Write p99 < 10ms`"), "{error}");
        }
    }
}
