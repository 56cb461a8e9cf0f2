//! Clients list folders again that they listed shortly before, although nothing changed. The
//! observation is [`super::super::lookups`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Trouble};
pub(in super::super) use super::repeated_lookups::REMEDIES;

pub(in super::super) const TITLE: &str = "repeated directory listings";

pub(in super::super) const ACTOR: Actor = Actor::Server;

pub(in super::super) fn finish(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::RepeatedListings,
        "The same folders are listed again and again",
        attribution,
        Confidence::Medium,
        "the same client listed each less than a minute before, and the recording shows no other client changing it \
         in between",
    )
}
