//! Run folders: a manifest and, per table, Parquet parts.
//!
//! ```text
//! run/manifest.json
//! run/operations/part-000000.parquet
//! run/connections/part-000000.parquet   (sessions, trees, handles, referrals, coverage likewise;
//!                                        of a load run also scenarios, steps, counters;
//!                                        of a server's recording also slices)
//! ```
//!
//! A part gets its final name only when it is complete and on disk, and the manifest is replaced after
//! that, so a folder is valid at any time. While a server is recorded, the rows of an open part are also in
//! pieces (`part-000000-00.parquet`), which are made each second and deleted when the part is complete. [`properties`] has the encoding of columns, [`writer`]
//! writes, [`reader`] reads.

mod folder;
mod pieces;
pub mod properties;
pub mod reader;
mod stored;
pub mod writer;

pub use reader::Dataset;
pub use writer::{DatasetWriter, ManifestSeed, WriteOptions, may_write};

#[cfg(all(test, feature = "sql"))]
pub(crate) use stored::{stored, stored_schema};

/// File extension of a part that is being written; readers ignore it.
pub const UNFINISHED: &str = "tmp";
