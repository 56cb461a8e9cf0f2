//! eBPF inside a running, unmodified Samba: operations with server slices.
//!
//! A capture shows when a request arrived and when its reply left; it cannot show where the time in between went. This
//! crate attaches to `smbd` and records both the messages, in plaintext, and the *slices* of each request: waiting in
//! the queue, cryptography, file system, locks, sending and others ([`slices::Kind`]). It owns finding `smbd`, the BPF
//! part and its loader, and the path from events to messages and slices. It does not decode messages: `capture` does,
//! so that a row of the recorder says the same about an operation as a row of a capture.
//!
//! # From smbd to a row
//!
//! | step | module | what it does |
//! |---|---|---|
//! | check | [`check`] | whether this machine permits recording, and what to do if not; loads nothing |
//! | find | [`find`], [`symbols`] | the processes of `smbd`, their ports, libraries and the functions to probe |
//! | record | `loader`, `bpf/probe.bpf.c` | the BPF part reports what happened on which thread, in order; it keeps no operations |
//! | parse | [`ring_event`], [`syscalls`] | bytes of the ring buffer to events; classes of system calls |
//! | assemble | [`assemble`], [`operation`] | events to messages, and to the slices of each request |
//! | decode | [`rows`] | messages in the order of time to `capture`'s push decoder, and the slices to its rows |
//! | join | [`join`], `recording` | rows from inside with those of an interface, by address and TCP sequence number |
//!
//! `loader` and `recording` need the feature `bpf` (Linux, with clang and libelf when it is built). All other modules
//! are plain Rust that tests and fuzz targets feed with bytes.
//!
//! # Slices
//!
//! Slices of a request are disjoint. Their sum by kind is a column of its row:
//!
//! ```
//! use smbscope_samba::slices::{Kind, Slices};
//! use smbscope_tables::operation::Operation;
//!
//! let mut slices = Slices::default();
//! slices.add(Kind::Queue, 1_000, 200);
//! slices.add(Kind::Filesystem, 1_200, 5_000);
//! slices.add(Kind::Filesystem, 9_000, 1_000);
//! // What happened before the request arrived does not count.
//! slices.begin_at(1_100);
//! let mut row = Operation::default();
//! slices.fill(&mut row);
//! assert_eq!(Kind::Queue.of(&row), Some(100));
//! assert_eq!(Kind::Filesystem.of(&row), Some(6_000));
//! assert_eq!(Kind::LockWait.of(&row), None);
//! ```
//!
//! # What to rely on
//!
//! * **The server is not changed.** Probes are read-only; `docs/measurements/recorder.md` has their cost.
//! * **Bytes of the ring buffer are data.** Whatever is too short or of an unknown kind is not an event, and is counted.
//! * **Everything has a limit**, and what is given up is counted ([`assemble::Losses`]).
//! * Times are `CLOCK_MONOTONIC`; `recording` adds the offset to the wall clock, also after a step of the clock.
//!
//! `docs/method/server-slices.md` defines the slices and their limits. `tests/truth` compares rows with a real Samba.

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
