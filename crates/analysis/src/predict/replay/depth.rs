//! Contiguous reads and writes with another number of them in flight.
//!
//! With a depth of n, a piece is sent when the n-th piece before it was answered and the client has processed
//! that one. Pieces share the network, and are served one after the other, because one process or thread
//! serves a connection.

use std::collections::VecDeque;

use super::Map;
use super::blocks::{Access, PAUSE_MAX_NS, STREAMS_MAX};
use crate::predict::plan::Direction;

/// Most requests in flight; a server grants 8192 credits at most by default.
pub const DEPTH_MAX: usize = 8192;

/// The contiguous accesses of one open.
struct Stream {
    next_offset: u64,
    is_read: bool,
    /// Recorded end of the last piece.
    ended_at: i64,
    /// Predicted time at which the last piece is sent.
    sent_then: i64,
    /// Predicted replies of the last pieces, as many as may be in flight.
    ends_then: VecDeque<i64>,
}

/// All opens.
#[derive(Default)]
pub(super) struct Depths {
    /// Accesses that continue another one.
    pub(super) contiguous: u64,
    streams: Map<(u32, u64), Stream>,
}

/// When a piece is sent, and from when it can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) sent: i64,
    pub(super) served_from: i64,
    /// How much later it ended than the previous one that was in flight with it: before that it waited for it.
    pub(super) own_ns: i64,
}

impl Depths {
    /// When an access that would otherwise be sent at `then` is sent; none where it does not continue another one.
    pub(super) fn schedule(&mut self, access: &Access, then: i64, depth: usize) -> Option<Slot> {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&access.handle) {
            self.streams.clear();
        }
        let is_read = access.kind == Direction::Read;
        let next_offset = access.offset.saturating_add(access.bytes);
        let before = self.streams.get_mut(&access.handle).filter(|before| {
            before.is_read == is_read
                && before.next_offset == access.offset
                && access.start - before.ended_at < PAUSE_MAX_NS
        });
        let Some(stream) = before else {
            let stream = Stream {
                next_offset,
                is_read,
                ended_at: access.end,
                sent_then: then,
                ends_then: VecDeque::new(),
            };
            self.streams.insert(access.handle, stream);
            return None;
        };
        // The client's work between two pieces; none for a piece that was sent before the last one's end.
        let gap = (access.start - stream.ended_at).max(0);
        let free = if stream.ends_then.len() >= depth {
            stream.ends_then.get(stream.ends_then.len() - depth).copied()
        } else {
            None
        };
        let sent = free.map_or(stream.sent_then, |free| free.max(stream.sent_then) + gap);
        let served_from = stream.ends_then.back().copied().unwrap_or(sent);
        let own_ns = if access.start < stream.ended_at {
            (access.end - stream.ended_at).max(0)
        } else {
            i64::MAX
        };
        stream.next_offset = next_offset;
        stream.ended_at = stream.ended_at.max(access.end);
        stream.sent_then = sent;
        self.contiguous += 1;
        Some(Slot { sent, served_from, own_ns })
    }

    /// Adds the predicted reply of a piece.
    pub(super) fn ended(&mut self, handle: (u32, u64), then: i64, depth: usize) {
        if let Some(stream) = self.streams.get_mut(&handle) {
            if stream.ends_then.len() >= depth {
                stream.ends_then.pop_front();
            }
            stream.ends_then.push_back(then);
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Ten pieces one after the other: each takes 10 on the network, 2 at the server and 1 at the client.
    fn lasts(depth: usize) -> i64 {
        let mut depths = Depths::default();
        let (mut was, mut end) = (0, 0);
        for piece in 0..10 {
            let access = Access {
                kind: Direction::Read,
                handle: (0, 1),
                offset: piece * 8,
                bytes: 8,
                start: was,
                end: was + 12,
            };
            was += 13;
            end = match depths.schedule(&access, 0, depth) {
                None => 12,
                Some(turn) => (turn.sent + 12).max(turn.served_from + 2),
            };
            depths.ended(access.handle, end, depth);
        }
        end
    }

    #[test]
    fn pieces_in_flight_share_the_network_and_not_the_server() {
        assert_eq!(lasts(1), 10 * 13 - 1);
        assert_eq!(lasts(2), 5 * 13 - 1 + 2);
        assert_eq!(lasts(100), 12 + 9 * 2);
    }
}
