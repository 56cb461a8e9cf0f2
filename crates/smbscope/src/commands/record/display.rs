//! The progress line on the terminal while a recording runs.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use smbscope_report::format;

use crate::options::Verbosity;
use crate::pipeline::record::RecordMonitor;
use crate::pipeline::record::source::Received;
use crate::{interrupt, terminal};

/// Shows the progress of a recording, if that is wanted and possible.
pub struct Display(Option<ProgressBar>);

impl Display {
    /// Begins.
    pub fn begin(verbosity: Verbosity) -> Display {
        let is_shown = !verbosity.quiet && !verbosity.no_progress && terminal::stderr_is_terminal();
        Display(is_shown.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            match ProgressStyle::with_template("{spinner} {elapsed}, {msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        }))
    }

    /// Clears the line.
    pub fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl RecordMonitor for Display {
    fn progress(&self, received: &Received) {
        if let Some(bar) = &self.0 {
            bar.set_message(line(received));
            bar.tick();
        }
    }

    fn is_stopping(&self) -> bool {
        interrupt::asked()
    }
}

fn line(received: &Received) -> String {
    let operations = if received.has_operations() {
        format!("{} operations, ", format::count(received.operations))
    } else {
        String::new()
    };
    format!("{operations}{}, {} dropped", received.text(), format::count(received.dropped()))
}
