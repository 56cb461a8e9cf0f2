//! What would be saved without a trouble, and what remedies would gain: by replaying the first
//! operations without it, and with them ([`crate::predict::replay`]).

use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use smbscope_tables::profile::CacheOption;
use smbscope_tables::tables::Connection;

use super::candidate::Candidate;
use super::data::{Gain, is_reported};
use super::operation::Operation;
use super::savings::SampledOperation;
use crate::predict::changes::Change;
use crate::predict::plan::Plan;
use crate::predict::replay::{self, Baseline, Prediction, Replay, Saving};
use crate::predict::requirements::{unanswered, unlearnt_sizes};

/// Most operations in the sample: about 10 MB.
const OPERATIONS_MAX: usize = 25_000;
/// Most connections in the sample.
const CONNECTIONS_MAX: usize = 20_000;
/// Most replays with remedies in one diagnosis.
const REPLAYS_MAX: usize = 8;
/// Fewest operations to judge a remedy by.
const OPERATIONS_MIN: u64 = 20;

/// The first operations of the recordings, kept for replaying.
#[derive(Default)]
pub(super) struct ReplaySample {
    batches: Vec<RecordBatch>,
    operations: usize,
    is_cut: bool,
    connections: Vec<Connection>,
    /// Times of the operations.
    sampled: Vec<SampledOperation>,
    /// The replay without any change.
    today: Option<Prediction>,
    /// Number of findings for which one gain is computed; `None`: all gains of all findings.
    first_gains: Option<usize>,
}

/// The columns that a replay with any remedy reads.
fn replay_columns() -> impl Iterator<Item = &'static str> {
    static PLAN: std::sync::LazyLock<Plan> =
        std::sync::LazyLock::new(|| Plan { cache: Some(CacheOption::DirLease), ..Plan::default() });
    replay::columns(&PLAN)
}

