//! The lines of a pasted text, with a place to note those that no reader understands. It knows no format.

use serde::Serialize;

/// Lines that are kept as examples; the others are counted.
const UNKNOWN_MAX: usize = 200;
/// Characters of an unknown line that are kept.
const UNKNOWN_CHARACTERS: usize = 200;

/// A line that no reader understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// Number of the line, the first is 1.
    pub line: usize,
    /// Its text, at most 200 characters.
    pub text: String,
}

/// A position in a text.
pub(super) struct Lines<'a> {
    text: &'a str,
    /// Offset in bytes and text of each line.
    lines: Vec<(usize, &'a str)>,
    next: usize,
    pub(super) unknown: Vec<Unknown>,
    pub(super) unknown_count: u64,
    /// The adapter that the last command line named.
    pub(super) device: Option<String>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut offset = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            let start = offset;
            offset += line.len();
            (start, line.trim_end_matches(['\n', '\r']))
        });
        Self {
            text,
            lines: lines.collect(),
            next: 0,
            unknown: Vec::new(),
            unknown_count: 0,
            device: None,
        }
    }

    /// The next line, without its line end.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.ahead(0)
    }

    /// The line that follows `lines` lines after the next one.
    pub(super) fn ahead(&self, lines: usize) -> Option<&'a str> {
        self.lines.get(self.next.checked_add(lines)?).map(|(_, line)| *line)
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

    /// Passes `lines` lines.
    pub(super) fn skip(&mut self, lines: usize) {
        self.next = self.next.saturating_add(lines).min(self.lines.len());
    }

    /// Notes the next line as one that is not understood, and passes it.
    pub(super) fn pass_unknown(&mut self) {
        let number = self.number();
        if let Some(text) = self.take() {
            self.note(number, text);
        }
    }

    pub(super) fn note(&mut self, line: usize, text: &str) {
        self.unknown_count += 1;
        if self.unknown.len() < UNKNOWN_MAX {
            self.unknown
                .push(Unknown { line, text: text.chars().take(UNKNOWN_CHARACTERS).collect() });
        }
    }

    /// The text that is left.
    pub(super) fn rest(&self) -> &'a str {
        self.lines
            .get(self.next)
            .and_then(|(offset, _)| self.text.get(*offset..))
            .unwrap_or_default()
    }
}

/// Key and value of a line `key: value`, both without blanks around them.
pub(super) fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    (!key.is_empty()).then(|| (key, value.trim()))
}

/// A list of numbers such as `0-3,8,10-11`, at most `limit` of them. An empty list is valid.
pub fn number_list(text: &str, limit: usize) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => {
                (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?)
            }
            None => {
                let number = part.parse().ok()?;
                (number, number)
            }
        };
        let count = usize::try_from(last.checked_sub(first)?).ok()?;
        if count >= limit.saturating_sub(numbers.len()) {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// The bits of a mask such as `00000000,0000ff01`, lowest first. The kernel writes words of 32 bits.
pub fn mask_list(text: &str, limit: usize) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    let mut base = 0u32;
    for word in text.trim().rsplit(',') {
        let bits = u64::from_str_radix(word.trim().trim_start_matches("0x"), 16).ok()?;
        numbers
            .extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| base.saturating_add(bit)));
        base = base.checked_add(32)?;
        if numbers.len() > limit {
            return None;
        }
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_numbers_has_a_limit() {
        assert_eq!(number_list("0-2,8", 64), Some(vec![0, 1, 2, 8]));
        assert_eq!(number_list("", 64), Some(Vec::new()));
        assert_eq!(number_list("0-4294967295", 64), None);
        assert_eq!(number_list("3-1", 64), None);
        assert_eq!(number_list("x", 64), None);
    }

    #[test]
    fn a_mask_is_written_with_the_highest_word_first() {
        assert_eq!(mask_list("00000001,00000003\n", 64), Some(vec![0, 1, 32]));
        assert_eq!(mask_list("0", 64), Some(Vec::new()));
        assert_eq!(mask_list("g", 64), None);
    }
}
