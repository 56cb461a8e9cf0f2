//! A request that waits for its reply, and when a reply was seen.

use smbscope_tables::operation::Operation;

use crate::outcome::Session;
use crate::stream::Message;

/// A request that waits for its reply.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// The row so far.
    pub row: Operation,
    /// The busy clock's reading at its start.
    pub begun: i64,
    /// Whether its message is on the busy clock.
    pub on_clock: bool,
    /// Whether it counts as in flight.
    pub in_flight: bool,
    /// Whether the message's times stand on this row (a lead, or a message of one).
    pub lead: bool,
    /// Number of its compound on the connection; 0 for none.
    pub chain: u64,
    /// Path or share in the request.
    pub name: String,
    /// Whether `name` is there.
    pub has_name: bool,
    /// Of a session setup.
    pub session: Option<Box<Session>>,
    /// Replies of the connection after which its own is taken for lost, where anything was lost.
    pub lost_at: u64,
    /// Whether its reply is among those that were not captured, as it seems.
    pub is_missed: bool,
}

impl Pending {
    /// Makes it new without giving back its buffers.
    pub fn reset(&mut self) {
        self.row = Operation::default();
        self.begun = 0;
        self.on_clock = false;
        self.in_flight = false;
        self.lead = false;
        self.chain = 0;
        self.name.clear();
        self.has_name = false;
        self.session = None;
        self.lost_at = 0;
        self.is_missed = false;
    }
}

/// When and where a reply was seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// First byte.
    pub start: i64,
    /// Last byte, if it was captured.
    pub end: Option<i64>,
    /// Frame of the first byte.
    pub frame: u64,
    /// Bytes of the message with its NetBIOS header.
    pub wire_bytes: u64,
}

impl Seen {
    /// Of a message.
    #[inline]
    pub fn of(message: &Message<'_>) -> Seen {
        Seen {
            start: message.start,
            end: message.end,
            frame: message.frame,
            wire_bytes: u64::from(message.length) + 4,
        }
    }

    /// The best that is known of its end.
    #[inline]
    pub fn end_or_start(&self) -> i64 {
        self.end.unwrap_or(self.start)
    }
}
