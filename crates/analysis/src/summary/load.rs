//! Load runs in the summary: their steps, scenarios and counters, and which operations count.
//!
//! Scenarios say in which phase they were scheduled; an operation belongs to the phase of its
//! scenario (`scenario_run`). The sections of a report count operations of measured scenarios only,
//! so that warm-up, logons and cool-down do not blur them; what that leaves out is counted. For
//! that the scenarios of a recording must be given before its operations, and descriptions of runs
//! before everything, or the parts of a run are not known as such.

mod counters;
pub(crate) mod data;
pub(crate) mod phases;
mod resources;
mod scenarios;
mod state;
mod steps;
mod warnings;

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use smbscope_tables::description::{Capacity, RunDescription};
use smbscope_tables::run::{Counter, Scenario, Step};

pub use state::{FAILED_SHARE_MAX, LoadState, Outcomes, SCENARIOS_MIN};

use super::data::{Distribution, Series};
use super::status::StatusTally;
use super::tally::Facts;
use counters::CounterTally;
use data::{Load, PhaseRow, RunPart, Window};
use phases::{Phase, Phases};
use resources::Resources;
use scenarios::ScenarioTally;

/// Steps that are kept; a run has tens.
const STEPS_MAX: usize = 4096;
/// Most parts of runs.
const PARTS_MAX: usize = 1024;

/// The load part of a summary while a run continues: the same numbers as in the run's report.
pub struct LoadSoFar {
    tally: LoadTally,
    /// Counters of the step that is running: which step they belong to is known when it ends.
    counters: Vec<Counter>,
}

impl LoadSoFar {
    /// Samples that wait for the end of their step at most.
    const COUNTERS_MAX: usize = 1 << 20;

    /// Nothing yet of the run that `description` describes.
    pub fn new(description: &RunDescription) -> LoadSoFar {
        let mut tally = LoadTally::new(Counted::Measured, 1);
        tally.run(description, true);
        LoadSoFar { tally, counters: Vec::new() }
    }

    /// Adds executions of scenarios.
    pub fn scenarios(&mut self, rows: &[Scenario]) {
        self.tally.scenarios(rows, |_| 0);
    }

    /// Adds samples of counters.
    pub fn counters(&mut self, rows: &[Counter]) {
        let room = LoadSoFar::COUNTERS_MAX.saturating_sub(self.counters.len());
        let wanted = rows.iter().filter(|row| Resources::has(row));
        self.counters.extend(wanted.take(room).cloned());
    }

    /// Adds a step that ended, with everything that was added before.
    pub fn steps(&mut self, rows: &[Step]) {
        self.tally.steps(rows);
        let counters = std::mem::take(&mut self.counters);
        self.tally.counters(&counters);
    }

    /// The run's own answer.
    pub fn answer(&mut self, capacity: Capacity) {
        if let Some(part) = self.tally.parts.first_mut() {
            part.description.capacity = Some(capacity);
        }
    }

    /// What the run's report would say now. Only steps, scenarios by step, failures and answers are filled in.
    pub fn load(&self) -> Load {
        self.tally.clone().finish(&Series::default(), |_| String::new()).unwrap_or_default()
    }
}

/// Which operations of a load run count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// Operations of scenarios that were scheduled in a measured window.
    #[default]
    Measured,
    /// Operations of scenarios that were scheduled in the measured window of this step.
    Step(u64),
    /// All operations.
    All,
}

/// Load runs so far.
#[derive(Clone)]
pub(crate) struct LoadTally {
    counted: Counted,
    parts: Vec<RunPart>,
    /// The whole run that a recording is part of.
    runs: HashMap<String, String, foldhash::fast::RandomState>,
    again: Vec<String>,
    unknown: Vec<String>,
    /// With the name of the whole run.
    steps: Vec<(String, Step)>,
    steps_of: HashSet<(String, u64), foldhash::fast::RandomState>,
    /// Measured windows, begin, end and number of the step, by recording.
    windows: HashMap<String, Vec<(i64, i64, u64)>, foldhash::fast::RandomState>,
    users: HashMap<(String, u64), u64, foldhash::fast::RandomState>,
    scenarios: ScenarioTally,
    scenarios_of: HashMap<String, u64, foldhash::fast::RandomState>,
    counters: CounterTally,
    resources: BTreeMap<(String, u64), Resources>,
    pub(crate) phases: Phases,
    /// Recordings with a scenario that counts; in other recordings, all operations count.
    counting: HashSet<u32, foldhash::fast::RandomState>,
    operations: BTreeMap<&'static str, (u64, u64)>,
    left_out: (u64, u64),
    /// Busy time of the operations that do not count.
    pub(crate) left_out_busy_ns: i64,
    operations_counted: u64,
    statuses: StatusTally,
}

