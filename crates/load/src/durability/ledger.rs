//! What was acknowledged in a round, and which of it was promised to be durable: from the journal's records.

use std::collections::BTreeMap;

use super::journal::{Kind, Record};
use super::plan::{Lane, Plan, Way};

/// An acknowledged Write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The block of the file.
    pub block: u32,
    /// How often the block had been written.
    pub generation: u32,
    /// Number among the writer's.
    pub sequence: u64,
    /// When it was sent, ns since 1970.
    pub sent_ns: i64,
    /// When its reply was read.
    pub acked_ns: i64,
    /// When the reply that promised that it is durable was read.
    pub promised_ns: Option<i64>,
}

/// A file of a writer.
#[derive(Clone, Debug, Default)]
pub struct FileLedger {
    /// Its Writes, in the order of their replies.
    pub writes: Vec<Write>,
    /// Writes before this one are covered by a Flush.
    flushed: usize,
}

/// A rename: when it was sent, and when its reply was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename {
    /// ns since 1970.
    pub sent_ns: i64,
    /// ns since 1970.
    pub acked_ns: i64,
}

/// A writer.
#[derive(Clone, Debug, Default)]
pub struct LaneLedger {
    /// Its files by number; of a writer that renames, by version.
    pub files: BTreeMap<u32, FileLedger>,
    /// Renames by version.
    pub renames: BTreeMap<u32, Rename>,
    /// Whether the server does not offer its way.
    pub not_offered: bool,
    /// The status with which the server refused something.
    pub refused: Option<u32>,
}

/// A round.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Its number, from 0.
    pub round: u32,
    /// Writers by number.
    pub lanes: Vec<LaneLedger>,
    /// When the first reply was read.
    pub first_ack_ns: Option<i64>,
    /// When the last reply was read: the server was alive then.
    pub last_ack_ns: Option<i64>,
    /// When the connection was found to be lost.
    pub lost_ns: Option<i64>,
    /// The server's start time before the plug was pulled, as it was sent; 0: it does not say.
    pub start_before: u64,
    /// Likewise afterwards, if it answered again while the client still ran.
    pub start_after: Option<u64>,
    /// When it answered again.
    pub back_ns: Option<i64>,
    /// The number of faults, if the round was verified.
    pub verified: Option<u64>,
    /// Whether its files were being removed after that.
    pub cleaning: bool,
}

impl Ledger {
    /// An empty round.
    pub fn new(plan: &Plan, round: u32) -> Ledger {
        let lanes = plan.lanes.iter().map(|_| LaneLedger::default()).collect();
        Ledger { round, lanes, ..Ledger::default() }
    }

    /// Adds a record of this round.
    pub fn add(&mut self, plan: &Plan, record: &Record) {
        let number = usize::from(record.lane);
        let (Some(lane), Some(of)) = (self.lanes.get_mut(number), plan.lanes.get(number)) else {
            return;
        };
        match record.kind {
            Kind::Write => {
                let promised = of.way.promises_at_write().then_some(record.acked_ns);
                lane.files.entry(record.file).or_default().writes.push(Write {
                    block: record.block,
                    generation: record.generation,
                    sequence: record.sequence,
                    sent_ns: record.sent_ns,
                    acked_ns: record.acked_ns,
                    promised_ns: promised,
                });
            }
            Kind::Flush => lane.files.entry(record.file).or_default().flush(record),
            Kind::Rename => {
                let rename = Rename { sent_ns: record.sent_ns, acked_ns: record.acked_ns };
                lane.renames.insert(record.file, rename);
            }
            Kind::NotOffered => lane.not_offered = true,
            Kind::Refused => lane.refused = Some(record.sequence as u32),
            Kind::Round => self.start_before = record.sequence,
            Kind::Lost => self.lost_ns = self.lost_ns.or(Some(record.acked_ns)),
            Kind::Back => {
                self.start_after = Some(record.sequence);
                self.back_ns = Some(record.acked_ns);
            }
            Kind::Verified => self.verified = Some(record.sequence),
            Kind::Cleaning => self.cleaning = true,
            Kind::Open | Kind::Close => {}
        }
        if !record.kind.is_event() {
            self.first_ack_ns =
                Some(self.first_ack_ns.unwrap_or(record.acked_ns).min(record.acked_ns));
            self.last_ack_ns = self.last_ack_ns.max(Some(record.acked_ns));
        }
    }

    /// Whether the server is known to have been started again: `None` if it does not say.
    pub fn restarted(&self) -> Option<bool> {
        let after = self.start_after?;
        (after != 0 && self.start_before != 0).then_some(after != self.start_before)
    }
}

