//! Files are opened and closed, and nothing else is sent on the open. The observation is
//! [`super::super::lookups`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;

pub(crate) const SAMBA_LEASES: (&str, &str) =
    ("Samba", "smb2 leases = yes, so that clients may keep handles");
/// Where leases are granted.
pub(crate) const LEASES_UNUSED: (&str, &str) = (
    "client",
    "the server grants it leases, with which it may keep handles open, and it closes them all the same: find out which program \
     opens the files, and update the client",
);

pub(crate) const KIND: KindInfo = KindInfo::new("open-close-churn", "opens without use")
    .with_actor(Actor::Application)
    .with_remedies(&[
    (
        "application",
        "keep files open that are used again; query attributes without an open if the API allows it",
    ),
    SAMBA_LEASES,
]);

pub(crate) fn finish(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::OpenCloseChurn,
        "Files are opened and closed without being used in between",
        attribution,
        Confidence::Likely,
        "no request used the open; it is only needed if the client wanted to know whether the file exists",
    )
}
