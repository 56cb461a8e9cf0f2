//! What one would do about a slow file server, as commands with their undo. It reads settings and topology, and writes
//! nothing.
//!
//! [`input`] reads: bytes to text, objects of PowerShell, XML. [`script`] has
//! steps and quoting. Above them are the planners, one module each:
//!
//! - [`baseline`] judges security baselines,
//! - [`cores`] spreads the receive work of network adapters over processors,
//! - [`namespace`] moves DFS namespaces,
//! - [`replication`] has the checks of a second server that holds the same data.

pub mod baseline;
pub mod cores;
pub mod input;
pub mod namespace;
pub mod replication;
pub mod script;
