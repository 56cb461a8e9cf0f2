//! Ctrl-C (and SIGTERM, SIGHUP): the first asks the command to end cleanly, the second ends it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{Code, Failure};

static ASKED: AtomicBool = AtomicBool::new(false);
/// What is still to be done before the program ends at once.
static LAST: OnceLock<fn()> = OnceLock::new();

/// Begins to catch signals.
pub fn install() {
    // Fails only when a handler is there already; then the signal ends the program, as ever.
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

/// Does this too before a second signal ends the program: a terminal is to be put right.
pub fn at_exit(last: fn()) {
    let _ = LAST.set(last);
}

/// Whether the user asked to end.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Forgets the question: the prompt goes on after a query was cancelled.
#[cfg(feature = "sql")]
pub fn reset() {
    ASKED.store(false, Ordering::Relaxed);
}

/// An error when the user asked to end.
pub fn check() -> anyhow::Result<()> {
    if asked() { Err(Failure::new(Code::Interrupted, "interrupted").into()) } else { Ok(()) }
}
