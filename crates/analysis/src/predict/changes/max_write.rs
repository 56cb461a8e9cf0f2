//! Another block size of writes.

use std::fmt;

use super::{BlockSizes, Definition, Spec, shared};
use crate::predict::plan::Plan;
use crate::predict::replay::Prediction;

/// In bytes.
pub(super) struct WriteBlock;

impl Definition for WriteBlock {
    type Value = u64;

    const SPEC: Spec = Spec {
        name: "max-write",
        example: "max-write=1MiB",
        meaning: "contiguous writes use blocks of this size, as if the server allowed it (MaxWriteSize)",
        needs: "writes of several sizes, with offsets and opens",
    };
    const CHANGES_DEMAND: bool = true;

    fn parse(text: &str) -> Result<u64, String> {
        shared::parse_block::<Self>(text)
    }

    fn print(bytes: u64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        shared::print_block(bytes, to)
    }

    fn sentence(bytes: u64) -> String {
        shared::block_sentence("writes", bytes)
    }

    fn assumption(_: u64) -> &'static str {
        shared::BLOCK_ASSUMPTION
    }

    fn plan(bytes: u64, plan: &mut Plan) {
        plan.write_block = Some(bytes);
    }

    fn block_sizes(bytes: u64) -> BlockSizes {
        BlockSizes { read: None, write: Some(bytes) }
    }

    fn is_answerable(_: u64, prediction: &Prediction) -> bool {
        prediction.moves[1] > 0
    }

    fn plan_warning(plan: &Plan, prediction: &Prediction) -> Option<String> {
        shared::concurrent_blocks_warning(plan, prediction)
    }

    fn warning(bytes: u64, prediction: &Prediction) -> Option<String> {
        shared::block_warning(Self::block_sizes(bytes), prediction)
    }
}
