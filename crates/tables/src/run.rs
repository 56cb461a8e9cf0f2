//! The tables of a load run: what simulated users did, at which load, and what the machines
//! showed meanwhile.
//!
//! Scenarios are recorded one by one, so that every figure of a run (overload, throughput,
//! response times) is derived from rows. A run is cut into steps of a constant number of users.
//! What was run on what stands in the manifest ([`crate::description`]).

pub use crate::tables::{Counter, Scenario, Step};

/// `format` of a load run's coverage: what it counts are operations, not packets.
pub const LOAD_FORMAT: &str = "load run";

/// [`Scenario::phase`] of scenarios scheduled before the measured window.
pub const WARM_UP: &str = "warm-up";
/// [`Scenario::phase`] of scenarios scheduled in the measured window.
pub const MEASURED: &str = "measured";
/// [`Scenario::phase`] of scenarios scheduled after the measured window.
pub const COOL_DOWN: &str = "cool-down";

/// [`Scenario::outcome`] of scenarios that went as the workload says.
pub const DONE: &str = "done";
/// [`Scenario::outcome`] of scenarios of which an operation ended otherwise than expected.
pub const FAILED: &str = "failed";
/// [`Scenario::outcome`] of scenarios that never began.
pub const NOT_STARTED: &str = "not started";
