//! A private Samba for experiments, and a simulated network link in front of it.
//!
//! Behind `smbscope lab` and `smbscope wan`, and the server of most tests. Nothing of it touches the Samba of the system:
//! a lab is a folder with its own configuration, accounts, state and port, and ends with everything that it started.
//!
//! Owns: the private Samba ([`Lab`]), and a link with delay, rate, loss and a queue between two network interfaces
//! ([`wan`]), with the network namespaces to use it in. Does not own: the clients of the server (`client`, `load`).
//! The Samba needs Linux; the model of the link works anywhere.
//!
//! # A lab
//!
//! [`Options`] say how many users there are, which dialects, signing, encryption and features Samba offers, and whether a
//! link lies in front of it. [`Lab::up`] checks them, writes the folder, starts smbd and waits until it answers; after an
//! error nothing remains. What runs is found again by its folder ([`Lab::list`]), also by another process, and ended
//! by [`Lab::down`] or by dropping the [`Guard`]. Processes are only ended if they are still those that the lab started:
//! their start times are recorded with their numbers.
//!
//! As root, users of the lab have the rights of another system user; as an ordinary user they have those of that user.
//!
//! # A link
//!
//! [`wan::Options`] read `rtt=20ms,rate=45mbit,loss=0.1%`. Each direction is a [`wan::Line`]: a queue, a transmitter with a rate, a
//! fibre with a delay, over a clock that the caller passes. `wan::Forwarder` moves frames of two interfaces through
//! two of them, and `wan::netns` has two network namespaces to put at its ends. So TCP behaves as on such a link,
//! which a delay inside a client cannot do.
//!
//! ```text
//!  client ── namespace ── interface ─► Line there ─► interface ── namespace ── smbd
//!                                   ◄─ Line back  ◄─
//! ```
//!
//! # A frame on a link
//!
//! ```
//! use smbscope_lab::wan::{Line, Options};
//!
//! // 20 ms there and back, 8 Mbit/s: a frame of 1,000 bytes takes one millisecond to send.
//! let options: Options = "rtt=20ms,rate=8mbit".parse()?;
//! let mut line = Line::new(options.paths().there, options.seed, 0);
//! assert_eq!(line.offer(0, 1000, "first"), Ok(11_000_000));
//! // The second one waits for the first.
//! assert_eq!(line.offer(0, 1000, "second"), Ok(12_000_000));
//! assert_eq!(line.take(10_999_999), None);
//! assert_eq!(line.take(11_000_000), Some((11_000_000, "first")));
//! assert_eq!(line.in_flight(), (1, 1000));
//! # Ok::<(), smbscope_lab::wan::OptionsError>(())
//! ```

#[cfg(target_os = "linux")]
mod server;
pub mod wan;

#[cfg(target_os = "linux")]
pub use server::*;
