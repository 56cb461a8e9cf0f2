//! What changes would bring: recorded operations, replayed as they would have gone with the changes.
//!
//! Owns the order of the passes. The first reads what must be known before the first operation:
//! round trips, shares, and the steps and counters that the capacity follows from. Some changes need a replay
//! without changes, which learns what requests cost. Then comes the replay with the changes, and
//! once more where its outcome decides how long requests wait for the server ([`waiting`]). Recordings
//! that cannot answer are refused ([`checks`]). The arithmetic is `smbscope_analysis::predict`.

mod checks;
mod waiting;

use smbscope_analysis::predict::capacity::{Capacity, Demand, NoCapacity};
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::combined_changes;
use smbscope_analysis::predict::crypto::Calibration;
use smbscope_analysis::predict::delivered::Delivered;
use smbscope_analysis::predict::forecast::RecordedForecast;
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::{self, Baseline, Prediction, Replay};
use smbscope_analysis::predict::requirements::unlearnt_sizes;
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::description::{CLOSED, RunDescription};
use smbscope_tables::run::Step;
use smbscope_tables::tables::{Connection, Tree};

use self::checks::{check, check_sizes, notes, warnings};
use self::waiting::{Waiting, demand_change, demand_note, load_note, refuse_users};
use super::pass::{Analysis, Monitor, pass};
use crate::exit::Failure;

/// The questions to predict.
pub struct Request {
    /// In the order in which they apply.
    pub changes: Vec<Change>,
    /// What signing and encryption cost.
    pub calibration: Option<Calibration>,
    /// Whether the parts of operations are collected by command and size.
    pub in_detail: bool,
}

/// Replays the recording as it would have gone with the changes.
pub fn forecast(
    source: &mut Source,
    request: Request,
    monitor: &dyn Monitor,
) -> anyhow::Result<RecordedForecast> {
    let Request { changes, calibration, in_detail } = request;
    if let Some(why) = combined_changes::conflict(&changes) {
        return Err(Failure::usage(why));
    }
    let mut plan = Plan { calibration, ..Plan::default() };
    changes.iter().for_each(|change| change.plan(&mut plan));
    // The round trips must be known before the first operation.
    source.spool()?;
    let mut context = Context::default();
    pass(source, &mut [&mut context], monitor)?;
    let capacity = std::mem::take(&mut context.demand).finish();
    let step_note = select_step(&mut plan, &capacity)?;
    let mut baseline = Baseline::default();
    if plan.needs_baseline() {
        let unchanged = Plan::default();
        baseline = context.replay(source, &unchanged, baseline, false, monitor)?.baseline;
        check_sizes(unlearnt_sizes(&changes, baseline.sizes))?;
    }
    let replay = |plan: &Plan| {
        let prediction = context.replay(source, plan, baseline.clone(), in_detail, monitor)?;
        check(&changes, plan, &prediction)?;
        anyhow::Ok(prediction)
    };
    let mut prediction = replay(&plan)?;
    let demand = demand_change(&plan, &prediction);
    let changed_capacity = match &capacity {
        Ok(capacity) if demand.is_other() => Some(capacity.with_demand(demand)),
        _ => None,
    };
    let waiting = match &capacity {
        Ok(capacity) => {
            Waiting::from_plan(&plan, demand, capacity, changed_capacity.as_ref(), &prediction)?
        }
        Err(_) => Waiting::default(),
    };
    if let (false, Some((requests, _))) = (waiting.loads.is_empty(), prediction.of_execution()) {
        let waits = waiting.loads.iter().map(|load| load.wait(requests, plan.processors));
        plan.waits = waits.collect();
        prediction = replay(&plan)?;
    }
    let has_load = plan.users.is_some() || changed_capacity.is_some();
    let mut all_warnings = combined_changes::warnings(&changes, has_load);
    all_warnings.extend(warnings(&plan, &prediction));
    all_warnings.extend(waiting.warning);
    all_warnings.extend(changes.iter().filter_map(|change| change.warning(&prediction)));
    let mut all_notes = notes(&plan, &prediction);
    all_notes.extend(step_note);
    all_notes.extend(capacity.as_ref().ok().and_then(|capacity| demand_note(demand, capacity)));
    all_notes.extend(waiting.loads.iter().map(load_note));
    Ok(RecordedForecast {
        changes,
        prediction,
        users_s: context.users_s,
        capacity,
        changed_capacity,
        notes: all_notes,
        warnings: all_warnings,
    })
}

