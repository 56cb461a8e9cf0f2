//! How one request's time was spent in the server.
//!
//! Slices are disjoint and contiguous, so that their sum is the time from the request's arrival to the
//! reply's departure: parallel work (the rest of a dispatch after a read went to another thread) is not
//! counted.

use smbscope_tables::operation::Operation;
pub use smbscope_tables::slice::Kind;

/// One stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The kind.
    pub kind: Kind,
    /// When it began, CLOCK_MONOTONIC ns.
    pub start: u64,
    /// Duration, ns.
    pub duration: u64,
}

/// The slices of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slices(pub Vec<Slice>);

impl Slices {
    /// Adds a stretch; two of one kind in a row stay two.
    pub fn add(&mut self, kind: Kind, start: u64, duration: u64) {
        self.0.push(Slice { kind, start, duration });
    }

    /// Total time of a kind; `None` if there is no slice of it.
    pub fn sum(&self, kind: Kind) -> Option<u64> {
        let mut of_kind = self.0.iter().filter(|slice| slice.kind == kind).peekable();
        of_kind.peek()?;
        Some(of_kind.map(|slice| slice.duration).sum())
    }

    /// Removes the time before a given time.
    pub fn begin_at(&mut self, time: u64) {
        for slice in &mut self.0 {
            let early = time.saturating_sub(slice.start).min(slice.duration);
            slice.start += early;
            slice.duration -= early;
        }
        self.0.retain(|slice| slice.duration > 0);
    }

    /// Fills the row's sums.
    pub fn fill(&self, row: &mut Operation) {
        for &kind in Kind::ALL {
            if let Some(sum) = self.sum(kind) {
                kind.set(row, i64::try_from(sum).unwrap_or(i64::MAX));
            }
        }
    }
}
