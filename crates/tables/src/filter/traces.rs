//! The period of a filter applied to tables of CPUs. The other conditions are about operations.
//!
//! A run of an interrupt belongs to the period in which it began. A trace that is cut begins and ends with the period,
//! so that shares are those of the period.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;

use super::Filter;
use crate::named_columns::Numbers;
use crate::tables::Trace;

/// The rows whose time in this column is in the period.
pub(super) fn rows(
    filter: &Filter,
    batch: &RecordBatch,
    column: &str,
) -> Result<RecordBatch, ArrowError> {
    if filter.from.is_none() && filter.to.is_none() {
        return Ok(batch.clone());
    }
    let times = Numbers::<Int64Type>::from_batch(batch, column)?;
    let stays: BooleanArray = (0..batch.num_rows())
        .map(|row| Some(times.get(row).is_none_or(|time| filter.has_time(time))))
        .collect();
    filter_record_batch(batch, &stays)
}

/// What the period leaves of a trace's length.
pub(super) fn cut(filter: &Filter, trace: &mut Trace) {
    let (Some(start), Some(end)) = (trace.started_at, trace.ended_at) else { return };
    let from = filter.from.map_or(start, |from| from.max(start));
    let to = filter.to.map_or(end, |to| to.min(end));
    trace.started_at = Some(from.min(end));
    trace.ended_at = Some(to.max(from.min(end)));
}
