//! Clients list folders again that they listed shortly before, although nothing changed. The
//! observation is [`super::super::lookups`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use crate::predict::changes::Change;

pub(crate) const KIND: KindInfo = KindInfo::new("repeated-listings", "repeated directory listings")
    .with_actor(Actor::Server)
    .with_remedies(super::repeated_lookups::KIND.remedies);

pub(crate) fn finish(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::RepeatedListings,
        "The same folders are listed again and again",
        attribution,
        Confidence::Likely,
        "the same client listed each less than a minute before, and the recording shows no other client changing it \
         in between",
    )
    .with_changes([Change::DirLease(())])
}
