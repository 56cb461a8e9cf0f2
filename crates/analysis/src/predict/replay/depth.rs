//! Reads and writes that continue each other, with another number of them under way at once.
//!
//! A piece is sent when the one so many places before it was answered, and the client has done with it
//! what it did; pieces go over the line side by side, and are served one after the other, because
//! one process or thread serves a connection.

use std::collections::VecDeque;

use super::Map;
use super::blocks::{Access, PAUSE_MAX_NS, STREAMS_MAX};

/// Most requests under way at once; a server grants 8192 credits at most by default.
pub const DEPTH_MAX: usize = 8192;

/// One open's.
struct Stream {
    next_offset: u64,
    is_read: bool,
    /// End of the last piece, as it was.
    ended_at: i64,
    /// When the last piece would be sent.
    sent_then: i64,
    /// When the last pieces would be answered, so many as may be under way.
    ends_then: VecDeque<i64>,
}

/// All opens.
#[derive(Default)]
pub(super) struct Depths {
    /// Those that had a turn.
    pub(super) turned: u64,
    streams: Map<(u32, u64), Stream>,
}

/// When a piece would be sent, and before when it cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) sent: i64,
    pub(super) served_from: i64,
    /// What it took longer than the one before that was under way with it: the rest it waited for that one.
    pub(super) own_ns: i64,
}

impl Depths {
    /// When an access that would be sent at `then` is sent; none where it does not continue another.
    pub(super) fn turn(&mut self, access: &Access, then: i64, depth: usize) -> Option<Turn> {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&access.handle) {
            self.streams.clear();
        }
        let is_read = access.kind == super::Direction::Read;
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
        // What the client does between two pieces; one that was sent before the last one's end had none.
        let gap = (access.start - stream.ended_at).max(0);
        let free = match stream.ends_then.len() >= depth {
            true => stream.ends_then.get(stream.ends_then.len() - depth).copied(),
            false => None,
        };
        let sent = free.map_or(stream.sent_then, |free| free.max(stream.sent_then) + gap);
        let served_from = stream.ends_then.back().copied().unwrap_or(sent);
        let own_ns = match access.start < stream.ended_at {
            true => (access.end - stream.ended_at).max(0),
            false => i64::MAX,
        };
        stream.next_offset = next_offset;
        stream.ended_at = stream.ended_at.max(access.end);
        stream.sent_then = sent;
        self.turned += 1;
        Some(Turn { sent, served_from, own_ns })
    }

    /// It would be answered then.
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
    use super::super::Direction;
    use super::*;

    /// Ten pieces one after the other: each 10 on the line and 2 at the server, the client takes 1.
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
            end = match depths.turn(&access, 0, depth) {
                None => 12,
                Some(turn) => (turn.sent + 12).max(turn.served_from + 2),
            };
            depths.ended(access.handle, end, depth);
        }
        end
    }

    #[test]
    fn more_under_way_share_the_line_and_not_the_server() {
        assert_eq!(lasts(1), 10 * 13 - 1);
        assert_eq!(lasts(2), 5 * 13 - 1 + 2);
        assert_eq!(lasts(100), 12 + 9 * 2);
    }
}
