//! FSCT's table of a capacity search, with response times, ready to be printed.
//!
//! Owns its columns and their plain text; JSON comes by `serde`. The columns are those of FSCT's
//! report (users, overload, throughput, errors, errors %, duration), then response times from the
//! scheduled time.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::stats::{Summary, Tally};

use super::answer::Answer;

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Number of the step.
    pub step: u64,
    /// Users.
    pub users: u64,
    /// Overload, in percent.
    pub overload_percent: f64,
    /// Whether that is overload.
    pub overloaded: bool,
    /// Scenarios that ended in the window without failing, per second.
    pub scenarios_per_second: f64,
    /// Scenarios that the schedule asked for, per second.
    pub scheduled_per_second: f64,
    /// Scenarios that failed.
    pub errors: u64,
    /// The same in percent of those that ended.
    pub errors_percent: f64,
    /// Length of the measured window, in nanoseconds.
    pub duration_ns: i64,
    /// Whether the window was cut short because the answer was certain.
    pub ended_early: bool,
    /// Whether the generator was the limit.
    pub limited_by_client: bool,
    /// How that is known, and what to do about it.
    pub limited_reason: Option<String>,
    /// Response times of all scenarios; none when none ended well.
    pub response: Option<Summary>,
    /// Response times of each scenario that ended well.
    pub scenarios: Vec<ScenarioRow>,
    /// Failed scenarios by why they failed, most frequent first.
    pub failures: Vec<(String, u64)>,
}

/// Response times of one scenario in a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRow {
    /// Its name in the workload.
    pub scenario: String,
    /// Response times.
    pub response: Summary,
}

impl Row {
    /// Fills in the results of a step's window from its tally: throughput, errors, response times.
    /// `names` are the workload's scenarios in its order.
    pub fn with_tally(mut self, tally: &Tally, names: &[&str]) -> Row {
        let seconds = self.duration_ns as f64 / 1e9;
        let (ended, failed) = (tally.ended(), tally.failed());
        self.scenarios_per_second =
            if seconds > 0.0 { (ended - failed) as f64 / seconds } else { 0.0 };
        self.errors = failed;
        self.errors_percent = if ended > 0 { 100.0 * failed as f64 / ended as f64 } else { 0.0 };
        self.response = tally.response().summary();
        self.scenarios = tally
            .scenarios()
            .iter()
            .zip(names)
            .filter_map(|(tally, name)| {
                let response = tally.response.summary()?;
                Some(ScenarioRow { scenario: (*name).to_owned(), response })
            })
            .collect();
        let failures = &tally.scenario_failures;
        self.failures =
            failures.ranked().into_iter().map(|(failure, n)| (failure.name(), n)).collect();
        if failures.other() > 0 {
            self.failures.push(("others".to_owned(), failures.other()));
        }
        self
    }
}

/// A search in rows, with its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The steps, in the order in which they were run.
    pub rows: Vec<Row>,
    /// The answer; `None` while the search continues.
    pub answer: Option<Answer>,
}

/// Titles of the columns, with their units, and how wide they are.
const COLUMNS: [(&str, usize); 10] = [
    ("Users", 7),
    ("Overload %", 10),
    ("Scenarios/s", 11),
    ("Errors", 7),
    ("Errors %", 8),
    ("Duration s", 10),
    ("p50 ms", 8),
    ("p95 ms", 8),
    ("p99 ms", 8),
    ("max ms", 8),
];

impl Table {
    /// The line of titles.
    pub fn header() -> String {
        let titles: Vec<String> =
            COLUMNS.iter().map(|(title, width)| format!("{title:>width$}")).collect();
        titles.join("  ")
    }

