//! The SMB client of the simulated users, on `wire`'s messages.
//!
//! One task drives one [`Session`]: there is no task for each connection and no lock. Owns
//! connections ([`channel`]), logon ([`auth`], [`kerberos`]), sessions with their channels, tree and opens
//! ([`session`]), leases and breaks ([`lease`]). It does not own what a user does (`scenario`).

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
