//! From bytes to what the planners read: text, lines, objects of PowerShell, XML, and a list of what was not understood.
//!
//! Owns encodings and notations, with limits. It knows no setting, no adapter and no namespace: which object is which, a
//! planner says.

pub mod lines;
pub mod powershell;
pub mod text;
pub mod unknown;
pub mod xml;

#[cfg(test)]
mod tests;

/// Where a text is damaged, before the name of its file is known.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// Number of the line, the first is 1.
    pub line: usize,
    pub message: String,
}

impl Damage {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for Damage {}
