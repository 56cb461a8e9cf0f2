//! What a round or several found, by way: counts, ages, order, and the interval of the risk.

use std::collections::{BTreeMap, HashMap};

use super::judge::{How, Outcome};
use super::ledger::{Ledger, Write};
use super::plan::{Plan, Way};

/// Most losses that are listed one by one; the counts have all.
pub const LOSSES_MAX: usize = 1 << 20;
/// A promise is fresh if it was made this long before the last reply, or less: older data would have been written
/// without it, too.
pub const FRESH_NS: i64 = 5_000_000_000;

/// An acknowledged Write that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The writer.
    pub lane: u16,
    /// Its file; of a writer that renames, the version.
    pub file: u32,
    /// The Write.
    pub write: Write,
    /// What is there instead.
    pub how: How,
    /// Whether it breaks a promise: it is the newest Write of its block that was promised durable.
    pub is_broken: bool,
}

/// What was found in one way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Writers.
    pub lanes: u64,
    /// Acknowledged Writes.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Acknowledged Writes that were promised to be durable.
    pub promised: u64,
    /// Blocks whose promise could be checked: the newest promised Write of each.
    pub checked: u64,
    /// Checked promises made within [`FRESH_NS`] before the last reply.
    pub fresh: u64,
    /// Broken promises by what is there instead.
    pub broken: BTreeMap<How, u64>,
    /// Acknowledged Writes without a promise that are lost, likewise.
    pub lost: BTreeMap<How, u64>,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Time from their reply to the last reply of the round, ns.
    pub lost_ages_ns: Vec<i64>,
    /// Lost Writes although a later one to the same file is there.
    pub reordered_in_file: u64,
    /// Likewise a later one to another file.
    pub reordered_across_files: u64,
    /// Blocks that a Write in flight changed in part.
    pub torn_in_flight: u64,
    /// Acknowledged renames.
    pub renames: u64,
    /// Renames that were undone.
    pub renames_lost: u64,
    /// Time from the replies of undone renames to the last reply, ns.
    pub rename_ages_ns: Vec<i64>,
    /// Files that have their new name, but not the data that was acknowledged before the rename was sent.
    pub renames_before_data: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Rounds in which the way was used.
    pub rounds: u64,
    /// Rounds with a broken promise.
    pub rounds_broken: u64,
}

impl Tally {
    /// Broken promises.
    pub fn broken(&self) -> u64 {
        self.broken.values().sum()
    }

    /// Acknowledged Writes that are lost and were not promised.
    pub fn lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Adds another round's.
    pub fn add(&mut self, other: &Tally) {
        self.lanes = self.lanes.max(other.lanes);
        self.writes += other.writes;
        self.bytes += other.bytes;
        self.promised += other.promised;
        self.checked += other.checked;
        self.fresh += other.fresh;
        for (how, count) in &other.broken {
            *self.broken.entry(*how).or_default() += count;
        }
        for (how, count) in &other.lost {
            *self.lost.entry(*how).or_default() += count;
        }
        self.lost_bytes += other.lost_bytes;
        self.lost_ages_ns.extend(&other.lost_ages_ns);
        self.reordered_in_file += other.reordered_in_file;
        self.reordered_across_files += other.reordered_across_files;
        self.torn_in_flight += other.torn_in_flight;
        self.renames += other.renames;
        self.renames_lost += other.renames_lost;
        self.rename_ages_ns.extend(&other.rename_ages_ns);
        self.renames_before_data += other.renames_before_data;
        self.read_errors += other.read_errors;
        self.rounds += other.rounds;
        self.rounds_broken += other.rounds_broken;
    }
}

/// What a round found.
#[derive(Clone, Debug, Default)]
pub struct RoundResult {
    /// Its number, from 0.
    pub round: u32,
    /// By way.
    pub ways: BTreeMap<Way, Tally>,
    /// Ways that server or share do not offer.
    pub not_offered: Vec<Way>,
    /// Ways with a writer that the server refused something, and the status.
    pub refused: Vec<(Way, u32)>,
    /// Lost Writes one by one, at most [`LOSSES_MAX`].
    pub losses: Vec<Loss>,
    /// Time between the first and the last reply, ns.
    pub duration_ns: i64,
    /// When the last reply was read, ns since 1970.
    pub last_ack_ns: i64,
    /// From the last reply until the loss of the connection was noticed, ns.
    pub noticed_ns: Option<i64>,
    /// Whether the server is known to have been started again.
    pub restarted: Option<bool>,
    /// Whether the folder of the round was there.
    pub has_folder: bool,
}

impl RoundResult {
    /// Broken promises.
    pub fn broken(&self) -> u64 {
        self.ways.values().map(Tally::broken).sum()
    }
}

