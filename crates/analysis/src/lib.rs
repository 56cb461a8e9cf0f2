//! Pure arithmetic over operations: no input or output, no SQL.
//!
//! Owns the summary of a recording ([`summary`]), which is all that a report shows, what happens
//! at the moment ([`live`]), what makes it slow ([`explain`]), what a change would bring ([`predict`]), and
//! how two recordings differ ([`compare`]).

pub mod compare;
pub mod explain;
pub mod live;
pub mod predict;
mod rows;
mod stats;
pub mod summary;
