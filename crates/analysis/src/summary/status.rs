//! Replies by NTSTATUS and command.

use hashbrown::HashMap;

use super::data::{Count, Status, Statuses};
use super::share_of;
use crate::rows::status_class::StatusClass;

/// Most pairs of status and command.
const PAIRS_MAX: usize = 4096;

/// The replies seen so far.
#[derive(Clone, Default)]
pub(crate) struct StatusTally {
    success: u64,
    unknown: u64,
    others: u64,
    last: Option<(u32, u32)>,
    pending: u64,
    pairs: HashMap<(u32, u32), u64, foldhash::fast::RandomState>,
    names: HashMap<u32, String, foldhash::fast::RandomState>,
}

impl StatusTally {
    #[inline]
    pub(crate) fn record(
        &mut self,
        status: Option<u32>,
        command: u32,
        name: impl FnOnce() -> Option<String>,
    ) {
        match status {
            None => self.unknown += 1,
            Some(0) => self.success += 1,
            Some(status) => self.record_other(status, command, name),
        }
    }

    fn record_other(&mut self, status: u32, command: u32, name: impl FnOnce() -> Option<String>) {
        let pair = (status, command);
        if self.last == Some(pair) {
            self.pending += 1;
            return;
        }
        self.flush();
        if self.pairs.len() >= PAIRS_MAX && !self.pairs.contains_key(&pair) {
            self.others += 1;
            return;
        }
        self.names
            .entry(status)
            .or_insert_with(|| name().unwrap_or_else(|| format!("0x{status:08x}")));
        self.last = Some(pair);
        self.pending = 1;
        self.pairs.entry(pair).or_insert(0);
    }

    fn flush(&mut self) {
        if let Some(count) = self.last.and_then(|pair| self.pairs.get_mut(&pair)) {
            *count += self.pending;
        }
        self.last = None;
        self.pending = 0;
    }

    /// The replies by status, most frequent first; `command` names a command's number.
    pub(crate) fn finish(mut self, operations: u64, command: impl Fn(u32) -> String) -> Statuses {
        self.flush();
        let mut rows: HashMap<u32, Status> = HashMap::new();
        for (&(status, number), &count) in &self.pairs {
            let row = rows.entry(status).or_insert_with(|| Status {
                status,
                name: self.names.get(&status).cloned().unwrap_or_default(),
                class: StatusClass::from_status(status),
                operations: 0,
                operations_share: 0.0,
                commands: Vec::new(),
            });
            row.operations += count;
            row.commands.push(Count { name: command(number), count });
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        for row in &mut rows {
            row.operations_share = share_of(row.operations as i64, operations as i64);
            row.commands.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        }
        rows.sort_by_key(|row| (std::cmp::Reverse(row.operations), row.status));
        Statuses { success: self.success, unknown: self.unknown, rows, others: self.others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_pairs_and_keeps_the_first_name() {
        let mut tally = StatusTally::default();
        for (status, command) in [(5, 1), (5, 1), (5, 2), (0, 1), (5, 1)] {
            tally.record(Some(status), command, || Some(format!("S{status}")));
        }
        tally.record(None, 1, || None);
        let found = tally.finish(6, |number| format!("c{number}"));
        assert_eq!((found.success, found.unknown, found.rows.len()), (1, 1, 1));
        assert_eq!((found.rows[0].operations, found.rows[0].name.as_str()), (4, "S5"));
        assert_eq!(found.rows[0].commands[0].count, 3);
    }
}
