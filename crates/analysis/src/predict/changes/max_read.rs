//! Another block size of reads.

use super::Spec;
use super::shared::BlockChange;

pub(super) struct ReadBlock;

impl BlockChange for ReadBlock {
    const SPEC: Spec = Spec {
        name: "max-read",
        example: "max-read=1MiB",
        meaning: "contiguous reads use blocks of this size, as if the server allowed it (MaxReadSize)",
        needs: "reads of several sizes, with offsets and opens",
    };
    const WHAT: &'static str = "reads";
    const READS: bool = true;
    const WRITES: bool = false;
}
