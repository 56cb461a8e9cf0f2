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
//! A part gets its name only when it is complete and on disk, and the manifest is replaced after
//! it, so a folder is valid at every moment. What a part's columns look like in the file stands in
//! [`properties`], writing in [`writer`], reading in [`reader`].

mod folder;
pub mod properties;
pub mod reader;
pub mod writer;

pub use reader::Dataset;
pub use writer::{DatasetWriter, ManifestSeed, WriteOptions, may_write};

/// Ending of a part that is being written; readers pass over it.
pub const UNFINISHED: &str = "tmp";
