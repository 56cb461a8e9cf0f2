//! A recording of a running Samba matches the load's own rows and a capture; and the slices of a row
//! show how its time was spent.
//!
//! Needs root, a kernel with BTF and a Samba; reports what is missing. No test asserts absolute speed:
//! only shares and ratios; figures are printed for reading.

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
