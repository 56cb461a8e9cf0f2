//! The lines of a text with their numbers, with a place to note those that no reader understands. It knows no format.

use super::unknown::Unknowns;

/// CRs before LF that are one line end with it.
const RETURNS_MAX: usize = 3;

/// A position in a text.
pub(crate) struct Lines<'a> {
    text: &'a str,
    /// Offset in bytes and text of each line.
    lines: Vec<(usize, &'a str)>,
    next: usize,
    pub(crate) unknown: Unknowns,
    /// The device that the last command line named, for outputs that do not name it.
    pub(crate) device: Option<String>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let offset = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
        Self {
            text,
            lines: lines(text).map(|(_, line)| (offset(line), line)).collect(),
            next: 0,
            unknown: Unknowns::default(),
            device: None,
        }
    }

    /// The next line, without its line end.
    pub(crate) fn peek(&self) -> Option<&'a str> {
        self.ahead(0)
    }

    /// The line that follows `lines` lines after the next one.
    pub(crate) fn ahead(&self, lines: usize) -> Option<&'a str> {
        self.lines.get(self.next.checked_add(lines)?).map(|(_, line)| *line)
    }

    /// Number of the next line, the first is 1.
    pub(crate) fn number(&self) -> usize {
        self.next + 1
    }

    pub(crate) fn take(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.next += 1;
        Some(line)
    }

    /// Passes `lines` lines.
    pub(crate) fn skip(&mut self, lines: usize) {
        self.next = self.next.saturating_add(lines).min(self.lines.len());
    }

    /// Passes the lines that begin before an offset of [`rest`](Self::rest).
    pub(crate) fn skip_bytes(&mut self, bytes: usize) {
        let end = self.text.len() - self.rest().len() + bytes;
        self.next = self.lines.partition_point(|(offset, _)| *offset < end);
    }

    /// Notes the next line as one that is not understood, and passes it.
    pub(crate) fn pass_unknown(&mut self) {
        let number = self.number();
        if let Some(text) = self.take() {
            self.unknown.note("", number as u64, text, "");
        }
    }

    /// The text that is left.
    pub(crate) fn rest(&self) -> &'a str {
        self.lines
            .get(self.next)
            .and_then(|(offset, _)| self.text.get(*offset..))
            .unwrap_or_default()
    }
}

/// Lines with their numbers (from 1), ended by LF, CR LF or CR.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut rest = text;
    let mut number = 0;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        number += 1;
        let (line, ending) = rest.split_at(rest.find(['\n', '\r']).unwrap_or(rest.len()));
        // Redirection on Windows may write CR CR LF.
        let returns = ending.bytes().take(RETURNS_MAX).take_while(|byte| *byte == b'\r').count();
        let is_feed = ending.as_bytes().get(returns) == Some(&b'\n');
        let length = if is_feed { returns + 1 } else { ending.len().min(1) };
        rest = ending.get(length..).unwrap_or_default();
        Some((number, line))
    })
}

/// Counts lines up to growing offsets.
pub(crate) struct LineCounter<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> LineCounter<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, line: 1 }
    }

    /// Number of the line of an offset, the first is 1. An offset before the last one is in the last one's line.
    pub(crate) fn line(&mut self, offset: usize) -> usize {
        if let Some(passed) = self.bytes.get(self.at..offset.min(self.bytes.len())) {
            self.line += passed.iter().filter(|byte| **byte == b'\n').count();
            self.at += passed.len();
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_end_ends_a_line() {
        let all: Vec<_> = lines("a\r\r\nb\rc\n\nd").collect();
        assert_eq!(all, [(1, "a"), (2, "b"), (3, "c"), (4, ""), (5, "d")]);
        let mut lines = Lines::new("a\r\n{\n}\r\nb");
        lines.skip(1);
        assert_eq!(lines.rest(), "{\n}\r\nb");
        lines.skip_bytes(3);
        assert_eq!((lines.number(), lines.peek()), (4, Some("b")));
        let mut counter = LineCounter::new("a\nb\nc");
        let at = [0, 2, 1, 99].map(|offset| counter.line(offset));
        assert_eq!(at, [1, 2, 2, 3]);
    }
}
