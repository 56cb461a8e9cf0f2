//! Parts of a load run that need no arguments: checks before it, counters during it, and the writer of its rows.
//!
//! The engine that runs users is `smbscope_load`'s. `commands::load` connects these parts.

pub mod counters;
pub mod preflight;
pub mod writer;
