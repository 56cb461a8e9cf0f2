//! Packets to operations.
//!
//! Owns: capture file formats, frames, TCP streams (bounded, gaps recorded), sessions, trees and
//! file names, and the pairing of requests with responses. It does not own the messages' layout
//! (`wire`) nor the row (`tables`).

mod connection;
mod decoder;
mod engine;
mod feed;
pub mod file;
pub mod frame;
mod kdc;
mod limits;
mod link;
pub mod live;
mod need;
mod options;
mod output;
mod pending;
mod resolve;
mod secrets;
mod smb1;
mod smb2;
pub mod stream;
mod unanswered;
mod user;

pub use decoder::{Decoder, Progress};
pub use feed::{Amend, Feed};
pub use limits::Limits;
pub use options::{Error, Input, Options, Tables};
pub use output::Ends;
pub use smbscope_tables::part::Part;