impl LoadTally {
    pub(crate) fn new(counted: Counted, bins_max: usize) -> LoadTally {
        LoadTally {
            counted,
            parts: Vec::new(),
            runs: HashMap::default(),
            again: Vec::new(),
            unknown: Vec::new(),
            steps: Vec::new(),
            steps_of: HashSet::default(),
            windows: HashMap::default(),
            users: HashMap::default(),
            scenarios: ScenarioTally::new(bins_max),
            scenarios_of: HashMap::default(),
            counters: CounterTally::new(bins_max),
            resources: BTreeMap::new(),
            phases: Phases::default(),
            counting: HashSet::default(),
            operations: BTreeMap::new(),
            left_out: (0, 0),
            left_out_busy_ns: 0,
            operations_counted: 0,
            statuses: StatusTally::default(),
        }
    }

    pub(crate) fn run(&mut self, run: &RunDescription, complete: bool) {
        if self.parts.len() >= PARTS_MAX {
            return;
        }
        if self.parts.iter().any(|part| part.description.recording == run.recording) {
            self.again.push(run.recording.clone());
            return;
        }
        let mut description = run.clone();
        if description.run.is_empty() {
            description.identify();
        }
        self.runs.insert(description.recording.clone(), description.run.clone());
        self.parts.push(RunPart { description, complete, scenarios: 0 });
    }

    pub(crate) fn steps(&mut self, rows: &[Step]) {
        for row in rows.iter().take(STEPS_MAX.saturating_sub(self.steps.len())) {
            // The same folder twice is said elsewhere; its users are not to be counted twice.
            if !self.steps_of.insert((row.recording.clone(), row.step)) {
                continue;
            }
            let run = self.run_of(&row.recording, &row.run);
            self.windows
                .entry(row.recording.clone())
                .or_default()
                .push((row.start, row.end, row.step));
            let users = self.users.entry((run.clone(), row.step)).or_default();
            *users = row.users.max(*users);
            self.steps.push((run, row.clone()));
        }
    }

    /// Adds executions of scenarios; `number` gives a recording's.
    pub(crate) fn scenarios(&mut self, rows: &[Scenario], mut number: impl FnMut(&str) -> u32) {
        let mut last: Option<(&str, u32, String)> = None;
        for row in rows {
            let known = last.as_ref().is_some_and(|(name, ..)| *name == row.recording);
            if !known {
                let run = self.run_of(&row.recording, "");
                last = Some((&row.recording, number(&row.recording), run));
            }
            let Some((_, recording, run)) = &last else { continue };
            let phase = match (Phase::from_name(&row.phase), self.counted) {
                (Phase::Measured, Counted::Step(step)) if step != row.step => Phase::OtherStep,
                (phase, _) => phase,
            };
            self.phases.set(*recording, row.scenario_run, phase);
            if phase == Phase::Measured && self.counted != Counted::All {
                self.counting.insert(*recording);
            }
            let key = (run.clone(), row.step);
            let users = self.users.get(&key).copied();
            self.scenarios.add(row, phase, key, users);
            let room = self.scenarios_of.len() < PARTS_MAX;
            match self.scenarios_of.get_mut(row.recording.as_str()) {
                Some(n) => *n += 1,
                None if room => {
                    self.scenarios_of.insert(row.recording.clone(), 1);
                }
                None => {}
            }
        }
    }

    pub(crate) fn counters(&mut self, rows: &[Counter]) {
        for row in rows {
            let windows = self.windows.get(row.recording.as_str());
            let step = windows.and_then(|windows| {
                let within = windows.iter().find(|(from, to, _)| (*from..*to).contains(&row.time));
                within.map(|(_, _, step)| *step)
            });
            self.counters.add(row, step.is_some());
            if let Some(step) = step
                && Resources::has(row)
            {
                let run = self.run_of(&row.recording, "");
                self.resources.entry((run, step)).or_default().add(row);
            }
        }
    }

