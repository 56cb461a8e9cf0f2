//! The state of a load run: one of several, so that no output contradicts another.

use smbscope_tables::description::CLOSED;

use super::data::{Load, RunPart, StepRow, WarningKind};

/// Fewest scenarios that a statement rests on: below, the 95th percentile is the longest one.
pub const SCENARIOS_MIN: u64 = 20;
/// A larger share of failed scenarios is a failed run (as in a capacity search).
pub const FAILED_SHARE_MAX: f64 = 0.01;
/// Machines whose clocks differ by more than this share of the measured window did not measure together.
const APART_SHARE_MAX: f64 = 0.05;
/// Normal quantile of a two-sided confidence of 95 %.
const Z: f64 = 1.959_964;

/// What a load run showed. The first one that holds, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadState {
    /// The server stopped answering.
    ServerGone,
    /// There is no measured step.
    NotMeasured,
    /// The machines of the run did not measure at the same time: their clocks differ.
    Apart,
    /// The server stopped answering, and answered again.
    Outage,
    /// More than [`FAILED_SHARE_MAX`] of the scenarios failed.
    Failing,
    /// The server refused to log users on.
    Refused,
    /// The run was interrupted before its window ended.
    Interrupted,
    /// The users could not keep their schedule.
    Overloaded,
    /// The load generator was the limit.
    ClientLimited,
    /// Fewer scenarios than [`SCENARIOS_MIN`], or than users, ended.
    TooFew,
    /// Users do not follow a schedule, so that no number of them is too many.
    Closed,
    /// The server carried the users.
    Carried,
}

/// Scenarios of the steps that the answer is read from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcomes {
    /// Due in the measured windows.
    pub due: u64,
    /// Due there, and not started.
    pub not_started: u64,
    /// Ended in the windows, failed ones included.
    pub ended: u64,
    /// Ended and failed.
    pub failed: u64,
}

impl Outcomes {
    /// Failed scenarios, as a share of those that ended.
    pub fn failed_share(&self) -> f64 {
        if self.ended == 0 { 0.0 } else { self.failed as f64 / self.ended as f64 }
    }

    /// The interval of that share with a confidence of 95 % (E. B. Wilson 1927).
    pub fn failed_interval(&self) -> (f64, f64) {
        let n = self.ended as f64;
        if n == 0.0 {
            return (0.0, 1.0);
        }
        let (share, z2) = (self.failed_share(), Z * Z);
        let middle = share + z2 / (2.0 * n);
        let half = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
        let within = |value: f64| (value / (1.0 + z2 / n)).clamp(0.0, 1.0);
        (within(middle - half), within(middle + half))
    }
}

impl Load {
    /// The step that the answer is read from: the highest load without overload, or the only one.
    pub fn answer_step(&self) -> Option<&StepRow> {
        let of = |row: &&StepRow| {
            self.scenario_steps.iter().any(|it| (&it.run, it.step) == (&row.run, row.step))
        };
        let steps = || self.steps.iter().filter(of);
        let answer = self.answers.first().and_then(|answer| answer.users);
        steps().find(|row| Some(row.users) == answer).or_else(|| steps().next())
    }

    /// Scenarios of the steps with as many users as [`Load::answer_step`].
    pub fn outcomes(&self) -> Outcomes {
        let Some(step) = self.answer_step() else { return Outcomes::default() };
        let same = |run: &str, number: u64| {
            run == step.run
                && self
                    .scenario_steps
                    .iter()
                    .any(|it| it.run == run && it.step == number && it.users == step.users)
        };
        let mut sum = Outcomes::default();
        for row in self.steps.iter().filter(|row| same(&row.run, row.step)) {
            sum.due = sum.due.saturating_add(row.scheduled);
            sum.ended = sum.ended.saturating_add(row.completed);
            sum.failed = sum.failed.saturating_add(row.failed);
        }
        let of_step = self.scenarios_by_step.iter().filter(|row| {
            row.run.as_deref().zip(row.step).is_some_and(|(run, step)| same(run, step))
        });
        sum.not_started = of_step.fold(0_u64, |sum, row| sum.saturating_add(row.not_started));
        sum
    }

