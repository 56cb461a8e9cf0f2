//! The fields of the report, one file for each part of it. These files are data: they have one line per field.

pub(super) mod channels;
pub(super) mod cores;
pub(super) mod findings;
pub(super) mod forecast;
pub(super) mod load;
pub(super) mod namespace;
pub(super) mod processors;
pub(super) mod replication;
pub(crate) mod server;
pub(super) mod summary;
pub(super) mod why;
