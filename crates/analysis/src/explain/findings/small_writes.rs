//! Writes go one at a time in blocks so small that the round trip counts more than the bytes. The
//! observation is [`super::super::sequential_blocks`].

use super::super::data::Actor;

pub(in super::super) use super::small_reads::REMEDIES;

pub(in super::super) const TITLE: &str = "stop-and-wait small writes";

pub(in super::super) const ACTOR: Actor = Actor::Client;

pub(in super::super) const WHAT: &str = "Writes go one at a time, in small blocks: the client sends each after the \
    reply to the one before, so that each round trip moves one block, however fast the network is";
