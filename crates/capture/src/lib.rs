//! Packets to operations.
//!
//! Owns: capture file formats, frames, TCP streams (bounded, gaps recorded), sessions, trees and
//! file names, and the pairing of requests with responses. It does not own the messages' layout
//! (`wire`) nor the row (`event`).

pub mod file;
pub mod frame;
