//! A file is written from begin to end, and some bytes in between are never written: they read as zeros (MS-FSA
//! section 2.1.5.4). Clients lost data so when they split or cached writes wrongly.

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};

pub(crate) const KIND: KindInfo = KindInfo::new("unwritten-range", "bytes of a file were never written")
    .with_actor(Actor::Client)
    .with_remedies(&[
    (
        "client",
        "update its SMB client (Linux: the kernel), and compare the file with its source now: cmp, Get-FileHash",
    ),
    ("measurement", "copy the file again and record it: cache=none in between shows whether the client's cache loses it"),
]);

/// Most opens that are followed, and most ranges of one.
const OPENS_MAX: usize = 16_384;
const RANGES_MAX: usize = 4_096;
/// Fewest writes, and the least share of the file that they cover: programs that write here and there mean it.
const WRITES_MIN: u64 = 8;
const COVERED_MIN: f64 = 0.9;

#[derive(Default)]
struct Written {
    connection: (u32, u64),
    path: String,
    /// Disjoint, in rising order.
    ranges: Vec<(u64, u64)>,
    writes: u64,
    /// Something else changed the file, or the ranges are too many.
    is_given_up: bool,
}

/// A file with bytes that were never written.
struct Hole {
    connection: (u32, u64),
    path: String,
    first: (u64, u64),
    bytes: u64,
    attribution: Attribution,
}

#[derive(Default)]
pub(crate) struct UnwrittenRange {
    open: HashMap<(u32, u64), Written, foldhash::fast::RandomState>,
    holes: Vec<Hole>,
}

impl Written {
    fn add(&mut self, begin: u64, end: u64) {
        self.writes += 1;
        let first = self.ranges.partition_point(|(_, until)| *until < begin);
        let after = self.ranges.partition_point(|(from, _)| *from <= end);
        let merged = self.ranges.get(first..after).unwrap_or_default();
        let from = merged.first().map_or(begin, |(from, _)| (*from).min(begin));
        let until = merged.last().map_or(end, |(_, until)| (*until).max(end));
        self.ranges.splice(first..after.max(first), [(from, until)]);
        self.is_given_up |= self.ranges.len() > RANGES_MAX;
    }

    /// What is missing before the end, if nearly all was written.
    fn hole(self) -> Option<Hole> {
        let end = self.ranges.last()?.1;
        let covered: u64 = self.ranges.iter().map(|(from, until)| until - from).sum();
        let missing = end.checked_sub(covered).filter(|bytes| *bytes > 0)?;
        let is_whole = covered as f64 >= COVERED_MIN * end as f64 && self.writes >= WRITES_MIN;
        let mut before = 0;
        let first = self.ranges.iter().find_map(|(from, until)| {
            let gap = (*from > before).then_some((before, *from));
            before = *until;
            gap
        })?;
        (is_whole && !self.is_given_up).then_some(Hole {
            connection: self.connection,
            path: self.path,
            first,
            bytes: missing,
            attribution: Attribution::with_few_names(),
        })
    }
}

impl Detector for UnwrittenRange {
    fn see(&mut self, op: &Operation) {
        let Some(handle) = op.handle else { return };
        match op.act {
            Act::Open
                if op.status == Some(0)
                    && !op.opens_existing
                    && self.open.len() < OPENS_MAX =>
            {
                let written = Written {
                    connection: (op.recording, op.connection),
                    path: op.path_name().unwrap_or_default().to_owned(),
                    ..Written::default()
                };
                self.open.insert(handle, written);
            }
            Act::Write => {
                let Some(written) = self.open.get_mut(&handle) else { return };
                let range = op.columns.offset_bytes.get(op.row);
                match (range, op.status) {
                    (Some(begin), Some(0)) if op.bytes > 0 => {
                        written.add(begin, begin.saturating_add(op.bytes));
                    }
                    (Some(_), Some(status)) if status != 0 => {}
                    _ => written.is_given_up = true,
                }
            }
            // A server-side copy, a hole that is made on purpose.
            Act::Other | Act::Change => {
                if let Some(written) = self.open.get_mut(&handle) {
                    let detail = op.columns.detail.get(op.row).unwrap_or_default();
                    written.is_given_up |= detail.contains("COPYCHUNK")
                        || detail.contains("ZERO_DATA")
                        || detail.contains("SPARSE")
                        || detail.contains("DUPLICATE");
                }
            }
            Act::Close => {
                if let Some(mut hole) = self.open.remove(&handle).and_then(Written::hole) {
                    hole.attribution.add(op, 0);
                    self.holes.push(hole);
                }
            }
            _ => {}
        }
    }

    fn finish(self, context: &mut Context) -> Vec<Candidate> {
        // A recording with gaps may lack the write.
        let is_whole = |hole: &Hole| {
            context.connections.get(hole.connection).is_none_or(|facts| facts.gaps == 0)
        };
        let holes: Vec<_> = self.holes.into_iter().filter(is_whole).collect();
        let (files, bytes) = (holes.len(), holes.iter().map(|hole| hole.bytes).sum::<u64>());
        let mut attribution = Attribution::with_few_names();
        let mut first = None;
        for hole in holes {
            first.get_or_insert((hole.path, hole.first));
            attribution.merge(hole.attribution);
        }
        let Some((path, (from, until))) = first else { return Vec::new() };
        let others = if files > 1 { format!(" and {} other files", files - 1) } else { String::new() };
        let what = format!(
            "Bytes {from} to {until} of {path} were never written, although the file was written before and behind them{others}: they read \
             as zeros"
        );
        let candidate = Candidate::new(
            FindingKind::UnwrittenRange,
            what,
            attribution,
            Confidence::Likely,
            "the recording has the open that created the file, no gap, all other writes, and the close",
        );
        vec![candidate.of_events().broken().with_figures([
            ("bytes", bytes as f64, "bytes", "bytes never written: {}"),
            ("files", files as f64, "", "files: {}"),
        ])]
    }
}
