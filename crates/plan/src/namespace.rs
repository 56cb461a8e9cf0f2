//! DFS namespaces: read, checked, rewritten, and moved in stages while users work.
//!
//! [`model`] is the waist: every form in which a namespace travels is read to it ([`read`]) and written from it
//! ([`mod@write`]). [`check`] finds what is wrong, [`rewrite`] changes names and forms, [`stages`] plans a move, [`gate`] judges
//! from caches and captures whether clients are ready for the next stage, [`progress`] keeps where the move is. [`referral`] makes a
//! namespace of what a capture shows.

pub mod check;
pub mod difference;
pub mod form;
pub mod gate;
pub mod model;
pub mod names;
pub mod progress;
pub mod read;
pub mod referral;
pub mod resolution;
pub mod rewrite;
#[cfg(test)]
mod simulation;
pub mod stages;
pub mod waits;
pub mod write;
