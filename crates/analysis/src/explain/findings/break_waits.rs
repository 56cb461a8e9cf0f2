//! Opens wait until other clients give up what they cache of the file (MS-SMB2 sections 3.3.4.6 and
//! 3.3.4.7).

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Confidence, Remedy, Trouble};
use super::super::operation::{Act, Operation};
use super::remedy;

pub(in super::super) const TITLE: &str = "oplock or lease break waits";

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "application",
        "do not write the same files from several clients in turn; one writer at a time",
    ),
    remedy("Samba", "for such shares: oplocks = no, smb2 leases = no"),
    remedy("Windows", "Set-SmbShare -LeasingMode None for such shares"),
];

/// What an open takes without a break, about, ns.
const QUICK_OPEN_NS: i64 = 1_000_000;

/// Opens with an interim response.
#[derive(Default)]
pub(in super::super) struct BreakWaits {
    attribution: Attribution,
    breaks: u64,
}

impl BreakWaits {
    pub(in super::super) fn see(&mut self, op: &Operation) {
        match (op.act, op.status) {
            (Act::Open, Some(0)) if op.columns.pending_at.get(op.row).is_some() => {
                self.attribution.add(op, op.of_busy(op.elapsed_ns - QUICK_OPEN_NS));
            }
            (Act::Break, _) => self.breaks += 1,
            _ => {}
        }
    }

    pub(in super::super) fn finish(self) -> Candidate {
        let (confidence, because) = match self.breaks {
            0 => (
                Confidence::Low,
                "the server answered with a delay; the recording shows no oplock or lease break, so either the other \
                 client is not in it, or the file is slow to open",
            ),
            _ => (
                Confidence::Medium,
                "the server answered with a delay, and the recording shows oplock or lease breaks",
            ),
        };
        Candidate::new(
            Trouble::BreakWaits,
            "Opens wait until other clients have given up what they cache of the file",
            self.attribution,
            confidence,
            because,
        )
        .with_figures([("breaks", self.breaks as f64, "")])
    }
}
