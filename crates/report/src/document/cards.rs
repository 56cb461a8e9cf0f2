//! Findings and steps as data: a card for each cause, a line for each severity, an item for each command.

use smbscope_findings::Severity;

use crate::document::Chart;

/// A finding that a page unfolds: a cause of lost time.
#[derive(Clone, Debug)]
pub(crate) struct FindingCard {
    pub(crate) title: &'static str,
    /// Its share of the whole, from 0 to 1.
    pub(crate) share: Option<f64>,
    /// What it costs, in words.
    pub(crate) cost: String,
    pub(crate) what: String,
    /// Titles with their lines.
    pub(crate) rows: Vec<(&'static str, Vec<String>)>,
    /// What a terminal shows, if that is not made from the rows.
    pub(crate) text: Option<CardText>,
    /// Charts that prove it.
    pub(crate) evidence: Vec<Chart>,
    pub(crate) is_open: bool,
}

/// A finding for a terminal: its title with its cost, and the lines below it.
#[derive(Clone, Debug)]
pub(crate) struct CardText {
    pub(crate) head: String,
    pub(crate) lines: Vec<String>,
    /// The lines of a text that shows only what fits.
    pub(crate) brief: Vec<String>,
}

/// A finding with its severity.
#[derive(Clone, Debug)]
pub(crate) struct FindingLine {
    pub(crate) severity: Severity,
    /// The adapter, or the machine.
    pub(crate) about: String,
    pub(crate) sentence: String,
}

/// A command of a checklist.
#[derive(Clone, Debug)]
pub(crate) struct ChecklistItem {
    pub(crate) about: String,
    pub(crate) does: String,
    pub(crate) interrupts: String,
    /// Whether that is something that users notice.
    pub(crate) is_noticed: bool,
    pub(crate) apply: Vec<String>,
    /// Commands, and what they show.
    pub(crate) checks: Vec<(String, String)>,
    pub(crate) undo: Vec<String>,
}
