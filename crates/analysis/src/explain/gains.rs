//! What is saved without a trouble, and what remedies would bring: by replaying the recording without it, and with
//! them ([`crate::predict::replay`]).

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use smbscope_tables::profile::CacheOption;
use smbscope_tables::tables::Connection;

use std::ops::Range;

use super::blocks::BLOCK_SMB1;
use super::data::{Finding, Gain, Trouble};
use super::operation::Seen;
use super::spared::Kept;
use super::{Found, LEAST_SHARE};
use crate::predict::changes::Change;
use crate::predict::plan::Plan;
use crate::predict::replay::{self, Baseline, Prediction, Replay, Saving};
use crate::predict::requirements::{unanswered, unlearnt_sizes};

/// Operations that are kept for it: about 40 MB.
const OPERATIONS_MAX: usize = 100_000;
/// Connections that are kept for it.
const CONNECTIONS_MAX: usize = 20_000;
/// Replays of one diagnosis.
const REPLAYS_MAX: usize = 8;
/// Samples that say something.
const OPERATIONS_LEAST: u64 = 20;

/// The first operations of what is diagnosed.
#[derive(Default)]
pub(super) struct Sample {
    batches: Vec<RecordBatch>,
    operations: usize,
    is_cut: bool,
    connections: Vec<Connection>,
    /// Busy time of the operations, ns.
    kept: Vec<Kept>,
    /// What comes out without any change.
    today: Option<Prediction>,
}

/// What the columns of a replay with any remedy are.
fn columns() -> impl Iterator<Item = &'static str> {
    static PLAN: std::sync::LazyLock<Plan> =
        std::sync::LazyLock::new(|| Plan { cache: Some(CacheOption::DirLease), ..Plan::default() });
    replay::columns(&PLAN)
}

