//! Diagnoses: each trouble is found where it is, and not where it only looks like it. One file for
//! each family of findings; `support` makes operations.

// Tests may panic.
#![allow(clippy::unwrap_used)]

mod any_input;
mod client;
mod lookups;
mod notes;
mod server;
mod support;
mod transfers;
mod what_if;
