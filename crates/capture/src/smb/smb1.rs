//! SMB1 on one connection: requests and replies to operations.
//!
//! Owns pairing by PID and MID (MS-CIFS section 3.2.5.1; only the lower half of the PID, which is
//! all that old servers return), AndX chains, transactions in several messages, raw mode. It does
//! not own what spans connections (`resolve`).
//!
//! A lock that may wait has no interim reply in SMB1. It counts as waiting (`waits`) if an
//! operation that was sent later is answered first, or if it is refused in the end.

mod early_replies;
mod exchange;
mod member;
mod open;
mod pairing;
mod raw;
mod reply;
mod request;
mod stage;
#[cfg(test)]
mod tests;
mod transactions;

use std::collections::VecDeque;

use hashbrown::HashMap;
use smbscope_tables::operation::Column;
use smbscope_wire::smb1::lock::LockingAndXRequest;
use smbscope_wire::smb1::{self, Command, Header};

use crate::smb::context::SmbContext;
use crate::smb::pairing::Pairing;
use crate::smb::pending::ReplyTimes;
use crate::stream::Message;
use early_replies::EarlyReply;
use exchange::Exchange;
use stage::Stage;

/// Pairing on one connection.
#[derive(Clone, Debug, Default)]
pub struct Smb1 {
    waiting: HashMap<u32, u32, foldhash::fast::RandomState>,
    slab: Vec<Exchange>,
    free: Vec<u32>,
    early: VecDeque<EarlyReply>,
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
    /// The last acknowledgement of a break, which is answered only when it fails.
    acknowledged: Option<u32>,
    /// UIDs by the FIDs that they opened: a break names the file alone.
    owners: HashMap<u16, u16, foldhash::fast::RandomState>,
    /// Paths by TID and number of the listing.
    searches: HashMap<(u32, u16), String, foldhash::fast::RandomState>,
}

/// Listings whose path is remembered.
const SEARCHES_MAX: usize = 1_024;
/// Requests of one number that wait at once. A correct client never has more than one.
const SAME_NUMBER: usize = 32;

impl Smb1 {
    /// Takes a message with SMB1's magic, whole or from its header as far as captured.
    pub fn message(&mut self, message: &Message<'_>, to_server: bool, cx: &mut SmbContext<'_>) {
        let view = smb1::Message::new(message.bytes, message.length as usize);
        let parsed = view.and_then(|view| Some((view, view.header()?)));
        if self.is_raw(message, parsed.map(|(_, header)| header), to_server) {
            self.raw(message, to_server, cx);
            return;
        }
        let Some((view, header)) = parsed else {
            cx.out.coverage.messages_malformed += u64::from(!message.cut);
            cx.pairing.unbegin(message.start, message.begun);
            return;
        };
        // Samba's interim reply to a WriteRaw lacks the reply flag.
        let answers = !to_server && !is_break(view);
        if header.is_reply() || answers && self.answers(key_of(&header), header.command) {
            cx.pairing.unbegin(message.start, message.begun);
            self.reply(view, &header, message, cx);
        } else if !to_server && is_break(view) {
            cx.pairing.unbegin(message.start, message.begun);
            self.notification(view, &header, message, cx);
        } else if to_server {
            self.request(view, &header, message, cx);
        } else {
            // Servers send no requests except breaks: data of a raw read whose request was lost.
            cx.out.coverage.messages_malformed += 1;
            cx.pairing.unbegin(message.start, message.begun);
        }
    }

    /// Takes a message without magic: a block of raw mode.
    pub fn raw(&mut self, message: &Message<'_>, to_server: bool, cx: &mut SmbContext<'_>) {
        if to_server {
            self.raw_to_server(message, cx);
        } else {
            cx.pairing.unbegin(message.start, message.begun);
            self.raw_to_client(message, cx);
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
        times: &ReplyTimes,
        status: u32,
        cx: &mut SmbContext<'_>,
    ) -> bool {
        let Some(key) = self.negotiate.take() else { return false };
        let Some(slot) = self.take(key, times.start, cx) else { return false };
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            for member in exchange.members() {
                member.pending.row.set_status(status);
            }
            exchange.finish_with(times, cx);
        }
        self.free.push(slot);
        true
    }

