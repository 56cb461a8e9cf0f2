//! What draws itself.

use std::fmt;

use super::Tone;

/// How text is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextOptions {
    /// Columns of the terminal; none elsewhere.
    pub width: Option<usize>,
    /// Lines of the terminal, for answers that fit themselves to it.
    pub height: Option<usize>,
    /// The texts that start and end bold text.
    pub bold: (&'static str, &'static str),
    /// Whether everything is written, not only what fits.
    pub all: bool,
}

/// Columns of a text that does not go to a terminal.
const WIDTH: usize = 100;

impl TextOptions {
    /// Text for `width` columns without bold words.
    pub fn new(width: usize, all: bool) -> TextOptions {
        TextOptions { width: Some(width), all, ..TextOptions::default() }
    }

    /// Columns that text is folded to.
    pub(crate) fn columns(&self) -> usize {
        self.width.unwrap_or(WIDTH)
    }

    /// What starts and ends text in the colour of a tone; empty where words are not bold either.
    pub(crate) fn toned(&self, tone: Tone) -> (&'static str, &'static str) {
        if self.bold.0.is_empty() {
            return ("", "");
        }
        let start = match tone {
            Tone::Good => "\x1b[1;32m",
            Tone::Watch => "\x1b[1;33m",
            Tone::Bad => "\x1b[1;31m",
            Tone::Unknown => "\x1b[1m",
        };
        (start, "\x1b[0m")
    }

    /// A heading on a line of its own.
    pub(crate) fn heading(&self, title: &str) -> String {
        format!("{}{title}{}\n", self.bold.0, self.bold.1)
    }
}

/// A drawing that only one answer has: it draws itself for a page and for a terminal.
pub(crate) trait Drawing: fmt::Debug {
    /// Adds it to a page, as SVG or other elements. All text is escaped.
    fn svg(&self, out: &mut String);

    /// Adds it to a text; nothing where tables say the same.
    fn text(&self, out: &mut String, options: &TextOptions) -> fmt::Result {
        let _ = (out, options);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        false
    }

    /// Rules that a page with it needs.
    fn style(&self) -> &'static str {
        ""
    }
}
