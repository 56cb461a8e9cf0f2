//! The lines of a text with their numbers, and the small pieces of text that several outputs share.

/// A position in a text.
pub(super) struct Lines<'a> {
    lines: Vec<&'a str>,
    next: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { lines: text.lines().collect(), next: 0 }
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.ahead(0)
    }

    /// The line that follows `lines` lines after the next one.
    pub(super) fn ahead(&self, lines: usize) -> Option<&'a str> {
        self.lines.get(self.next.checked_add(lines)?).copied()
    }

    /// Number of the next line, the first is 1.
    pub(super) fn number(&self) -> usize {
        self.next + 1
    }

    pub(super) fn take(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.next += 1;
        Some(line)
    }

    pub(super) fn skip(&mut self, lines: usize) {
        self.next = self.next.saturating_add(lines).min(self.lines.len());
    }
}

/// The text after a word at the beginning, compared without case.
pub(super) fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let head = line.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| line.get(word.len()..).unwrap_or_default())
}

/// `NAME="value"` pairs of a line, and what follows the last one.
pub(super) fn quoted_pairs(mut rest: &str) -> (Vec<(&str, &str)>, &str) {
    let mut pairs = Vec::new();
    while let Some((name, after)) = rest.split_once("=\"") {
        let Some((value, after)) = after.split_once('"') else { break };
        let name = name.rsplit([' ', '\t', ']']).next().unwrap_or(name);
        pairs.push((name, value));
        rest = after;
    }
    (pairs, rest)
}
