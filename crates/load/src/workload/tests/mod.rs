//! Tests of workloads as a whole; those of one file stand in it.

mod facts;
