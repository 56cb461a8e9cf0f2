//! Another number of users ([`Capacity::loads`](crate::predict::capacity::Capacity::loads)).

use std::fmt;

use smbscope_tables::readable;

use super::{Definition, Spec};
use crate::predict::plan::Plan;

/// As a number.
pub(super) struct Users;

impl Definition for Users {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "users",
        example: "users=2300",
        meaning: "this many users do the same work as the recorded ones, each as often",
        needs: "a load run with counters of the server (from its own machine, or --metrics), which show how long its \
                CPUs and disks are busy for a scenario",
    };

    fn parse(text: &str) -> Result<f64, String> {
        match text.parse::<u32>() {
            Ok(users) if users > 0 => Ok(f64::from(users)),
            _ => Err(Self::invalid(format!("`{text}` is not a number of users"))),
        }
    }

    fn print(users: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{users}")
    }

    fn sentence(users: f64) -> String {
        format!("there are {} users", readable::count(users as u64))
    }

    fn assumption(_: f64) -> &'static str {
        "All users do the same on average. Requests wait for the server's busiest resource and for its CPUs as in \
         queues with random arrivals, in the same proportion as observed in the recording. No lock and no single thread \
         is the limit."
    }

    fn plan(users: f64, plan: &mut Plan) {
        plan.users = Some(users);
    }
}
