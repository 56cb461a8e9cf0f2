//! Counters of the server and of the client during a run, on the run's time axis.
//!
//! Owns where they are read (`proc`: this machine's `/proc`; `metrics`: a Prometheus endpoint), how
//! totals become rates (`rate`), and the thread that samples them (`sampler`). The results are rows of
//! the table `counters`. Names and units are the same for every source: docs/method/counters.md lists
//! them.

pub mod metrics;
pub mod proc;
pub mod rate;
pub mod sampler;
mod sys;

pub use metrics::Metrics;
pub use proc::{Proc, Processes};
pub use rate::{Kind, Reading};
pub use sampler::{Sampler, Source, SourceReport};
