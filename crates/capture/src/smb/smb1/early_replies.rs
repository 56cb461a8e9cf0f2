//! Messages whose counterpart was not captured, or comes later: replies before their request,
//! replies without one, secondary messages of a request without the first.
//!
//! Packets of the two directions can be recorded out of order. But numbers are reused, so a reply
//! whose request was lost must not be paired with the next request of that number: an early reply
//! is paired only if no other one came.

use smbscope_tables::operation::Column;
use smbscope_wire::smb1::{self, Command, Header};

use super::Smb1;
use super::exchange::Exchange;
use super::member;
use super::reply::is_error;
use super::stage::Stage;
use super::transactions::Transaction;
use crate::outcome::Output;
use crate::smb::context::SmbContext;
use crate::smb::pending::ReplyTimes;

/// A reply whose request was not seen.
#[derive(Clone, Debug)]
pub struct EarlyReply {
    key: u32,
    bytes: Vec<u8>,
    length: usize,
    times: ReplyTimes,
    order: u64,
}

impl EarlyReply {
    /// The reply as it was.
    pub fn parts(&self) -> Option<(smb1::Message<'_>, Header, ReplyTimes)> {
        let view = smb1::Message::new(&self.bytes, self.length)?;
        Some((view, view.header()?, self.times))
    }
}

/// Replies wait this many packets for their request.
pub const EARLY_PACKETS: u64 = 256;
/// A request that begins later than this after a reply is not the one that it answers: numbers
/// are used again and again.
pub const EARLY_NS: i64 = 10_000_000;
/// Bytes kept of a reply that waits: all fixed fields.
pub const EARLY_BYTES: usize = 512;

impl Smb1 {
    /// Keeps a reply for later.
    pub(super) fn keep(
        &mut self,
        view: smb1::Message<'_>,
        key: u32,
        times: ReplyTimes,
        order: u64,
    ) {
        let bytes = view.bytes();
        let bytes = bytes.get(..EARLY_BYTES).unwrap_or(bytes).to_vec();
        self.early.push_back(EarlyReply { key, bytes, length: view.length(), times, order });
    }

    /// Whether a reply says that an acknowledgement, whose row is complete, came too late (its file
    /// was closed): it does not answer a request that was not captured.
    pub(super) fn refuses_acknowledgement(&mut self, key: u32, header: &Header) -> bool {
        let refuses = header.command == Command::LOCKING_AND_X
            && is_error(header)
            && self.acknowledged == Some(key);
        if refuses {
            self.acknowledged = None;
        }
        refuses
    }

    /// Takes out the reply to an exchange that came before it.
    pub(super) fn take_early(&mut self, slot: u32) -> Option<EarlyReply> {
        let exchange = self.slab.get(slot as usize).filter(|exchange| !exchange.is_begun())?;
        let at = self.early.iter().position(|early| {
            let command = early.bytes.get(4).map(|&code| Command(code));
            early.key == exchange.key
                && command.is_some_and(|command| may_answer(exchange, command, &early.times))
        })?;
        self.early.remove(at)
    }

    /// Replies that waited long enough are paired now, or become rows of their own.
    pub(super) fn expire(&mut self, keep: usize, before: u64, cx: &mut SmbContext<'_>) {
        while self.early.len() > keep
            || self.early.front().is_some_and(|early| early.order < before)
        {
            let Some(early) = self.early.pop_front() else { break };
            if let Some((view, header, times)) = early.parts() {
                self.answer(view, &header, &times, cx);
            }
        }
    }

    /// An exchange for a reply whose request was not seen.
    pub(super) fn orphan(
        &mut self,
        view: smb1::Message<'_>,
        header: &Header,
        key: u32,
        out: &mut Output,
    ) -> u32 {
        out.coverage.replies_unmatched += 1;
        let slot = self.allocate(key);
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            exchange.alone = true;
            for block in view.blocks() {
                let command = block.command();
                exchange.push(member::row(header, command));
                exchange.stage = match command {
                    Command::TRANSACTION | Command::TRANSACTION2 | Command::NT_TRANSACT => {
                        Stage::Transaction(Transaction::default())
                    }
                    _ => Stage::Plain,
                };
            }
        }
        slot
    }
}

/// Whether a reply may answer an exchange.
pub fn may_answer(exchange: &Exchange, command: Command, times: &ReplyTimes) -> bool {
    exchange.answers(command)
        && exchange.start().is_none_or(|start| start <= times.start.saturating_add(EARLY_NS))
}

/// The first message of the request was lost, so that only its end is known. It becomes a row if it
/// is answered; otherwise it may have come after the answer.
pub fn begins_unseen(exchange: &mut Exchange, view: smb1::Message<'_>) {
    let mut state = Transaction::default();
    exchange.headless = true;
    if let Some(lead) = exchange.members().first_mut() {
        if let Some(block) = view.blocks().next() {
            state.secondary(block, lead);
        }
        let row = &mut lead.pending.row;
        for column in [Column::request_start, Column::request_wire_bytes, Column::client_gap_ns] {
            row.clear(column);
        }
    }
    exchange.stage = Stage::Transaction(state);
}
