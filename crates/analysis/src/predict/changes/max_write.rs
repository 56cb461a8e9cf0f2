//! Another block size of writes.

use super::Spec;
use super::shared::BlockChange;

pub(super) struct WriteBlock;

impl BlockChange for WriteBlock {
    const SPEC: Spec = Spec {
        name: "max-write",
        example: "max-write=1MiB",
        meaning: "contiguous writes use blocks of this size, as if the server allowed it (MaxWriteSize)",
        needs: "writes of several sizes, with offsets and opens",
    };
    const WHAT: &'static str = "writes";
    const READS: bool = false;
    const WRITES: bool = true;
}
