//! Run folders and Parquet datasets: writing, reading, and SQL over datasets and captures.
//!
//! A *dataset* is a folder with a manifest and Parquet files for each table of `smbscope-tables`
//! ([`dataset`]). A *source* is a set of inputs of any kind (captures, traces, datasets, single Parquet
//! files, a stream) that is read as one set of tables ([`source`]). This crate does not own the
//! schemas and the manifest (`tables`), decoding (`capture`, `trace`), nor how results are shown (`report`).
//!
//! # Writing
//!
//! [`DatasetWriter`](dataset::DatasetWriter) takes parts (rows of one table) and writes them in a
//! thread of its own. A Parquet file gets its final name only when it is complete and on disk, at
//! least every ten seconds, and the manifest is replaced after it. So a folder is valid at any time,
//! and a killed writer loses at most the last ten seconds; a recording is also in pieces, so that it loses a second.
//!
//! # Reading
//!
//! [`Source::open`](source::Source::open) recognises each input by its content. Each pass
//! ([`Source::parts`](source::Source::parts)) decodes or reads again and keeps nothing in memory.
//! Columns that are not requested cost nothing. For a load run, steps and scenarios come before
//! operations, so that a reader knows to which scenario an operation belongs.
//!
//! ```
//! use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
//! use smbscope_store::source::{OpenOptions, Request, Source};
//! use smbscope_store::{Part, Table};
//! use smbscope_tables::builder::OperationBuilder;
//! use smbscope_tables::code;
//! use smbscope_tables::operation::Operation;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temporary = tempfile::tempdir()?;
//! # let folder = temporary.path().join("dataset");
//! // Write one operation to `folder`.
//! let mut builder = OperationBuilder::new(None)?;
//! let mut row = Operation::default();
//! row.set_recording(builder.names.recording.intern("monday.pcap"));
//! row.set_operation(0);
//! row.set_command(code::command(2, 5)); // SMB2 CREATE
//! builder.append(&[row]);
//! let seed = ManifestSeed::now(Default::default(), Vec::new());
//! let mut writer = DatasetWriter::create(&folder, seed, WriteOptions::default())?;
//! writer.part(Part::Operations(builder.finish()?))?;
//! let manifest = writer.finish(true)?;
//! assert_eq!(manifest.rows("operations"), 1);
//!
//! // Read it back.
//! let source = Source::open(&[folder.display().to_string()], OpenOptions::default())?;
//! let request = Request { tables: vec![Table::Operations], projection: None };
//! for part in source.parts(&request)? {
//!     let batch = part?.to_batch()?;
//!     assert_eq!(batch.num_rows(), 1);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # SQL
//!
//! The feature `sql` (default) adds the modules `sql`, an engine on DataFusion over a source, and
//! `questions`, the queries that have a name. Without it the crate does not depend on DataFusion,
//! which is more than half of a first build; reading and writing stay the same.
//!
//! ```
//! # #[cfg(feature = "sql")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use smbscope_store::source::{OpenOptions, Source};
//! use smbscope_store::sql::Engine;
//!
//! # let inputs = [concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/smb311.pcapng").to_owned()];
//! let engine = Engine::new(Source::open(&inputs, OpenOptions::default())?)?;
//! for batch in engine.query("SELECT command, count(*) FROM operations GROUP BY command")? {
//!     println!("{} commands", batch?.num_rows());
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sql"))]
//! # fn main() {}
//! ```
//!
//! # Errors
//!
//! [`Error`] says which file or folder is concerned, what is wrong and what to do. An incomplete
//! dataset is not an error; a file that the manifest names and that is missing is.

pub mod dataset;
pub mod error;
#[cfg(feature = "sql")]
pub mod questions;
pub mod source;
#[cfg(feature = "sql")]
pub mod sql;

#[cfg(test)]
mod synthetic;

use smbscope_capture as capture;
use smbscope_trace as trace;

pub use error::{Error, Result};
pub use smbscope_tables::{Part, Table};
pub use smbscope_trace::Symbols;
pub use smbscope_trace::etl::shape;
