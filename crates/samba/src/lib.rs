//! eBPF inside a running, unmodified Samba to operations with server slices.
//!
//! Owns: finding smbd and its functions (`find`, `symbols`), the BPF part and its loader (feature
//! `bpf`), and the way from its events to messages and slices (`ring_event`, `assemble`). Messages are
//! decoded by `capture`, so that what a probe says of an operation is what a capture says of it.

pub mod assemble;
pub mod check;
pub mod find;
pub mod join;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod loader;
pub mod operation;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod recording;
mod request;
pub mod ring_event;
pub mod rows;
pub mod slices;
pub mod symbols;
pub mod syscalls;
