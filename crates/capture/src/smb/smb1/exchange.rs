//! One exchange: the operations of one request message, the parts of the request that are still to
//! come, and the replies so far.
//!
//! A reply names only the MID of the message and not an operation, so the operations of an AndX
//! chain live and end together (MS-CIFS section 2.2.3.4). So do the messages of a transaction
//! (3.2.4.1.4), of an Echo (2.2.4.39) and of raw writes (2.2.4.25).

use smbscope_tables::operation::{Column, Operation};
use smbscope_wire::smb1::extent::Extent;
use smbscope_wire::smb1::transaction::is_interim;
use smbscope_wire::smb1::{self, Command, Header, read};
use smbscope_wire::status::Status;

use super::member::{Answer, Member, answered_uid, has_tree};
use super::open::opens;
use super::reply;
use super::stage::Stage;
use crate::outcome::Tree;
use crate::smb::context::SmbContext;
use crate::smb::pairing::Pairing;
use crate::smb::pending::ReplyTimes;
use crate::stream::Message;

/// What follows a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More replies.
    More,
    /// The client's message without header.
    RawBlock,
    /// Nothing: the exchange is over.
    Done,
}

/// The operations of one request message.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Number of the exchange on its connection.
    pub sequence: u64,
    /// PID and MID.
    pub key: u32,
    /// What is special about it.
    pub stage: Stage,
    /// Whether its request was not seen.
    pub alone: bool,
    /// Whether of its request only secondary messages were seen.
    pub headless: bool,
    /// Exchanges with the same key that wait too, oldest first.
    pub older: Vec<u32>,
    /// The replies seen so far, as one.
    times: Option<ReplyTimes>,
    /// Buffers are kept for the next exchange; `count` of them are in use.
    members: Vec<Member>,
    count: usize,
}

impl Exchange {
    /// Resets it but keeps its buffers.
    pub fn reset(&mut self, sequence: u64, key: u32) {
        self.sequence = sequence;
        self.key = key;
        self.stage = Stage::Plain;
        self.alone = false;
        self.headless = false;
        self.older.clear();
        self.times = None;
        self.count = 0;
    }

    /// Another operation.
    pub fn push(&mut self, row: Operation) -> &mut Member {
        let at = self.count;
        self.count += 1;
        if self.members.len() <= at {
            self.members.push(Member::default());
        }
        let member = &mut self.members[at]; // at < len: pushed just now
        member.pending.reset();
        member.pending.row = row;
        member.answer = Answer::Nothing;
        member
    }

    /// Its operations, in the order of the message.
    pub fn members(&mut self) -> &mut [Member] {
        self.members.get_mut(..self.count).unwrap_or_default()
    }

    /// Whether it holds an operation that a reply with this command may answer.
    pub fn answers(&self, command: Command) -> bool {
        self.members.iter().take(self.count).any(|member| member.command() == command.primary())
    }

    /// Whether a part of its reply was seen.
    pub fn is_begun(&self) -> bool {
        self.times.is_some()
    }

    /// When its request began; when it ended, if the beginning was not seen.
    pub fn start(&self) -> Option<i64> {
        let row = &self.members.first()?.pending.row;
        row.request_start().or(row.request_end())
    }

    /// Takes another message of the request into account. One that comes when the reply has
    /// begun is not what the server waited for.
    fn extend(&mut self, message: &Message<'_>) {
        let is_begun = self.is_begun();
        let Some(lead) = self.members().first_mut() else { return };
        let row = &mut lead.pending.row;
        match message.end {
            _ if is_begun => {}
            // Messages that overtook another one ended before it.
            Some(end) => row.set_request_end(row.request_end().map_or(end, |last| last.max(end))),
            None => row.clear(Column::request_end),
        }
        if let Some(bytes) = row.request_wire_bytes() {
            row.set_request_wire_bytes(bytes + u64::from(message.length) + 4);
        }
    }

