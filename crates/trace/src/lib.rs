//! Traces of an operating system: what its CPUs did, as rows of the tables of CPUs; and what Windows recorded about
//! SMB, as rows of operations ([`windows`]).
//!
//! Owns the formats of traces, and how their events become rows. Each format is a reader that yields
//! [`event::Event`]s and does not know tables. [`rows`] makes the rows, for all formats. What a row means is defined in
//! `smbscope_tables`; what rows mean together is computed in `analysis`.
//!
//! ```
//! use smbscope_tables::{Part, Table};
//! use smbscope_trace::Reader;
//! use smbscope_trace::ftrace::Text;
//!
//! let text = "\
//! idle-0 [002] d.s. 10.000100: softirq_entry: vec=3 [action=NET_RX]
//! idle-0 [002] d.s. 10.000350: softirq_exit: vec=3 [action=NET_RX]
//! ";
//! let mut reader = Reader::new(Box::new(Text::new(text.as_bytes())), "monday.txt", 1024);
//! let parts: Vec<Part> = std::iter::from_fn(|| reader.next_part().transpose())
//!     .collect::<Result<_, _>>()?;
//! let interrupts = parts.iter().find(|part| part.table() == Table::Interrupts).unwrap();
//! assert_eq!(interrupts.to_batch()?.num_rows(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Formats
//!
//! | module | what it reads | from |
//! |---|---|---|
//! | [`ftrace`] | lines of text | `trace-cmd report`, `/sys/kernel/tracing/trace`, `perf script` |
//! | [`trace_dat`] | `trace.dat`, versions 6 and 7 | `trace-cmd record` |
//! | [`perf`] | `perf.data`, also compressed and from a pipe | `perf record` |
//! | [`ctf`] | folders of CTF 1.8 and 2 | LTTng |
//! | [`etl`] | event trace logs | xperf, WPR, logman, netsh, pktmon |
//! | [`xperf`] | sums of interrupts as text | `xperf -a dpcisr` |
//! | [`evtx`] | event logs | Windows |
//! | [`counter_log`] | counters as CSV | `typeperf`, `logman`, `relog` |
//!
//! [`recognise`] finds the format by the first [`HEAD_BYTES`] of a file, [`recognise_folder`] that of a folder. The module
//! `linux` knows what events of Linux mean, and pairs the beginnings and ends of interrupts. [`symbols`] finds the
//! function at an address (PDB, ELF, `/proc/kallsyms`). With the feature `record` the crate also records this
//! machine's CPUs, by eBPF or tracefs (`record`).
//!
//! # What to rely on
//!
//! * **Input is untrusted**: no panic, no recursion, no allocation by an unchecked length; one fuzz target for each
//!   format. Damaged records and times are counted and left out; they do not end the reading.
//! * **Memory is bounded.** A log is read in pieces; events are put in order within a window.
//! * **What was not recorded is null**, never zero, and the table `traces` says which events a trace has.
//! * Times are on the clock of the trace. Formats that count from the start of the machine keep that.

mod bytes;
pub mod counter_log;
pub mod ctf;
pub mod etl;
pub mod event;
#[cfg(feature = "evtx")]
pub mod evtx;
pub mod ftrace;
mod linux;
mod names;
mod order;
pub mod perf;
mod reader;
#[cfg(all(feature = "record", target_os = "linux"))]
pub mod record;
pub mod rows;
pub mod symbols;
pub mod trace_dat;
pub mod windows;
pub mod xperf;

pub use etl::{Contents, LogContents};
pub use reader::{
    Error, Format, HEAD_BYTES, OPERATION_TABLES, Reader, TABLES, Wanted, contents, recognise,
    recognise_folder,
};
pub use symbols::Symbols;
