//! Pure arithmetic over operations: no input or output, no SQL.
//!
//! Owns the summary of a recording ([`summary`]), which is all that a report shows, and what happens
//! at the moment ([`live`]).

pub mod live;
pub mod summary;
