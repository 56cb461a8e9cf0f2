//! Writes go one at a time in blocks so small that the round trip counts more than the bytes. The
//! observation is [`super::super::sequential_blocks`].

use smbscope_findings::{Actor, KindInfo};

pub(crate) const KIND: KindInfo = KindInfo::new("small-writes", "stop-and-wait small writes")
    .with_actor(Actor::Client)
    .with_remedies(super::small_reads::KIND.remedies);

pub(crate) const WHAT: &str = "Writes go one at a time, in small blocks: the client sends each after the \
    reply to the one before, so that each round trip moves one block, however fast the network is";
