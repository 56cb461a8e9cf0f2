//! What a change would bring.
//!
//! [`averages`] holds for what is a sum: a scenario's time is its round trips, the server's time for
//! each of its operations, and a constant. [`published`] is the profile of the published model, with
//! which the method is checked against the published tables; [`fit`] finds its constants; [`reduce`]
//! makes one of a recording. Where order
//! counts, [`replay`] goes through recorded operations once more. A change is one of
//! [`change::Change`]; a [`plan::Plan`] is what several of them together mean for a replay, and
//! [`combined_changes`] what must be known of that.

pub mod averages;
pub mod capacity;
pub mod changes;
pub mod combined_changes;
pub mod crypto;
pub mod fit;
pub mod plan;
pub mod published;
pub mod queueing;
pub mod reduce;
pub mod replay;
pub mod requirements;

/// Of a normal distribution, for 95 %.
pub(crate) const Z_95: f64 = 1.96;
