//! A private Samba to try things on, and a network link with distance before it.
//!
//! Owns: the private Samba ([`Lab`]), and a link with delay, rate, loss and a queue between two
//! network interfaces ([`wan`]) with the network namespaces to use it in. It does not own what
//! drives the server (`client`, `load`). The Samba needs Linux; of [`wan`] the model of a link
//! works anywhere.

#[cfg(target_os = "linux")]
mod server;
pub mod wan;

#[cfg(target_os = "linux")]
pub use server::*;
