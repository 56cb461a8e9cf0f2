//! Everything that is shown of a prediction.
//!
//! [`Forecast`] is the report's part about changes: the means in whole nanoseconds, with parts that
//! add up to them exactly. [`recorded`], [`detail`] and [`profile`] are the output of `smbscope predict`, as text
//! and as flat records, and [`changes`] its list of changes.

pub mod changes;
pub mod detail;
pub(crate) mod fields;
pub(crate) mod page;
pub mod profile;
pub mod recorded;
pub(crate) mod section;
pub(crate) mod waterfall;

use serde::Serialize;
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::forecast::{ProfileForecast, RecordedForecast};
use smbscope_analysis::predict::replay::{self, Detail, Part};
use smbscope_tables::slice::Kind;

use crate::document::{Document, TextOptions};
use crate::render::Answer;

/// The part of a scenario between its operations.
const BETWEEN: &str = "between";

/// A prediction from recordings; programs read its rows.
#[derive(Clone, Copy)]
pub struct PredictionAnswer<'a> {
    pub forecast: &'a RecordedForecast,
    /// Names of the inputs, for the page.
    pub inputs: &'a [String],
    /// Version of smbscope.
    pub version: &'a str,
}

impl Answer for PredictionAnswer<'_> {
    fn document(&self) -> Option<Document> {
        Some(page::recorded(self.forecast, self.inputs, self.version))
    }

    fn text(&self, options: &TextOptions) -> String {
        recorded::text(self.forecast, options)
    }
}

/// A prediction from a profile; programs read its rows.
#[derive(Clone, Copy)]
pub struct ProfileAnswer<'a> {
    pub forecast: &'a ProfileForecast,
    /// Version of smbscope.
    pub version: &'a str,
}

impl Answer for ProfileAnswer<'_> {
    fn document(&self) -> Option<Document> {
        Some(page::profile(self.forecast, self.version))
    }

    fn text(&self, options: &TextOptions) -> String {
        profile::text(self.forecast, options)
    }
}

/// The changes that can be predicted; programs read their rows.
#[derive(Clone, Copy, Debug)]
pub struct ChangesAnswer;

impl Answer for ChangesAnswer {
    fn text(&self, options: &TextOptions) -> String {
        changes::text(options)
    }
}

/// The distribution of each part of the time; programs read its rows.
#[derive(Clone, Copy)]
pub struct DetailAnswer<'a> {
    pub forecast: &'a RecordedForecast,
    pub detail: &'a Detail,
}

impl Answer for DetailAnswer<'_> {
    fn text(&self, options: &TextOptions) -> String {
        detail::text(self.forecast, self.detail, options)
    }
}

/// What the changes take for granted, each sentence once.
fn assumptions(changes: &[Change], options: &TextOptions) -> String {
    let mut text = format!("\n{}", options.heading("Assumptions"));
    for assumption in Change::assumptions(changes) {
        text.push_str(assumption);
        text.push('\n');
    }
    text
}

/// What changes would bring.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Forecast {
    /// In the order in which they apply.
    pub changes: Vec<ChangeRow>,
    /// Operations with a time.
    pub timed: u64,
    /// Median round trip of the connections.
    pub rtt_before_ns: Option<i64>,
    /// The median round trip with the changes.
    pub rtt_after_ns: Option<i64>,
    /// Time during which a client's operation was in flight, all clients together.
    pub waiting_before_ns: i64,
    /// This time with the changes.
    pub waiting_after_ns: i64,
    /// All operations together.
    pub operations: ForecastRow,
    /// By command, most time first.
    pub commands: Vec<ForecastRow>,
    /// All scenarios of a load run together.
    pub all_scenarios: Option<ForecastRow>,
    /// By scenario.
    pub scenarios: Vec<ForecastRow>,
    /// A sentence each.
    pub assumptions: Vec<String>,
    /// Other effects of the changes, a sentence each.
    pub notes: Vec<String>,
    /// Where the prediction goes beyond what was measured, a sentence each.
    pub warnings: Vec<String>,
}

