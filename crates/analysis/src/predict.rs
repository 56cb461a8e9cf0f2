//! What a change would bring.
//!
//! Two methods answer that. [`averages`] is arithmetic on means: a scenario's time is its round
//! trips, the server's time for each of its operations, and a constant. It needs only a profile:
//! [`published`] is the one of the published model, with which the method is checked against the
//! published tables ([`fit`] finds its constants), and [`reduce`] makes one of a recording. Where
//! order counts, [`replay`] goes through the recorded operations again.
//!
//! A change is one of [`changes::Change`]. A [`plan::Plan`] is what several of them together mean
//! for a replay; [`combined_changes`] knows how they interact, and [`requirements`] what a
//! recording must have for them. [`delivered`] finds receive windows that limited transfers. [`capacity`] says how many users a server carries and, with
//! [`queueing`], how long requests wait. [`crypto`] has the costs of signing and encryption.
//! [`forecast`] is what comes out.

pub mod averages;
pub mod capacity;
pub mod changes;
pub mod combined_changes;
pub mod crypto;
pub mod delivered;
pub mod fit;
pub mod forecast;
pub mod plan;
pub mod published;
pub mod queueing;
pub mod reduce;
pub mod replay;
pub mod requirements;

/// Quantile of the normal distribution for a 95 % interval.
pub(crate) const Z_95: f64 = 1.96;
