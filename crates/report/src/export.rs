//! What other programs read: one module for each program's format.
//!
//! An exporter takes rows as they come and writes to any `std::io::Write`; it does not read inputs.

pub mod perfetto;
pub mod prometheus;
