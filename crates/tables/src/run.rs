//! The tables of a load run, and the words in their columns.
//!
//! Each scenario execution is a row, so that every figure of a run (overload, throughput, response
//! times) is derived from rows. A run consists of steps with a constant number of users. The
//! manifest says what was run and where ([`crate::description`]).

pub use crate::tables::{Counter, Scenario, Step};

/// `format` of a load run's coverage, which counts operations rather than packets.
pub const LOAD_FORMAT: &str = "load run";

/// [`Scenario::phase`] of scenarios scheduled before the measured window.
pub const WARM_UP: &str = "warm-up";
/// [`Scenario::phase`] of scenarios scheduled in the measured window.
pub const MEASURED: &str = "measured";
/// Phase of a run that moves bulk data: the files that are read are written first.
pub const PREPARING: &str = "preparing";
/// Phase of such a run: what was written is read and compared.
pub const VERIFYING: &str = "verifying";
/// [`Scenario::phase`] of scenarios scheduled after the measured window.
pub const COOL_DOWN: &str = "cool-down";

/// [`Scenario::outcome`] of scenarios with the results that the workload expects.
pub const DONE: &str = "done";
/// [`Scenario::outcome`] of scenarios with an unexpected result.
pub const FAILED: &str = "failed";
/// [`Scenario::outcome`] of scenarios that never started.
pub const NOT_STARTED: &str = "not started";