/// Columns that a diagnosis with gains reads.
pub(super) fn all_columns() -> Vec<&'static str> {
    let mut all: Vec<_> = super::COLUMNS.iter().copied().chain(columns()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Sample {
    /// Adds operations while there is room; gives the numbers of those that it keeps.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<Range<u32>, ArrowError> {
        let first = self.operations as u32;
        if self.operations >= OPERATIONS_MAX {
            self.is_cut |= batch.num_rows() > 0;
            return Ok(first..first);
        }
        let rows = batch.num_rows().min(OPERATIONS_MAX - self.operations);
        self.is_cut |= rows < batch.num_rows();
        let schema = batch.schema_ref();
        let mut places: Vec<_> = columns().filter_map(|name| schema.index_of(name).ok()).collect();
        places.sort_unstable();
        places.dedup();
        self.batches.push(batch.project(&places)?.slice(0, rows));
        self.operations += rows;
        Ok(first..self.operations as u32)
    }

    /// Looks at an operation that it keeps.
    pub(super) fn see(&mut self, seen: &Seen) {
        self.kept.push(Kept::of(seen));
    }

    pub(super) fn connection(&mut self, row: &Connection) {
        if self.connections.len() < CONNECTIONS_MAX {
            self.connections.push(row.clone());
        }
    }

    /// Makes what is saved what the clients would wait less: an operation that nobody waits for saves nothing,
    /// and requests that were in flight together are not later one by one.
    pub(super) fn replay_without(&mut self, found: &mut Found) -> Result<(), ArrowError> {
        let Found { finding, spared, .. } = found;
        let replayed = spared.operations() as u64;
        let is_known = replayed >= if self.is_cut { OPERATIONS_LEAST } else { 1 };
        if !is_known || spared.sampled_ns <= 0 {
            return Ok(());
        }
        let less = spared.less(&self.kept);
        let busy = self.kept.iter().map(|kept| kept.busy_ns);
        let spared_of: Vec<_> =
            less.into_iter().zip(busy).map(|(ns, busy_ns)| Saving { ns, busy_ns }).collect();
        // Where it was recorded: so is the busy time.
        let mut replay = Replay::new(Plan::default(), Baseline::default());
        self.feed(&mut replay, &spared_of)?;
        let saved = replay.finish().spared_busy_ns;
        finding.saved((saved / spared.sampled_ns as f64).clamp(0.0, 1.0), spared.all_ns);
        finding.replayed = replayed;
        Ok(())
    }

    fn today(&mut self) -> Result<&Prediction, ArrowError> {
        let today = match self.today.take() {
            Some(today) => today,
            None => self.replay(&Plan::default(), Baseline::default())?,
        };
        Ok(self.today.insert(today))
    }

    /// Adds what remedies would bring to the findings that explain enough.
    pub(super) fn judge(&mut self, findings: &mut [Finding]) -> Result<(), ArrowError> {
        let mut replays = 0;
        let mut known: Vec<(Change, Option<Gain>)> = Vec::new();
        for found in findings.iter_mut().filter(|found| found.share >= LEAST_SHARE) {
            for change in remedies(found) {
                if let Some((_, gain)) = known.iter().find(|one| one.0 == change) {
                    found.gains.extend(gain.clone());
                    continue;
                }
                let today = self.today()?;
                // What needs slices that nobody recorded is not worth a replay; how often a cache would
                // be asked only its own replay knows.
                let is_cache = change.cache_option().is_some();
                if !is_cache && unanswered(&[change], today).is_some() {
                    continue;
                }
                replays += 1;
                if replays > REPLAYS_MAX {
                    return Ok(());
                }
                let baseline = today.baseline.clone();
                let gain = self.gain(change, baseline)?;
                found.gains.extend(gain.clone());
                known.push((change, gain));
            }
        }
        Ok(())
    }

    fn gain(&self, change: Change, baseline: Baseline) -> Result<Option<Gain>, ArrowError> {
        if unlearnt_sizes(&[change], baseline.sizes).is_some() {
            return Ok(None);
        }
        let mut plan = Plan::default();
        change.plan(&mut plan);
        let prediction = self.replay(&plan, baseline)?;
        let is_unknown = plan.is_other_network() && prediction.without_rtt == prediction.timed;
        let is_little = prediction.timed < OPERATIONS_LEAST;
        if is_unknown || is_little || unanswered(&[change], &prediction).is_some() {
            return Ok(None);
        }
        let (before_ns, after_ns) = prediction.waiting_ns;
        // The scatter of what each operation gains, as the mean's interval has it.
        let error_ns = prediction.operations.change_error_ns.map(|each| {
            let all = each * prediction.operations.before.distribution.n as f64;
            all as i64
        });
        Ok(Some(Gain {
            change: change.to_string(),
            waiting_before_ns: before_ns,
            waiting_after_ns: after_ns,
            error_ns,
            operations: prediction.timed,
            is_part: self.is_cut,
        }))
    }

    fn replay(&self, plan: &Plan, baseline: Baseline) -> Result<Prediction, ArrowError> {
        let mut replay = Replay::new(plan.clone(), baseline);
        replay.connections(&self.connections);
        self.feed(&mut replay, &[])?;
        Ok(replay.finish())
    }

    fn feed(&self, replay: &mut Replay, spared: &[Saving]) -> Result<(), ArrowError> {
        let mut first = 0;
        for batch in &self.batches {
            replay.operations_less(batch, spared.get(first..).unwrap_or_default())?;
            first += batch.num_rows();
        }
        Ok(())
    }
}

/// What can be replayed of what is to be done.
fn remedies(found: &Finding) -> Vec<Change> {
    let figure = |name| {
        let figure = found.figures.iter().find(|figure| figure.name == name);
        figure.map(|figure| figure.value)
    };
    let block = figure("larger_block").map_or(1 << 20, |bytes| bytes as u64);
    // SMB1's raw transfers go one at a time.
    let depth = (block != BLOCK_SMB1).then_some(Change::Depth(8));
    match found.trouble {
        Trouble::SmallReads => std::iter::once(Change::ReadBlock(block)).chain(depth).collect(),
        Trouble::SmallWrites => std::iter::once(Change::WriteBlock(block)).chain(depth).collect(),
        Trouble::ServerQueueing => vec![Change::Queue(0.0), Change::Cpu(2.0)],
        Trouble::SlowFilesystem => vec![Change::Filesystem(4.0), Change::CacheHit(1.0)],
        Trouble::SlowFlush => vec![Change::WriteThrough(false)],
        Trouble::RepeatedLookups | Trouble::RepeatedListings | Trouble::FailingLookups => {
            vec![Change::DirLease(())]
        }
        Trouble::NoCompounding => vec![Change::Compound(true)],
        // What TCP and credits cost today the model takes for the line's and the client's own.
        Trouble::BandwidthLimited
        | Trouble::WindowLimited
        | Trouble::CreditStarvation
        | Trouble::Loss
        | Trouble::SlowLogon
        | Trouble::Protection
        | Trouble::OpenCloseChurn
        | Trouble::ShareConflicts
        | Trouble::LockContention
        | Trouble::BreakWaits
        | Trouble::Stragglers
        | Trouble::SlowClient => Vec::new(),
    }
}
