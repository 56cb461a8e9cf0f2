//! The answer of a capacity search, and its sentence.

use serde::{Deserialize, Serialize};

use smbscope_tables::readable;

use super::interval::Interval;
use super::limit::{Exceeded, Limit};

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The edge was found to the resolution.
    Resolved,
    /// The most users that were allowed are carried.
    MostUsers,
    /// The fewest users are too many.
    LeastUsers,
    /// More users than the answer are more than the generator can simulate.
    LimitedByClient,
    /// With more users than the answer too many scenarios fail.
    TooManyErrors,
    /// The server stopped answering.
    ServerGone,
    /// Too many steps: its verdicts contradict each other.
    Undecided,
    /// It was ended from outside.
    Interrupted,
    /// All numbers of users that were given have been tried (`--steps`).
    PointsTried,
}

/// Why a number of users is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The server is overloaded.
    Overload,
    /// The generator was the limit.
    Client,
    /// Too many scenarios failed.
    Errors,
    /// Responses took longer than the limit (`--max-response`).
    Response,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Highest number of users that the server carried; zero when none was.
    pub users: u64,
    /// Between which numbers overload begins, with a confidence of
    /// [`CONFIDENCE`](super::interval::CONFIDENCE).
    pub interval: Interval,
    /// Lowest number of users that was too much.
    pub too_many: Option<u64>,
    /// Why they were too many.
    pub cause: Option<Cause>,
    /// The limits on response times that the answer keeps (`--max-response`).
    pub limits: Vec<Limit>,
    /// The limit that `too_many` users did not keep.
    pub exceeded: Option<Exceeded>,
    /// 95th percentile of the response times of all scenarios with `users` users, ns.
    pub p95_ns: Option<i64>,
    /// Why the search ended.
    pub reason: StopReason,
    /// Steps that were run.
    pub steps: u64,
}

impl Answer {
    /// What the users were carried within: no overload, and the limits.
    fn within(&self) -> String {
        let limits: Vec<String> = self.limits.iter().map(Limit::to_string).collect();
        match limits.as_slice() {
            [] => "without overload".to_owned(),
            limits => format!("without overload and within {}", limits.join(", ")),
        }
    }

    /// `150 users without overload, p95 3.8 s`.
    fn carried(&self) -> String {
        let (users, within) = (self.users, self.within());
        match self.p95_ns {
            Some(p95) => format!("{users} users {within}, p95 {}", readable::duration(p95)),
            None => format!("{users} users {within}"),
        }
    }

    /// Why more users are too many.
    fn too_many(&self) -> String {
        match (self.cause, &self.exceeded) {
            (Some(Cause::Response), Some(Exceeded { limit, measured_ns })) => {
                let measured = match measured_ns {
                    Some(ns) => readable::duration(*ns),
                    None => "no response".to_owned(),
                };
                let of = limit.name.as_ref().map_or(String::new(), |name| format!("{name} "));
                format!("too many: {of}{} {measured}", limit.statistic.name())
            }
            (Some(Cause::Overload), _) => "too many: overloaded".to_owned(),
            _ => "too many".to_owned(),
        }
    }

    /// The answer as a sentence.
    pub fn sentence(&self) -> String {
        let (users, carried) = (self.users, self.carried());
        let more = match self.too_many {
            Some(too_many) => format!("{too_many} users"),
            None => "more users".to_owned(),
        };
        let first = match self.reason {
            StopReason::Resolved => {
                format!("The server carries {carried}; {more} are {}", self.too_many())
            }
            StopReason::MostUsers => {
                format!("The server carries {carried}; more users were not tried (--max-users)")
            }
            StopReason::LeastUsers => {
                let too_many = self.too_many();
                format!("{more}, the fewest that could be tried, are {too_many}")
            }
            StopReason::LimitedByClient => format!(
                "The server carries at least {carried}: with {more} the load generator was the \
                 limit, not the server; use a larger machine or several (--shard)"
            ),
            StopReason::TooManyErrors if users == 0 => {
                format!("Too many scenarios failed with {more}: see the errors")
            }
            StopReason::TooManyErrors => format!(
                "The server carries {carried}; with {more} too many scenarios failed: see the errors"
            ),
            StopReason::ServerGone if users == 0 => {
                "The server stopped answering before any number of users was carried".to_owned()
            }
            StopReason::ServerGone => {
                format!("The server stopped answering; until then it carried {carried}")
            }
            StopReason::Undecided => format!(
                "The server carries about {carried}, but equal steps contradict each other: use \
                 longer steps"
            ),
            StopReason::PointsTried if users == 0 => {
                format!(
                    "None of the given numbers of users is carried: {more} are {}",
                    self.too_many()
                )
            }
            StopReason::PointsTried if self.too_many.is_none() => {
                format!("The server carries {carried}; more users were not tried (--steps)")
            }
            StopReason::PointsTried => {
                format!("The server carries {carried}; {more} are {}", self.too_many())
            }
            StopReason::Interrupted if users == 0 => {
                "The search was interrupted before any number of users was carried".to_owned()
            }
            StopReason::Interrupted => {
                format!("The search was interrupted; until then the server carried {carried}")
            }
        };
        let begins = if self.limits.is_empty() { "overload begins" } else { "the limit lies" };
        let second = match (self.interval.low, self.interval.high) {
            (Some(low), Some(high)) => format!(
                " ({begins} between {low:.0} and {high:.0} users, 95 % interval, {} steps)",
                self.steps
            ),
            _ => String::new(),
        };
        format!("{first}{second}.")
    }
}
