//! Ctrl-C (and SIGTERM, SIGHUP): the first asks the command to end cleanly, the second ends it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{Code, Failure};

static ASKED: AtomicBool = AtomicBool::new(false);
/// Runs before a second signal ends the program.
static LAST: OnceLock<fn()> = OnceLock::new();

/// Starts to catch signals.
pub fn install() {
    // Fails only if there is a handler already; then the signal ends the program as usual.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            // The user asked twice: the command is stuck, perhaps in a read that does not return.
            if let Some(last) = LAST.get() {
                last();
            }
            #[allow(clippy::exit)]
            std::process::exit(i32::from(Code::Interrupted as u8));
        }
    });
}

/// Registers a function to run before a second signal ends the program, to restore a terminal.
pub fn at_exit(last: fn()) {
    let _ = LAST.set(last);
}

/// Whether the user asked to end.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Clears the request: the prompt continues after a query was cancelled.
#[cfg(feature = "sql")]
pub fn reset() {
    ASKED.store(false, Ordering::Relaxed);
}

/// Returns an error if the user asked to end.
pub fn check() -> anyhow::Result<()> {
    if asked() { Err(Failure::new(Code::Interrupted, "interrupted").into()) } else { Ok(()) }
}
