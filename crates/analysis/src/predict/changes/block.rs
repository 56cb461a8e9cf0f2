//! Another block size of reads and writes.

use super::Spec;
use super::shared::BlockChange;

pub(super) struct Block;

impl BlockChange for Block {
    const SPEC: Spec = Spec {
        name: "block",
        example: "block=1MiB",
        meaning: "contiguous reads and writes use blocks of this size",
        needs: "reads and writes of several sizes, with offsets and opens, to separate the cost of a request from the cost of its bytes",
    };
    const WHAT: &'static str = "reads and writes";
    const READS: bool = true;
    const WRITES: bool = true;
}
