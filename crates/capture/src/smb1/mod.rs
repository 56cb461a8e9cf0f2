//! SMB1 on one connection: requests and replies to operations.
//!
//! Owns pairing: by PID and MID (MS-CIFS section 3.2.5.1; of the PID the lower half, which old
//! servers return alone), AndX chains, transactions in several messages, raw mode. It does not
//! own what spans connections (`resolve`).
//!
//! A lock that may wait has no interim reply in SMB1. It counts as waiting (`waits`) once an
//! operation that was sent after it is answered before it, or when it is refused after all.

mod exchange;
mod reply;
mod request;
#[cfg(test)]
mod tests;
mod transactions;

use std::collections::VecDeque;

use hashbrown::HashMap;
use smbscope_event::operation::Column;
use smbscope_wire::smb1::lock::LockingAndXRequest;
use smbscope_wire::smb1::transaction::Part;
use smbscope_wire::smb1::{self, Command, Header};

use crate::limits::Limits;
use crate::link::{Link, Seen};
use crate::output::Output;
use crate::stream::Message;
use exchange::{Exchange, Progress, Stage};
use transactions::Transaction;

/// A reply whose request was not seen. Packets of the two directions can be recorded out of
/// order, so it waits for a while.
#[derive(Debug)]
struct Early {
    key: u32,
    bytes: Vec<u8>,
    length: usize,
    seen: Seen,
    order: u64,
}

/// Replies wait this many packets for their request.
const EARLY_PACKETS: u64 = 256;
/// A request that begins later than this after a reply is not the one that it answers: numbers
/// are used again and again.
const EARLY_NS: i64 = 10_000_000;
/// Bytes kept of a reply that waits: all fixed fields.
const EARLY_BYTES: usize = 512;

/// Pairing on one connection.
#[derive(Debug, Default)]
pub struct Smb1 {
    waiting: HashMap<u32, u32, foldhash::fast::RandomState>,
    slab: Vec<Exchange>,
    free: Vec<u32>,
    early: VecDeque<Early>,
    sequence: u64,
    chains: u64,
    /// The Negotiate that SMB2 may answer.
    negotiate: Option<u32>,
    /// The ReadRaw whose answer comes without header.
    raw_read: Option<u32>,
    /// The WriteRaw whose rest comes without header.
    raw_write: Option<u32>,
    /// Locks that may wait.
    locks: Vec<u32>,
}

impl Smb1 {
    /// Takes a message with SMB1's magic, whole or from its header as far as captured.
    pub fn message(
        &mut self,
        message: &Message<'_>,
        to_server: bool,
        link: &mut Link,
        out: &mut Output,
        limits: &Limits,
    ) {
        let view = smb1::Message::new(message.bytes, message.length as usize);
        let parsed = view.and_then(|view| Some((view, view.header()?)));
        if self.is_raw(message, parsed.map(|(_, header)| header), to_server) {
            self.raw(message, to_server, link, out);
            return;
        }
        let Some((view, header)) = parsed else {
            out.coverage.messages_malformed += 1;
            link.unbegin(message.start, message.begun);
            return;
        };
        if header.is_reply() {
            link.unbegin(message.start, message.begun);
            self.reply(view, &header, message, link, out, limits);
        } else if !to_server && is_break(view) {
            link.unbegin(message.start, message.begun);
            notification(view, &header, message, link, out);
        } else {
            self.request(view, &header, message, link, out, limits);
        }
    }

    /// Takes a message without magic: a block of raw mode.
    pub fn raw(
        &mut self,
        message: &Message<'_>,
        to_server: bool,
        link: &mut Link,
        out: &mut Output,
    ) {
        link.unbegin(message.start, message.begun);
        if to_server {
            self.raw_to_server(message, link, out);
        } else {
            self.raw_to_client(message, link, out);
        }
    }

