//! Traces of an operating system: what its processors did, as rows of the processors' tables.
//!
//! Owns the formats of traces, and how their events become rows. Each format is a reader that yields
//! [`event::Event`]s and does not know tables. What a row means is said in `smbscope_tables`; what
//! rows mean together is computed in `analysis`.

pub mod event;
