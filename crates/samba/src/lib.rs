//! eBPF inside a running, unmodified Samba: operations with server slices.
//!
//! Owns: finding smbd and its functions (`find`, `symbols`), the BPF part and its loader (feature
//! `bpf`), and the path from its events to messages and slices (`ring_event`, `assemble`). `capture`
//! decodes the messages, so that a probe's rows say the same about an operation as a capture's.

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
