//! Pure arithmetic over operations: no input or output, no SQL.
//!
//! Owns the summary of a recording ([`summary`]), which is all that a report shows.

pub mod summary;
