//! A simulated link between two network interfaces: `smbscope wan`.
//!
//! Frames that come in at one interface leave at the other after the link's delay, at its rate, through
//! its queue, minus the lost ones; each direction is independent. So TCP's handshakes, acknowledgements
//! and windows behave as on such a link, which a sleep inside a client cannot simulate. (The kernel's
//! own netem does the same where it is built in.)
//!
//! Owns: [`Line`], one direction as a pure data structure; [`Options`], the properties of a link;
//! [`Forwarder`] and [`run`], the loop that moves frames; [`netns`], two network namespaces to try it
//! with. It does not own the users of the link. Frames move on Linux only.

pub mod counters;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod forward;
pub mod line;
#[cfg(target_os = "linux")]
pub mod netns;
mod options;
#[cfg(target_os = "linux")]
mod port;

pub use counters::Counters;
#[cfg(target_os = "linux")]
pub use error::Error;
#[cfg(target_os = "linux")]
pub use forward::{Forwarder, Running};
pub use line::{Line, Path};
pub use options::{Both, FIBRE_NS_PER_M, Options, OptionsError, Queue};

/// Forwards frames between two interfaces of this thread's network namespace until `stop` says so,
/// or for `duration`.
///
/// # Errors
/// Those of [`Forwarder::open`] and [`Forwarder::run`].
#[cfg(target_os = "linux")]
pub fn run(
    first: &str,
    second: &str,
    options: &Options,
    duration: Option<std::time::Duration>,
    stop: impl Fn() -> bool,
) -> Result<Counters, Error> {
    Forwarder::open(first, second, None, options)?.run(duration, stop, |_| ())
}
