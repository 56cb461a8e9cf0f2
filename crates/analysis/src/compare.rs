//! Two recordings side by side: means and percentiles of the same groups, how large the difference
//! is, and how certain.
//!
//! [`Side`] takes record batches of the operations table, scenarios and coverage as they stream by,
//! in memory that does not grow with the recording; [`compare`] gives the numbers of two. It does
//! not know how they are shown. Which operations are timed is as in [`summary`](crate::summary).
//!
//! # Statistics
//!
//! Operations of one connection follow each other and are alike, so an operation is not an
//! independent observation; a test over operations would find everything significant. What is taken
//! to be independent are clusters: connections, or the users of a load run. A mean is then a ratio of
//! sums over clusters, R = Σx/Σn, and its variance is the linearised one of cluster sampling
//! (Cochran, Sampling Techniques, 3rd ed. 1977, section 6.4): m/(m-1) Σ(x-Rn)²/(Σn)².
//!
//! Where the clusters are worth less than eight of equal size (Kish's (Σn)²/Σn²: eight connections of
//! which one has nearly all operations are not worth eight), the recording is cut into 20 to 40 blocks of equal
//! time instead. With enough connections and enough blocks, the larger error of the two counts,
//! because a slow minute makes all connections slow.
//!
//! Tested is the logarithm of B's mean over A's (delta method: the variances over R² add), because a
//! change of latency is a factor: interval and p-value then belong together, an interval in per
//! cent cannot reach below -100, and exchanging A and B mirrors it. The quotient by its error is
//! taken as t with the degrees of freedom of Welch and Satterthwaite (Welch, Biometrika 34, 1947),
//! as the two variances differ; each side has the degrees of freedom of its effective clusters minus one. With
//! fewer than three clusters, or fewer than two effective ones, there is neither interval nor p-value.
//!
//! Load runs of the same workload, seed, scale and pace have the same users with the same scenarios
//! at the same times. Users are then pairs, and so are blocks of time, which begin with the run; the
//! variance is that of the differences of their parts. Parts are sums over a user's executions, so
//! this is pairing by execution as long as the same ones took place. What makes users differ falls
//! out, and the interval is narrower; again the larger error of users and blocks counts.
//!
//! All groups of a comparison are one family for Holm's correction ([`Change::p_holm`]); the rows of
//! totals are one question each and are not corrected.
//!
//! Statistics of two recordings cannot say whether repeating them would give the same result. A whole
//! recording can be slow for an external reason, and its clusters then agree on the wrong answer. Neighbouring blocks of time are also not quite independent, so their intervals tend to be
//! too narrow.

mod data;

mod comparability;
mod executions;
mod group;
mod side;

use std::collections::BTreeMap;

pub use crate::stats::clusters::Unit;
pub use crate::stats::effect::Effect;
pub use data::*;
pub use side::Side;

use crate::stats::clusters::{Contrast, Estimate, Estimates, contrast};
use crate::stats::effect::{cliffs_delta, holm};
use group::{Group, Groups};

use crate::stats::latency::Grain;

/// The columns of the operations table that a comparison reads.
pub const COLUMNS: &[&str] = &[
    "recording",
    "scenario_run",
    "connection",
    "client",
    "user",
    "share",
    "dialect",
    "protocol",
    "command",
    "status",
    "transferred_bytes",
    "request_start",
    "response_end",
    "elapsed_ns",
    "server_ns",
    "waits",
    "signed",
    "encrypted",
];

/// An adjusted p-value below this is significant.
const SIGNIFICANT: f64 = 0.05;

/// The property that groups are made by, in addition to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Commands, and scenarios where both are load runs.
    #[default]
    Command,
    /// Scenarios of load runs: response times.
    Scenario,
    /// Shares.
    Share,
    /// Clients.
    Client,
    /// Users.
    User,
}

impl By {
    /// All, in the order in which they are offered.
    pub const ALL: [By; 5] = [By::Command, By::Scenario, By::Share, By::Client, By::User];

