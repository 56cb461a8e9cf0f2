//! The answer in one sentence, its reasons, and the numbers next to it.

/// Whether the sentence is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Watch,
    Bad,
    Unknown,
}

impl Tone {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Watch => "watch",
            Tone::Bad => "bad",
            Tone::Unknown => "unknown",
        }
    }
}

/// The answer.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) tone: Tone,
    /// One sentence without a full stop.
    pub(crate) sentence: String,
    /// More sentences.
    pub(crate) reasons: Vec<String>,
}

/// A number that says what it measures.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) title: String,
    pub(crate) value: String,
    pub(crate) note: String,
}

impl Tile {
    pub(crate) fn new(
        title: impl Into<String>,
        value: impl Into<String>,
        note: impl Into<String>,
    ) -> Tile {
        Tile { title: title.into(), value: value.into(), note: note.into() }
    }
}
