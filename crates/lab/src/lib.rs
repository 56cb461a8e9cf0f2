//! A private Samba for experiments, and a simulated network link in front of it.
//!
//! Owns: the private Samba ([`Lab`]), and a link with delay, rate, loss and a queue between two network
//! interfaces ([`wan`]), with the network namespaces to use it in. It does not own the clients of the
//! server (`client`, `load`). The Samba needs Linux; the link model in [`wan`] works anywhere.

#[cfg(target_os = "linux")]
mod server;
pub mod wan;

#[cfg(target_os = "linux")]
pub use server::*;
