//! The progress of long work on a terminal's standard error: bytes done of total, rate, operations
//! found, time left. Without a terminal on standard error there is no progress display.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use smbscope_report::format;
use smbscope_store::source::Progress;

use crate::options::Verbosity;
use crate::pipeline::pass::Monitor;
use crate::{interrupt, terminal};

const REFRESH: Duration = Duration::from_millis(100);
const TOTAL_KNOWN: &str =
    "{bar:24} {percent:>3}% {bytes} of {total_bytes}, {bytes_per_sec}, {msg}, {eta} left";
const TOTAL_UNKNOWN: &str = "{spinner} {bytes}, {bytes_per_sec}, {msg}, {elapsed}";

/// Shows the progress of a pass until it is dropped.
pub struct Shown {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Shown {
    /// Starts to show `progress`, if that is wanted and possible.
    pub fn begin(verbosity: Verbosity, progress: Arc<Progress>) -> Shown {
        Shown::begin_of(verbosity, move || Some(progress.clone()))
    }

    /// Likewise for a progress that may not exist yet.
    pub fn begin_of<F>(verbosity: Verbosity, progress: F) -> Shown
    where
        F: Fn() -> Option<Arc<Progress>> + Send + 'static,
    {
        if verbosity.quiet || verbosity.no_progress || !terminal::stderr_is_terminal() {
            return Shown { stop: None, thread: None };
        }
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("progress".into()).spawn(move || {
            let mut shown: Option<ProgressBar> = None;
            while stopped.recv_timeout(REFRESH) == Err(RecvTimeoutError::Timeout) {
                if let Some(progress) = progress() {
                    show(shown.get_or_insert_with(|| bar(&progress)), &progress);
                }
            }
            if let Some(bar) = shown {
                bar.finish_and_clear();
            }
        });
        // If the thread cannot be started, there is no progress display.
        Shown { stop: Some(stop), thread: thread.ok() }
    }

    /// Ends it and clears the line, so that something else can be written there.
    pub fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Shows a pass on the terminal, and cancels it when the user asks to end.
impl Monitor for Verbosity {
    fn begin(&self, progress: Arc<Progress>) -> Box<dyn Any> {
        Box::new(Shown::begin(*self, progress))
    }

    fn check(&self) -> anyhow::Result<()> {
        interrupt::check()
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.end();
    }
}

fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_position(progress.bytes_done());
    bar.set_message(format!("{} operations", format::count(progress.operations())));
}

fn bar(progress: &Progress) -> ProgressBar {
    let (bar, template) = match progress.bytes_total() {
        Some(total) => (ProgressBar::new(total), TOTAL_KNOWN),
        None => (ProgressBar::new_spinner(), TOTAL_UNKNOWN),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    // The test below checks that the templates parse; the default style is good enough otherwise.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_parse() {
        for template in [TOTAL_KNOWN, TOTAL_UNKNOWN] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