/// Collects what the blocks of a round show.
pub(super) struct Collector<'a> {
    plan: &'a Plan,
    ledger: &'a Ledger,
    last_ns: i64,
    result: RoundResult,
    /// When the newest surviving Write without a promise was sent, by writer and file.
    survivors: HashMap<(u16, u32), i64>,
    /// Places in `losses`, or enough of each, of lost Writes without a promise.
    unpromised: Vec<(u16, u32, i64)>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(plan: &'a Plan, ledger: &'a Ledger) -> Collector<'a> {
        let mut result = RoundResult { round: ledger.round, ..RoundResult::default() };
        let last_ns = ledger.last_ack_ns.unwrap_or(0);
        result.last_ack_ns = last_ns;
        result.duration_ns = last_ns.saturating_sub(ledger.first_ack_ns.unwrap_or(last_ns));
        result.noticed_ns = ledger.lost_ns.map(|lost| lost.saturating_sub(last_ns).max(0));
        result.restarted = ledger.restarted();
        for (lane, of) in plan.lanes.iter().zip(&ledger.lanes) {
            if of.not_offered {
                result.not_offered.push(lane.way);
                continue;
            }
            result.refused.extend(of.refused.map(|status| (lane.way, status)));
            let tally = result.ways.entry(lane.way).or_default();
            tally.lanes += 1;
            tally.rounds = 1;
            tally.renames += of.renames.len() as u64;
            for file in of.files.values() {
                tally.writes += file.writes.len() as u64;
                tally.bytes += file.writes.len() as u64 * u64::from(lane.block_bytes);
                let promised = file.writes.iter().filter(|write| write.promised_ns.is_some());
                tally.promised += promised.count() as u64;
            }
        }
        result.not_offered.dedup();
        let (survivors, unpromised) = (HashMap::new(), Vec::new());
        Collector { plan, ledger, last_ns, result, survivors, unpromised }
    }

    pub(super) fn has_folder(&mut self, has_folder: bool) {
        self.result.has_folder = has_folder;
    }

    /// When the last reply was read.
    pub(super) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// The tally of a writer.
    pub(super) fn tally(&mut self, lane: u16) -> &mut Tally {
        let way = self.plan.lanes.get(usize::from(lane)).map_or(Way::Plain, |lane| lane.way);
        self.result.ways.entry(way).or_default()
    }

    /// Adds a block.
    pub(super) fn block(&mut self, lane: u16, file: u32, writes: &[Write], outcome: &Outcome) {
        let last_ns = self.last_ns;
        let block_bytes =
            self.plan.lanes.get(usize::from(lane)).map_or(0, |lane| u64::from(lane.block_bytes));
        let tally = self.tally(lane);
        tally.torn_in_flight += u64::from(outcome.torn_in_flight);
        if let Some(promised) = outcome.promised.and_then(|at| writes.get(at)) {
            tally.checked += 1;
            let at = promised.promised_ns.unwrap_or(promised.acked_ns);
            tally.fresh += u64::from(last_ns.saturating_sub(at) <= FRESH_NS);
        }
        let how = outcome.how.unwrap_or(How::Damaged);
        if outcome.is_broken() {
            *tally.broken.entry(how).or_default() += 1;
        }
        for &at in &outcome.lost {
            let Some(write) = writes.get(at) else { continue };
            if write.promised_ns.is_none() {
                let tally = self.tally(lane);
                *tally.lost.entry(how).or_default() += 1;
                tally.lost_bytes += block_bytes;
                tally.lost_ages_ns.push(last_ns.saturating_sub(write.acked_ns));
                self.unpromised.push((lane, file, write.acked_ns));
            }
            if self.result.losses.len() < LOSSES_MAX {
                let is_broken = outcome.promised == Some(at);
                self.result.losses.push(Loss { lane, file, write: *write, how, is_broken });
            }
        }
        // The Write that is there, if nothing promised that it would be.
        let there = writes.iter().find(|write| write.sequence == outcome.found);
        if let Some(write) = there.filter(|write| write.promised_ns.is_none()) {
            let newest = self.survivors.entry((lane, file)).or_insert(write.sent_ns);
            *newest = (*newest).max(write.sent_ns);
        }
    }

    /// The result of all blocks.
    pub(super) fn finish(mut self) -> RoundResult {
        // The two newest survivors of different files: one of them is of another file than any given one.
        let mut newest: Vec<((u16, u32), i64)> =
            self.survivors.iter().map(|(file, sent)| (*file, *sent)).collect();
        newest.sort_by_key(|(_, sent)| std::cmp::Reverse(*sent));
        newest.truncate(2);
        for (lane, file, acked_ns) in std::mem::take(&mut self.unpromised) {
            let same = self.survivors.get(&(lane, file)).is_some_and(|sent| *sent > acked_ns);
            let other = newest.iter().any(|(of, sent)| *of != (lane, file) && *sent > acked_ns);
            let tally = self.tally(lane);
            tally.reordered_in_file += u64::from(same);
            tally.reordered_across_files += u64::from(other);
        }
        for tally in self.result.ways.values_mut() {
            tally.rounds_broken = u64::from(tally.broken() > 0);
        }
        debug_assert_eq!(self.ledger.round, self.result.round);
        self.result
    }
}
