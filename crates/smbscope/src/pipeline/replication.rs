//! What a second server would cost and need: passes over a recording.
//!
//! The first pass reads round trips, shares and the bytes of each second; the second one replays the operations once for
//! each link and kind of copy, side by side; with a goal, a few more look for the longest round trip that keeps it, several
//! at once. The arithmetic is `smbscope_analysis::replication`.

use arrow::array::RecordBatch;
use smbscope_analysis::predict::plan::{Plan, Replication};
use smbscope_analysis::predict::replay::{self, Baseline, Prediction, Replay};
use smbscope_analysis::replication::Link;
use smbscope_analysis::replication::forecast::{
    GoalForecast, GoalPoint, LinkForecast, Questions, ReplicationForecast,
};
use smbscope_analysis::replication::goal::Goal;
use smbscope_analysis::replication::load::{self, WriteLoad};
use smbscope_analysis::replication::search::Search;
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};

use super::forecast::Context;
use super::pass::{Analysis, Monitor, OfOperations, pass};
use crate::exit::Failure;

/// The questions to plan for.
pub struct Request {
    pub lines: Vec<Link>,
    pub questions: Questions,
    pub goal: Option<Goal>,
}

/// Plans from a recording.
pub fn plan(
    source: &mut Source,
    request: &Request,
    monitor: &dyn Monitor,
) -> anyhow::Result<ReplicationForecast> {
    let Request { lines, questions, goal } = request;
    // The round trips must be known before the first operation.
    source.spool()?;
    let (mut context, mut seconds) = (Context::default(), Seconds::default());
    pass(source, &mut [&mut context, &mut seconds], monitor)?;
    let load = seconds.0;
    let mut forecast = ReplicationForecast::of_load(&load, questions);
    // In this order for each link.
    let kinds = [(true, false), (true, true), (false, false)];
    let plans: Vec<_> = lines.iter().flat_map(|line| kinds.map(|kind| copy(*line, kind))).collect();
    let predictions = replay_all(source, &context, &plans, monitor)?;
    for (line, of_line) in lines.iter().zip(predictions.as_chunks::<3>().0) {
        let [sync, received, later] = of_line;
        if sync.timed == 0 {
            return Err(Failure::usage(
                "the inputs contain no operation with a time of its own, so nothing can be planned from them",
            ));
        }
        forecast.stable_operations = sync.stable;
        forecast.lines.push(LinkForecast::new(*line, &load, questions, [sync, received, later]));
    }
    if let Some(goal) = goal.as_ref().filter(|_| forecast.writes > 0) {
        let mut rates: Vec<Option<f64>> = Vec::new();
        for line in lines {
            if !rates.contains(&line.bandwidth_bits) {
                rates.push(line.bandwidth_bits);
                forecast.goals.push(search(source, &context, goal, *line, monitor)?);
            }
        }
    }
    Ok(forecast)
}

/// A second server behind a link.
fn copy(line: Link, (is_sync, is_on_arrival): (bool, bool)) -> Plan {
    let Link { rtt_ns, bandwidth_bits } = line;
    let replication = Replication { is_sync, is_on_arrival, rtt_ns, bandwidth_bits };
    Plan { replication: Some(replication), ..Plan::default() }
}

/// The longest round trip that keeps a goal, with the rate of this link.
fn search(
    source: &Source,
    context: &Context,
    goal: &Goal,
    line: Link,
    monitor: &dyn Monitor,
) -> anyhow::Result<GoalForecast> {
    let (mut search, mut tried) = (Search::default(), Vec::new());
    let mut today_ns = None;
    loop {
        let round_trips = search.next_round_trips();
        if round_trips.is_empty() {
            break;
        }
        let lines = round_trips.iter().map(|&rtt_ns| Link { rtt_ns, ..line });
        let plans: Vec<_> = lines.map(|line| copy(line, (true, false))).collect();
        let predictions = replay_all(source, context, &plans, monitor)?;
        for (&rtt_ns, prediction) in round_trips.iter().zip(&predictions) {
            let (before_ns, after_ns) = goal.times(prediction).ok_or_else(|| {
                Failure::usage(format!(
                    "--goal `{goal}`: the recording has no such command or scenario with a time; it has {}",
                    Goal::names(prediction).join(", ")
                ))
            })?;
            today_ns = Some(before_ns);
            search.add(rtt_ns, after_ns < goal.limit_ns());
            tried.push(GoalPoint { rtt_ns, time_ns: after_ns });
        }
    }
    let forecast = GoalForecast {
        goal: goal.to_string(),
        bandwidth_bits: line.bandwidth_bits,
        today_ns: today_ns.unwrap_or(0),
        limit_ns: goal.limit_ns(),
        tried,
        ..GoalForecast::default()
    };
    Ok(forecast.answer(search.found()))
}

/// Replays of all plans in one pass.
fn replay_all(
    source: &Source,
    context: &Context,
    plans: &[Plan],
    monitor: &dyn Monitor,
) -> anyhow::Result<Vec<Prediction>> {
    let replays = plans.iter().map(|plan| context.begin(plan, Baseline::default()));
    let mut replays = Replays { plans, replays: replays.collect() };
    pass(source, &mut [&mut replays], monitor)?;
    Ok(replays.replays.into_iter().map(Replay::finish).collect())
}

/// Replays side by side.
struct Replays<'a> {
    plans: &'a [Plan],
    replays: Vec<Replay>,
}

impl Analysis for Replays<'_> {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Scenarios, Table::Operations]
    }

    fn columns(&self) -> Vec<&'static str> {
        self.plans.first().map(|plan| replay::columns(plan).collect()).unwrap_or_default()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        for replay in &mut self.replays {
            match part {
                Part::Scenarios(rows) => replay.scenarios(rows),
                Part::Operations(batch) => replay.operations(batch)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// The bytes of each second.
#[derive(Default)]
struct Seconds(WriteLoad);

impl OfOperations for Seconds {
    fn columns(&self) -> Vec<&'static str> {
        load::COLUMNS.to_vec()
    }

    fn batch(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.0.operations(batch)?)
    }
}
