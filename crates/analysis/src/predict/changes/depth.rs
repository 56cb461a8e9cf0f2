//! Another number of contiguous reads and writes in flight.

use std::fmt;

use smbscope_tables::readable;

use super::{BlockSizes, Change, Definition, Spec};
use crate::predict::plan::Plan;
use crate::predict::replay::{DEPTH_MAX, Prediction};

/// As a number of requests.
pub(super) struct Depth;

impl Definition for Depth {
    type Value = usize;

    const SPEC: Spec = Spec {
        name: "depth",
        example: "depth=8",
        meaning: "this many contiguous reads or writes of one open are in flight at once",
        needs: "reads and writes with offsets and opens",
    };

    fn parse(text: &str) -> Result<usize, String> {
        match text.parse() {
            Ok(depth @ 1..=DEPTH_MAX) => Ok(depth),
            _ => Err(Self::invalid(format!("`{text}` is not a number from 1 to {DEPTH_MAX}"))),
        }
    }

    fn print(depth: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{depth}")
    }

    fn sentence(depth: usize) -> String {
        let count = readable::count(depth as u64);
        format!("{count} reads or writes of one open are in flight at once")
    }

    fn assumption(_: usize) -> &'static str {
        "Requests that are in flight together share the round trip; the server serves those of one open one after the \
         other."
    }

    fn plan(depth: usize, plan: &mut Plan) {
        plan.depth = Some(depth);
    }

    fn is_answerable(_: usize, prediction: &Prediction) -> bool {
        prediction.moves != [0, 0]
    }

    fn conflict(_: usize, others: &[Change]) -> Option<&'static str> {
        let is_block = |change: &Change| change.block_sizes() != BlockSizes::default();
        others.iter().any(is_block).then_some(
            "--change depth and another block size (block, max-read, max-write) cannot be predicted together: no \
             recorded request shows when a new block would be sent while others are in flight; predict them one at a \
             time",
        )
    }

    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        let depth = plan.depth?;
        Some(format!(
            "{} of {} reads and writes continue another one; up to {depth} of those are in flight at once.",
            readable::count(prediction.contiguous),
            readable::count(prediction.moves.iter().sum())
        ))
    }
}
