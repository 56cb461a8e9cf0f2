//! Tests of workloads as a whole; those of one file are in that file.

mod document;
mod facts;
mod plans;
mod simulate;
mod wrong;