    /// What one group is.
    pub fn name(self) -> &'static str {
        match self {
            By::Command => "command",
            By::Scenario => "scenario",
            By::Share => "share",
            By::Client => "client",
            By::User => "user",
        }
    }
}

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// The property that groups are made by.
    pub by: By,
    /// Whether operations of load runs outside the measurement count, too.
    pub all_phases: bool,
    /// Most groups, except commands.
    pub groups_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { by: By::default(), all_phases: false, groups_max: 1024 }
    }
}

/// Compares two recordings after they were read.
pub fn compare(mut a: Side, mut b: Side, options: &Options) -> Comparison {
    let paired = comparability::same_schedule(&a, &b);
    if paired {
        a.clock.align(&mut b.clock);
        a.scenario_clock.align(&mut b.scenario_clock);
    }
    a.finish();
    b.finish();
    let pair = Pair { a: &a, b: &b, paired };
    let mut rows = Vec::new();
    if options.by != By::Scenario {
        rows.push(pair.row(RowKind::Total, None, &a.commands.all(), &b.commands.all()));
        rows.extend(pair.standardised());
    }
    match options.by {
        By::Command => pair.groups(RowKind::Command, &a.commands, &b.commands, &mut rows),
        By::Share => pair.groups(RowKind::Share, &a.others, &b.others, &mut rows),
        By::Client => pair.groups(RowKind::Client, &a.others, &b.others, &mut rows),
        By::User => pair.groups(RowKind::User, &a.others, &b.others, &mut rows),
        By::Scenario => {}
    }
    let both_load = a.about.users.is_some() && b.about.users.is_some();
    if both_load && matches!(options.by, By::Command | By::Scenario) {
        rows.push(pair.row(RowKind::Scenarios, None, &a.scenarios.all(), &b.scenarios.all()));
        pair.groups(RowKind::Scenario, &a.scenarios, &b.scenarios, &mut rows);
    }
    correct(&mut rows);
    let warnings = comparability::warnings(&a, &b);
    Comparison { a: a.about, b: b.about, warnings, paired, rows }
}

struct Pair<'a> {
    a: &'a Side,
    b: &'a Side,
    paired: bool,
}

impl Pair<'_> {
    /// The groups of both, those with the most time first.
    fn groups(&self, kind: RowKind, a: &Groups, b: &Groups, rows: &mut Vec<Row>) {
        let empty = Group::new(Grain::Coarse);
        let strip = kind == RowKind::Command && is_smb1_only(a) && is_smb1_only(b);
        let mut found: Vec<_> = matched(a, b)
            .into_iter()
            .map(|(name, [a, b])| {
                let (a, b) = (a.unwrap_or(&empty), b.unwrap_or(&empty));
                let time = i128::from(a.elapsed.sum()) + i128::from(b.elapsed.sum());
                let shown = if strip { name.trim_end_matches(side::SMB1) } else { name };
                let shown = (!shown.is_empty()).then(|| shown.to_owned());
                (time, self.row(kind, shown, a, b))
            })
            .collect();
        found.sort_by(|(x, a), (y, b)| y.cmp(x).then_with(|| a.name.cmp(&b.name)));
        rows.extend(found.into_iter().map(|(_, row)| row));
    }

    fn row(&self, kind: RowKind, name: Option<String>, a: &Group, b: &Group) -> Row {
        let is_scenario = matches!(kind, RowKind::Scenario | RowKind::Scenarios);
        let mut measured = [(a, self.a), (b, self.b)]
            .map(|(group, side)| group.measured(side.about.seconds(), is_scenario));
        let [one, other] =
            [(a, self.a), (b, self.b)].map(|(group, side)| group.estimates(side.member_unit()));
        let found = contrast(&one, &other, self.paired);
        let delta = cliffs_delta(&a.elapsed, &b.elapsed);
        let change = found.map(|found| change(&found, delta, &mut measured));
        let [a, b] = measured;
        Row { kind, name, a, b, change }
    }

    /// Direct standardisation: the means of both, each command as frequent as in A. None where they
    /// have no command in common.
    fn standardised(&self) -> Option<Row> {
        let common: Vec<_> = matched(&self.a.commands, &self.b.commands)
            .into_iter()
            .filter_map(|(_, [a, b])| Some((a?, b?)))
            .filter(|(a, b)| a.elapsed.sum() > 0 && b.elapsed.sum() > 0)
            .collect();
        let estimates = |side: &Side, group: fn(&(&Group, &Group)) -> Group| {
            let of: Vec<(f64, Estimates)> = common
                .iter()
                .map(|pair| (pair.0.timed() as f64, group(pair).estimates(side.member_unit())))
                .collect();
            let weighted = |of: Vec<(f64, &Estimate)>| Estimate::weighted(&of);
            let pick = |kind: fn(&Estimates) -> Option<&Estimate>| {
                weighted(of.iter().filter_map(|(n, one)| Some((*n, kind(one)?))).collect())
            };
            Estimates {
                member: pick(|one| one.member.as_ref()),
                block: pick(|one| one.block.as_ref()),
                member_unit: side.member_unit(),
            }
        };
        let a = estimates(self.a, |pair| pair.0.clone());
        let b = estimates(self.b, |pair| pair.1.clone());
        let found = contrast(&a, &b, self.paired)?;
        let mean = |side: &Estimates| side.member.as_ref().map(|one| one.mean_ns / 1e9);
        let timed = |n: u64| Measured { timed: n, operations: n, ..Measured::default() };
        let mut measured = [
            timed(common.iter().map(|pair| pair.0.timed()).sum()),
            timed(common.iter().map(|pair| pair.1.timed()).sum()),
        ];
        let change = change(&found, None, &mut measured);
        let [mut one, mut other] = measured;
        (one.mean_s, other.mean_s) = (mean(&a), mean(&b));
        Some(Row {
            kind: RowKind::TotalAtMixOfA,
            name: None,
            a: one,
            b: other,
            change: Some(change),
        })
    }
}

