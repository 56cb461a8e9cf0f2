//! The answer of a capacity search, and its sentence.

use serde::{Deserialize, Serialize};

use super::interval::Interval;

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
    /// Why the search ended.
    pub reason: StopReason,
    /// Steps that were run.
    pub steps: u64,
}

impl Answer {
    /// The answer as a sentence.
    pub fn sentence(&self) -> String {
        let users = self.users;
        let more = match self.too_many {
            Some(too_many) => format!("{too_many} users"),
            None => "more users".to_owned(),
        };
        let first = match self.reason {
            StopReason::Resolved => {
                format!("The server carries {users} users without overload; {more} are too many")
            }
            StopReason::MostUsers => format!(
                "The server carries {users} users, the most that were to be tried, without overload"
            ),
            StopReason::LeastUsers => {
                format!("The server is overloaded with {more}, the fewest that were to be tried")
            }
            StopReason::LimitedByClient => format!(
                "The server carries at least {users} users: with {more} the load generator was \
                 the limit, not the server; use a larger machine or several (--shard)"
            ),
            StopReason::TooManyErrors if users == 0 => {
                format!("Too many scenarios failed with {more}: see the errors")
            }
            StopReason::TooManyErrors => format!(
                "The server carries {users} users without overload; with {more} too many \
                 scenarios failed: see the errors"
            ),
            StopReason::ServerGone if users == 0 => {
                "The server stopped answering before any number of users was carried".to_owned()
            }
            StopReason::ServerGone => format!(
                "The server stopped answering; until then it carried {users} users without \
                 overload"
            ),
            StopReason::Undecided => format!(
                "The server carries about {users} users, but equal steps contradict each other: \
                 use longer steps"
            ),
            StopReason::Interrupted => format!(
                "The search was ended before it was done; until then the server carried {users} \
                 users without overload"
            ),
        };
        let second = match (self.interval.low, self.interval.high) {
            (Some(low), Some(high)) => format!(
                " (overload begins between {low:.0} and {high:.0}, 95 % interval, {} steps)",
                self.steps
            ),
            _ => String::new(),
        };
        format!("{first}{second}.")
    }
}
