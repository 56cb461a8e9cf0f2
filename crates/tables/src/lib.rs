//! The waist of smbscope: what every source writes and every reader reads.
//!
//! Owns: the Arrow schemas of all tables, the operation row and its columns, codes as text, the
//! coverage record, the run folder's manifest, how sensitive each column is and how it is made
//! anonymous. It does not own where rows come from (`capture`) nor where they go (`store`).
//!
//! All times are integer nanoseconds: points in time since the Unix epoch, durations as a
//! difference of two of them. Only `report` converts. A value that a source cannot know is null.

#![warn(missing_docs)]

pub mod anonymize;
pub mod builder;
pub mod busy;
pub mod code;
pub mod column;
pub mod date;
pub mod description;
pub mod manifest;
pub mod message;
pub mod named_columns;
pub mod open;
pub mod operation;
pub mod part;
pub mod pool;
pub mod profile;
pub mod protection;
pub mod quantity;
pub mod readable;
pub mod run;
pub mod slice;
pub mod table;
pub mod tables;
mod values;

/// Version of all schemas together. A changed column raises it and adds a fix-up for old files.
pub const SCHEMA_VERSION: u32 = 1;