    /// Takes a reply, as far as captured.
    pub fn reply(
        &mut self,
        message: smb1::Message<'_>,
        header: &Header,
        times: &ReplyTimes,
        pairing: &mut Pairing,
    ) -> Progress {
        let failed = reply::is_error(header);
        if !failed && self.is_interim(message, header, times) {
            self.interim(times, pairing);
            return match self.stage {
                Stage::WriteRaw(_) => Progress::RawBlock,
                _ => Progress::More,
            };
        }
        self.decode(message, header, failed, pairing);
        self.times = Some(match self.times {
            Some(first) => ReplyTimes {
                // Messages that overtook another one ended before it.
                end: times.end.map(|end| end.max(first.end_or_start())),
                wire_bytes: first.wire_bytes + times.wire_bytes,
                ..first
            },
            None => *times,
        });
        if !failed && self.more_comes(message) { Progress::More } else { Progress::Done }
    }

    /// Whether a reply only asks for the rest of the request.
    fn is_interim(
        &mut self,
        message: smb1::Message<'_>,
        header: &Header,
        times: &ReplyTimes,
    ) -> bool {
        match &mut self.stage {
            Stage::Transaction(state) => {
                let asks = state.wants_interim() && message.blocks().last().is_some_and(is_interim);
                state.interim |= asks;
                asks
            }
            // Without a rest and without write-through it is the only reply.
            Stage::WriteRaw(raw) if header.command == Command::WRITE_RAW => {
                let asks = raw.asked.is_none() && (raw.rest > 0 || raw.through);
                raw.asked = raw.asked.or(asks.then_some(times.frame));
                asks
            }
            _ => false,
        }
    }

    /// Takes a reply that requests the rest of the request: until that comes the server waits for
    /// the client.
    fn interim(&mut self, times: &ReplyTimes, pairing: &mut Pairing) {
        if let Some(lead) = self.members().first_mut() {
            let row = &mut lead.pending.row;
            let before = row.response_wire_bytes().unwrap_or(0);
            row.set_response_wire_bytes(before + times.wire_bytes);
        }
        for member in self.members() {
            pairing.remove_in_flight(&mut member.pending, times.end_or_start());
        }
    }

    /// Takes another message of the request: the wait for the client is over.
    pub fn resume_request(&mut self, message: &Message<'_>, pairing: &mut Pairing) {
        let is_begun = self.is_begun();
        let waits = |member: &Member| member.pending.row.waits() == Some(true);
        let mut members = self.members().iter_mut();
        match members.next() {
            Some(lead) if !is_begun && !lead.pending.in_flight && !waits(lead) => {
                pairing.resume(&mut lead.pending, message);
                for member in members.filter(|member| !waits(member)) {
                    pairing.add_in_flight(&mut member.pending);
                }
            }
            _ => pairing.unbegin(message.start, message.begun),
        }
        self.extend(message);
    }

    fn decode(
        &mut self,
        message: smb1::Message<'_>,
        header: &Header,
        failed: bool,
        pairing: &mut Pairing,
    ) {
        let Exchange { members, count, stage, .. } = self;
        let members = members.get_mut(..*count).unwrap_or_default();
        let mut next = 0;
        let mut file = None;
        let mut tree = None;
        let mut has_words = true;
        for block in message.blocks() {
            let command = block.command().primary();
            let rest = members.get_mut(next..).unwrap_or_default();
            let Some(at) = rest.iter().position(|member| member.command() == command) else {
                break;
            };
            next += at + 1;
            let Some(member) = rest.get_mut(at) else { break };
            has_words = block.word_count().is_some_and(|count| count > 0);
            member.pending.row.set_status(0);
            if has_words || !failed {
                reply::decode(block, header, member, stage, pairing);
            }
            if opens(command) {
                file = member.pending.row.file_id();
            } else if let (Some(file), None) = (file, member.pending.row.file_id()) {
                member.pending.row.set_file_id(file);
            }
            if matches!(command, Command::TREE_CONNECT | Command::TREE_CONNECT_AND_X) {
                tree = member.pending.row.tree_id();
            } else if let Some(tree) = tree.filter(|_| has_tree(command)) {
                member.pending.row.set_tree_id(tree);
            }
        }
        for member in members.iter_mut().skip(next) {
            if let (Some(file), None) = (file, member.pending.row.file_id()) {
                member.pending.row.set_file_id(file);
            }
        }
        for member in members.iter_mut() {
            if member.pending.row.session_id().is_none()
                && let Some(uid) = answered_uid(header, member.command())
            {
                member.pending.row.set_session_id(uid);
            }
        }
        // The status is that of the last command that was executed. A command that failed has no
        // words; if the last command of the reply has some, the one after it failed.
        let partly = Status(header.status) == Status::MORE_PROCESSING_REQUIRED;
        let at = next.saturating_sub(usize::from(!(failed && has_words && !partly)));
        let last = members.len().saturating_sub(1);
        if let Some(member) = members.get_mut(at.min(last)) {
            reply::set_status(&mut member.pending.row, header);
            if failed && !partly {
                member.answer = match member.command() {
                    Command::SESSION_SETUP_AND_X => Answer::Refused,
                    Command::TREE_CONNECT | Command::TREE_CONNECT_AND_X => {
                        Answer::Tree(Box::new(Tree { refused: true, ..Tree::default() }))
                    }
                    _ => std::mem::take(&mut member.answer),
                };
            }
        }
    }