/// A change.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChangeRow {
    /// Its name on the command line.
    pub change: String,
    /// In words, with its value.
    pub sentence: String,
}

/// Means of one group before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ForecastRow {
    /// Command or scenario.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// How many there would be.
    pub count_after: u64,
    /// Mean today; none where no operation has a time.
    pub before_ns: Option<i64>,
    /// Half of its 95 % interval.
    pub before_error_ns: Option<i64>,
    /// Mean predicted.
    pub after_ns: Option<i64>,
    /// Half of its 95 % interval.
    pub after_error_ns: Option<i64>,
    /// Change of the mean.
    pub change_percent: Option<f64>,
    /// Half of its 95 % interval.
    pub change_error_percent: Option<f64>,
    /// They add up to the means.
    pub parts: Vec<ForecastPart>,
}

/// A part of a mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ForecastPart {
    pub part: String,
    pub before_ns: i64,
    pub after_ns: i64,
}

impl Forecast {
    /// From a prediction from recorded operations.
    pub fn new(forecast: &RecordedForecast) -> Forecast {
        let RecordedForecast { changes, prediction, notes, warnings, .. } = forecast;
        let rows = |rows: &[replay::Row]| rows.iter().map(|one| row(one, &one.name)).collect();
        let rtt_ns = prediction.rtt_ns.map(|[_, median, _]| median);
        let assumptions = Change::assumptions(changes).into_iter().map(str::to_owned);
        Forecast {
            changes: changes.iter().map(change_row).collect(),
            timed: prediction.timed,
            rtt_before_ns: rtt_ns.map(|ns| ns.0),
            rtt_after_ns: rtt_ns.map(|ns| ns.1),
            waiting_before_ns: prediction.waiting_ns.0,
            waiting_after_ns: prediction.waiting_ns.1,
            operations: row(&prediction.operations, "All"),
            commands: rows(&prediction.commands),
            all_scenarios: prediction.all_scenarios.as_ref().map(|all| row(all, "All")),
            scenarios: rows(&prediction.scenarios),
            assumptions: assumptions.collect(),
            notes: notes.clone(),
            warnings: warnings.clone(),
        }
    }
}

/// A part's title.
pub(crate) fn title(part: &str) -> String {
    match part {
        "network" => "Network: one round trip".to_owned(),
        "windows" => "Network: TCP windows and rate".to_owned(),
        "server" => "Server, not split further".to_owned(),
        "rest" => "Client, and sending the bytes".to_owned(),
        "replica" => "Second server".to_owned(),
        BETWEEN => "Between operations".to_owned(),
        slice => match Kind::ALL.iter().find(|kind| kind.name() == slice) {
            Some(kind) => format!("Server: {}", kind.title()),
            None => slice.to_owned(),
        },
    }
}

/// Order of the parts: the network, the server with its slices, the client, and the time between.
fn order(part: &str) -> usize {
    let last = Part::ALL.len();
    match Part::ALL.iter().position(|one| one.name() == part) {
        Some(place) if Part::ALL.get(place) == Some(&Part::Rest) => last,
        Some(place) => place,
        None => last + 1,
    }
}

