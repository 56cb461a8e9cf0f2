//! Answers as text for people, one file for each kind of answer. The report itself, which has several forms, is
//! in `sections`.

pub mod calibration;
pub mod capacity;
pub mod comparison;
pub mod cores;
pub mod durability;
pub mod findings;
pub mod why;
pub mod workload;
