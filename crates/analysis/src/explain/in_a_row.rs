//! Waits that follow each other: one wait for a person.

/// Waits belong together while the pauses between them are no longer in total than the waiting, and this, ns.
const PAUSES_NS: i64 = 500_000_000;
/// More waiting than this allows for no more pauses, ns.
const WAITED_MAX_NS: i64 = 10_000_000_000;

/// Waits in a row, of a client or a connection, while they pass in the order of their ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InARow {
    last: Option<i64>,
    waited_ns: i64,
    paused_ns: i64,
}

/// What another wait adds.
pub(super) struct Added {
    /// It begins another row.
    pub(super) is_new: bool,
    /// Nothing was outstanding before it for this time, ns.
    pub(super) pause_ns: i64,
    /// The part of it that no earlier wait covers, ns.
    pub(super) fresh_ns: i64,
}

impl InARow {
    /// Adds a wait.
    pub(super) fn add(&mut self, start: i64, end: i64) -> Added {
        let before = self.last.unwrap_or(start);
        let pause_ns = start.saturating_sub(before).max(0);
        let fresh_ns = end.saturating_sub(start.max(before)).max(0);
        self.paused_ns = self.paused_ns.saturating_add(pause_ns);
        let is_over = self.paused_ns > self.waited_ns.min(WAITED_MAX_NS) + PAUSES_NS;
        let is_new = is_over || self.last.is_none();
        if is_over {
            *self = InARow::default();
        }
        self.waited_ns = self.waited_ns.saturating_add(fresh_ns);
        self.last = Some(before.max(end));
        Added { is_new, pause_ns, fresh_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_ends_when_pauses_outweigh_the_waits() {
        const MS: i64 = 1_000_000;
        let rows = |gap: i64| {
            let mut row = InARow::default();
            let each = (0..100).map(|n| row.add(n * (40 + gap) * MS, (n * (40 + gap) + 40) * MS));
            each.filter(|added| added.is_new).count()
        };
        assert_eq!(rows(2), 1, "4 s of waits in a row");
        assert!(rows(100) > 10, "a person who thinks in between");
        // Those in parallel count once.
        let mut row = InARow::default();
        let added = [(0, 10), (2, 8), (5, 15)].map(|(start, end)| row.add(start, end).fresh_ns);
        assert_eq!(added, [10, 0, 5]);
    }
}