    /// The connection ends: everything that waits becomes a row.
    pub fn end(&mut self, time: i64, cx: &mut SmbContext<'_>) {
        self.expire(0, u64::MAX, cx);
        let mut slots: Vec<u32> = self.waiting.drain().map(|(_, slot)| slot).collect();
        slots.sort_unstable_by_key(|&slot| self.sequence_of(slot));
        for slot in slots {
            self.close(slot, time, cx);
        }
    }

    fn find(&self, key: u32) -> Option<&Exchange> {
        self.slab.get(*self.waiting.get(&key)? as usize)
    }

    fn answers(&self, key: u32, command: Command) -> bool {
        self.find(key).is_some_and(|exchange| {
            exchange.answers(command)
                || self.older(exchange, |older| older.answers(command)).is_some()
        })
    }

    /// Place of the first request that is answered, among those whose number is used again.
    fn older(&self, exchange: &Exchange, is_answered: impl Fn(&Exchange) -> bool) -> Option<usize> {
        let is_it = |&slot: &u32| self.slab.get(slot as usize).is_some_and(&is_answered);
        exchange.older.iter().position(is_it)
    }

    fn sequence_of(&self, slot: u32) -> u64 {
        self.slab.get(slot as usize).map_or(0, |exchange| exchange.sequence)
    }

    fn request(
        &mut self,
        view: smb1::Message<'_>,
        header: &Header,
        message: &Message<'_>,
        cx: &mut SmbContext<'_>,
    ) {
        let key = key_of(header);
        let time = message.end.unwrap_or(message.start);
        let is_mpx = header.command == Command::WRITE_MPX && self.answers(key, header.command);
        let is_secondary = header.command.primary() != header.command || is_mpx;
        if is_secondary && self.secondary(view, key, message, cx.pairing) {
            return;
        }
        // While a raw block is expected, only answers to oplock breaks are sent.
        if header.command != Command::NT_CANCEL && !is_break(view) {
            (self.raw_read, self.raw_write) = (None, None);
        }
        let older = match header.command {
            Command::NT_CANCEL => Vec::new(),
            _ => self.supersede(key, header.command, time, cx),
        };
        let chain = if view.blocks().nth(1).is_some() {
            self.chains += 1;
            cx.pairing.table.compounds += 1;
            self.chains
        } else {
            0
        };
        let slot = self.allocate(key);
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        exchange.older = older;
        let mut chained = false;
        for (index, block) in view.blocks().enumerate() {
            let command = block.command();
            let member = exchange.push(member::row(header, command));
            let stage = request::decode(block, header, chained, member, cx.pairing);
            chained |= open::opens(command);
            let pending = &mut member.pending;
            if let Some(search) = transactions::search_of(block)
                && let Some(path) = self.searches.get(&(u32::from(header.tid), search))
            {
                pending.name.clone_from(path);
                pending.has_name = true;
            }
            pending.chain = chain;
            if chain != 0 {
                pending.row.set_compound(chain);
                pending.row.set_compound_index(index as u16);
                pending.row.set_related(index > 0);
            }
            cx.pairing.start(pending, message, index == 0);
            if !cx.pairing.keeps(pending, message.bytes.len(), cx.limits) {
                cx.pairing.drop_names(pending);
                cx.out.coverage.paths_unknown += 1;
            }
            cx.out.coverage.commands_unknown += u64::from(command.name().is_none());
            exchange.stage = stage;
        }
        if is_secondary {
            early_replies::begins_unseen(exchange, view);
        }
        let size = exchange.members().len();
        for member in exchange.members() {
            if chain != 0 {
                member.pending.row.set_compound_size(size as u16);
            }
            if member.pending.row.waits() == Some(true) {
                cx.pairing.remove_in_flight(&mut member.pending, time);
                member.pending.row.clear(Column::busy_ns);
            } else {
                cx.pairing.add_in_flight(&mut member.pending);
            }
        }
        self.depart(slot, time, cx);
    }

