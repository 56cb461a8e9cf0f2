//! Replies whose request was not captured before them: it comes late, or never.
//!
//! Owns their wait for the request, and the rows of those that wait in vain.

use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_wire::smb2::header::Header;

use super::missing_ids::CutEnding;
use super::replies::{Arrival, set_reply};
use super::reply::Reply;
use super::{Smb2, has_tree};
use crate::smb::context::SmbContext;

/// A reply that came before its request was seen: packets of the two directions can be recorded
/// out of order.
#[derive(Clone, Debug)]
pub struct EarlyReply {
    pub header: Header,
    pub arrival: Arrival,
    pub reply: Reply,
    pub order: u64,
}

impl Smb2 {
    /// Answers a request with the reply that came before it, if there is one.
    #[cold]
    pub(super) fn take_early_reply(&mut self, id: u64, slot: u32, cx: &mut SmbContext<'_>) -> bool {
        while let Some(place) = self.early.iter().position(|early| early.header.message_id == id)
            && let Some(early) = self.early.remove(place)
        {
            let EarlyReply { header, arrival, mut reply, .. } = early;
            if !header.is_interim() {
                self.answer(slot, &header, &arrival, &mut reply, cx);
                return true;
            }
            // The final reply may have come as well.
            self.interim(slot, &header, &arrival, cx.pairing);
        }
        false
    }

    /// Replies whose request no longer comes become rows of their own.
    pub(super) fn expire(&mut self, keep: usize, before: u64, cx: &mut SmbContext<'_>) {
        while self.early.len() > keep
            || self.early.front().is_some_and(|early| early.order < before)
        {
            let Some(early) = self.early.pop_front() else { break };
            // An interim reply alone says nothing that the final one does not.
            if !early.header.is_interim() {
                self.unmatched(early, cx);
            }
        }
    }

    /// Makes a row of a reply whose request was not seen.
    #[cold]
    pub(super) fn unmatched(&mut self, early: EarlyReply, cx: &mut SmbContext<'_>) {
        let EarlyReply { header, arrival, mut reply, .. } = early;
        let Arrival { times, wrapping, lead, rest } = arrival;
        cx.out.coverage.replies_unmatched += 1;
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
        let effect = reply.effect(None, cx.out);
        cx.pairing.reply_alone(cx.out, row, &times, lead, effect);
        if rest.is_some() || !self.gaps.is_empty() {
            let session_id = header.session_id;
            let ending = rest.map(|rest| CutEnding { rest, times, session_id, wrapping });
            self.note_reply_in_gap(header.message_id, ending, cx);
        }
    }
}