    /// The run that the answer is about.
    fn parts(&self) -> impl Iterator<Item = &RunPart> {
        let run = self.answer_step().map(|step| step.run.as_str());
        self.runs.iter().filter(move |part| run.is_none_or(|run| part.description.run == run))
    }

    /// Lengths of the times in which the server answered no user, ns.
    pub fn outages(&self) -> impl Iterator<Item = i64> {
        let outages = self.parts().flat_map(|part| &part.description.outages);
        outages.map(|outage| outage.end_ns.saturating_sub(outage.start_ns).max(0))
    }

    /// Opens that were lost with their connections, and those that were reconnected.
    pub fn opens_lost(&self) -> (u64, u64) {
        self.parts().fold((0, 0), |(lost, again), part| {
            let run = &part.description;
            (lost.saturating_add(run.opens_lost), again.saturating_add(run.opens_reconnected))
        })
    }

    /// Names of the users whom the server refused to log on.
    pub fn users_refused(&self) -> Vec<&str> {
        self.parts().flat_map(|part| &part.description.users_refused).map(String::as_str).collect()
    }

    /// By how much the clocks of machines of the run differ at least, ns; none where they are not known to.
    pub fn clocks_apart_ns(&self) -> Option<i64> {
        let apart =
            self.warnings.iter().filter(|warning| warning.kind == WarningKind::ClocksDiffer);
        let least = apart.filter_map(|warning| {
            let error = warning.error_ns.unwrap_or(0);
            Some(warning.difference_ns?.saturating_abs().saturating_sub(error))
        });
        least.max().filter(|ns| *ns > 0)
    }

