//! What an administrator runs: steps with their check and undo, and words that no name breaks.
//!
//! Owns [`Step`] and all quoting. Nothing is executed here, and which commands there are, a planner says.

pub(crate) mod names;
pub(crate) mod quote;

use serde::Serialize;

/// A change with its undo. `D` is what only one planner has, with keys of its own in JSON. The steps of a namespace's move
/// ([`crate::namespace::stages::Step`]) are not these: each has its commands in alternatives, and the undo is the stage's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step<D = NoDetails> {
    pub does: String,
    /// Lines of PowerShell or of sh. Lines that call a function need the script around them.
    pub apply: Vec<String>,
    pub undo: Vec<String>,
    pub checks: Vec<Check>,
    #[serde(flatten)]
    pub details: D,
}

/// For planners whose steps have nothing more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NoDetails {}

/// How to see whether a step took effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub command: String,
    pub expected: String,
}
