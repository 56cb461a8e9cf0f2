//! Scenarios by step and name, by phase, by failure, and over time.

use std::collections::BTreeMap;

use smbscope_tables::run::{DONE, FAILED, NOT_STARTED, Scenario};

use super::data::{Failure, LoadBin, PhaseRow, ScenarioRow};
use super::phases::Phase;
use crate::rows::bins::{Bin, Bins};
use crate::stats::latency::{Grain, Latency, Sample};
use crate::summary::data::{Distribution, Series};
use crate::summary::rounded;

/// Most pairs of step and scenario.
const CELLS_MAX: usize = 1024;
/// Most pairs of status and scenario of failures.
const FAILURES_MAX: usize = 256;
/// Longest name of a scenario or status that is kept.
const NAME_MAX: usize = 120;

/// The name of the whole run and the number of the step in it.
pub(super) type StepKey = (String, u64);

/// Scenarios of one step and name.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    scheduled: u64,
    done: u64,
    failed: u64,
    not_started: u64,
    operations: u64,
    saved: u64,
    pub(super) response: Latency,
    pub(super) late: Latency,
}

impl Cell {
    pub(super) fn new() -> Cell {
        Cell {
            scheduled: 0,
            done: 0,
            failed: 0,
            not_started: 0,
            operations: 0,
            saved: 0,
            response: Latency::new(Grain::Coarse),
            late: Latency::new(Grain::Coarse),
        }
    }

    fn add(&mut self, row: &Scenario) {
        self.scheduled += 1;
        self.done += u64::from(row.outcome == DONE);
        self.failed += u64::from(row.outcome == FAILED);
        self.not_started += u64::from(row.outcome == NOT_STARTED || row.started_at.is_none());
        self.operations = self.operations.saturating_add(row.operations);
        self.saved = self.saved.saturating_add(row.saved);
        // What fails at once must not make a server look fast.
        if let Some(response) = row.response_ns.filter(|_| row.outcome == DONE) {
            self.response.record(&Sample::new(response));
        }
        if let Some(late) = row.late_ns {
            self.late.record(&Sample::new(late));
        }
    }

    pub(super) fn absorb(&mut self, other: &Cell) {
        self.scheduled += other.scheduled;
        self.done += other.done;
        self.failed += other.failed;
        self.not_started += other.not_started;
        self.operations = self.operations.saturating_add(other.operations);
        self.saved = self.saved.saturating_add(other.saved);
        self.response.absorb(&other.response);
        self.late.absorb(&other.late);
    }

    pub(super) fn row(&self, scenario: &str) -> ScenarioRow {
        let began = self.scheduled.saturating_sub(self.not_started).max(1) as f64;
        ScenarioRow {
            scenario: scenario.to_owned(),
            scheduled: self.scheduled,
            done: self.done,
            failed: self.failed,
            not_started: self.not_started,
            operations_mean: rounded(self.operations as f64 / began),
            saved_mean: rounded(self.saved as f64 / began),
            response: self.response.distribution(true),
            late: self.late.distribution(false),
            ..ScenarioRow::default()
        }
    }
}

/// Scenarios of one bin.
#[derive(Clone, Debug)]
struct Moment {
    scheduled: u64,
    completed: u64,
    failed: u64,
    response: Latency,
    late_max: Option<i64>,
}

impl Bin for Moment {
    fn empty() -> Moment {
        Moment {
            scheduled: 0,
            completed: 0,
            failed: 0,
            response: Latency::new(Grain::Coarse),
            late_max: None,
        }
    }

    fn absorb(&mut self, other: &Moment) {
        self.scheduled += other.scheduled;
        self.completed += other.completed;
        self.failed += other.failed;
        self.response.absorb(&other.response);
        self.late_max = self.late_max.max(other.late_max);
    }
}

#[derive(Clone)]
struct Failed {
    count: u64,
    measured: u64,
    steps: Option<(u64, u64)>,
    first: i64,
}

/// The scenarios so far.
#[derive(Clone)]
pub(super) struct ScenarioTally {
    pub(super) cells: BTreeMap<StepKey, BTreeMap<String, Cell>>,
    cells_n: usize,
    pub(super) others: u64,
    failures: BTreeMap<(String, String), Failed>,
    pub(super) failures_others: u64,
    phases: BTreeMap<&'static str, PhaseRow>,
    over_time: Bins<Moment>,
}

impl ScenarioTally {
    pub(super) fn new(bins_max: usize) -> ScenarioTally {
        ScenarioTally {
            cells: BTreeMap::new(),
            cells_n: 0,
            others: 0,
            failures: BTreeMap::new(),
            failures_others: 0,
            phases: BTreeMap::new(),
            over_time: Bins::new(bins_max),
        }
    }