    /// What the run showed.
    pub fn state(&self) -> LoadState {
        let is_gone = |part: &RunPart| part.description.server_gone_ns.is_some();
        if self.steps.iter().any(|row| row.server_gone) || self.runs.iter().any(is_gone) {
            return LoadState::ServerGone;
        }
        let Some(step) = self.answer_step() else { return LoadState::NotMeasured };
        let apart_ns = self.clocks_apart_ns().unwrap_or(0);
        if step.parts > 1 && apart_ns as f64 > APART_SHARE_MAX * step.duration_ns as f64 {
            return LoadState::Apart;
        }
        if self.outages().next().is_some() {
            return LoadState::Outage;
        }
        let outcomes = self.outcomes();
        if outcomes.failed_share() > FAILED_SHARE_MAX {
            return LoadState::Failing;
        }
        if !self.users_refused().is_empty() {
            return LoadState::Refused;
        }
        // An answer of the run itself says why its search ended.
        let is_searched = self.answers.iter().any(|answer| answer.run == step.run);
        if self.parts().any(|part| !part.complete) && (is_searched || step.ended_early) {
            return LoadState::Interrupted;
        }
        if step.overloaded {
            return LoadState::Overloaded;
        }
        if step.limited_by_client {
            return LoadState::ClientLimited;
        }
        let claims = self.answers.iter().all(|answer| answer.users.is_some());
        if claims && outcomes.ended < SCENARIOS_MIN.max(step.users_here) {
            return LoadState::TooFew;
        }
        if self.parts().any(|part| part.description.pacing == CLOSED) {
            return LoadState::Closed;
        }
        LoadState::Carried
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::{Answer, StepName, Warning};
    use super::*;
    use smbscope_tables::description::Outage;

    /// A run of one step that carried 30 users.
    fn carried() -> Load {
        let step = StepRow {
            run: "r".into(),
            step: 1,
            users: 30,
            users_here: 30,
            scheduled: 300,
            completed: 300,
            ..StepRow::default()
        };
        let name = StepName { run: "r".into(), step: 1, users: 30 };
        let mut part = RunPart { complete: true, ..RunPart::default() };
        part.description.run = "r".into();
        Load { runs: vec![part], steps: vec![step], scenario_steps: vec![name], ..Load::default() }
    }

    fn state(change: impl FnOnce(&mut Load)) -> LoadState {
        let mut load = carried();
        change(&mut load);
        load.state()
    }

    #[test]
    fn a_run_has_one_state() {
        assert_eq!(state(|_| ()), LoadState::Carried);
        let step = |change: fn(&mut StepRow)| state(|load| load.steps.iter_mut().for_each(change));
        assert_eq!(step(|row| row.failed = 3), LoadState::Carried);
        assert_eq!(step(|row| row.failed = 4), LoadState::Failing);
        assert_eq!(step(|row| row.overloaded = true), LoadState::Overloaded);
        assert_eq!(step(|row| row.limited_by_client = true), LoadState::ClientLimited);
        // As many as users, and twenty of them.
        assert_eq!(step(|row| row.completed = 29), LoadState::TooFew);
        assert_eq!(step(|row| (row.users_here, row.completed) = (5, 19)), LoadState::TooFew);
        assert_eq!(step(|row| (row.users_here, row.completed) = (5, 20)), LoadState::Carried);
        // A server that is gone also makes users late and scenarios fail.
        let gone = |row: &mut StepRow| {
            (row.server_gone, row.overloaded, row.failed) = (true, true, 100);
        };
        assert_eq!(step(gone), LoadState::ServerGone);
        let run = |change: fn(&mut RunPart)| state(|load| load.runs.iter_mut().for_each(change));
        assert_eq!(run(|part| part.description.server_gone_ns = Some(1)), LoadState::ServerGone);
        assert_eq!(run(|part| part.description.pacing = CLOSED.into()), LoadState::Closed);
        let outage = |part: &mut RunPart| {
            let outage = Outage { start_ns: 1_000, end_ns: 13_000 };
            part.description.outages = vec![outage];
        };
        assert_eq!(run(outage), LoadState::Outage);
        let refused = |part: &mut RunPart| part.description.users_refused = vec!["eva".into()];
        assert_eq!(run(refused), LoadState::Refused);
        // The window was over when the run was interrupted.
        assert_eq!(run(|part| part.complete = false), LoadState::Carried);
        let in_window = |load: &mut Load| {
            load.runs[0].complete = false;
            load.steps[0].ended_early = true;
        };
        assert_eq!(state(in_window), LoadState::Interrupted);
        let search = |load: &mut Load| {
            load.runs[0].complete = false;
            load.answers = vec![Answer { run: "r".into(), users: Some(30), ..Answer::default() }];
        };
        assert_eq!(state(search), LoadState::Interrupted);
        // Three seconds of twenty, by the clocks of two machines.
        let apart = |difference_ns: i64, error_ns: i64| {
            state(|load| {
                (load.steps[0].parts, load.steps[0].duration_ns) = (2, 20_000_000_000);
                load.warnings = vec![Warning {
                    kind: WarningKind::ClocksDiffer,
                    recordings: Vec::new(),
                    values: Vec::new(),
                    step: None,
                    difference_ns: Some(difference_ns),
                    error_ns: Some(error_ns),
                }];
            })
        };
        assert_eq!(apart(-3_000_000_000, 1_000_000), LoadState::Apart);
        assert_eq!(apart(-3_000_000_000, 2_500_000_000), LoadState::Carried);
        assert_eq!(apart(900_000_000, 0), LoadState::Carried);
        let nothing = Load { runs: carried().runs, ..Load::default() };
        assert_eq!(nothing.state(), LoadState::NotMeasured);
    }

    #[test]
    fn the_share_that_failed_has_an_interval() {
        let share = |failed, ended| Outcomes { failed, ended, ..Outcomes::default() };
        let (low, high) = share(0, 300).failed_interval();
        assert!(low < 1e-9 && (high - 0.01264).abs() < 1e-4, "{low} {high}");
        let (low, high) = share(10, 100).failed_interval();
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        assert_eq!(share(0, 0).failed_interval(), (0.0, 1.0));
    }
}
