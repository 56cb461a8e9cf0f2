//! What was done with the open that the explained operation uses.

use std::collections::VecDeque;

use smbscope_tables::command_class::CommandClass;

use super::data::{Brief, OpenHistory};
use super::row::{Columns, Row};

/// Uses before the operation and after it; with the first use, the operation and the close there are at
/// most eight.
const BEFORE: usize = 3;
const AFTER: usize = 2;

/// Uses of the open, while the rows stream by.
#[derive(Default)]
pub(super) struct Uses {
    first: Option<Brief>,
    before: VecDeque<Brief>,
    own: Option<Brief>,
    after: Vec<Brief>,
    close: Option<Brief>,
    count: u64,
}

impl Uses {
    pub(super) fn see(&mut self, columns: &Columns, row: usize, target: &Row) {
        let (Some(handle), Some(zero)) = (target.handle, target.zero) else { return };
        if columns.handle.get(row) != Some(handle)
            || !columns.is_of(row, target.brief.recording.as_deref())
        {
            return;
        }
        self.count += 1;
        let brief = || columns.brief(row, zero);
        if target.is(columns, row) {
            self.own = Some(brief());
        } else if self.count == 1 {
            self.first = Some(brief());
        } else if columns.class(row) == CommandClass::Close {
            self.close = Some(brief());
        } else if columns.seen(row).map_or(self.own.is_none(), |seen| seen < zero) {
            self.before.push_back(brief());
            if self.before.len() > BEFORE {
                self.before.pop_front();
            }
        } else if self.after.len() < AFTER {
            self.after.push(brief());
        }
    }

    pub(super) fn finish(self, target: &Row) -> Option<OpenHistory> {
        let Uses { first, before, own, after, close, count } = self;
        let mut shown: Vec<_> =
            first.into_iter().chain(before).chain(own).chain(after).chain(close).collect();
        // Members of a compound have no time of their own; they follow what was recorded before them.
        let mut at = i64::MIN;
        let mut placed: Vec<_> = shown
            .drain(..)
            .map(|brief| {
                at = brief.at_ns.unwrap_or(at);
                (at, brief)
            })
            .collect();
        placed.sort_by_key(|(at, _)| *at);
        let shown = placed.into_iter().map(|(_, brief)| brief).collect();
        (count > 0).then_some(OpenHistory { handle: target.handle?, uses: count, shown })
    }
}