    /// What an operation belongs to, and whether it counts.
    #[inline]
    pub(crate) fn belongs(&self, recording: u32, scenario_run: Option<u64>) -> (Phase, bool) {
        let phase = match scenario_run {
            Some(number) => self.phases.get(recording, number),
            None => Phase::Without,
        };
        (phase, phase == Phase::Measured || !self.counting.contains(&recording))
    }

    /// Whether there is anything from a load run, so that operations have to be separated by phase.
    #[inline]
    pub(crate) fn is_load(&self) -> bool {
        !self.scenarios_of.is_empty()
    }

    /// Counts an operation.
    pub(crate) fn operation(&mut self, phase: Phase, counts: bool, facts: &Facts) {
        let (operations, errors) = self.operations.entry(phase.name()).or_default();
        *operations += 1;
        *errors += u64::from(facts.error);
        if counts {
            self.operations_counted += 1
        } else {
            self.left_out.0 += 1;
            self.left_out.1 += u64::from(facts.error);
            self.left_out_busy_ns = self.left_out_busy_ns.saturating_add(facts.busy_ns);
        }
    }

    /// Counts the status of an operation that is left out.
    pub(crate) fn status(
        &mut self,
        status: Option<u32>,
        command: u32,
        name: impl FnOnce() -> Option<String>,
    ) {
        self.statuses.record(status, command, name);
    }

    /// The numbers; none where there was no load run.
    pub(crate) fn finish(
        mut self,
        series: &Series,
        command: impl Fn(u32) -> String,
    ) -> Option<Load> {
        let counters_others = self.counters.others;
        let counters = self.counters.finish(series);
        if self.parts.is_empty()
            && self.steps.is_empty()
            && self.scenarios_of.is_empty()
            && counters.is_empty()
        {
            return None;
        }
        for part in &mut self.parts {
            let name = part.description.recording.as_str();
            part.scenarios = self.scenarios_of.get(name).copied().unwrap_or(0);
        }
        let groups = steps::grouped(&self.steps);
        let limit = |run: &str| {
            let of_run = self.parts.iter().filter(|part| part.description.run == run);
            of_run.filter_map(|part| part.description.overload_limit_percent).next()
        };
        let mut rows: Vec<_> =
            groups.iter().map(|((run, _), parts)| steps::joined(parts, run, limit(run))).collect();
        for row in &mut rows {
            if let Some(cells) = self.scenarios.cells.get(&(row.run.clone(), row.step)) {
                (row.response, row.late) = scenarios::whole_step(cells);
            }
            if let Some(resources) = self.resources.get(&(row.run.clone(), row.step)) {
                resources.describe(row);
            }
        }
        let descriptions: Vec<_> = self.parts.iter().map(|part| &part.description).collect();
        let mut answers = steps::answers(&rows, &descriptions);
        for (answer, _) in &mut answers {
            let response = answer
                .users
                .map(|users| response_with(&self.scenarios, &rows, &answer.run, users))
                .unwrap_or_default();
            (answer.p50_ns, answer.p95_ns) = (response.p50_ns, response.p95_ns);
            answer.overall_response_ns = steps::overall_response(&rows, answer);
        }
        let scenario_steps = match self.counted {
            Counted::Step(step) => rows.iter().filter(|row| row.step == step).map(name).collect(),
            _ => steps::best(&rows, &answers),
        };
        let by_step = by_step(&self.scenarios, &rows);
        let best = best(&self.scenarios, &scenario_steps);
        let disagreeing: Vec<_> =
            answers.iter().filter(|(_, agree)| !agree).map(|(it, _)| it.run.clone()).collect();
        let warnings =
            warnings::warnings(&self.parts, &self.again, &groups, &self.unknown, &disagreeing);
        let phases = phase_rows(&self.scenarios, &self.operations, !self.counting.is_empty());
        let users = |at: i64| {
            let within = |row: &&data::StepRow| (row.start_ns..row.end_ns).contains(&at);
            rows.iter().filter(within).map(|row| row.users).max()
        };
        Some(Load {
            warnings,
            answers: answers.into_iter().map(|(answer, _)| answer).collect(),
            scenario_steps,
            scenarios: best,
            scenarios_by_step: by_step,
            scenarios_others: self.scenarios.others,
            phases,
            failures: self.scenarios.failures(),
            failures_others: self.scenarios.failures_others,
            window: Window {
                measured: !self.counting.is_empty(),
                step: match self.counted {
                    Counted::Step(step) => Some(step),
                    _ => None,
                },
                operations: self.operations_counted,
                left_out: self.left_out.0,
                left_out_errors: self.left_out.1,
                statuses: self.statuses.finish(self.left_out.0, command),
            },
            bins: self.scenarios.bins(series, users),
            counters,
            counters_others,
            runs: self.parts,
            steps: rows,
        })
    }

