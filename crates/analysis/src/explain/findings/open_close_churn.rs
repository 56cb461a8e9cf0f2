//! Files are opened and closed, and nothing else is sent on the open. The observation is
//! [`super::super::lookups`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::remedy;

pub(in super::super) const TITLE: &str = "opens without use";

pub(in super::super) const ACTOR: Actor = Actor::Application;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "application",
        "keep files open that are used again; query attributes without an open if the API allows it",
    ),
    remedy("Samba", "smb2 leases = yes, so that clients may keep handles"),
];

pub(in super::super) fn finish(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::OpenCloseChurn,
        "Files are opened and closed without being used in between",
        attribution,
        Confidence::Medium,
        "no request used the open; it is only needed if the client wanted to know whether the file exists",
    )
}
