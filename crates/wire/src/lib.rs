//! The vocabulary and the messages of SMB1, SMB2 and SMB3.
//!
//! The crate decodes messages from bytes and encodes the requests that a client sends. It does no
//! I/O, keeps no state between messages and copies no payload. It does not own TCP streams, pairing
//! of requests with replies, or sessions (`smbscope-capture`, `smbscope-client`).
//!
//! # Decoding
//!
//! A *view* wraps the bytes of one message, as far as they were captured. Every accessor returns
//! `Option`: `None` means that the bytes are missing or invalid; there is no panic.
//!
//! ```
//! use smbscope_wire::smb2::read::ReadRequest;
//! use smbscope_wire::smb2::{Command, FileId, Header};
//!
//! # use smbscope_wire::smb2::encode::{Frame, Head, Read};
//! # let mut frame = Frame::new();
//! # let file_id = FileId { persistent: 1, volatile: 2 };
//! # let flags = smbscope_wire::smb2::read::ReadFlags(0);
//! # let read = Read { file_id, offset: 8192, length: 4096, flags };
//! # frame.member(&Head { message_id: 7, ..Head::default() }, &read);
//! # let bytes: &[u8] = frame.message();
//! // `bytes` holds one SMB2 message, from its header on.
//! let header = Header::parse(bytes).unwrap();
//! assert_eq!((header.command, header.message_id), (Command::READ, 7));
//! assert!(!header.is_response());
//!
//! let request = ReadRequest(bytes);
//! assert_eq!(request.offset(), Some(8192));
//! assert_eq!(request.length(), Some(4096));
//!
//! // A message that was cut has fewer fields, and is not an error.
//! let cut = ReadRequest(&bytes[..70]);
//! assert_eq!(cut.offset(), None);
//! ```
//!
//! # Vocabulary
//!
//! Commands, statuses, dialects, flags and the like are newtypes over the integer with named
//! constants, so that unknown codes survive:
//!
//! ```
//! use smbscope_wire::smb2::Command;
//! use smbscope_wire::status::Status;
//!
//! assert_eq!(Command::READ.name(), Some("Read"));
//! assert_eq!(Command(77).name(), None);
//! assert_eq!(Status::ACCESS_DENIED.name(), Some("STATUS_ACCESS_DENIED"));
//! ```
//!
//! # Encoding
//!
//! [`smb2::encode::Frame`] collects the members of a compound, pads and chains them, and yields the
//! bytes for the transport. A view of this crate reads back what was written:
//!
//! ```
//! use smbscope_wire::smb2::encode::{Echo, Frame, Head};
//! use smbscope_wire::nbss;
//!
//! let mut frame = Frame::new();
//! frame.member(&Head { message_id: 1, credits: 1, ..Head::default() }, &Echo);
//! let bytes = frame.plain();
//! assert_eq!(nbss::Header::parse(bytes).unwrap().length as usize, bytes.len() - 4);
//! ```
//!
//! # Modules
//!
//! * [`smb2`] and [`smb1`]: messages. [`smb2::need()`] and [`smb1::need()`] say how many bytes from the
//!   beginning of a message its columns need.
//! * [`nbss`]: the length prefix of messages on TCP. [`compression`]: compressed messages.
//! * [`auth`]: SPNEGO, NTLMSSP and Kerberos tokens. [`dfs`]: referrals.
//! * `crypto` (feature `crypto`): signing, encryption, key derivation. Without the feature the crate
//!   has no dependencies.
//! * `secrets` (feature `crypto`): session keys from passwords, NT hashes and keytabs.
//! * [`status`], [`text`], [`read`]: statuses, UTF-16 strings, bounds-checked integers.
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
#[cfg(feature = "crypto")]
pub mod secrets;
pub mod smb1;
pub mod smb2;
pub mod status;
pub mod text;
