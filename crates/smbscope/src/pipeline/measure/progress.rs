//! The numbers of a run's steps while it continues: the same that its report will have.
//!
//! Rows pass through here on their way to the disk. Only steps, scenarios and counters are added up; they are few.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use smbscope_analysis::summary::{Load, LoadSoFar};
use smbscope_tables::Part;
use smbscope_tables::description::{Capacity, RunDescription};

/// The writer gets this time to take a step's last rows; a slow disk may delay it.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What the run showed so far. Clones are the same.
#[derive(Clone)]
pub struct RunSoFar(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    load: LoadSoFar,
    /// Number of the last step that ended.
    step: u64,
}

impl RunSoFar {
    /// Nothing yet of the run that `description` describes.
    pub fn new(description: &RunDescription) -> RunSoFar {
        let state = State { load: LoadSoFar::new(description), step: 0 };
        RunSoFar(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Adds a part of any table.
    pub fn part(&self, part: &Part) {
        let lock = || self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        match part {
            Part::Scenarios(rows) => lock().load.scenarios(rows),
            Part::Counters(rows) => lock().load.counters(rows),
            Part::Steps(rows) => {
                let mut state = lock();
                state.load.steps(rows);
                state.step = rows.last().map_or(state.step, |row| row.step);
                self.0.changed.notify_all();
            }
            _ => {}
        }
    }

    /// The run's own answer, which decides which steps' scenarios are listed.
    pub fn answer(&self, capacity: Capacity) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).load.answer(capacity);
    }

    /// All numbers, after step `number` ended; those before it if its rows do not arrive.
    pub fn after(&self, number: u64) -> Load {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited =
            self.0.changed.wait_timeout_while(state, WAIT_MAX, |state| state.step < number);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.load.load()
    }
}

#[cfg(test)]
mod tests {
    use smbscope_tables::run::{Counter, DONE, MEASURED, Scenario, Step};

    use super::*;

    #[test]
    fn a_step_has_its_scenarios_and_counters_when_it_ends() {
        let description =
            RunDescription { recording: "r".into(), run: "r".into(), ..RunDescription::default() };
        let run = RunSoFar::new(&description);
        let scenario = |response_ns| Scenario {
            recording: "r".into(),
            scenario_run: response_ns as u64,
            step: 1,
            scenario: "Open".into(),
            phase: MEASURED.into(),
            outcome: DONE.into(),
            started_at: Some(5),
            ended_at: Some(6),
            response_ns: Some(response_ns),
            ..Scenario::default()
        };
        run.part(&Part::Scenarios(vec![scenario(10), scenario(20)]));
        let sample = |time, value| Counter {
            recording: "r".into(),
            time,
            source: "server".into(),
            name: "cpu_percent".into(),
            value,
            ..Counter::default()
        };
        // The second sample is not in the step's window.
        run.part(&Part::Counters(vec![sample(50, 40.0), sample(150, 90.0)]));
        let step = Step {
            recording: "r".into(),
            run: "r".into(),
            step: 1,
            users: 7,
            end: 100,
            operations: Some(3),
            ..Step::default()
        };
        run.part(&Part::Steps(vec![step]));
        let load = run.after(1);
        let row = &load.steps[0];
        assert_eq!((row.users, row.response.n, row.response.p95_ns), (7, 2, Some(20)));
        assert_eq!(row.server_cpu_share, Some(0.4));
        assert_eq!(load.scenarios_by_step[0].scenario, "Open");
    }
}
