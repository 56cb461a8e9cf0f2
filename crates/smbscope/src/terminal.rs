//! What the terminal is like: whether there is one, how large, and whether colour is wanted.
//!
//! Size and colour exist on terminals only, so that a pipe or a file gets the same bytes
//! everywhere; an exported `COLUMNS` gives a width there, too. `NO_COLOR` (no-color.org), `CLICOLOR`, `CLICOLOR_FORCE` and `TERM=dumb` are honoured
//! by anstream.

use std::io::IsTerminal;

use anstream::ColorChoice;
use clap::ValueEnum;

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// If the output is a terminal, unless NO_COLOR or CLICOLOR=0 is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Makes this the choice of the whole program.
    pub fn apply(self) {
        let choice = match self {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Columns of a line: `COLUMNS`, or what the terminal behind standard output says; `None` if
/// neither is known.
pub fn width() -> Option<usize> {
    if let Some(columns) = variable("COLUMNS") {
        return Some(columns);
    }
    extent("COLUMNS", || terminal_size::terminal_size().map(|(width, _)| width.0))
}

/// Its lines: `LINES`, or what the terminal says.
pub fn height() -> Option<usize> {
    extent("LINES", || terminal_size::terminal_size().map(|(_, height)| height.0))
}

fn extent(name: &str, ask: impl FnOnce() -> Option<u16>) -> Option<usize> {
    if !stdout_is_terminal() {
        return None;
    }
    variable(name).or_else(|| ask().map(usize::from))
}

/// A number above zero in the environment.
fn variable(name: &str) -> Option<usize> {
    let number = std::env::var(name).ok().and_then(|text| text.parse().ok());
    number.filter(|&number| number > 0)
}
