//! DFS namespaces: read, checked, rewritten, and moved in stages while users work.
//!
//! [`model`] is the waist: every form in which a namespace travels is read to it and written from it. [`stages`] plans
//! a move, [`gate`] judges from caches and captures whether clients are ready for the next stage, [`progress`] keeps
//! where the move is.

pub mod gate;
pub mod model;
pub mod names;
pub mod progress;
pub mod quote;
#[cfg(test)]
mod simulation;
pub mod stages;
pub mod waits;
