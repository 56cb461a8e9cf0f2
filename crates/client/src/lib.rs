//! The SMB client of the simulated users, on the messages of `wire`.
//!
//! It measures: every request becomes a row with times, sizes, status and the state of the connection, as a capture would
//! show it. One task drives one [`Session`] with all its connections: there is no task for each connection and no lock, so
//! that ten thousand users fit on one machine. Migrations need more speed than one task has: their channels are tasks of
//! their own ([`multichannel`]).
//!
//! Owns: connections, negotiation, logon, sessions with their channels, tree and opens, leases and their breaks, referrals
//! of DFS. Does not own: what a user does, and when (`load`), the layout of messages and their cryptography (`wire`), and
//! the tables in which rows end (`tables`).
//!
//! # How the parts fit
//!
//! 1. [`Target`] is what a user names (`//server/share`), [`Config`] what the client offers: dialects, signing, encryption,
//!    leases, channels, credits.
//! 2. [`Host`] has the addresses of the server, the clock of the run and the numbers of connections. All users share it.
//! 3. [`Session::connect`] opens a connection ([`transport`]), negotiates ([`negotiate`]), logs on with NTLM ([`auth`]) or
//!    Kerberos ([`kerberos`]), binds other channels and connects the share.
//! 4. [`Channel`] is one connection: it sends frames of one or several requests, keeps within the credits, checks signatures,
//!    decrypts, and finds the row of each reply ([`row`]).
//! 5. [`Reply`] has what a caller needs next: status, open, bytes transferred, and the whole message if [`Want`] says so.
//! 6. [`lease`] holds what the server granted, and answers breaks when the user next talks to the server.
//! 7. A session ends with [`Ended`]: rows not yet taken, and a row for each connection. A session that failed leaves them, too
//!    ([`session::Failed`]).
//!
//! | module | contents |
//! |---|---|
//! | [`ask()`] | what a server negotiates, without a logon |
//! | [`dfs`] | where a path of a namespace leads |
//! | [`multichannel`] | which paths to use, and a task for each channel |
//! | [`clock`] | one clock for all rows, nanoseconds since 1970 |
//! | [`tcp_state`] | what the kernel knows of a connection: round trip, retransmissions, window |
//!
//! # A file, opened and closed
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use smbscope_client::clock::Clock;
//! use smbscope_client::{Ask, ClientError, Config, Credential, Host, Session, Target};
//! use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
//! use smbscope_wire::smb2::close::CloseFlags;
//! use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
//! use smbscope_wire::smb2::encode::{Close, Create, OpenWish};
//!
//! # async fn open_and_close() -> Result<(), ClientError> {
//! let target = Target::parse("//server/share").expect("a target");
//! let host = Arc::new(Host::find(target, Config::default(), Clock::start(), true).await?);
//! let credential = Credential::new("DOMAIN\\user", "password");
//! let limit = Duration::from_secs(10);
//! let connected = Session::connect(limit, host, &credential, 0, None).await;
//! let mut session = connected.map_err(|failed| failed.error)?;
//!
//! let create = Create {
//!     name: "docs\\plan.docx",
//!     desired_access: AccessMask(0x0012_0089),
//!     file_attributes: FileAttributes(0),
//!     share_access: ShareAccess(7),
//!     disposition: CreateDisposition::OPEN,
//!     options: CreateOptions::NON_DIRECTORY_FILE,
//!     oplock: OplockLevel::NONE,
//!     wish: OpenWish::default(),
//! };
//! // The status of the server is a result like any other; only a lost session is an error.
//! if let Ok(open) = session.call(&create, Ask::default()).await?.opened()? {
//!     println!("{} bytes", open.size_bytes);
//!     let close = Close { file_id: open.file_id, flags: CloseFlags(0) };
//!     session.call(&close, Ask::default()).await?;
//! }
//! for row in session.close().await.rows {
//!     println!("{:?} took {:?} ns", row.operation.command(), row.operation.elapsed_ns());
//! }
//! # Ok(())
//! # }
//! ```

#[cfg(target_os = "linux")]
mod arrival;
mod ask;
pub mod auth;
pub mod channel;
pub mod clock;
pub mod config;
pub mod credential;
mod delay;
pub mod dfs;
pub mod error;
pub mod host;
pub mod kerberos;
pub mod lease;
mod logon;
pub mod multichannel;
pub mod negotiate;
pub mod reply;
pub mod row;
pub mod session;
#[cfg(target_os = "linux")]
pub mod socket_option;
#[cfg(target_os = "linux")]
pub mod tcp_info;
pub mod tcp_state;
pub mod transport;
mod validate;

pub use ask::ask;
pub use channel::{Ask, Channel, Scene};
pub use config::{Compounds, Config, Encryption, Signing, Target};
pub use credential::Credential;
pub use error::ClientError;
pub use host::Host;
pub use kerberos::Kerberos;
pub use negotiate::Negotiated;
pub use reply::{Open, Reply, Want};
pub use session::{Ended, Previous, Session};