/// Groups of both by name.
fn matched<'a>(a: &'a Groups, b: &'a Groups) -> BTreeMap<&'a str, [Option<&'a Group>; 2]> {
    let mut found: BTreeMap<&str, [Option<&Group>; 2]> = BTreeMap::new();
    for (place, side) in [a, b].into_iter().enumerate() {
        for (name, group) in side.groups.iter().filter(|(_, group)| group.operations > 0) {
            if let Some(slot) = found.entry(name).or_default().get_mut(place) {
                *slot = Some(group);
            }
        }
    }
    found
}

/// Whether all commands are SMB1's, so that their names are unambiguous.
fn is_smb1_only(commands: &Groups) -> bool {
    let used = commands.groups.iter().filter(|(_, group)| group.operations > 0);
    used.map(|(name, _)| name).all(|name| name.ends_with(side::SMB1) || name.starts_with('('))
}

fn change(found: &Contrast, delta: Option<f64>, measured: &mut [Measured; 2]) -> Change {
    for (place, side) in measured.iter_mut().enumerate() {
        side.unit = found.used.units.get(place).copied().flatten();
        side.clusters = found.used.clusters.get(place).copied();
    }
    let percent = |log: f64| 100.0 * log.exp_m1();
    let finite = |value: f64| value.is_finite().then_some(value);
    Change {
        percent: percent(found.log_ratio),
        low_percent: found.interval.and_then(|it| finite(percent(it.0))),
        high_percent: found.interval.and_then(|it| finite(percent(it.1))),
        cliffs_delta: delta,
        effect: delta.map(Effect::from_delta),
        p: found.p,
        p_holm: None,
        significant: false,
        degrees_of_freedom: found.degrees,
    }
}

/// The whole is one question and keeps its p; groups are many.
fn correct(rows: &mut [Row]) {
    let is_whole = |row: &Row| {
        matches!(row.kind, RowKind::Total | RowKind::TotalAtMixOfA | RowKind::Scenarios)
    };
    let p = |row: &Row| row.change.as_ref().and_then(|change| change.p);
    let groups: Vec<_> = rows.iter().map(|row| if is_whole(row) { None } else { p(row) }).collect();
    for (row, corrected) in rows.iter_mut().zip(holm(&groups)) {
        let corrected = if is_whole(row) { p(row) } else { corrected };
        if let Some(change) = &mut row.change {
            change.p_holm = corrected;
            change.significant = corrected.is_some_and(|p| p < SIGNIFICANT);
        }
    }
}
