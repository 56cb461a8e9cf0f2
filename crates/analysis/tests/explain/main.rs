//! Diagnoses: each trouble is found where it is, and not where it only seems to be. One file for each
//! family of findings; `support` creates operations.

// Tests may panic.
#![allow(clippy::unwrap_used)]

mod any_input;
mod channels;
mod client;
mod context;
mod credits;
mod dependence;
mod events;
mod everyday;
mod lookups;
mod network;
mod notes;
mod remedies;
mod server;
mod signing;
mod support;
mod transfers;
mod waits;
mod what_if;
mod why;
