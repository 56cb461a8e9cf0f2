//! What a change would bring.
//!
//! [`averages`] holds for what is a sum: a scenario's time is its round trips, the server's time for
//! each of its operations, and a constant. [`published`] is the profile of the published model, with
//! which the method is checked against the published tables; [`fit`] finds its constants. A change
//! is one of [`change::Change`].

pub mod averages;
pub mod change;
pub mod fit;
pub mod published;
