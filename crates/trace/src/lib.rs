//! Traces of an operating system: what its processors did, as rows of the processors' tables; and what Windows
//! recorded about SMB, as rows of operations ([`windows`]).
//!
//! Owns the formats of traces, and how their events become rows. Each format is a reader that yields
//! [`event::Event`]s and does not know tables. [`rows`] makes the rows, for all formats. What a row
//! means is said in `smbscope_tables`; what rows mean together is computed in `analysis`.
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
