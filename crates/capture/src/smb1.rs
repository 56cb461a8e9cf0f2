//! SMB1 on one connection: requests and replies to operations (being written).

use crate::limits::Limits;
use crate::link::{Link, Seen};
use crate::output::Output;
use crate::stream::Message;

/// Pairing on one connection.
#[derive(Debug, Default)]
pub struct Smb1 {}

impl Smb1 {
    /// Takes a message with SMB1's magic.
    pub fn message(
        &mut self,
        _m: &Message<'_>,
        _to_server: bool,
        _l: &mut Link,
        out: &mut Output,
        _x: &Limits,
    ) {
        out.coverage.messages_unknown += 1;
    }

    /// Takes a message without magic: a block of raw mode.
    pub fn raw(&mut self, _m: &Message<'_>, _to_server: bool, _l: &mut Link, _o: &mut Output) {}

    /// Whether the next message in this direction may be a block of raw mode.
    pub fn expects_raw(&self, _to_server: bool) -> bool {
        false
    }

    /// Whether a Negotiate waits that SMB2 may answer.
    pub fn expects_negotiate(&self) -> bool {
        false
    }

    /// An SMB2 Negotiate reply that answers an SMB1 Negotiate; false when none waits.
    pub fn answered_by_smb2(
        &mut self,
        _s: &Seen,
        _status: u32,
        _l: &mut Link,
        _o: &mut Output,
    ) -> bool {
        false
    }

    /// The connection ends.
    pub fn end(&mut self, _time: i64, _link: &mut Link, _out: &mut Output) {}
}

/// Whether a command writes (true) or reads (false) file data; none for all others.
pub fn data_direction(command: u8) -> Option<bool> {
    match command {
        0x0b | 0x14 | 0x1d | 0x2c | 0x2f => Some(true),
        0x0a | 0x13 | 0x1a | 0x2e => Some(false),
        _ => None,
    }
}
