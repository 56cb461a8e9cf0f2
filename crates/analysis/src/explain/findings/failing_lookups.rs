//! Clients look for the same missing names again and again. The observation is
//! [`super::super::lookups`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::remedy;

pub(in super::super) const TITLE: &str = "lookups of missing files";

pub(in super::super) const ACTOR: Actor = Actor::Application;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "Windows client",
        "stop the search for desktop.ini and Thumbs.db: policy 'Turn off the caching of thumbnails in hidden \
         thumbs.db files'",
    ),
    remedy(
        "application",
        "shorten search paths (PATH, LD_LIBRARY_PATH, include folders) that begin on the share",
    ),
    remedy("Windows client", "Set-SmbClientConfiguration -FileNotFoundCacheLifetime 5 or more"),
];

/// `failed` counts all lookups that failed, the first ones too.
pub(in super::super) fn finish(attribution: Attribution, failed: u64) -> Candidate {
    Candidate::new(
        Trouble::FailingLookups,
        "Files that do not exist are looked up again and again",
        attribution,
        Confidence::High,
        "the same client looked up each less than ten seconds before and did not find it then either",
    )
    .with_figures([("failed_lookups", failed as f64, "")])
}