    fn more_comes(&mut self, message: smb1::Message<'_>) -> bool {
        let Some(block) = message.blocks().last() else { return false };
        match &mut self.stage {
            Stage::Transaction(state) => {
                Extent::from_block(block, false).is_some_and(|extent| !state.answer(extent))
            }
            Stage::Echo(left) => {
                *left = left.saturating_sub(1);
                *left > 0
            }
            Stage::ReadMpx(returned) => {
                let view = read::ReadMpxResponse::new(block);
                let (Some(part), Some(count)) = (view.data_length(), view.count()) else {
                    return false;
                };
                *returned = returned.saturating_add(u32::from(part));
                part > 0 && *returned < u32::from(count)
            }
            _ => false,
        }
    }

    /// Emits the rows of an exchange that was answered.
    pub fn finish(&mut self, cx: &mut SmbContext<'_>) {
        let Some(times) = self.times.take() else { return };
        self.finish_with(&times, cx);
    }

    /// Emits the rows with this as the reply.
    pub fn finish_with(&mut self, times: &ReplyTimes, cx: &mut SmbContext<'_>) {
        if matches!(self.stage, Stage::Lock)
            && let Some(lead) = self.members().first_mut()
            && lead.pending.row.status().is_some_and(reply::is_lock_refused)
        {
            self.mark_waiting(times.end_or_start(), cx.pairing);
        }
        let alone = self.alone;
        for (index, member) in self.members().iter_mut().enumerate() {
            let effect = member.answer.effect(&mut member.pending, cx.out);
            if alone {
                cx.pairing.reply_alone(cx.out, member.pending.row, times, index == 0, effect);
            } else {
                cx.pairing.finish(cx.out, &mut member.pending, times, index == 0, effect);
            }
        }
    }

    /// Emits the rows of an exchange that will get no reply.
    pub fn give_up(&mut self, time: i64, cx: &mut SmbContext<'_>) {
        for member in self.members() {
            cx.pairing.give_up(cx.out, &mut member.pending, time);
        }
    }

    /// Endpoints it without a row.
    pub fn discard(&mut self, time: i64, pairing: &mut Pairing) {
        for member in self.members() {
            pairing.remove_in_flight(&mut member.pending, time);
        }
    }

    /// Removes its operations from those in flight if their reply seems lost, which is the case at
    /// `at` replies on the connection.
    pub fn remove_if_lost(&mut self, at: u64, time: i64, pairing: &mut Pairing) {
        // A reply that has begun will end by itself.
        if !self.is_begun() {
            for member in self.members() {
                pairing.remove_if_lost(at, &mut member.pending, time);
            }
        }
    }

    /// Marks its operations as waiting by design: they do not count as latency.
    pub fn mark_waiting(&mut self, time: i64, pairing: &mut Pairing) {
        for member in self.members() {
            pairing.remove_in_flight(&mut member.pending, time);
            member.pending.row.set_waits(true);
            member.pending.row.clear(Column::busy_ns);
        }
    }
}