impl LaneLedger {
    /// The newest version that may have the name: the last one whose rename was acknowledged, or the one after it if its
    /// rename may have been in flight. A writer sends it when all blocks, and their Flushes, have been acknowledged.
    pub fn newest_rename(&self, lane: &Lane) -> u32 {
        let renamed = self.renames.keys().next_back().copied().unwrap_or(0);
        let next = renamed.saturating_add(1);
        let is_sent = self.files.get(&next).is_some_and(|file| {
            let must_flush = matches!(lane.way, Way::FlushEach | Way::FlushClose);
            let is_ready = |write: &Write| !must_flush || write.promised_ns.is_some();
            file.writes.len() as u64 >= u64::from(lane.blocks) && file.writes.iter().all(is_ready)
        });
        if is_sent { next } else { renamed }
    }
}

impl FileLedger {
    /// A Flush was acknowledged: it covers what was acknowledged before it was sent.
    fn flush(&mut self, flush: &Record) {
        while let Some(write) = self.writes.get_mut(self.flushed)
            && write.acked_ns <= flush.sent_ns
        {
            write.promised_ns = write.promised_ns.or(Some(flush.acked_ns));
            self.flushed += 1;
        }
    }

    /// Its Writes by block, each in the order in which they were sent.
    pub fn by_block(&self) -> BTreeMap<u32, Vec<Write>> {
        let mut blocks: BTreeMap<u32, Vec<Write>> = BTreeMap::new();
        for write in &self.writes {
            blocks.entry(write.block).or_default().push(*write);
        }
        for writes in blocks.values_mut() {
            writes.sort_by_key(|write| write.sequence);
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durability::plan::Pattern;

    fn plan(way: Way) -> Plan {
        let pattern = Pattern::Append;
        let lane = Lane { way, pattern, block_bytes: 4096, depth: 4, files: 1, blocks: 8 };
        Plan {
            run: "a".repeat(32),
            target: String::new(),
            folder: "f".into(),
            start_ns: 0,
            lanes: vec![lane],
        }
    }

    fn record(kind: Kind, sequence: u64, sent_ns: i64, acked_ns: i64) -> Record {
        Record { sent_ns, acked_ns, ..Record::event(kind, 0, sequence, 0) }
    }

    fn promised(way: Way, records: &[Record]) -> Vec<Option<i64>> {
        let plan = plan(way);
        let mut ledger = Ledger::new(&plan, 0);
        for record in records {
            ledger.add(&plan, record);
        }
        let file = ledger.lanes[0].files.get(&0);
        file.map_or(Vec::new(), |file| file.writes.iter().map(|write| write.promised_ns).collect())
    }

    #[test]
    fn a_flush_covers_what_was_acknowledged_before_it_was_sent() {
        let records = [
            record(Kind::Write, 1, 10, 20),
            record(Kind::Write, 2, 12, 30),
            record(Kind::Write, 3, 14, 31),
            record(Kind::Flush, 0, 30, 40),
            record(Kind::Write, 4, 35, 41),
        ];
        assert_eq!(promised(Way::FlushEach, &records), [Some(40), Some(40), None, None]);
        // A Flush promises in every way in which it is sent.
        assert_eq!(promised(Way::Plain, &records)[0], Some(40));
        assert_eq!(promised(Way::Plain, &records[..3]), [None; 3]);
    }

    #[test]
    fn write_through_promises_at_once() {
        let write = record(Kind::Write, 1, 10, 20);
        for way in Way::ALL {
            let expected = way.promises_at_write().then_some(20);
            assert_eq!(promised(way, &[write]), [expected], "{way:?}");
        }
    }

    #[test]
    fn a_version_may_have_the_name_when_its_rename_may_have_been_sent() {
        let newest = |way: Way, blocks: u64, is_flushed: bool| {
            let mut plan = plan(way);
            plan.lanes[0].pattern = Pattern::Rename;
            let mut ledger = Ledger::new(&plan, 0);
            ledger.add(&plan, &Record { file: 4, ..record(Kind::Rename, 0, 1, 2) });
            for sequence in 1..=blocks {
                ledger.add(&plan, &Record { file: 5, ..record(Kind::Write, sequence, 3, 4) });
            }
            if is_flushed {
                ledger.add(&plan, &Record { file: 5, ..record(Kind::Flush, 0, 5, 6) });
            }
            ledger.lanes[0].newest_rename(&plan.lanes[0])
        };
        for way in Way::ALL {
            assert_eq!(newest(way, 7, true), 4, "{way:?}: a block is not acknowledged");
            assert_eq!(newest(way, 8, true), 5, "{way:?}");
            let must_flush = matches!(way, Way::FlushEach | Way::FlushClose);
            assert_eq!(newest(way, 8, false), if must_flush { 4 } else { 5 }, "{way:?}");
        }
    }

    #[test]
    fn a_restart_is_known_if_the_server_says_when_it_started() {
        let ledger = |before, after| Ledger {
            start_before: before,
            start_after: after,
            ..Ledger::default()
        };
        assert_eq!(ledger(5, Some(6)).restarted(), Some(true));
        assert_eq!(ledger(5, Some(5)).restarted(), Some(false));
        assert_eq!(ledger(0, Some(0)).restarted(), None);
        assert_eq!(ledger(5, None).restarted(), None);
    }
}
