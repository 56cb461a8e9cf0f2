//! Replies whose request was not seen before them: it comes late, or it never does.
//!
//! Owns their waiting for it, and the rows of those that wait in vain.

use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_wire::smb2::header::Header;

use super::cut_compounds::Rest;
use super::missing_ids::Ending;
use super::replies::set_reply;
use super::reply::Reply;
use super::{Smb2, Wrapping, has_tree};
use crate::outcome::Output;
use crate::smb::pairing::Link;
use crate::smb::pending::Seen;

/// A reply that came before its request was seen: packets of the two directions can be recorded
/// out of order.
#[derive(Clone, Debug)]
pub struct Early {
    pub header: Header,
    pub seen: Seen,
    pub wrapping: Wrapping,
    pub reply: Reply,
    pub lead: bool,
    /// What of the compound's reply lies behind the cut.
    pub rest: Option<Rest>,
    pub order: u64,
}

impl Smb2 {
    /// Whether a request's reply came before it, which it is then answered with.
    #[cold]
    pub(super) fn was_answered(
        &mut self,
        id: u64,
        slot: u32,
        link: &mut Link,
        out: &mut Output,
    ) -> bool {
        while let Some(place) = self.early.iter().position(|early| early.header.message_id == id)
            && let Some(early) = self.early.remove(place)
        {
            let Early { header, seen, wrapping, mut reply, lead, .. } = early;
            if !header.is_interim() {
                self.answer(slot, &header, &seen, wrapping, &mut reply, lead, link, out);
                return true;
            }
            // The final reply may have come as well.
            self.interim(slot, &header, &seen, lead, link);
        }
        false
    }

    /// Replies whose request does not come any more become rows of their own.
    pub(super) fn expire(&mut self, keep: usize, before: u64, link: &mut Link, out: &mut Output) {
        while self.early.len() > keep
            || self.early.front().is_some_and(|early| early.order < before)
        {
            let Some(early) = self.early.pop_front() else { break };
            // An interim reply alone says nothing that the final one does not.
            if !early.header.is_interim() {
                self.unmatched(early, link, out);
            }
        }
    }

    /// Makes a row of a reply whose request was not seen.
    #[cold]
    pub(super) fn unmatched(&mut self, early: Early, link: &mut Link, out: &mut Output) {
        let Early { header, seen, wrapping, mut reply, lead, rest, .. } = early;
        out.coverage.replies_unmatched += 1;
        let mut row = Operation::default();
        row.set_protocol(2);
        row.set_command(code::command(2, header.command.0));
        row.set_message_id(header.message_id);
        if header.session_id != 0 {
            row.set_session_id(header.session_id);
        }
        if let Some(tree) = header.tree_id().filter(|_| has_tree(header.command)) {
            row.set_tree_id(tree);
        }
        row.set_signed(header.flags.is_signed());
        row.set_encrypted(wrapping.encrypted);
        row.set_compressed(wrapping.compressed);
        set_reply(&mut row, &header, &reply);
        let effect = reply.effect(None, out);
        link.reply_alone(out, row, &seen, lead, effect);
        if rest.is_some() || !self.gaps.is_empty() {
            let session_id = header.session_id;
            let ending = rest.map(|rest| Ending { rest, seen, session_id, wrapping });
            self.answered_in_gap(header.message_id, ending, link, out);
        }
    }
}
