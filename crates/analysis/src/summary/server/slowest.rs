//! The operations that were longest at the server, each with its slices in its own time.

use smbscope_tables::slice::{Kind, Slice};

use super::Row;
use super::data::{PlacedSlice, ServerSlow};
use crate::rows::columns::{Columns, Text};
use crate::summary::slowest::Slowest;

/// Slices of one operation that are kept.
const SLICES_MAX: usize = 64;

/// An operation with its slices one after the other, as far as its row has them.
pub(super) fn slow(
    columns: &Columns,
    row: usize,
    command: String,
    values: &Row,
    server_ns: i64,
) -> ServerSlow {
    let text = |column: &Text| column.get(row).map(str::to_owned);
    let mut placed: Vec<PlacedSlice> = Vec::new();
    let mut offset_ns = 0i64;
    let parts = Kind::ALL.iter().zip(&values.slices).filter(|(kind, _)| kind.is_part());
    let parts = parts.filter_map(|(kind, value)| Some((kind, (*value)?)));
    for (kind, duration_ns) in parts.filter(|(_, duration_ns)| *duration_ns > 0) {
        placed.push(PlacedSlice { kind: kind.name().to_owned(), offset_ns, duration_ns, depth: 0 });
        offset_ns = offset_ns.saturating_add(duration_ns);
    }
    ServerSlow {
        recording: text(&columns.recording),
        operation: columns.operation.get(row),
        command,
        detail: text(&columns.detail),
        client: text(&columns.client),
        user: text(&columns.user),
        share: text(&columns.share),
        path: text(&columns.path),
        arrived_ns: columns.request_end.get(row).or(columns.request_start.get(row)),
        server_ns,
        residual_ns: values.residual,
        placed: false,
        slices: placed,
        slices_others: 0,
    }
}

/// Gives the operations the slices that were recorded of them.
pub(super) fn place<'a>(rows: impl Iterator<Item = &'a mut ServerSlow>, slices: &[Slice]) {
    for row in rows {
        let of_row = |slice: &&Slice| {
            Some(slice.operation) == row.operation
                && Some(&*slice.recording) == row.recording.as_deref()
        };
        let found: Vec<_> = slices.iter().filter(of_row).collect();
        // A member of a compound has no time of its own but that of its first slice.
        let first = found.iter().map(|slice| slice.start).min();
        let Some(arrived) = row.arrived_ns.or(first).filter(|_| !found.is_empty()) else {
            continue;
        };
        row.arrived_ns = Some(arrived);
        if !row.placed {
            row.placed = true;
            row.slices.clear();
        }
        for slice in found {
            if row.slices.len() >= SLICES_MAX {
                row.slices_others += 1;
                continue;
            }
            row.slices.push(PlacedSlice {
                kind: slice.kind.clone().into_owned(),
                offset_ns: slice.start.saturating_sub(arrived),
                duration_ns: slice.duration_ns,
                depth: 0,
            });
        }
    }
}

/// The slowest first, their slices in the order of time.
pub(super) fn finish(slowest: Slowest<ServerSlow>) -> Vec<ServerSlow> {
    let mut rows = slowest.finish();
    rows.iter_mut().for_each(|row| nest(&mut row.slices));
    rows
}

/// Sorts slices by their begin, the longer before what lies in it, and counts in how many others
/// each lies.
fn nest(slices: &mut [PlacedSlice]) {
    let end = |slice: &PlacedSlice| slice.offset_ns.saturating_add(slice.duration_ns);
    slices.sort_by_key(|slice| (slice.offset_ns, std::cmp::Reverse(slice.duration_ns)));
    let mut open: Vec<i64> = Vec::new();
    for slice in slices {
        let (start, end) = (slice.offset_ns, end(slice));
        open.retain(|&outer| outer > start && outer >= end);
        slice.depth = open.len() as u32;
        open.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_nest_by_their_times() {
        let slice = |offset_ns, duration_ns| PlacedSlice {
            offset_ns,
            duration_ns,
            ..PlacedSlice::default()
        };
        let mut slices = [slice(12, 3), slice(0, 10), slice(30, 5), slice(10, 20), slice(13, 1)];
        nest(&mut slices);
        let found: Vec<_> = slices.iter().map(|it| (it.offset_ns, it.depth)).collect();
        assert_eq!(found, [(0, 0), (10, 0), (12, 1), (13, 2), (30, 0)]);
    }
}
