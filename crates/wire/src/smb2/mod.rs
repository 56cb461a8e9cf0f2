//! SMB 2.0.2 to 3.1.1 (MS-SMB2): header, messages by family, codes.
//!
//! A view wraps the bytes of one message from its SMB2 header on, as far as captured; offsets in
//! it count from the header. In a compound the caller cuts at NextCommand ([`header::members`]).
//! Whether a response is an error response, whose body no other view may read, says
//! [`error::is_error_response`].

pub mod access;
mod command;
pub mod create;
pub mod create_context;
pub mod header;
pub mod lease;
pub mod negotiate;
pub mod negotiate_context;
pub mod read;
pub(crate) mod view;
pub mod write;

pub use command::{Command, Dialect, FileId};
pub use header::{Flags, HEADER_BYTES, Header, MAGIC};