    /// The whole run that a recording is part of: as its manifest says, as its rows say, or itself.
    fn run_of(&mut self, recording: &str, said: &str) -> String {
        if let Some(run) = self.runs.get(recording) {
            return run.clone();
        }
        if self.unknown.len() < PARTS_MAX {
            self.unknown.push(recording.to_owned());
            let run = if said.is_empty() { recording } else { said };
            self.runs.insert(recording.to_owned(), run.to_owned());
            return run.to_owned();
        }
        recording.to_owned()
    }
}

fn name(row: &data::StepRow) -> data::StepName {
    data::StepName { run: row.run.clone(), step: row.step, users: row.users }
}

/// Scenarios of every step, in the order of the steps.
fn by_step(tally: &ScenarioTally, steps: &[data::StepRow]) -> Vec<data::ScenarioRow> {
    let mut rows = Vec::new();
    for ((run, step), cells) in &tally.cells {
        let of = steps.iter().find(|row| row.run == *run && row.step == *step);
        rows.extend(cells.iter().map(|(scenario, cell)| data::ScenarioRow {
            run: Some(run.clone()),
            step: Some(*step),
            users: of.map(|row| row.users),
            ..cell.row(scenario)
        }));
    }
    rows
}

/// Scenarios of some steps together; of all steps if there are no rows of steps.
fn best(tally: &ScenarioTally, wanted: &[data::StepName]) -> Vec<data::ScenarioRow> {
    let mut merged: BTreeMap<&str, scenarios::Cell> = BTreeMap::new();
    for ((run, step), cells) in &tally.cells {
        if !wanted.is_empty() && !wanted.iter().any(|it| it.run == *run && it.step == *step) {
            continue;
        }
        for (scenario, cell) in cells {
            merged.entry(scenario).or_insert_with(scenarios::Cell::new).absorb(cell);
        }
    }
    merged.into_iter().map(|(scenario, cell)| cell.row(scenario)).collect()
}

/// Response times of all scenarios in the steps of a run with that many users that were not overloaded.
fn response_with(
    tally: &ScenarioTally,
    rows: &[data::StepRow],
    run: &str,
    users: u64,
) -> Distribution {
    let mut all = scenarios::Cell::new();
    let of_run = rows.iter().filter(|row| row.run == run && row.users == users);
    for row in of_run.filter(|row| !row.overloaded) {
        let cells = tally.cells.get(&(row.run.clone(), row.step));
        cells.into_iter().flat_map(BTreeMap::values).for_each(|cell| all.absorb(cell));
    }
    all.response.distribution(false)
}

fn phase_rows(
    scenarios: &ScenarioTally,
    operations: &BTreeMap<&'static str, (u64, u64)>,
    told_apart: bool,
) -> Vec<PhaseRow> {
    let rows = Phase::ALL.into_iter().filter_map(|phase| {
        let (found, counted) = (scenarios.phase(phase), operations.get(phase.name()));
        if found.is_none() && counted.is_none() {
            return None;
        }
        let (operations, errors) = counted.copied().unwrap_or_default();
        Some(PhaseRow {
            phase: phase.name().to_owned(),
            operations,
            errors,
            counted: !told_apart || phase == Phase::Measured,
            ..found.unwrap_or_default()
        })
    });
    rows.collect()
}
