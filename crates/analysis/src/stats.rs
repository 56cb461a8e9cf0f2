//! Statistics that several analyses share: distributions of durations, means with their error, and
//! tests that compare two samples. Nothing in here knows what an operation is.

pub(crate) mod clusters;
pub(crate) mod effect;
pub(crate) mod latency;
pub(crate) mod mean;
pub(crate) mod slope;
pub(crate) mod student;
pub(crate) mod weighted;
