//! Analyses of SMB operations: pure arithmetic over record batches, without input, output or SQL.
//!
//! # What goes in
//!
//! One Arrow schema: *one row per SMB operation* ([`smbscope_tables::operation`]), from a capture, a
//! recorder inside the server, the load generator, or a Parquet dataset. Columns are found by their
//! name, so a batch may have fewer columns than the schema: each analysis says what it reads
//! (`COLUMNS`), and a column that is absent reads as null. Rows of other tables (connections,
//! coverage, scenarios ...) add what single operations do not say. Batches stream by: no analysis
//! keeps them, and the memory of each is bounded by limits in its options.
//!
//! # What comes out
//!
//! Plain data with units in its names (`_ns`, `_bytes`, `_share`), the number of values and the error
//! next to each estimate, and null for what is unknown. How it is shown is up to the `report` crate.
//!
//! | module | question | in | out |
//! |---|---|---|---|
//! | [`summary`] | Where does the time go? | [`summary::Summary`] | [`summary::Report`] |
//! | [`durability`] | Which acknowledged writes were stable? | [`durability::DurabilityTally`] | [`durability::Durability`] |
//! | [`live`] | What happens now? | [`live::Live`] | [`live::Snapshot`] |
//! | [`compare`] | How do two recordings differ, and is the difference significant? | [`compare::Side`] | [`compare::Comparison`] |
//! | [`predict`] | What would a change bring? | [`predict::replay::Replay`] | [`predict::replay::Prediction`] |
//! | [`replication`] | What would a second server cost and need? | [`replication::load::WriteLoad`], replays | [`replication::forecast::ReplicationForecast`] |
//! | [`processors`] | Which interrupts hold the CPUs? | [`processors::Processors`] | [`processors::Report`] |
//! | [`both_sides`] | What lies between a client's time and its server's? | [`both_sides::BothSidesTally`] | [`both_sides::BothSides`] |
//! | [`channels`] | Since when did each connection carry what? | [`channels::Timeline`] | [`channels::Channels`] |
//! | [`explain`] | What makes it slow, and what helps? | [`explain::Explain`] | [`explain::Diagnosis`] |
//!
//! # How to use it
//!
//! All analyses have the same form: make one, add batches, finish. Here are twenty reads of 4 KiB over a
//! round trip of 20 ms, one after the other:
//!
//! ```
//! use smbscope_analysis::explain::{Explain, FindingKind};
//! use smbscope_findings::Kind as _;
//! use smbscope_analysis::summary::{Options, Summary};
//! use smbscope_tables::builder::OperationBuilder;
//! use smbscope_tables::code;
//! use smbscope_tables::operation::Operation;
//!
//! const READ: u16 = 8;
//! let mut builder = OperationBuilder::new(None)?;
//! for number in 0..20 {
//!     let start = 1_000_000_000 + number * 20_000_000;
//!     let mut row = Operation::default();
//!     row.set_recording(builder.names.recording.intern("demo"));
//!     row.set_operation(number as u64);
//!     row.set_protocol(2);
//!     row.set_command(code::command(2, READ));
//!     row.set_connection(1);
//!     row.set_handle(1);
//!     row.set_status(0);
//!     row.set_outstanding(0);
//!     row.set_offset_bytes(number as u64 * 4096);
//!     row.set_transferred_bytes(4096);
//!     row.set_request_start(start);
//!     row.set_request_end(start);
//!     row.set_response_start(start + 20_000_000);
//!     row.set_response_end(start + 20_000_000);
//!     row.derive_durations();
//!     row.set_busy_ns(20_000_000);
//!     row.set_server_ns(100_000);
//!     builder.append(&[row]);
//! }
//! let batch = builder.finish()?;
//!
//! let mut summary = Summary::new(Options::default());
//! summary.operations(&batch)?;
//! let report = summary.finish();
//! assert_eq!(report.commands[0].command, "Read");
//! assert_eq!(report.totals.tally.elapsed.p50_ns, Some(20_000_000));
//!
//! let mut explain = Explain::new();
//! explain.operations(&batch)?;
//! let diagnosis = explain.finish()?;
//! assert_eq!(diagnosis.findings[0].kind, FindingKind::SmallReads);
//! assert_eq!(diagnosis.findings[0].kind.title(), "stop-and-wait small reads");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Definitions that all analyses share
//!
//! - *Elapsed* time is from the first byte of the request to the last byte of the reply. The
//!   *turnaround* in it, from the last byte of the request to the first of the reply, divides into
//!   *server* and *network* time where the round trip is known.
//! - *Busy* time is the time of a connection with at least one operation in flight. Each moment of it
//!   is divided among the operations in flight, so that shares of busy time add up to one.
//! - Operations that wait by design (`waits`: change notifications, blocked locks) are counted, but
//!   their times are not latencies.
//! - What a command does is decided in one place: [`smbscope_tables::command_class`].
//!
//! # Floors
//!
//! A module uses lower floors only; a test of the workspace asserts that. `rows` (how to read a
//! batch) is below `stats` (distributions, means, tests), then comes [`durability`], then [`summary`], [`compare`],
//! [`live`], [`predict`] and [`processors`] next to each other, and [`explain`] and [`replication`] on top: they use replays. `explain` replays a recording to
//! compute what a remedy would gain.

pub mod both_sides;
pub mod channels;
pub mod compare;
pub mod durability;
pub mod explain;
pub mod live;
mod logged;
pub mod net;
pub mod predict;
pub mod processors;
pub mod replication;
mod rows;
mod stats;
pub mod summary;
