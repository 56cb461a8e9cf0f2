//! Packets that were recorded twice: a mirror port that shows a packet as it comes in and as it goes
//! out, or a recorder that listens where it passes several times.
//!
//! They are looked for once one was seen. A segment that is sent again for good is so after the least
//! retransmission timeout, or behind others; so not this soon after itself.

use super::TWICE_NS;
use crate::frame::TcpSegment;

/// Packets that lie between one and its copy at most.
const RECENT: usize = 32;

/// What copies have in common, and the sending end.
type Key = (usize, u32, u32, u32, u16, u8);

/// The last packets.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    recent: [(Key, i64); RECENT],
    next: usize,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies { recent: [(Key::default(), i64::MIN); RECENT], next: 0 }
    }
}

impl Copies {
    /// Whether a packet was recorded before; it is remembered.
    pub(super) fn is_copy(&mut self, segment: &TcpSegment<'_>, from: usize, time: i64) -> bool {
        let TcpSegment { sequence, acknowledgement, payload_len, window, flags, .. } = *segment;
        let key = (from, sequence, acknowledgement, payload_len, window, flags.0);
        let is_it = |&(known, at): &(Key, i64)| known == key && time.saturating_sub(at) < TWICE_NS;
        if self.recent.iter().any(is_it) {
            return true;
        }
        self.recent[self.next] = (key, time);
        self.next = (self.next + 1) % RECENT;
        false
    }
}