/// For another number of users only the step that the capacity follows from is today: what requests of other
/// steps waited is not. Gives a sentence where there are several.
fn select_step(
    plan: &mut Plan,
    capacity: &Result<Capacity, NoCapacity>,
) -> anyhow::Result<Option<String>> {
    if plan.users.is_none() {
        return Ok(None);
    }
    let capacity = capacity.as_ref().map_err(|missing| refuse_users(missing.sentence()))?;
    plan.window = Some(capacity.window);
    Ok((capacity.steps > 1).then(|| {
        format!(
            "\"Today\" is the step with {:.0} users: the recorded step with the most users who kept their schedule.",
            capacity.users_recorded
        )
    }))
}

/// What must be known before the first operation.
#[derive(Default)]
pub(super) struct Context {
    connections: Vec<Connection>,
    delivered: Delivered,
    /// Of continuously available shares.
    trees: Vec<Tree>,
    /// Recordings of load runs whose users follow no schedule.
    unpaced: Vec<String>,
    demand: Demand,
    /// How long all users of a load run together were measured, s.
    users_s: Option<f64>,
}

impl Context {
    /// A replay that knows what must be known.
    pub(super) fn begin(&self, plan: &Plan, baseline: Baseline) -> Replay {
        let mut replay = Replay::new(plan.clone(), baseline);
        replay.connections(&self.delivered.applied(&self.connections));
        replay.trees(&self.trees);
        self.unpaced.iter().for_each(|recording| replay.unpaced(recording));
        replay
    }

    /// All of the recording through a replay.
    fn replay(
        &self,
        source: &Source,
        plan: &Plan,
        baseline: Baseline,
        in_detail: bool,
        monitor: &dyn Monitor,
    ) -> anyhow::Result<Prediction> {
        let mut replay = self.begin(plan, baseline);
        if in_detail {
            replay = replay.in_detail();
        }
        let mut replaying = Replaying { replay, plan };
        pass(source, &mut [&mut replaying], monitor)?;
        Ok(replaying.replay.finish())
    }
}

impl Analysis for Context {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Steps, Table::Counters, Table::Connections, Table::Channels, Table::Trees]
    }

    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn run(&mut self, run: &RunDescription, _is_complete: bool) {
        if run.pacing == CLOSED {
            self.unpaced.push(run.recording.clone());
        }
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Steps(rows) => {
                let of = |step: &Step| step.users_here as f64 * (step.end - step.start) as f64;
                let users_s = rows.iter().map(of).sum::<f64>() / 1e9;
                self.users_s = Some(self.users_s.unwrap_or(0.0) + users_s);
                self.demand.steps(rows);
            }
            Part::Counters(rows) => self.demand.counters(rows),
            Part::Channels(rows) => self.delivered.channels(rows),
            Part::Connections(rows) => self.connections.extend_from_slice(rows),
            Part::Trees(rows) => {
                let available = rows.iter().filter(|row| row.continuous_availability == Some(true));
                self.trees.extend(available.cloned());
            }
            _ => {}
        }
        Ok(())
    }
}

/// A replay, with the plan that says which columns it reads.
struct Replaying<'a> {
    replay: Replay,
    plan: &'a Plan,
}

impl Analysis for Replaying<'_> {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Scenarios, Table::Operations]
    }

    fn columns(&self) -> Vec<&'static str> {
        replay::columns(self.plan).collect()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Scenarios(rows) => self.replay.scenarios(rows),
            Part::Operations(batch) => self.replay.operations(batch)?,
            _ => {}
        }
        Ok(())
    }
}
