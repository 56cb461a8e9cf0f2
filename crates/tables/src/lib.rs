//! The tables that every source of smbscope writes and every reader reads.
//!
//! Captures, the probe inside Samba and the load generator all produce rows of the same tables, and
//! storage, SQL, analysis and reports read only these tables. This crate has their schemas, the
//! conversion between rows and Arrow, and what belongs to a recording as a whole: manifest,
//! description of a run, profile. It does no I/O other than asking the system for random bytes (for
//! a key of [`anonymize`]). Where rows come from is in `capture`, `samba` and `load`; how they are
//! stored is in `store`.
//!
//! # Conventions
//!
//! * **One row per SMB operation** in the table `operations`: request and response together. The other
//!   tables describe what operations refer to (connections, sessions, trees, handles ...).
//! * **Times are integer nanoseconds**: a point in time counts from 1970-01-01 00:00 UTC, a duration
//!   is the difference of two points. Only `report` converts them.
//! * **A value that a source cannot know is null**, never zero.
//! * **Keys**: `recording` is part of every key. `operation`, `connection` and `handle` are numbers
//!   that are unique in their recording.
//! * **Columns describe themselves**: type, unit, meaning and sensitivity are in the metadata of the
//!   Arrow field ([`mod@column`]), so that a Parquet file carries its own documentation.
//!   `smbscope schema` prints it.
//! * **One schema version** for all tables ([`SCHEMA_VERSION`]).
//!
//! # Where to find what
//!
//! | module | contents |
//! |---|---|
//! | [`registry`] | the list of all tables: the enums [`Table`] and [`Part`] and all conversions |
//! | [`operation`], [`builder`] | the row of the table `operations`, and how rows become Arrow batches |
//! | [`tables`] | the rows of all other tables, one file each |
//! | [`mod@slice`] | the kinds of slices of a server's time |
//! | [`message`], [`open`], [`code`], [`busy`], [`command_class`] | how columns are filled, the same for all sources |
//! | [`mod@column`], [`anonymize`] | units and sensitivity of columns; names replaced by keyed tokens |
//! | [`channels`] | operations and events of connections to rows of the table `channels` |
//! | [`filter`] | which operations are asked about, and the rows of all tables that belong to them |
//! | [`manifest`], [`description`], [`run`] | what a dataset and a load run say about themselves |
//! | [`profile`], [`protection`], [`quantity`], [`date`], [`interface`] | values that several crates share |
//!
//! # Two operations as a batch
//!
//! Text is stored once per batch: a row refers to it by number.
//!
//! ```
//! use arrow::array::AsArray;
//! use arrow::datatypes::Int64Type;
//! use smbscope_tables::builder::OperationBuilder;
//! use smbscope_tables::code;
//! use smbscope_tables::operation::{Operation, schema};
//!
//! # fn main() -> Result<(), arrow::error::ArrowError> {
//! // Only these columns; `None` builds all of them.
//! let names = ["command", "path", "elapsed_ns"];
//! let places: Vec<usize> = names.iter().map(|name| schema().index_of(name)).collect::<Result<_, _>>()?;
//! let mut builder = OperationBuilder::new(Some(&places))?;
//!
//! let mut create = Operation::default();
//! create.set_command(code::command(2, 5)); // SMB2 CREATE
//! create.set_path(builder.names.path.intern("docs\\plan.docx"));
//! create.set_elapsed_ns(1_200_000);
//!
//! let mut close = create; // The same path ...
//! close.set_command(code::command(2, 6));
//! close.clear(smbscope_tables::operation::Column::elapsed_ns); // ... and no time: null.
//!
//! builder.append(&[create, close]);
//! let batch = builder.finish()?;
//! assert_eq!((batch.num_rows(), batch.num_columns()), (2, 3));
//! let elapsed = batch["elapsed_ns"].as_primitive::<Int64Type>();
//! assert_eq!(elapsed.iter().collect::<Vec<_>>(), [Some(1_200_000), None]);
//! # Ok(())
//! # }
//! ```
//!
//! # Any table as a batch and back
//!
//! ```
//! use smbscope_tables::tables::Session;
//! use smbscope_tables::{Part, Table};
//!
//! # fn main() -> Result<(), arrow::error::ArrowError> {
//! let session = Session { recording: "monday.pcap".into(), operations: 5, ..Session::default() };
//! let part = Part::Sessions(vec![session]);
//! let batch = part.to_batch()?;
//! assert_eq!((part.table(), batch.schema()), (Table::Sessions, Table::Sessions.schema()));
//! let Some(Part::Sessions(rows)) = Part::from_batch(Table::Sessions, batch).pop() else { panic!() };
//! assert_eq!(rows[0].operations, 5);
//! # Ok(())
//! # }
//! ```
//!
//! `docs/adding.md` in the repository shows how to add a table or a kind of slice.

#![warn(missing_docs)]

pub mod anonymize;
pub mod builder;
pub mod busy;
pub mod channels;
pub mod column;
pub mod command_class;
pub mod date;
pub mod description;
pub mod filter;
pub mod interface;
pub mod manifest;
pub mod message;
pub mod named_columns;
pub mod open;
pub mod operation;
pub mod pool;
pub mod profile;
pub mod protection;
pub mod quantity;
pub mod readable;
pub mod registry;
pub mod row;
pub mod run;
pub mod slice;
pub mod status_meaning;
pub mod tables;
pub mod version;

pub use operation::code;
pub use registry::{Part, Table};
pub use version::{SCHEMA_VERSION, renamed};
