//! The line on a terminal while a recording runs.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use smbscope_report::format;

use crate::commands::live::source::Seen;
use crate::options::Talk;
use crate::terminal;

/// Shows how a recording goes, where that is wanted and possible.
pub struct Display(Option<ProgressBar>);

impl Display {
    /// Begins.
    pub fn begin(talk: Talk) -> Display {
        let is_shown = !talk.quiet && !talk.no_progress && terminal::stderr_is_terminal();
        Display(is_shown.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            match ProgressStyle::with_template("{spinner} {elapsed}, {msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        }))
    }

    /// Shows what was seen so far.
    pub fn tell(&self, seen: &Seen) {
        if let Some(bar) = &self.0 {
            bar.set_message(line(seen));
            bar.tick();
        }
    }

    /// Clears the line.
    pub fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn line(seen: &Seen) -> String {
    format!(
        "{} operations, {}, {} dropped",
        format::count(seen.operations),
        seen.text(),
        format::count(seen.dropped()),
    )
}
