//! Counters of the server and of the client during a run, on the time axis of the run.
//!
//! They answer what the rows of a run cannot: whether a CPU, a disk, the network or the memory was the limit. The results are
//! rows of the table `counters`, with the same names and units for every source: docs/method/counters.md lists them.
//!
//! Owns: where counters are read, how totals become rates, and the threads that sample them. Does not own: the table
//! (`tables`), what is concluded from it (`analysis`), and the choice of sources (the options of `smbscope load`).
//!
//! # How the parts fit
//!
//! 1. A [`Source`] reads all its counters at once, as [`Reading`]s: levels (memory in use), totals that only grow (bytes
//!    sent), and totals relative to another one (time per read).
//!    - [`Proc`] reads `/proc` and `/sys` of this machine: CPUs, disks, network interfaces, memory, and the processes of a
//!      server. It needs Linux.
//!    - [`Metrics`] reads a Prometheus endpoint: node_exporter, windows_exporter, that of Samba, or metrics by name.
//! 2. [`Sampler`] has a thread for each source. Each reads when a sample is due, converts, and sends its rows. It never waits
//!    for the writer: what finds no room is dropped and counted.
//! 3. [`rate::Rates`] turns readings into rows. A total that became smaller was reset: that interval has no row, and the next
//!    one is right again.
//! 4. At the end, a [`SourceReport`] says how many samples there were, what failed, and a remedy.
//!
//! A source is bounded: at most [`rate::READINGS_MAX`] readings a sample, of which those that never change may have no rows
//! ([`Reading::sparse`]).
//!
//! # Totals that become rates
//!
//! ```
//! use smbscope_counters::Reading;
//! use smbscope_counters::rate::Rates;
//!
//! let mut rates = Rates::default();
//! let mut sample = |second: i64, total_bytes: f64| {
//!     let sent = Reading::rate("net_sent", "B/s", total_bytes).of_instance("eth0");
//!     let rows = rates.rows("run", "server", second * 1_000_000_000, vec![sent]);
//!     rows.first().map(|row| row.value)
//! };
//! // The first sample only says where the total begins.
//! assert_eq!(sample(0, 5_000.0), None);
//! assert_eq!(sample(2, 9_000.0), Some(2_000.0));
//! // The interface was made again: no row, and then the rate is right.
//! assert_eq!(sample(3, 10.0), None);
//! assert_eq!(sample(4, 310.0), Some(300.0));
//! assert_eq!(rates.resets, 1);
//! ```
//!
//! To add a counter, add it to its source, and to docs/method/counters.md.

pub mod metrics;
pub mod proc;
pub mod rate;
pub mod sampler;
mod sys;

pub use metrics::Metrics;
pub use proc::{Proc, Processes};
pub use rate::{Kind, Reading};
pub use sampler::{Sampler, Source, SourceReport};
