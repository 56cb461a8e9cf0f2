//! Pure arithmetic over operations: no input or output, no SQL.
//!
//! Owns the summary of a recording ([`summary`]), which is all that a report shows, and what happens
//! at the moment ([`live`]), and what a change would bring ([`predict`]).

pub mod live;
pub mod predict;
pub mod summary;
