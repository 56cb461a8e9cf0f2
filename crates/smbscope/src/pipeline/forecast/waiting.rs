//! How long requests wait for a server that has more or less to do: which change decides that, and the sentences
//! about it.

use smbscope_analysis::predict::capacity::{Capacity, DemandChange, Load, NoCapacity};
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::Prediction;
use smbscope_tables::readable;

use crate::exit::Failure;

/// What a scenario then needs of the CPUs.
pub(super) fn demand_change(plan: &Plan, prediction: &Prediction) -> DemandChange {
    let more_s = prediction.of_execution().map_or((0.0, 0.0), |(_, more_s)| more_s);
    DemandChange { left: plan.processors, more_s }
}

/// What another way of signing or encrypting takes, in words.
pub(super) fn demand_note(demand: DemandChange, capacity: &Capacity) -> Option<String> {
    let more = |seconds: f64| {
        let time = duration(seconds.abs());
        format!("{time} {}", if seconds < 0.0 { "less" } else { "more" })
    };
    (demand.more_s.0 != 0.0).then(|| {
        let client = if capacity.clients_beside {
            format!(
                ", and {} of its client's, which runs on the same machine",
                more(demand.more_s.1)
            )
        } else {
            String::new()
        };
        format!(
            "With the changes a scenario takes {} of the server's CPUs{client}.",
            more(demand.more_s.0)
        )
    })
}

/// The error for another number of users that has no answer.
pub(super) fn refuse_users(why: &str) -> anyhow::Error {
    Failure::usage(format!("--change users: {why}"))
}

/// How the server is loaded with the changes.
#[derive(Default)]
pub(super) struct Waiting {
    /// The resources that requests wait for; empty where nothing changes that.
    pub(super) loads: Vec<Load>,
    /// Why the prediction has no longer waits, although the load changes.
    pub(super) warning: Option<String>,
}

impl Waiting {
    /// From a prediction without waits.
    pub(super) fn from_plan(
        plan: &Plan,
        demand: DemandChange,
        capacity: &Capacity,
        changed: Option<&Capacity>,
        prediction: &Prediction,
    ) -> anyhow::Result<Waiting> {
        let users = match plan.users {
            Some(users) => users,
            // Operations of several steps are shown together: one answer would not be right for each.
            None if demand.more_s.0 != 0.0 && capacity.steps == 1 => capacity.users_recorded,
            None => return Ok(Waiting::default()),
        };
        let changed = changed.unwrap_or(capacity);
        let why = match capacity.loads(changed, users) {
            Some(loads) => match contradiction(&loads, prediction) {
                None => return Ok(Waiting { loads, warning: None }),
                Some(why) => why,
            },
            None => overload(capacity, changed, users),
        };
        // Another number of users has no meaning without the waits.
        if plan.users.is_some() {
            return Err(refuse_users(&why));
        }
        let warning = format!("Longer waits for the server are not included in any time: {why}");
        Ok(Waiting { loads: Vec::new(), warning: Some(warning) })
    }
}

/// Why there are no loads.
fn overload(capacity: &Capacity, changed: &Capacity, users: f64) -> String {
    let Some(limit) = changed.limit() else { return NoCapacity::NeverBusy.sentence().to_owned() };
    if users < limit.users {
        return format!(
            "the {} had no time left with the {:.0} recorded users, so how long requests waited for that is not \
             known; record with fewer users",
            limit.name, capacity.users_recorded
        );
    }
    let text = format!(
        "the server {} about {:.0} ± {:.0} users ({}); with {users:.0} users queues grow without end and there is no \
         response time. {}",
        if capacity == changed { "carries" } else { "then carries" },
        limit.users,
        limit.users_error,
        limit.name,
        capacity.notes.join(" ")
    );
    text.trim_end().to_owned()
}

/// Why today's queues cannot be what the load suggests: requests would have waited longer than scenarios took.
fn contradiction(loads: &[Load], prediction: &Prediction) -> Option<String> {
    let took_s = prediction.scenario_s()?;
    let load = loads.iter().find(|load| load.wait_s.0 > took_s)?;
    Some(format!(
        "the waits cannot be computed: with {} busy for {:.1} % of the time, a scenario would have waited {} for that, \
         but took only {} in total. Other programs kept it busy without delaying the users: record again with nothing \
         else running on that machine",
        load.name,
        100.0 * load.busy.0,
        duration(load.wait_s.0),
        duration(took_s)
    ))
}

/// How a resource is loaded, and how much depends on that.
pub(super) fn load_note(load: &Load) -> String {
    let Load { name, busy, wait_s, .. } = load;
    let tenth_more = match load.tenth_more_s {
        Some(seconds) => {
            format!("{} if each needs a tenth more of it than measured", duration(seconds))
        }
        None => "without end if each needs a tenth more of it than measured".to_owned(),
    };
    format!(
        "{name} busy: {:.1} % today, {:.1} % with the changes. A scenario waits for that {} today, {} with the changes, \
         and {tenth_more}.",
        100.0 * busy.0,
        100.0 * busy.1,
        duration(wait_s.0),
        duration(wait_s.1)
    )
}

fn duration(seconds: f64) -> String {
    readable::duration((1e9 * seconds) as i64)
}