    /// Adds an execution in a step with this number of users.
    pub(super) fn add(&mut self, row: &Scenario, phase: Phase, step: StepKey, users: Option<u64>) {
        let of_phase = self.phases.entry(phase.name()).or_default();
        of_phase.scenarios += 1;
        of_phase.done += u64::from(row.outcome == DONE);
        of_phase.failed += u64::from(row.outcome == FAILED);
        of_phase.not_started += u64::from(row.outcome == NOT_STARTED);
        let measured = matches!(phase, Phase::Measured | Phase::OtherStep);
        if row.outcome == FAILED {
            self.failure(row, measured, users);
        }
        let moment = self.over_time.at(row.scheduled_at);
        moment.scheduled += 1;
        moment.failed += u64::from(row.outcome == FAILED);
        moment.late_max = moment.late_max.max(row.late_ns);
        if let Some(response) = row.response_ns.filter(|_| row.outcome == DONE) {
            moment.response.record(&Sample::new(response));
        }
        if let Some(end) = row.ended_at {
            self.over_time.at(end).completed += 1;
        }
        if measured {
            self.measured(row, step);
        }
    }

    fn measured(&mut self, row: &Scenario, step: StepKey) {
        let cells = self.cells.entry(step).or_default();
        if let Some(cell) = cells.get_mut(row.scenario.as_str()) {
            cell.add(row);
        } else if self.cells_n < CELLS_MAX && row.scenario.len() <= NAME_MAX {
            self.cells_n += 1;
            cells.entry(row.scenario.clone()).or_insert_with(Cell::new).add(row);
        } else {
            self.others += 1;
        }
    }

    fn failure(&mut self, row: &Scenario, measured: bool, users: Option<u64>) {
        let status = row.status_name.clone().unwrap_or_else(|| "(not said)".to_owned());
        let key = (status, row.scenario.clone());
        let long = key.0.len().max(key.1.len()) > NAME_MAX;
        if long || self.failures.len() >= FAILURES_MAX && !self.failures.contains_key(&key) {
            self.failures_others += 1;
            return;
        }
        let first = row.ended_at.or(row.started_at).unwrap_or(row.scheduled_at);
        let failed = self.failures.entry(key).or_insert(Failed {
            count: 0,
            measured: 0,
            steps: None,
            first,
        });
        failed.count += 1;
        failed.measured += u64::from(measured);
        failed.first = failed.first.min(first);
        if let Some(users) = users {
            let (least, most) = failed.steps.unwrap_or((users, users));
            failed.steps = Some((least.min(users), most.max(users)));
        }
    }

    /// Failures, the most frequent first.
    pub(super) fn failures(&self) -> Vec<Failure> {
        let mut rows: Vec<_> = self
            .failures
            .iter()
            .map(|((status, scenario), failed)| Failure {
                status: status.clone(),
                scenario: scenario.clone(),
                count: failed.count,
                measured: failed.measured,
                users_min: failed.steps.map(|(least, _)| least),
                users_max: failed.steps.map(|(_, most)| most),
                first_ns: failed.first,
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    }

    /// Scenarios by phase, in time's order; the caller adds the operations.
    pub(super) fn phase(&self, phase: Phase) -> Option<PhaseRow> {
        let row = self.phases.get(phase.name())?;
        Some(PhaseRow { phase: phase.name().to_owned(), ..row.clone() })
    }

    /// The bins of `series`; `users` says how many there were at a moment.
    pub(super) fn bins(self, series: &Series, users: impl Fn(i64) -> Option<u64>) -> Vec<LoadBin> {
        let start = series.bins.first().map_or(0, |bin| bin.start_ns);
        let moments = self.over_time.onto(start, series.bin_ns, series.bins.len());
        let bins = series.bins.iter().zip(moments);
        bins.map(|(bin, moment)| LoadBin {
            start_ns: bin.start_ns,
            users: users(bin.start_ns.saturating_add(series.bin_ns / 2)),
            scheduled: moment.scheduled,
            completed: moment.completed,
            failed: moment.failed,
            response: moment.response.distribution(false),
            late_max_ns: moment.late_max,
        })
        .collect()
    }
}

/// Response times and lateness of all of a step's scenarios.
pub(super) fn whole_step(cells: &BTreeMap<String, Cell>) -> (Distribution, Distribution) {
    let mut all = Cell::new();
    cells.values().for_each(|cell| all.absorb(cell));
    (all.response.distribution(true), all.late.distribution(false))
}
