//! The answers, one module for each: its fields, verdict, words, drawings and document.

pub mod baseline;
pub mod comparison;
pub mod cores;
pub mod cpu;
pub mod diagnosis;
pub mod durability;
pub mod fields;
pub mod load;
pub mod namespace;
pub mod prediction;
pub mod recording;
pub mod replication;
pub mod why;
