//! What was not understood: the first entries, and the number of all.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::clean;

/// Something in a file that no reader understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// Empty for a text without a file.
    pub file: String,
    /// Line (from 1) of a text, offset in bytes of anything else; 0 for the whole file.
    pub position: u64,
    /// The input itself: at most 200 characters, without control characters.
    pub text: String,
    /// Why it is not used; empty if it is only not known.
    pub why: String,
}

impl fmt::Display for Unknown {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.file)?;
        if self.position > 0 {
            write!(to, ":{}", self.position)?;
        }
        for part in [&self.why, &self.text].into_iter().filter(|part| !part.is_empty()) {
            write!(to, ": {part}")?;
        }
        Ok(())
    }
}

/// A list with a limit; entries beyond it are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknowns {
    pub list: Vec<Unknown>,
    pub omitted: u64,
}

impl Unknowns {
    /// Entries that are kept; genuine files have less than a thousand.
    pub const MAX: usize = 10_000;

    /// The number of all.
    pub fn count(&self) -> u64 {
        self.list.len() as u64 + self.omitted
    }

    /// Adds the entries of a file.
    pub fn extend_from(&mut self, file: &str, other: Unknowns) {
        self.omitted += other.omitted;
        for one in other.list {
            self.note(file, one.position, &one.text, &one.why);
        }
    }

    pub(crate) fn note(&mut self, file: &str, position: u64, text: &str, why: &str) {
        if self.list.len() >= Self::MAX {
            self.omitted += 1;
            return;
        }
        self.list.push(Unknown {
            file: file.to_owned(),
            position,
            text: clean(text),
            why: why.to_owned(),
        });
    }
}
