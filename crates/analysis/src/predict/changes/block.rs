//! Another block size of reads and writes.

use std::fmt;

use super::{BlockSizes, Definition, Spec, shared};
use crate::predict::plan::Plan;
use crate::predict::replay::Prediction;

/// In bytes.
pub(super) struct Block;

impl Definition for Block {
    type Value = u64;

    const SPEC: Spec = Spec {
        name: "block",
        example: "block=1MiB",
        meaning: "contiguous reads and writes use blocks of this size",
        needs: "reads and writes of several sizes, with offsets and opens, to separate the cost of a request from the cost of its bytes",
    };
    const CHANGES_DEMAND: bool = true;

    fn parse(text: &str) -> Result<u64, String> {
        shared::parse_block::<Self>(text)
    }

    fn print(bytes: u64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        shared::print_block(bytes, to)
    }

    fn sentence(bytes: u64) -> String {
        shared::block_sentence("reads and writes", bytes)
    }

    fn assumption(_: u64) -> &'static str {
        shared::BLOCK_ASSUMPTION
    }

    fn plan(bytes: u64, plan: &mut Plan) {
        (plan.read_block, plan.write_block) = (Some(bytes), Some(bytes));
    }

    fn block_sizes(bytes: u64) -> BlockSizes {
        BlockSizes { read: Some(bytes), write: Some(bytes) }
    }

    fn is_answerable(_: u64, prediction: &Prediction) -> bool {
        prediction.moves != [0, 0]
    }

    fn plan_warning(plan: &Plan, prediction: &Prediction) -> Option<String> {
        shared::concurrent_blocks_warning(plan, prediction)
    }

    fn warning(bytes: u64, prediction: &Prediction) -> Option<String> {
        shared::block_warning(Self::block_sizes(bytes), prediction)
    }
}
