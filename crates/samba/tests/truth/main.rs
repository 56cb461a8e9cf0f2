//! What a recording of a running Samba has is what the load that ran against it knows, and what a
//! capture shows; and the slices of a row are where its time went.
//!
//! Needs root, a kernel with BTF and a Samba; says so where one is missing. No test asserts how fast
//! something is: shares and ratios, and figures to be read.

#![cfg(all(feature = "bpf", target_os = "linux"))]
// A test may panic.
#![allow(clippy::unwrap_used)]

mod client;
mod crypto;
mod early;
mod echo;
mod ends;
mod fuse;
mod joined;
mod killed;
mod late;
mod modes;
mod recorder;
mod restart;
mod same;
mod settings;
mod slow;
mod starved;
mod waits;
mod wire;

#[path = "../../../load/tests/support/run.rs"]
#[allow(dead_code)]
mod run;
#[path = "../../../load/tests/support/mod.rs"]
mod support;