fn row(row: &replay::Row, name: &str) -> ForecastRow {
    let whole = |ns: Option<f64>| ns.map(|ns| ns.round() as i64);
    let (before_ns, after_ns) = (whole(row.before.mean_ns()), whole(row.after.mean_ns()));
    let mut known: Vec<_> = row.parts.iter().collect();
    known.sort_by_key(|part| order(part.part));
    let (before_sum, after_sum) = (before_ns.unwrap_or(0), after_ns.unwrap_or(0));
    let before = exact(known.iter().map(|part| part.before_ns), before_sum);
    // From the differences, so that an unchanged part has none.
    let differences = exact(
        known.iter().map(|part| part.after_ns - part.before_ns),
        after_sum.saturating_sub(before_sum),
    );
    let parts = known.iter().zip(before.into_iter().zip(differences));
    ForecastRow {
        name: name.to_owned(),
        count: row.count,
        count_after: row.count_after,
        before_ns,
        before_error_ns: whole(row.before.error_ns),
        after_ns,
        after_error_ns: whole(row.after.error_ns),
        change_percent: row.percent(),
        change_error_percent: row.percent_error(),
        parts: parts
            .map(|(part, (before_ns, difference_ns))| ForecastPart {
                part: part.part.to_owned(),
                before_ns,
                after_ns: before_ns.saturating_add(difference_ns),
            })
            .collect(),
    }
}

/// Whole numbers that add up to the sum; the rounding error goes to the largest.
fn exact(parts: impl Iterator<Item = f64>, sum: i64) -> Vec<i64> {
    let mut whole: Vec<_> = parts.map(|part| part.round() as i64).collect();
    let left = whole.iter().fold(sum, |left, part| left.saturating_sub(*part));
    // A larger difference than rounding is not hidden.
    if left.unsigned_abs() <= whole.len() as u64
        && let Some(largest) = whole.iter_mut().max_by_key(|part| part.unsigned_abs())
    {
        *largest = largest.saturating_add(left);
    }
    whole
}

fn change_row(change: &Change) -> ChangeRow {
    ChangeRow { change: change.name().to_owned(), sentence: change.sentence() }
}

#[cfg(test)]
mod tests {
    use smbscope_analysis::summary::Distribution;

    use super::*;

    #[test]
    fn parts_add_up_in_whole_nanoseconds() {
        assert_eq!(exact([1.0 / 3.0; 3].into_iter(), 1).iter().sum::<i64>(), 1);
        assert_eq!(exact([0.5, 1.5, -0.5, 2.5].into_iter(), 4).iter().sum::<i64>(), 4);
        assert_eq!(exact([0.0, 10.4, 0.0].into_iter(), 11), [0, 11, 0]);
        assert_eq!(exact([1.0].into_iter(), 40), [1]);
        assert!(exact([].into_iter(), 4).is_empty());
    }

    #[test]
    fn an_unchanged_part_has_no_step() {
        let times = |sum_ns| {
            let distribution = Distribution { n: 7, sum_ns, ..Distribution::default() };
            replay::Times { distribution, error_ns: None }
        };
        let (before, after) = (times(100), times(1_000));
        let mut recorded = replay::Row { before, after, ..replay::Row::default() };
        let parts = [("rest", 10.0, 10.0), ("filesystem", 60.0, 960.0), ("queue", 30.0, 30.0)];
        recorded.parts.resize_with(parts.len(), Default::default);
        for (one, (part, before, after)) in recorded.parts.iter_mut().zip(parts) {
            (one.part, one.before_ns, one.after_ns) = (part, before / 7.0, after / 7.0);
        }
        let row = row(&recorded, "All");
        let sum = |of: fn(&ForecastPart) -> i64| row.parts.iter().map(of).sum::<i64>();
        assert_eq!(Some(sum(|part| part.before_ns)), row.before_ns);
        assert_eq!(Some(sum(|part| part.after_ns)), row.after_ns);
        let names: Vec<_> = row.parts.iter().map(|part| part.part.as_str()).collect();
        assert_eq!(names, ["queue", "filesystem", "rest"]);
        let changed = row.parts.iter().filter(|part| part.before_ns != part.after_ns);
        assert_eq!(changed.count(), 1);
    }

    #[test]
    fn every_part_has_a_title_and_a_place() {
        let mut places: Vec<_> = Part::ALL.iter().map(|part| order(part.name())).collect();
        places.push(order(BETWEEN));
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), Part::ALL.len() + 1);
        for part in Part::ALL {
            assert_ne!(title(part.name()), part.name());
        }
    }
}
