//! Clients look for the same missing names again and again. The observation is
//! [`super::super::lookups`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::lookups::Absent;
use super::repeated_lookups::asked_again;
use crate::predict::changes::Change;

pub(crate) const MISSING_CACHE: (&str, &str) =
    ("Windows client", "Set-SmbClientConfiguration -FileNotFoundCacheLifetime 5 or more");
/// Where the client's cache is at that already.
pub(crate) const LONGER_CACHE: (&str, &str) = (
    "Windows client",
    "it keeps missing names for 5 s already (FileNotFoundCacheLifetime): a longer time hides new files that much longer",
);

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
    MISSING_CACHE,
]);

/// A search looks up less than this share of its missing names again.
const REPEATED_SHARE: f64 = 0.5;
/// Fewest lookups of a search, and fewest different names: one name in each folder is a habit of file managers.
const SEARCHED_MIN: u64 = 50;
const NAMES_MIN: usize = 20;

/// `failed` counts all lookups that failed, the first ones too; they are `absent`. `again_ns` is the shortest time after
/// which a client looked for a name again.
pub(crate) fn finish(
    repeated: Attribution,
    failed: u64,
    absent: Absent,
    again_ns: Option<i64>,
) -> Candidate {
    let again = repeated.saved_ns as f64 / absent.attribution.saved_ns.max(1) as f64;
    let is_many = absent.attribution.operations >= SEARCHED_MIN;
    if is_many && again < REPEATED_SHARE && absent.names() >= NAMES_MIN {
        return search(failed, absent);
    }
    // Of many lookups in a row, the first of each name is part of the wait.
    let is_row = is_many && again >= REPEATED_SHARE;
    let attribution = if is_row { absent.attribution } else { repeated };
    Candidate::new(
        FindingKind::FailingLookups,
        "Files that do not exist are looked up again and again",
        attribution,
        Confidence::Measured,
        "the same client looked up most of them less than ten seconds before and did not find them then either",
    )
    .with_changes([Change::DirLease(())])
    .with_figures([("failed_lookups", failed as f64, "", "failed lookups, the first ones included: {}")])
    .with_figures(asked_again(again_ns))
}

/// A program looks for many names of which none exists: a search path leads over the share.
fn search(failed: u64, absent: Absent) -> Candidate {
    let most = absent.extension().filter(|(_, n)| *n * 2 >= failed);
    let names = match most {
        Some(("", _)) | None => "different names".to_owned(),
        Some((extension, _)) => format!("different names, most of them *.{extension}"),
    };
    Candidate::new(
        FindingKind::FailingLookups,
        format!(
            "A program searches the share for files that do not exist: {failed} lookups of {names}, one round trip after the other"
        ),
        absent.attribution,
        Confidence::Measured,
        "each name was looked up and not found; a search path (PATH, library or home folder) that leads over the share does this",
    )
    .with_changes([Change::DirLease(())])
    .with_remedies(&[
        (
            "application",
            "take the share out of its search path, or put it behind the local folders: PATH, the current folder, the home \
             folder (HOMEDRIVE), LD_LIBRARY_PATH",
        ),
        (
            "Windows client",
            "do not start programs with a share as the current folder; a home folder on a share is searched for each DLL \
             (SafeProcessSearchMode)",
        ),
    ])
    .with_figures([("failed_lookups", failed as f64, "", "failed lookups: {}")])
}