/// The columns that a diagnosis with gains reads.
pub(super) fn all_columns() -> Vec<&'static str> {
    let mut all: Vec<_> = super::COLUMNS
        .iter()
        .chain(crate::durability::COLUMNS)
        .copied()
        .chain(replay_columns())
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl ReplaySample {
    /// A sample for one gain of each of the first findings.
    pub(super) fn with_first_gains(findings: usize) -> ReplaySample {
        ReplaySample { first_gains: Some(findings), ..ReplaySample::default() }
    }

    /// Adds operations while there is room; returns the numbers of those that it keeps.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<Range<u32>, ArrowError> {
        let first = self.operations as u32;
        if self.operations >= OPERATIONS_MAX {
            self.is_cut |= batch.num_rows() > 0;
            return Ok(first..first);
        }
        let rows = batch.num_rows().min(OPERATIONS_MAX - self.operations);
        self.is_cut |= rows < batch.num_rows();
        let schema = batch.schema_ref();
        let names = replay_columns().chain(["command", "detail", "path"]);
        let mut indices: Vec<_> = names.filter_map(|name| schema.index_of(name).ok()).collect();
        indices.sort_unstable();
        indices.dedup();
        self.batches.push(batch.project(&indices)?.slice(0, rows));
        self.operations += rows;
        Ok(first..self.operations as u32)
    }

    /// Adds the times of an operation that it keeps.
    pub(super) fn see(&mut self, op: &Operation) {
        self.sampled.push(SampledOperation::from_op(op));
    }

    /// The operations that it keeps, and their times in the same order.
    pub(super) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    pub(super) fn sampled(&self) -> &[SampledOperation] {
        &self.sampled
    }

    pub(super) fn connection(&mut self, row: &Connection) {
        if self.connections.len() < CONNECTIONS_MAX {
            self.connections.push(row.clone());
        }
    }

    /// Reduces what a candidate saves to what its clients would wait less: an operation that no client
    /// waits for saves nothing, and requests that were in flight together stay so.
    pub(super) fn replay_without(&mut self, candidate: &mut Candidate) -> Result<(), ArrowError> {
        let savings = &candidate.savings;
        let replayed = savings.operations() as u64;
        let is_known = replayed >= if self.is_cut { OPERATIONS_MIN } else { 1 };
        if !is_known || savings.sampled_ns <= 0 {
            return Ok(());
        }
        let shorter_ns = savings.by_operation(&self.sampled).into_iter();
        let busy = self.sampled.iter().map(|sampled| sampled.busy_ns);
        let spares: Vec<_> =
            shorter_ns.zip(busy).map(|(ns, busy_ns)| Saving { ns, busy_ns }).collect();
        // At the capture point, as the busy time is.
        let mut replay = Replay::new(Plan::default(), Baseline::default());
        self.feed(&mut replay, &spares)?;
        let saved = replay.finish().spared_busy_ns;
        let left = (saved / savings.sampled_ns as f64).clamp(0.0, 1.0);
        let all_ns = savings.all_ns;
        candidate.scale_part(left, all_ns);
        candidate.finding.details.replayed = replayed;
        Ok(())
    }

    fn today(&mut self) -> Result<&Prediction, ArrowError> {
        let today = match self.today.take() {
            Some(today) => today,
            None => self.replay(&Plan::default(), Baseline::default())?,
        };
        Ok(self.today.insert(today))
    }

    /// Adds what remedies would gain to the findings that are reported.
    pub(super) fn judge(&mut self, candidates: &mut [Candidate]) -> Result<(), ArrowError> {
        let mut replays = 0;
        let mut known: Vec<(Change, Option<Gain>)> = Vec::new();
        let wanted = self.first_gains.unwrap_or(usize::MAX);
        let costly = candidates.iter_mut().filter(|one| is_reported(&one.finding));
        for Candidate { finding, changes, .. } in costly.take(wanted) {
            let gains = &mut finding.details.gains;
            for change in changes.iter().copied() {
                if self.first_gains.is_some() && !gains.is_empty() {
                    break;
                }
                if let Some((_, gain)) = known.iter().find(|one| one.0 == change) {
                    gains.extend(gain.clone());
                    continue;
                }
                let today = self.today()?;
                // A change that needs slices which the recording lacks is not worth a replay. Only the
                // replay itself shows how often a cache would be used.
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
                gains.extend(gain.clone());
                known.push((change, gain));
            }
            // A remedy whose replay gains nothing does not help this recording.
            let before = gains.len();
            gains.retain(is_gain);
            if gains.is_empty() && before > 0 {
                finding
                    .because
                    .push_str("; replayed with the change that would remedy it, nothing is gained");
            }
        }
        Ok(())
    }

    /// What a change would bring; none where the sample lacks what it needs.
    pub(super) fn gain_of(&mut self, change: Change) -> Result<Option<Gain>, ArrowError> {
        let today = self.today()?;
        if unanswered(&[change], today).is_some() {
            return Ok(None);
        }
        let baseline = today.baseline.clone();
        self.gain(change, baseline)
    }

    fn gain(&self, change: Change, baseline: Baseline) -> Result<Option<Gain>, ArrowError> {
        if unlearnt_sizes(&[change], baseline.sizes).is_some() {
            return Ok(None);
        }
        let mut plan = Plan::default();
        change.plan(&mut plan);
        let prediction = self.replay(&plan, baseline)?;
        let is_unknown = plan.is_other_network() && prediction.without_rtt == prediction.timed;
        let is_little = prediction.timed < OPERATIONS_MIN;
        if is_unknown || is_little || unanswered(&[change], &prediction).is_some() {
            return Ok(None);
        }
        let (before_ns, after_ns) = prediction.waiting_ns;
        // The interval of the mean gain of an operation, times their number.
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
/// Whether a change gains more than a thousandth of the waiting.
fn is_gain(gain: &Gain) -> bool {
    gain.waiting_before_ns.saturating_sub(gain.waiting_after_ns) > gain.waiting_before_ns / 1_000
}
