//! Opens fail because another open does not share the file (MS-SMB2 section 3.3.5.9).

use smbscope_wire::status::Status;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Confidence, Remedy, Trouble};
use super::super::operation::{Act, Operation};
use super::remedy;

pub(in super::super) const TITLE: &str = "sharing violations";

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "application",
        "open with FILE_SHARE_READ and FILE_SHARE_WRITE where others may read the file; retry after a pause, not at \
         once",
    ),
    remedy(
        "server",
        "find out which client has the files open: smbstatus --locks, Get-SmbOpenFile",
    ),
];

/// Opens that failed.
#[derive(Default)]
pub(in super::super) struct ShareConflicts {
    attribution: Attribution,
}

impl ShareConflicts {
    pub(in super::super) fn see(&mut self, op: &Operation) {
        if op.act == Act::Open && op.status == Some(Status::SHARING_VIOLATION.0) {
            self.attribution.add(op, op.busy_ns);
        }
    }

    pub(in super::super) fn finish(self) -> Candidate {
        Candidate::new(
            Trouble::ShareConflicts,
            "Opens fail because another program has the file open",
            self.attribution,
            Confidence::High,
            "the server answered STATUS_SHARING_VIOLATION; the time until users try again is not included",
        )
    }
}
