//! What draws itself.

use std::fmt;

/// How text is written.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// Columns of the terminal.
    pub width: usize,
    /// Lines of the terminal, for answers that fit themselves to it.
    pub height: usize,
    /// The texts that start and end bold text.
    pub bold: (&'static str, &'static str),
    /// Whether everything is written, not only what fits.
    pub all: bool,
}

impl TextOptions {
    /// Text without bold words, as long as it has to be.
    pub fn new(width: usize, all: bool) -> TextOptions {
        TextOptions { width, height: usize::MAX, bold: ("", ""), all }
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
