//! Packets to operations.
//!
//! Owns: capture file formats, frames, TCP streams (bounded, gaps recorded), sessions, trees and
//! file names, and the pairing of requests with responses. It does not own the messages' layout
//! (`wire`) nor the row (`tables`).

mod decoder;
pub mod file;
pub mod frame;
mod kdc;
mod limits;
pub mod live;
mod options;
mod outcome;
mod push_decoder;
mod resolve;
mod shard;
mod smb;
pub mod stream;
mod tcp;

pub use decoder::{Decoder, Progress};
pub use limits::Limits;
pub use options::{Error, Input, Options, Tables};
pub use outcome::Ends;
pub use push_decoder::{Amend, Feed};
pub use smbscope_tables::part::Part;