    /// A number is used again. Usually the reply to its first use was lost; but if the commands
    /// differ, the replies can be distinguished, so that it may still come. Returns the requests
    /// that wait.
    fn supersede(&mut self, key: u32, by: Command, time: i64, cx: &mut SmbContext<'_>) -> Vec<u32> {
        let Some(slot) = self.waiting.remove(&key) else { return Vec::new() };
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return Vec::new() };
        if exchange.answers(by) || exchange.is_begun() || exchange.alone {
            self.close(slot, time, cx);
            return Vec::new();
        }
        let mut older = std::mem::take(&mut exchange.older);
        older.push(slot);
        if older.len() >= SAME_NUMBER {
            self.close(older.remove(0), time, cx);
        }
        older
    }

    /// Puts a request among those that wait for a reply.
    fn depart(&mut self, slot: u32, time: i64, cx: &mut SmbContext<'_>) {
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        let key = exchange.key;
        let is_single = exchange.members().len() == 1;
        match exchange.stage {
            Stage::Silent if is_single => {
                if exchange.answers(Command::LOCKING_AND_X) {
                    self.acknowledged = Some(key);
                }
                exchange.give_up(time, cx);
                let mut older = std::mem::take(&mut exchange.older);
                if let Some(latest) = older.pop() {
                    self.waiting.insert(key, latest);
                    if let Some(exchange) = self.slab.get_mut(latest as usize) {
                        exchange.older = older;
                    }
                }
                self.free.push(slot);
                return;
            }
            Stage::Lock if is_single => self.locks.push(slot),
            Stage::Lock => exchange.stage = Stage::Plain,
            Stage::Negotiate(_) => self.negotiate = Some(key),
            Stage::ReadRaw => self.raw_read = Some(key),
            _ => {}
        }
        if self.waiting.len() >= cx.limits.pending {
            self.discard(time, cx);
        }
        self.waiting.insert(key, slot);
    }

    /// Removes requests from those in flight whose reply seems lost: see
    /// [`Pairing::remove_if_lost`].
    pub fn remove_if_lost(&mut self, at: u64, time: i64, pairing: &mut Pairing) {
        for &slot in self.waiting.values() {
            let Some(exchange) = self.slab.get_mut(slot as usize) else { continue };
            exchange.remove_if_lost(at, time, pairing);
            for older in exchange.older.clone() {
                if let Some(exchange) = self.slab.get_mut(older as usize) {
                    exchange.remove_if_lost(at, time, pairing);
                }
            }
        }
    }

    /// Forgets the oldest eighth of what waits.
    #[cold]
    fn discard(&mut self, time: i64, cx: &mut SmbContext<'_>) {
        let mut held: Vec<(u64, u32, u32)> =
            self.waiting.iter().map(|(&key, &slot)| (self.sequence_of(slot), key, slot)).collect();
        held.sort_unstable();
        for (_, key, slot) in held.into_iter().take(cx.limits.pending / 8 + 1) {
            self.waiting.remove(&key);
            cx.out.coverage.operations_discarded += 1;
            self.close(slot, time, cx);
        }
    }

    /// Takes another message of a transaction's request; false when its first was not seen.
    fn secondary(
        &mut self,
        view: smb1::Message<'_>,
        key: u32,
        message: &Message<'_>,
        pairing: &mut Pairing,
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
        exchange.resume_request(message, pairing);
        let mut stage = std::mem::take(&mut exchange.stage);
        if let Stage::Transaction(state) = &mut stage
            && let Some(member) = exchange.members().last_mut()
        {
            state.secondary(block, member);
        }
        exchange.stage = stage;
        true
    }

    /// A break that the server sends unasked: a row of its own, without a request.
    fn notification(
        &self,
        view: smb1::Message<'_>,
        header: &Header,
        message: &Message<'_>,
        cx: &mut SmbContext<'_>,
    ) {
        let Some(block) = view.blocks().next() else { return };
        cx.pairing.table.breaks += 1;
        let view = LockingAndXRequest::new(block);
        let mut row = member::row(header, header.command);
        request::set_break(&mut row, &view, true);
        let owner = view.fid().and_then(|fid| self.owners.get(&fid));
        // Servers that give cx.out other UIDs put 0 there, too.
        if let (None, Some(&uid)) = (row.session_id(), owner) {
            row.set_session_id(u64::from(uid));
        }
        cx.pairing.notification(cx.out, row, &ReplyTimes::from_message(message));
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
    // Where the header is all that was captured, no client uses this number.
    let is_numbered_so = || view.mid() == Some(smb1::OPLOCK_BREAK_MID);
    view.blocks().next().is_some_and(|block| {
        block.command() == Command::LOCKING_AND_X
            && LockingAndXRequest::new(block).is_oplock_release().unwrap_or_else(is_numbered_so)
    })
}
