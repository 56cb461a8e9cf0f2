//! Opens fail because another open does not share the file (MS-SMB2 section 3.3.5.9).

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_wire::status::Status;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::durations::{Constant, Durations};
use super::super::operation::{Operation, TextId};

/// Holds for SMB1.
pub(crate) const SAMBA: (&str, &str) = (
    "Samba",
    "SMB1 requests are tried again for 0.95 s; SMB2 and SMB3 requests are answered at once",
);

pub(crate) const KIND: KindInfo = KindInfo::new("share-conflicts", "sharing violations")
    .with_actor(Actor::Application)
    .with_remedies(&[
    (
        "application",
        "open with FILE_SHARE_READ and FILE_SHARE_WRITE where others may read the file; retry after a pause, not at \
         once",
    ),
    (
        "server",
        "find out which client has the files open: smbstatus --locks, Get-SmbOpenFile",
    ),
    (
        "Windows",
        "if each takes about a second: the server tries again SharingViolationRetries times (5) after \
         SharingViolationDelay (200 ms), both in HKLM\\SYSTEM\\CurrentControlSet\\Services\\LanmanServer\\Parameters; 0 \
         retries answer at once",
    ),
    SAMBA,
]);

/// A server that answers later than this has tried again, ns.
const RETRIES_NS: i64 = 150_000_000;
/// Five retries of Windows with 200 ms between them, or the 950 ms of Samba in SMB1
/// (`SHARING_VIOLATION_USEC_WAIT`), ns: one such answer shows them.
const KNOWN_RETRIES_NS: std::ops::Range<i64> = 940_000_000..1_150_000_000;
/// A file that is refused for this long keeps somebody from work, ns.
const REFUSED_NS: i64 = 5_000_000_000;
/// Most paths that are followed.
const PATHS_MAX: usize = 16_384;
/// Fewest answers of the same duration that show retries.
const RETRIES_MIN: u64 = 2;

/// Opens that failed.
#[derive(Default)]
pub(crate) struct ShareConflicts {
    attribution: Attribution,
    /// Times of the server, ns.
    late: Durations,
    /// When each path was refused first and last.
    refused: HashMap<TextId, (i64, i64), foldhash::fast::RandomState>,
}

impl Detector for ShareConflicts {
    fn claim(&mut self, op: &Operation) -> Option<FindingKind> {
        // An open, or a deletion or renaming that needs one.
        if op.status != Some(Status::SHARING_VIOLATION.0) {
            return None;
        }
        self.attribution.add(op, op.busy_ns);
        if let (Some(path), Some(start)) = (op.path, op.start)
            && (self.refused.len() < PATHS_MAX || self.refused.contains_key(&path))
        {
            let (_, last) = self.refused.entry(path).or_insert((start, start));
            *last = start.max(*last);
        }
        let server_ns = op.split().map_or(op.elapsed_ns, |(server, _)| server);
        if server_ns >= RETRIES_NS {
            self.late.add(server_ns);
        }
        Some(FindingKind::ShareConflicts)
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let is_known = |ns: &i64| KNOWN_RETRIES_NS.contains(ns);
        let single = self.late.longest().filter(is_known).map(Constant::single);
        let retries = self.late.constants(|_| RETRIES_MIN).into_iter().next().or(single);
        let (what, because) = match retries {
            None => (
                "Opens fail because another program has the file open",
                "the server answered STATUS_SHARING_VIOLATION; the time until users try again is not included",
            ),
            Some(_) => (
                "Opens fail because another program has the file open, and the server tries again for a fixed time \
                 before it says so",
                "the server answered STATUS_SHARING_VIOLATION after the same time again and again, which is that of \
                 its retries; the time until users try again is not included",
            ),
        };
        let figures = retries.map(|one| {
            [
                ("time_of_retries", one.mean_ns, "ns", "the server tries again for {}"),
                ("late_refusals", one.n as f64, "", "late refusals: {}"),
            ]
        });
        let kind = FindingKind::ShareConflicts;
        let confidence = Confidence::Measured;
        let candidate = Candidate::new(kind, what, self.attribution, confidence, because)
            .of_events()
            .with_figures(figures.into_iter().flatten());
        // Somebody tries again and again to open a file that another holds.
        let is_long = self.refused.values().any(|(first, last)| last - first >= REFUSED_NS);
        vec![if is_long { candidate.broken() } else { candidate }]
    }
}
