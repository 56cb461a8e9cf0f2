//! Replies by NTSTATUS and command, and how a status is to be read: MS-ERREF section 2.3, with
//! MS-SMB2 section 3.3 for those by which the protocol works.

use hashbrown::HashMap;

use super::data::{Count, Status, StatusClass, Statuses};
use super::share_of;

/// Most pairs of status and command that are told apart.
const PAIRS_MAX: usize = 4096;

/// The replies seen so far.
#[derive(Default)]
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
                class: class(status),
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

/// How a status is to be read.
pub fn class(status: u32) -> StatusClass {
    match status {
        // SMB1's error class and code (MS-CIFS section 2.2.2.4) where no NTSTATUS was agreed on:
        // the class in the lowest byte, the code in the upper half, which no success of NTSTATUS
        // that SMB uses has.
        0x0002_0001 | 0x0003_0001 => StatusClass::NotFound, // ERRbadfile, ERRbadpath
        0x0012_0001 => StatusClass::Usual,                  // ERRnofiles: the end of a search
        _ if status >> 30 == 0 && status >> 16 != 0 && status & 0xff00 == 0 => StatusClass::Error,
        // Success, informational and warning severities carry an answer.
        _ if status >> 30 != 3 => StatusClass::Usual,
        0xc000_0016 // MORE_PROCESSING_REQUIRED: next step of a logon
        | 0xc000_0011 // END_OF_FILE: a read at the end
        | 0xc000_0120 // CANCELLED: the client asked for it
        => StatusClass::Usual,
        0xc000_000f // NO_SUCH_FILE
        | 0xc000_0034 // OBJECT_NAME_NOT_FOUND
        | 0xc000_003a // OBJECT_PATH_NOT_FOUND
        | 0xc000_0225 // NOT_FOUND
        => StatusClass::NotFound,
        _ => StatusClass::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_errors_from_usual_replies() {
        for usual in [0x103, 0x10c, 0x0012_0001, 0x8000_0005, 0x8000_0006, 0xc000_0016, 0xc000_0011]
        {
            assert_eq!(class(usual), StatusClass::Usual, "{usual:x}");
        }
        for missing in [0xc000_0034, 0xc000_003a, 0xc000_000f, 0x0002_0001] {
            assert_eq!(class(missing), StatusClass::NotFound, "{missing:x}");
        }
        for error in [0xc000_0022, 0xc000_0043, 0xc000_010a, 0xc0ff_ffff, 0x0006_0001, 0x0005_0002]
        {
            assert_eq!(class(error), StatusClass::Error, "{error:x}");
        }
    }

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
