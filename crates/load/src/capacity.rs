//! How many users a server carries without overload.
//!
//! Owns the definition of overload (`overload`, in words in docs/method/overload.md), the log of every user's
//! schedule (`schedule_log`), the early end of a step (`early_stop`), the search for the
//! highest number of users (`search`, with its `step`s and its `answer`) with the answer's interval
//! (`interval`), limits on response times (`limit`), and FSCT's
//! table as data (`table`). All of it is arithmetic: no network, no clock. It does not own who runs the
//! users.

pub mod answer;
pub mod early_stop;
pub mod interval;
pub mod limit;
pub mod overload;
pub mod schedule_log;
pub mod search;
#[cfg(test)]
mod simulation;
pub mod step;
pub mod table;

pub use answer::{Answer, Cause, StopReason};
pub use early_stop::{Certain, Early};
pub use interval::Interval;
pub use limit::{Exceeded, Limit};
pub use overload::{Assessment, Rule, Snapshot};
pub use schedule_log::ScheduleLog;
pub use search::Search;
pub use step::{Purpose, Settings, Step, StepResult};
pub use table::Table;
