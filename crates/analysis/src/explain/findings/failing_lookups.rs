//! Clients look for the same missing names again and again. The observation is
//! [`super::super::lookups`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use crate::predict::changes::Change;

pub(crate) const KIND: KindInfo = KindInfo::new("failing-lookups", "lookups of missing files")
    .with_actor(Actor::Application)
    .with_remedies(&[
    (
        "Windows client",
        "stop the search for desktop.ini and Thumbs.db: policy 'Turn off the caching of thumbnails in hidden \
         thumbs.db files'",
    ),
    (
        "application",
        "shorten search paths (PATH, LD_LIBRARY_PATH, include folders) that begin on the share",
    ),
    ("Windows client", "Set-SmbClientConfiguration -FileNotFoundCacheLifetime 5 or more"),
]);

/// `failed` counts all lookups that failed, the first ones too.
pub(crate) fn finish(attribution: Attribution, failed: u64) -> Candidate {
    Candidate::new(
        FindingKind::FailingLookups,
        "Files that do not exist are looked up again and again",
        attribution,
        Confidence::Measured,
        "the same client looked up each less than ten seconds before and did not find it then either",
    )
    .with_changes([Change::DirLease(())])
    .with_figures([("failed_lookups", failed as f64, "", "failed lookups, the first ones included: {}")])
}
