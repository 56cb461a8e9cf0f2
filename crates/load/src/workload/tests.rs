//! Tests of workloads as a whole; those of one file stand in it.

mod document;
mod facts;
mod plans;
mod simulate;
mod wrong;
