//! A line with distance between two network interfaces: `smbscope wan`.
//!
//! Frames that come in at one interface go out at the other after the line's delay, at its rate,
//! through its queue, less what it loses; each direction on its own. So TCP's handshakes,
//! acknowledgements and windows behave as on such a line, which a sleep inside a client cannot
//! show. (The kernel's own netem does the same where it is built in.)
//!
//! Owns: [`Line`], one direction as a pure data structure; [`Options`], what a line is asked to be;
//! [`run`], the loop that moves frames; [`netns`], two network namespaces to try it with. It does
//! not own who uses the line.

pub mod line;
mod options;

pub use line::{Line, Path};
pub use options::{Both, FIBRE_NS_PER_M, Options, OptionsError, Queue};
