//! Replies in plaintext, from before they are encrypted until they are sent.

use super::Assembler;
use crate::ring_event::Pieces;

/// Most unsent replies of a thread.
const CLEAR_MAX: usize = 64;

/// A number that is unique among the encrypted messages of a session.
type Nonce = [u8; 11];

/// A reply in plaintext.
#[derive(Clone)]
pub(super) struct Clear {
    /// The nonce of the encrypted message, by which it is matched; `None` while it has none.
    nonce: Option<Nonce>,
    /// Copied bytes and length of each piece.
    pub pieces: Vec<(Vec<u8>, u32)>,
}

impl Assembler {
    pub(super) fn will_be_encrypted(&mut self, thread: u32, pieces: Pieces<'_>) {
        let waiting = self.clear.entry(thread).or_default();
        let owned = pieces.iter().map(|(bytes, length)| (bytes.to_vec(), length)).collect();
        waiting.push_back(Clear { nonce: nonce(pieces), pieces: owned });
        // The oldest was sent, and the event about it was lost.
        if waiting.len() > CLEAR_MAX {
            waiting.pop_front();
            self.losses.given_up += 1;
        }
    }

    /// The plaintext of an encrypted message. It is not always the next one: events are dropped, and
    /// one of several connections can wait until its client reads.
    pub(super) fn take_clear(&mut self, thread: u32, pieces: Pieces<'_>) -> Option<Clear> {
        let waiting = self.clear.get_mut(&thread)?;
        let nonce = nonce(pieces);
        let place = waiting.iter().position(|clear| clear.nonce == nonce)?;
        waiting.remove(place)
    }
}

/// The nonce in a message's transform header (MS-SMB2 2.2.41), as much as all ciphers use of it: the
/// rest is cleared by the encryption.
fn nonce(pieces: Pieces<'_>) -> Option<Nonce> {
    let (header, _) = pieces.iter().find(|(bytes, _)| bytes.starts_with(b"\xfdSMB"))?;
    let nonce: Nonce = *header.get(20..)?.first_chunk()?;
    (nonce != Nonce::default()).then_some(nonce)
}
