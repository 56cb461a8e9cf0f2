//! Run folders and Parquet datasets, and SQL over captures and datasets.
//!
//! Owns: how a run folder is written so that a kill loses seconds at most ([`dataset`]), how an
//! input is recognised and read whatever it is ([`source`]), the SQL engine over both ([`sql`])
//! and the questions that have a name ([`questions`]). It does not own the schemas and the
//! manifest (`tables`), decoding (`capture`) nor how a result is shown (`report`).

pub mod dataset;
pub mod error;
#[cfg(feature = "sql")]
pub mod questions;
pub mod source;
#[cfg(feature = "sql")]
pub mod sql;
pub mod table;

#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod synthetic_load;
#[cfg(test)]
mod synthetic_rest;
#[cfg(test)]
mod synthetic_server;

use smbscope_capture as capture;

pub use error::{Error, Result};
pub use table::{Part, Table};
