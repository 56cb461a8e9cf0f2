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
    /// Whether the times of the message are stored in this row (a lead, or the only one).
    pub lead: bool,
    /// First and last byte of the message, for a member of a compound that is not the lead.
    pub asked: Option<(i64, Option<i64>)>,
    /// Number of its compound on the connection; 0 for none.
    pub chain: u64,
    /// Path or share in the request.
    pub name: String,
    /// Whether `name` is there.
    pub has_name: bool,
    /// What a session setup says.
    pub session: Option<Box<Session>>,
    /// Number of replies on the connection after which its own counts as lost, if anything was
    /// lost.
    pub lost_at: u64,
    /// Whether its reply seems to be one of those that were not captured.
    pub is_missed: bool,
    /// Bytes of it that count among those that wait in all connections.
    pub waiting_bytes: usize,
}

impl Pending {
    /// Resets it but keeps its buffers.
    pub fn reset(&mut self) {
        self.row = Operation::default();
        self.begun = 0;
        self.on_clock = false;
        self.in_flight = false;
        self.lead = false;
        self.asked = None;
        self.chain = 0;
        self.name.clear();
        self.has_name = false;
        self.session = None;
        self.lost_at = 0;
        self.is_missed = false;
        self.waiting_bytes = 0;
    }
}

/// Times and frame of a reply.
#[derive(Clone, Copy, Debug)]
pub struct ReplyTimes {
    /// First byte.
    pub start: i64,
    /// Last byte, if it was captured.
    pub end: Option<i64>,
    /// Frame of the first byte.
    pub frame: u64,
    /// Bytes of the message with its NetBIOS header, if it has one.
    pub wire_bytes: u64,
}

impl ReplyTimes {
    /// The times of a message.
    #[inline]
    pub fn from_message(message: &Message<'_>) -> ReplyTimes {
        ReplyTimes {
            start: message.start,
            end: message.end,
            frame: message.frame,
            wire_bytes: u64::from(message.length) + u64::from(message.header_bytes),
        }
    }

    /// The end, or the start if the end is unknown.
    #[inline]
    pub fn end_or_start(&self) -> i64 {
        self.end.unwrap_or(self.start)
    }
}