    /// Whether the next message in this direction may be a block of raw mode.
    pub fn expects_raw(&self, to_server: bool) -> bool {
        if to_server { self.raw_write.is_some() } else { self.raw_read.is_some() }
    }

    /// Whether a Negotiate waits that SMB2 may answer.
    pub fn expects_negotiate(&self) -> bool {
        self.negotiate.is_some()
    }

    /// An SMB2 Negotiate reply that answers an SMB1 Negotiate; false when none waits.
    pub fn answered_by_smb2(
        &mut self,
        seen: &Seen,
        status: u32,
        link: &mut Link,
        out: &mut Output,
    ) -> bool {
        let Some(slot) = self.negotiate.take().and_then(|key| self.waiting.remove(&key)) else {
            return false;
        };
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            for member in exchange.members() {
                member.pending.row.set_status(status);
            }
            exchange.finish_with(seen, link, out);
        }
        self.free.push(slot);
        true
    }

    /// The connection ends: everything that waits becomes a row.
    pub fn end(&mut self, time: i64, link: &mut Link, out: &mut Output) {
        self.expire(0, u64::MAX, link, out);
        let mut slots: Vec<u32> = self.waiting.drain().map(|(_, slot)| slot).collect();
        slots.sort_unstable_by_key(|&slot| self.sequence_of(slot));
        for slot in slots {
            self.close(slot, time, link, out);
        }
    }

    /// Whether a message that begins as SMB1 does is data of raw mode after all.
    fn is_raw(&self, message: &Message<'_>, header: Option<Header>, to_server: bool) -> bool {
        if to_server {
            let exchange = self.raw_write.and_then(|key| self.find(key));
            return exchange.is_some_and(|exchange| {
                matches!(exchange.stage, Stage::WriteRaw(raw) if raw.rest == message.length)
            });
        }
        self.raw_read.is_some()
            && !header.is_some_and(|header| {
                header.mid == smb1::OPLOCK_BREAK_MID && header.command == Command::LOCKING_AND_X
                    || header.is_reply() && self.answers(key_of(&header), header.command)
            })
    }

    fn find(&self, key: u32) -> Option<&Exchange> {
        self.slab.get(*self.waiting.get(&key)? as usize)
    }

    fn answers(&self, key: u32, command: Command) -> bool {
        self.find(key).is_some_and(|exchange| exchange.answers(command))
    }

    fn sequence_of(&self, slot: u32) -> u64 {
        self.slab.get(slot as usize).map_or(0, |exchange| exchange.sequence)
    }

    fn request(
        &mut self,
        view: smb1::Message<'_>,
        header: &Header,
        message: &Message<'_>,
        link: &mut Link,
        out: &mut Output,
        limits: &Limits,
    ) {
        let key = key_of(header);
        let time = message.end.unwrap_or(message.start);
        let is_mpx = header.command == Command::WRITE_MPX && self.answers(key, header.command);
        let is_secondary = header.command.primary() != header.command || is_mpx;
        if is_secondary && self.secondary(view, key, message, link) {
            return;
        }
        if header.command != Command::NT_CANCEL {
            // Nothing else is sent while a raw block is awaited, but for breaks' answers.
            if !is_break(view) {
                (self.raw_read, self.raw_write) = (None, None);
            }
            if let Some(lost) = self.waiting.remove(&key) {
                // The number is used again: the first one's reply was lost.
                self.close(lost, time, link, out);
            }
        }
        let chain = if view.blocks().nth(1).is_some() {
            self.chains += 1;
            link.table.compounds += 1;
            self.chains
        } else {
            0
        };
        let slot = self.allocate(key);
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        let mut chained = false;
        for (index, block) in view.blocks().enumerate() {
            let command = block.command();
            let member = exchange.push(exchange::row(header, command));
            let stage = request::decode(block, header, chained, member, link);
            chained |= exchange::opens(command);
            let pending = &mut member.pending;
            pending.chain = chain;
            if chain != 0 {
                pending.row.set_compound(chain);
                pending.row.set_compound_index(index as u16);
                pending.row.set_related(index > 0);
            }
            link.start(pending, message, index == 0);
            out.coverage.commands_unknown += u64::from(command.name().is_none());
            exchange.stage = stage;
        }
        if is_secondary {
            begins_unseen(exchange, view);
        }
        let size = exchange.members().len();
        for member in exchange.members() {
            if chain != 0 {
                member.pending.row.set_compound_size(size as u16);
            }
            if member.pending.row.waits() == Some(true) {
                link.arrive(&mut member.pending, time);
                member.pending.row.clear(Column::busy_ns);
            } else {
                link.depart(&mut member.pending);
            }
        }
        self.depart(slot, time, link, out, limits);
    }

    /// Puts a request among those that wait for a reply.
    fn depart(&mut self, slot: u32, time: i64, link: &mut Link, out: &mut Output, limits: &Limits) {
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        let key = exchange.key;
        let is_single = exchange.members().len() == 1;
        match exchange.stage {
            Stage::Silent if is_single => {
                exchange.give_up(time, link, out);
                self.free.push(slot);
                return;
            }
            Stage::Lock if is_single => self.locks.push(slot),
            Stage::Lock => exchange.stage = Stage::Plain,
            Stage::Negotiate(_) => self.negotiate = Some(key),
            Stage::ReadRaw => self.raw_read = Some(key),
            _ => {}
        }
        if self.waiting.len() >= limits.pending {
            self.discard(time, limits, link, out);
        }
        self.waiting.insert(key, slot);
    }

    /// Forgets the oldest eighth of what waits.
    #[cold]
    fn discard(&mut self, time: i64, limits: &Limits, link: &mut Link, out: &mut Output) {
        let mut held: Vec<(u64, u32, u32)> =
            self.waiting.iter().map(|(&key, &slot)| (self.sequence_of(slot), key, slot)).collect();
        held.sort_unstable();
        for (_, key, slot) in held.into_iter().take(limits.pending / 8 + 1) {
            self.waiting.remove(&key);
            out.coverage.operations_discarded += 1;
            self.close(slot, time, link, out);
        }
    }

    /// Takes a further message of a transaction's request; false when its first was not seen.
    fn secondary(
        &mut self,
        view: smb1::Message<'_>,
        key: u32,
        message: &Message<'_>,
        link: &mut Link,
    ) -> bool {
        let Some(block) = view.blocks().next() else { return false };
        let Some(exchange) = self
            .waiting
            .get(&key)
            .and_then(|&slot| self.slab.get_mut(slot as usize))
            .filter(|exchange| exchange.answers(block.command()) && !exchange.alone)
        else {
            return false;
        };
        link.unbegin(message.start, message.begun);
        exchange.extend(message);
        let mut stage = std::mem::take(&mut exchange.stage);
        if let Stage::Transaction(state) = &mut stage
            && let Some(part) = Part::parse(block, true)
            && let Some(member) = exchange.members().last_mut()
        {
            state.secondary(part, member);
        }
        exchange.stage = stage;
        true
    }

    fn raw_to_server(&mut self, message: &Message<'_>, link: &mut Link, out: &mut Output) {
        let Some(key) = self.raw_write.take() else { return };
        let Some((slot, exchange)) = self
            .waiting
            .get(&key)
            .and_then(|&slot| Some((slot, self.slab.get_mut(slot as usize)?)))
        else {
            return;
        };
        exchange.extend(message);
        if let Stage::WriteRaw(raw) = exchange.stage
            && !raw.through
        {
            // Nobody confirms it; what was sent was transferred.
            for member in exchange.members() {
                let sent = member.pending.row.requested_bytes().unwrap_or(0);
                let sent = sent.saturating_sub(u64::from(raw.rest));
                member.pending.row.set_transferred_bytes(sent + u64::from(message.length));
            }
            exchange.give_up(message.end.unwrap_or(message.start), link, out);
            self.waiting.remove(&key);
            self.free.push(slot);
        }
    }

    fn raw_to_client(&mut self, message: &Message<'_>, link: &mut Link, out: &mut Output) {
        let Some(slot) = self.raw_read.take().and_then(|key| self.waiting.remove(&key)) else {
            return;
        };
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            for member in exchange.members() {
                member.pending.row.set_transferred_bytes(u64::from(message.length));
                // An empty one is the end of the file or an error, nobody knows which.
                if message.length > 0 {
                    member.pending.row.set_status(0);
                }
            }
            exchange.finish_with(&Seen::of(message), link, out);
        }
        self.free.push(slot);
    }

    fn reply(
        &mut self,
        view: smb1::Message<'_>,
        header: &Header,
        message: &Message<'_>,
        link: &mut Link,
        out: &mut Output,
        limits: &Limits,
    ) {
        let seen = Seen::of(message);
        let key = key_of(header);
        if self.answers(key, header.command) {
            self.answer(view, header, &seen, link, out);
        } else {
            let bytes = view.bytes();
            self.early.push_back(Early {
                key,
                bytes: bytes.get(..EARLY_BYTES).unwrap_or(bytes).to_vec(),
                length: view.length(),
                seen,
                order: out.order,
            });
        }
        if !self.early.is_empty() {
            self.expire(limits.early, out.order.saturating_sub(EARLY_PACKETS), link, out);
        }
    }

    /// Replies that waited long enough are paired now, or become rows of their own.
    fn expire(&mut self, keep: usize, before: u64, link: &mut Link, out: &mut Output) {
        while self.early.len() > keep
            || self.early.front().is_some_and(|early| early.order < before)
        {
            let Some(early) = self.early.pop_front() else { break };
            self.answer_early(&early, link, out);
        }
    }

    fn answer_early(&mut self, early: &Early, link: &mut Link, out: &mut Output) {
        let Some(view) = smb1::Message::new(&early.bytes, early.length) else { return };
        let Some(header) = view.header() else { return };
        self.answer(view, &header, &early.seen, link, out);
    }

    fn answer(
        &mut self,
        view: smb1::Message<'_>,
        header: &Header,
        seen: &Seen,
        link: &mut Link,
        out: &mut Output,
    ) {
        let key = key_of(header);
        let answered = |exchange: &Exchange| {
            exchange.answers(header.command)
                && exchange.start().is_none_or(|start| start <= seen.start.saturating_add(EARLY_NS))
        };
        let known = self.find(key).is_some_and(answered);
        let slot = match self.waiting.get(&key).filter(|_| known) {
            Some(&slot) => slot,
            None => self.orphan(view, header, key, out),
        };
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        match exchange.reply(view, header, seen, link) {
            Progress::Done => {
                if known {
                    self.waiting.remove(&key);
                    if self.negotiate == Some(key) {
                        self.negotiate = None;
                    }
                }
                self.complete(slot, seen.end_or_start(), link, out);
            }
            Progress::RawBlock if known => self.raw_write = Some(key),
            // The rest of a reply without request.
            _ if !known => {
                if let Some(lost) = self.waiting.insert(key, slot) {
                    self.close(lost, seen.start, link, out);
                }
            }
            _ => {}
        }
    }

    /// An exchange for a reply whose request was not seen.
    fn orphan(
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
                exchange.push(exchange::row(header, command));
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

    /// Emits an exchange that is answered; locks sent before it that are not must be waiting.
    fn complete(&mut self, slot: u32, time: i64, link: &mut Link, out: &mut Output) {
        if !self.locks.is_empty() {
            self.locks.retain(|&lock| lock != slot);
            let sequence = self.sequence_of(slot);
            let is_alone = self.slab.get(slot as usize).is_none_or(|exchange| exchange.alone);
            let slab = &mut self.slab;
            self.locks.retain(|&lock| {
                let Some(exchange) = slab.get_mut(lock as usize) else { return false };
                let overtaken = !is_alone && exchange.sequence < sequence;
                if overtaken {
                    exchange.wait(time, link);
                }
                !overtaken
            });
        }
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            exchange.finish(link, out);
        }
        self.free.push(slot);
    }

    /// Ends an exchange that is not answered, or only in part. It is no longer in `waiting`.
    fn close(&mut self, slot: u32, time: i64, link: &mut Link, out: &mut Output) {
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        let key = exchange.key;
        for expected in [&mut self.negotiate, &mut self.raw_read, &mut self.raw_write] {
            if *expected == Some(key) {
                *expected = None;
            }
        }
        let start = exchange.start();
        let early = self.early.iter().position(|early| {
            let command = early.bytes.get(4).map(|&code| Command(code));
            early.key == key
                && command.is_some_and(|command| exchange.answers(command))
                && start.is_some_and(|start| start <= early.seen.start.saturating_add(EARLY_NS))
        });
        if !exchange.is_begun()
            && let Some(early) = early.and_then(|at| self.early.remove(at))
        {
            // Its reply came before it.
            self.waiting.insert(key, slot);
            self.answer_early(&early, link, out);
            if self.waiting.remove(&key).is_none() {
                return;
            }
        }
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        if exchange.is_begun() {
            self.complete(slot, time, link, out);
            return;
        }
        if !exchange.alone {
            let count = exchange.members().len() as u64;
            out.coverage.operations_unanswered += count;
            link.table.unanswered += count;
            exchange.give_up(time, link, out);
        }
        self.locks.retain(|&lock| lock != slot);
        self.free.push(slot);
    }

    fn allocate(&mut self, key: u32) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slab.push(Exchange::default());
            self.slab.len() as u32 - 1
        });
        self.sequence += 1;
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            exchange.reset(self.sequence, key);
        }
        slot
    }
}

