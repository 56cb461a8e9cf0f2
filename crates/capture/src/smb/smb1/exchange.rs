//! One exchange: the operations of one request message, what of the request is still to come, and
//! what was answered so far.
//!
//! A reply names no operation but the message's MID, so that operations of an AndX chain live and
//! end together (MS-CIFS section 2.2.3.4), and so do the messages of a transaction (3.2.4.1.4),
//! of an Echo (2.2.4.39) and of raw writes (2.2.4.25).

use smbscope_tables::operation::{Column, Operation};
use smbscope_wire::smb1::extent::Extent;
use smbscope_wire::smb1::transaction::is_interim;
use smbscope_wire::smb1::{self, Command, Header, read};
use smbscope_wire::status::Status;

use super::member::{Answer, Member, answered_uid, has_tree};
use super::open::opens;
use super::reply;
use super::stage::Stage;
use crate::outcome::{Output, Tree};
use crate::smb::pairing::Link;
use crate::smb::pending::Seen;
use crate::stream::Message;

/// What follows a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Further replies.
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
    seen: Option<Seen>,
    /// Buffers are kept for the next exchange; `count` of them are in use.
    members: Vec<Member>,
    count: usize,
}

impl Exchange {
    /// Makes it new without giving back its buffers.
    pub fn reset(&mut self, sequence: u64, key: u32) {
        self.sequence = sequence;
        self.key = key;
        self.stage = Stage::Plain;
        self.alone = false;
        self.headless = false;
        self.older.clear();
        self.seen = None;
        self.count = 0;
    }

    /// A further operation.
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
        self.seen.is_some()
    }

    /// When its request began; when it ended, if the beginning was not seen.
    pub fn start(&self) -> Option<i64> {
        let row = &self.members.first()?.pending.row;
        row.request_start().or(row.request_end())
    }

    /// Takes a further message of the request into account. One that comes when the reply has
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
        seen: &Seen,
        link: &mut Link,
    ) -> Progress {
        let failed = reply::is_error(header);
        if !failed && self.is_interim(message, header) {
            self.interim(seen, link);
            return match self.stage {
                Stage::WriteRaw(_) => Progress::RawBlock,
                _ => Progress::More,
            };
        }
        self.decode(message, header, failed, link);
        self.seen = Some(match self.seen {
            Some(first) => Seen {
                // Messages that overtook another one ended before it.
                end: seen.end.map(|end| end.max(first.end_or_start())),
                wire_bytes: first.wire_bytes + seen.wire_bytes,
                ..first
            },
            None => *seen,
        });
        if !failed && self.more_comes(message) { Progress::More } else { Progress::Done }
    }

    /// Whether a reply only asks for the rest of the request.
    fn is_interim(&mut self, message: smb1::Message<'_>, header: &Header) -> bool {
        match &mut self.stage {
            Stage::Transaction(state) => {
                let asks = state.wants_interim() && message.blocks().last().is_some_and(is_interim);
                state.interim |= asks;
                asks
            }
            // Without a rest and without write-through it is the only reply.
            Stage::WriteRaw(raw) if header.command == Command::WRITE_RAW => {
                let asks = !raw.asked && (raw.rest > 0 || raw.through);
                raw.asked |= asks;
                asks
            }
            _ => false,
        }
    }

    /// Takes a reply that asks for the rest of the request: until that comes it is the client's turn.
    fn interim(&mut self, seen: &Seen, link: &mut Link) {
        if let Some(lead) = self.members().first_mut() {
            let row = &mut lead.pending.row;
            let before = row.response_wire_bytes().unwrap_or(0);
            row.set_response_wire_bytes(before + seen.wire_bytes);
        }
        for member in self.members() {
            link.arrive(&mut member.pending, seen.end_or_start());
        }
    }

    /// Takes a further message of the request: what was the client's turn is over.
    pub fn go_on(&mut self, message: &Message<'_>, link: &mut Link) {
        let is_begun = self.is_begun();
        let waits = |member: &Member| member.pending.row.waits() == Some(true);
        let mut members = self.members().iter_mut();
        match members.next() {
            Some(lead) if !is_begun && !lead.pending.in_flight && !waits(lead) => {
                link.resume(&mut lead.pending, message);
                for member in members.filter(|member| !waits(member)) {
                    link.depart(&mut member.pending);
                }
            }
            _ => link.unbegin(message.start, message.begun),
        }
        self.extend(message);
    }

    fn decode(
        &mut self,
        message: smb1::Message<'_>,
        header: &Header,
        failed: bool,
        link: &mut Link,
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
                reply::decode(block, header, member, stage, link);
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
        // The status is that of the last command that was carried out. One that failed has no
        // words; where the last command of the reply has some, the one after it failed.
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
                Extent::of(block, false).is_some_and(|extent| !state.answer(extent))
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
    pub fn finish(&mut self, link: &mut Link, out: &mut Output) {
        let Some(seen) = self.seen.take() else { return };
        self.finish_with(&seen, link, out);
    }

    /// Emits the rows with this as the reply.
    pub fn finish_with(&mut self, seen: &Seen, link: &mut Link, out: &mut Output) {
        if matches!(self.stage, Stage::Lock)
            && let Some(lead) = self.members().first_mut()
            && lead.pending.row.status().is_some_and(reply::is_lock_refused)
        {
            self.wait(seen.end_or_start(), link);
        }
        let alone = self.alone;
        for (index, member) in self.members().iter_mut().enumerate() {
            let effect = member.answer.effect(&mut member.pending, out);
            if alone {
                link.reply_alone(out, member.pending.row, seen, index == 0, effect);
            } else {
                link.finish(out, &mut member.pending, seen, index == 0, effect);
            }
        }
    }

    /// Emits the rows of an exchange of which no reply is to be expected.
    pub fn give_up(&mut self, time: i64, link: &mut Link, out: &mut Output) {
        for member in self.members() {
            link.give_up(out, &mut member.pending, time);
        }
    }

    /// Ends it without a row.
    pub fn drop(&mut self, time: i64, link: &mut Link) {
        for member in self.members() {
            link.arrive(&mut member.pending, time);
        }
    }

    /// Takes its operations out of what is in flight if their reply seems lost, which it does after so
    /// many replies on the connection.
    pub fn arrive_lost(&mut self, at: u64, time: i64, link: &mut Link) {
        // One of which a part came ends by itself.
        if !self.is_begun() {
            for member in self.members() {
                link.arrive_lost(at, &mut member.pending, time);
            }
        }
    }

    /// Takes note that its operations wait by design: they are not latency.
    pub fn wait(&mut self, time: i64, link: &mut Link) {
        for member in self.members() {
            link.arrive(&mut member.pending, time);
            member.pending.row.set_waits(true);
            member.pending.row.clear(Column::busy_ns);
        }
    }
}
