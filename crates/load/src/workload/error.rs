//! What is wrong with a workload, where, and how to fix it.

use std::fmt;
use std::ops::Range;

/// An error in a workload's TOML.
///
/// Displayed as `file:line:column: what is wrong`, the line with a mark under it, and, if there is a
/// suggestion, a line `help: what would be right`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    /// The file, or the name of the built-in.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The suggestion, if there is one.
    pub help: Option<String>,
    /// The line's text.
    pub excerpt: String,
    /// Characters that are marked.
    pub width: usize,
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A window of the line, so that a step with many keys does not fill the terminal.
        const WINDOW: usize = 100;
        let start = if self.excerpt.chars().count() <= WINDOW {
            0
        } else {
            (self.column - 1).saturating_sub(40)
        };
        let text: String = self.excerpt.chars().skip(start).take(WINDOW).collect();
        let indent = self.column - 1 - start.min(self.column - 1);
        let marks = self.width.clamp(1, WINDOW.saturating_sub(indent).max(1));
        let number = self.line.to_string();
        writeln!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        writeln!(f, " {number} | {text}")?;
        write!(f, " {:width$} | {:indent$}{}", "", "", "^".repeat(marks), width = number.len())?;
        match &self.help {
            Some(help) => write!(f, "\n help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for WorkloadError {}

/// The text that positions refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// An error at these bytes of the text.
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> WorkloadError {
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        let end = span.end.clamp(start, line_start + line.len().max(start - line_start));
        WorkloadError {
            file: self.file.into(),
            line: before.matches('\n').count() + 1,
            column: self.text[line_start..start].chars().count() + 1,
            message: message.into(),
            help: None,
            excerpt: line.replace('\t', " "),
            width: self.text.get(start..end).map_or(1, |marked| marked.chars().count()),
        }
    }
}

impl WorkloadError {
    pub(super) fn help(mut self, help: impl Into<String>) -> WorkloadError {
        self.help = Some(help.into());
        self
    }
}

/// The known word that was probably meant by `word`.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let close = known.into_iter().map(|known| {
        let lower = known.to_lowercase();
        let begins = word.len() >= 3 && lower.starts_with(&word);
        (if begins { 1 } else { distance(&word, &lower) }, known)
    });
    let (distance, known) = close.min_by_key(|&(distance, _)| distance)?;
    (distance <= 2.max(known.len() / 3)).then_some(known)
}

/// Edits that turn one word into another (Levenshtein), of the first 64 characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, &b) in row.iter_mut().skip(1).zip(&b) {
            let above = *cell;
            left = (diagonal + usize::from(a != b)).min(above + 1).min(left + 1);
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_place() {
        let source = Source { file: "a.toml", text: "x = 1\ny\u{e4} = \"wrong\"\n" };
        let at = source.text.find("\"wrong").unwrap();
        let error = source.error(at..at + 7, "no such thing").help("write `right`");
        assert_eq!(
            error.to_string(),
            "a.toml:2:6: no such thing\n 2 | y\u{e4} = \"wrong\"\n   |      ^^^^^^^\n help: write `right`"
        );
    }

    #[test]
    fn places_outside_the_text_are_its_end() {
        let source = Source { file: "a", text: "" };
        assert_eq!(source.error(5..9, "x").line, 1);
        let source = Source { file: "a", text: "\u{e4}b" };
        assert_eq!(source.error(1..9, "x").column, 1);
        let long = format!("{}!", "x".repeat(500));
        let source = Source { file: "a", text: &long };
        assert!(source.error(500..501, "end").to_string().lines().all(|line| line.len() < 120));
    }

    #[test]
    fn suggests_the_intended_word() {
        assert_eq!(nearest("acces", ["access", "action"]), Some("access"));
        assert_eq!(nearest("QueryInfo", ["query_info", "read"]), Some("query_info"));
        assert_eq!(nearest("post", ["close", "post_query"]), Some("post_query"));
        assert_eq!(nearest("colour", ["read", "write"]), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