/// What pairs a reply with its request.
fn key_of(header: &Header) -> u32 {
    header.pid << 16 | u32::from(header.mid)
}

/// Whether the message begins an oplock break, or answers one.
fn is_break(view: smb1::Message<'_>) -> bool {
    view.blocks().next().is_some_and(|block| {
        block.command() == Command::LOCKING_AND_X
            && LockingAndXRequest::new(block).is_oplock_release() == Some(true)
    })
}

/// A break that the server sends unasked: a row of its own, without a request.
fn notification(
    view: smb1::Message<'_>,
    header: &Header,
    message: &Message<'_>,
    link: &mut Link,
    out: &mut Output,
) {
    let Some(block) = view.blocks().next() else { return };
    link.table.breaks += 1;
    let mut row = exchange::row(header, header.command);
    request::set_break(&mut row, &LockingAndXRequest::new(block), true);
    link.notification(out, row, &Seen::of(message));
}

/// The first message of the request was lost: of its times only the end is known.
fn begins_unseen(exchange: &mut Exchange, view: smb1::Message<'_>) {
    let mut state = Transaction::default();
    if let Some(lead) = exchange.members().first_mut() {
        if let Some(part) = view.blocks().next().and_then(|block| Part::parse(block, true)) {
            state.secondary(part, lead);
        }
        let row = &mut lead.pending.row;
        for column in [Column::request_start, Column::request_wire_bytes, Column::client_gap_ns] {
            row.clear(column);
        }
    }
    exchange.stage = Stage::Transaction(state);
}

/// Commands whose TID means something (MS-CIFS section 2.2.3.1).
fn has_tree(command: Command) -> bool {
    !matches!(
        command,
        Command::NEGOTIATE
            | Command::SESSION_SETUP_AND_X
            | Command::LOGOFF_AND_X
            | Command::TREE_CONNECT
            | Command::TREE_CONNECT_AND_X
            | Command::ECHO
            | Command::NT_CANCEL
            | Command::PROCESS_EXIT
    )
}