    /// The lines of response times per scenario, of the last step with that many users.
    pub fn scenarios(&self, users: u64) -> String {
        // Not one that was interrupted, if another was not.
        let with = self.rows.iter().filter(|row| row.users == users);
        let Some(row) = with.max_by_key(|row| row.duration_ns) else {
            return String::new();
        };
        let width = row.scenarios.iter().map(|row| row.scenario.len()).max().unwrap_or(0).max(8);
        let mut text = format!(
            "{:<width$}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}\n",
            "Scenario", "n", "p50 ms", "p95 ms", "p99 ms", "max ms"
        );
        for row in &row.scenarios {
            let Summary { count, p50_ns, p95_ns, p99_ns, max_ns, .. } = row.response;
            let times = [p50_ns, p95_ns, p99_ns, max_ns].map(milliseconds);
            text += &format!("{:<width$}  {count:>8}", row.scenario);
            times.iter().for_each(|time| text += &format!("  {time:>8}"));
            text.push('\n');
        }
        text
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |pick: fn(&Summary) -> i64| {
            self.response.as_ref().map_or_else(|| "-".to_owned(), |all| milliseconds(pick(all)))
        };
        let cells = [
            self.users.to_string(),
            format!("{:.1}", self.overload_percent),
            format!("{:.2}", self.scenarios_per_second),
            self.errors.to_string(),
            format!("{:.2}", self.errors_percent),
            format!("{:.0}", self.duration_ns as f64 / 1e9),
            time(|all| all.p50_ns),
            time(|all| all.p95_ns),
            time(|all| all.p99_ns),
            time(|all| all.max_ns),
        ];
        for (at, (cell, (_, width))) in cells.iter().zip(COLUMNS).enumerate() {
            write!(f, "{}{cell:>width$}", if at > 0 { "  " } else { "" })?;
        }
        let notes = [
            (self.overloaded, "overloaded"),
            (self.limited_by_client, "limited by the client"),
            (self.ended_early, "ended early"),
        ];
        let notes: Vec<&str> = notes.iter().filter(|note| note.0).map(|note| note.1).collect();
        if !notes.is_empty() {
            write!(f, "  {}", notes.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", Table::header())?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        let Some(answer) = &self.answer else { return Ok(()) };
        writeln!(f, "\n{}", answer.sentence())?;
        let scenarios = self.scenarios(answer.users);
        if !scenarios.is_empty() {
            write!(f, "\nResponse times with {} users:\n{scenarios}", answer.users)?;
        }
        Ok(())
    }
}

fn milliseconds(ns: i64) -> String {
    let ms = ns as f64 / 1e6;
    match ms {
        ..10.0 => format!("{ms:.2}"),
        ..100.0 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::StopReason;
    use super::super::interval::Interval;
    use super::*;
    use crate::stats::{Failure, ScenarioEnd};

    fn table() -> Table {
        let mut tally = Tally::new(2);
        for i in 1..=100 {
            tally.scenario(&ScenarioEnd {
                scenario: usize::from(i % 4 == 0),
                late_ns: 0,
                response_ns: i * 2_000_000,
                operations: 27,
                saved: 0,
                failure: (i == 100).then_some(Failure::Status(0xc000_0022)),
            });
        }
        let row = Row { step: 1, users: 10, duration_ns: 60_000_000_000, ..Row::default() };
        let row = row.with_tally(&tally, &["ExplorerNavigate", "WordFileOpen"]);
        let over = Row {
            step: 2,
            users: 20,
            overload_percent: 34.5,
            overloaded: true,
            ended_early: true,
            response: None,
            ..row.clone()
        };
        let answer = Answer {
            users: 10,
            interval: Interval { low: Some(9.2), high: Some(21.0) },
            too_many: Some(20),
            reason: StopReason::Resolved,
            steps: 2,
        };
        Table { rows: vec![row, over], answer: Some(answer) }
    }

    #[test]
    fn as_text() {
        let text = table().to_string();
        let expected = "  Users  Overload %  Scenarios/s   Errors  Errors %  Duration s    p50 ms    p95 ms    p99 ms    max ms
     10         0.0         1.65        1      1.00          60       100       190       198       198
     20        34.5         1.65        1      1.00          60         -         -         -         -  overloaded, ended early

The server carries 10 users without overload; 20 users are too many (overload begins between 9 and 21, 95 % interval, 2 steps).

Response times with 10 users:
Scenario                 n    p50 ms    p95 ms    p99 ms    max ms
ExplorerNavigate        75       100       190       198       198
WordFileOpen            24      96.0       184       192       192
";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn as_json_and_back() {
        let json = serde_json::to_string(&table()).unwrap();
        assert!(json.contains(r#""failures":[["STATUS_ACCESS_DENIED",1]]"#), "{json}");
        assert_eq!(serde_json::from_str::<Table>(&json).unwrap(), table());
    }
}
