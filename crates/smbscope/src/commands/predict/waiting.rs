//! How long requests wait for a server that has more or less to do: which change asks for that, and what is said of it.

use smbscope_analysis::predict::capacity::{Capacity, Load, NoCapacity, Then};
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::Prediction;
use smbscope_report::format;

use crate::exit::Failure;

/// What a scenario needs of the processors then.
pub fn then(plan: &Plan, prediction: &Prediction) -> Then {
    let more_s = prediction.of_execution().map_or((0.0, 0.0), |(_, more_s)| more_s);
    Then { left: plan.processors, more_s }
}

/// What another way of signing or encrypting takes, in words.
pub fn needs(then: Then, capacity: &Capacity) -> Option<String> {
    let more = |seconds: f64| {
        let time = format::duration((1e9 * seconds.abs()) as i64);
        format!("{time} {}", if seconds < 0.0 { "less" } else { "more" })
    };
    (then.more_s.0 != 0.0).then(|| {
        let beside = match capacity.clients_beside {
            true => format!(
                ", and {} for its client, which is on the same machine",
                more(then.more_s.1)
            ),
            false => String::new(),
        };
        format!("A scenario then takes {} of the server's processors{beside}.", more(then.more_s.0))
    })
}

/// Another number of users has no answer.
pub fn refused(why: &str) -> anyhow::Error {
    Failure::usage(format!("--change users: {why}"))
}

/// Which change asks how long requests wait for the server.
#[derive(Clone, Copy, PartialEq)]
pub enum Asking {
    /// Another number of users.
    Users,
    /// Another way of signing or encrypting, with the users of today.
    Protection,
}

impl Asking {
    /// Who asks, and with how many users it is.
    pub fn of(plan: &Plan, then: Then, capacity: &Capacity) -> Option<(Asking, f64)> {
        match plan.users {
            Some(users) => Some((Asking::Users, users)),
            // Of several steps the operations are told together: one answer would not be right for each.
            None if then.more_s.0 != 0.0 && capacity.steps == 1 => {
                Some((Asking::Protection, capacity.users_recorded))
            }
            None => None,
        }
    }

    /// How the server is loaded with so many users, as a prediction without waiting has it; else what is to be said of that.
    /// Another number of users makes no sense without.
    pub fn loads(
        self,
        capacity: &Capacity,
        then: &Capacity,
        users: f64,
        prediction: &Prediction,
    ) -> anyhow::Result<Result<Vec<Load>, String>> {
        let why = match capacity.loads(then, users) {
            Some(loads) => match too_long(&loads, prediction) {
                None => return Ok(Ok(loads)),
                Some(why) => why,
            },
            None => full(capacity, then, users),
        };
        match self {
            Asking::Users => Err(refused(&why)),
            Asking::Protection => Ok(Err(format!(
                "How much longer requests wait for the server is in no time here: {why}"
            ))),
        }
    }
}

/// Why there are no loads.
fn full(capacity: &Capacity, then: &Capacity, users: f64) -> String {
    let Some(limit) = then.limit() else { return NoCapacity::NeverBusy.sentence().to_owned() };
    if users < limit.users {
        return format!(
            "the {} had no time left with the {:.0} users that were recorded: how long requests waited for \
             that is not known; record with fewer users",
            limit.name, capacity.users_recorded
        );
    }
    let said = format!(
        "the server {} about {:.0} ± {:.0} users ({}): with {users:.0} queues grow without end and \
         there is no response time. {}",
        if capacity == then { "carries" } else { "then carries" },
        limit.users,
        limit.users_error,
        limit.name,
        capacity.notes.join(" ")
    );
    said.trim_end().to_owned()
}

/// Why what the queues say of today cannot be: somebody would have waited longer than it took.
fn too_long(loads: &[Load], prediction: &Prediction) -> Option<String> {
    let ms = |seconds: f64| format::duration((1e9 * seconds) as i64);
    let took_s = prediction.scenario_s()?;
    let load = loads.iter().find(|load| load.wait_s.0 > took_s)?;
    Some(format!(
        "how long requests wait cannot be told: with {} busy by {:.1} % a scenario would have \
         waited {} for that, and took {} in all. Others than the users kept that busy, and did not hold them \
         up: record again with nothing else on that machine",
        load.name,
        100.0 * load.busy.0,
        ms(load.wait_s.0),
        ms(took_s)
    ))
}

/// How a resource is loaded, and how much hangs on that.
pub fn loaded(load: &Load) -> String {
    let Load { name, busy, wait_s, .. } = load;
    let ms = |seconds: f64| format::duration((1e9 * seconds) as i64);
    let tenth_more = match load.tenth_more_s {
        Some(seconds) => format!("{} if each needs a tenth more of it than was seen", ms(seconds)),
        None => "without end if each needs a tenth more of it than was seen".to_owned(),
    };
    format!(
        "{name} busy: {:.1} % today, {:.1} % then. A scenario waits for that {} today, {} then, and {tenth_more}.",
        100.0 * busy.0,
        100.0 * busy.1,
        ms(wait_s.0),
        ms(wait_s.1)
    )
}
