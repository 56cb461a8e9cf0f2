//! Ctrl-C (and SIGTERM, SIGHUP): the first asks the command to end cleanly, the second ends it. Service managers may send
//! two at once: those of a burst are one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::exit::{Code, Failure};

static ASKED: AtomicBool = AtomicBool::new(false);
/// When the first of them came.
static FIRST: Mutex<Option<Instant>> = Mutex::new(None);
/// Signals within this time of the first are one with it.
const BURST: Duration = Duration::from_millis(500);
/// Runs before a second signal ends the program.
static LAST: OnceLock<fn()> = OnceLock::new();

/// Starts to catch signals.
pub fn install() {
    // The thread that waits for signals has the capabilities of the thread that starts it: none.
    let start = || {
        #[cfg(target_os = "linux")]
        let _ = crate::capabilities::drop_own();
        catch();
    };
    match std::thread::Builder::new().name("signals".to_owned()).spawn(start) {
        Ok(thread) => drop(thread.join()),
        Err(_) => catch(),
    }
}

fn catch() {
    // Fails only if there is a handler already; then the signal ends the program as usual.
    let _ = ctrlc::set_handler(|| {
        ASKED.store(true, Ordering::Relaxed);
        let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_first_burst(&mut first, Instant::now()) {
            // The user asked twice: the command is stuck, perhaps in a read that does not return.
            if let Some(last) = LAST.get() {
                last();
            }
            #[allow(clippy::exit)]
            std::process::exit(i32::from(Code::Interrupted as u8));
        }
    });
}

/// Notes a signal; false if an earlier burst asked already.
fn is_first_burst(first: &mut Option<Instant>, now: Instant) -> bool {
    now.duration_since(*first.get_or_insert(now)) < BURST
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
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = None;
    ASKED.store(false, Ordering::Relaxed);
}

/// Returns an error if the user asked to end.
pub fn check() -> anyhow::Result<()> {
    if asked() { Err(Failure::new(Code::Interrupted, "interrupted").into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_of_a_burst_are_one() {
        let begin = Instant::now();
        let mut first = None;
        for after_ms in [0, 10, 50, 499] {
            let now = begin + Duration::from_millis(after_ms);
            assert!(is_first_burst(&mut first, now), "{after_ms}");
        }
        assert!(!is_first_burst(&mut first, begin + Duration::from_millis(501)));
    }
}
