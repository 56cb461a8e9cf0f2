//! SMB 2.0.2 to 3.1.1 (MS-SMB2): header, messages by family, codes.
//!
//! A view wraps the bytes of one message from its SMB2 header on, as far as captured; offsets in
//! it count from the header. In a compound the caller cuts at NextCommand ([`header::members`]).
//! Whether a response is an error response, whose body no other view may read, says
//! [`error::is_error_response`].

pub mod access;
pub mod close;
mod command;
pub mod create;
pub mod create_context;
pub mod directory;
pub mod encode;
pub mod error;
pub mod flush;
pub mod fsctl;
pub mod header;
pub mod info;
pub mod info_class;
pub mod ioctl;
pub mod lease;
pub mod lock;
pub mod need;
pub mod negotiate;
pub mod negotiate_context;
pub mod network_interface;
pub mod notify;
pub mod oplock;
pub mod read;
pub mod session;
pub mod transform;
pub mod tree;
pub(crate) mod view;
pub mod write;

pub use command::{Command, Dialect, FileId};
pub use header::{Flags, HEADER_BYTES, Header, MAGIC};
pub use need::{need, need_more};
