//! The vocabulary and the messages of SMB1, SMB2 and SMB3.
//!
//! Owns: names of commands, statuses, dialects and the like (newtypes over the integer, so that
//! unknown codes survive) and borrowed views of every message. It does no I/O, keeps no state
//! between messages and copies no payload. It does not own TCP, pairing or sessions (`capture`).
//!
//! A view wraps the bytes of one message *as far as they were captured*. Every accessor returns
//! `Option`: `None` means that the bytes are not there (or do not make sense), never a panic.
//!
//! Sources: MS-SMB2, MS-SMB, MS-CIFS, MS-FSCC, MS-DFSC, MS-NLMP, RFC 1001/1002, RFC 4178.

#![warn(missing_docs)]

pub mod auth;
pub mod compression;
#[cfg(feature = "crypto")]
pub mod crypto;
pub mod dfs;
pub mod nbss;
pub mod read;
pub mod smb1;
pub mod smb2;
pub mod status;
pub mod text;
