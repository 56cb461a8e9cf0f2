//! The receiving half of a connection: bytes become frames, frames replies and breaks.
//!
//! Owns framing, decryption, and what a reply adds to its operation's row; `admit` decides which messages count. A large
//! read's payload that the caller does not want is counted, not kept. MS-SMB2 section 3.2.5.1.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use smbscope_tables::code;
use smbscope_tables::message;
use smbscope_tables::operation::Operation;
use smbscope_wire::nbss;
use smbscope_wire::smb2::header::{Header, Member, members};
use smbscope_wire::smb2::oplock::OplockBreak;
use smbscope_wire::smb2::transform::{ENCRYPTED_MAGIC, Transform};
use smbscope_wire::smb2::{Command, HEADER_BYTES};
use tokio::io::{AsyncRead, ReadBuf};

use super::admit::Admitted;
use super::{Channel, Pending};
use crate::error::ClientError;
use crate::reply::{Reply, Want};

/// Longest message accepted from a server: the largest possible read and its headers.
const MESSAGE_BYTES_MAX: usize = (16 << 20) - 1;
/// Bytes kept of a large read's reply that need not be verified.
const HEAD_BYTES: usize = 256;
const _: () = assert!(HEAD_BYTES > nbss::HEADER_BYTES + HEADER_BYTES + 16);
/// Most credits that are counted: as many as a sequence window may have.
const CREDITS_MAX: u32 = 65_535;
/// Most interim replies to one request. The server sends one (MS-SMB2 section 3.3.4.2).
const INTERIM_REPLIES_MAX: u8 = 16;
/// Most breaks without a reply between them, and most that the caller has not taken.
const BREAKS_MAX: usize = 65_536;
/// Most bytes that one read from the socket returns.
const SCRATCH_BYTES: usize = 256 << 10;

thread_local! {
    /// Shared by all connections of a worker thread, so that an idle one needs no buffer.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice());
}

/// A frame that has not arrived completely.
#[derive(Default)]
pub(super) enum Partial {
    /// There is no such frame.
    #[default]
    None,
    /// Its first bytes.
    Head(Vec<u8>),
    /// The whole frame is kept.
    Whole { bytes: Vec<u8>, length: usize },
    /// The payload of a read, which is not kept.
    Skip { head: Vec<u8>, length: usize, left: usize },
}

impl Channel {
    /// Reads once from the connection and processes the complete replies. The future may be dropped at
    /// any time without losing anything.
    pub async fn receive(&mut self) -> Result<(), ClientError> {
        poll_fn(|context| self.poll_receive(context)).await
    }

    /// [`Channel::receive`] as a poll, to wait on several connections at once.
    pub fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))
                .map_err(ClientError::Lost)?;
            let filled = buffer.filled_mut();
            if filled.is_empty() {
                return Poll::Ready(Err(ClientError::Lost(std::io::Error::new(
                    std::io::ErrorKind::UnexpectedEof,
                    "the server closed the connection",
                ))));
            }
            let now = self.arrived_at();
            self.table.packets_to_client += 1;
            self.table.bytes_to_client += filled.len() as u64;
            Poll::Ready(self.take_in(filled, now))
        })
    }

    /// When what was just read arrived at this machine.
    fn arrived_at(&mut self) -> i64 {
        self.read_late_ns = self.arrival.as_ref().map_or(0, |arrival| arrival.age_ns());
        self.clock.now() - self.read_late_ns
    }

    /// Processes bytes that arrived on the connection.
    fn take_in(&mut self, mut bytes: &mut [u8], now: i64) -> Result<(), ClientError> {
        while !bytes.is_empty() {
            bytes = match std::mem::take(&mut self.partial) {
                Partial::None => self.begin_frame(bytes, now)?,
                Partial::Head(head) => self.continue_head(head, bytes, now)?,
                Partial::Whole { bytes: kept, length } => {
                    self.continue_whole(kept, length, bytes, now)?
                }
                Partial::Skip { head, length, left } => {
                    self.skip_payload(head, (length, left), bytes, now)?
                }
            };
        }
        Ok(())
    }

    /// Processes the first bytes of a frame. Like the following functions, it returns the remaining bytes.
    fn begin_frame<'a>(
        &mut self,
        bytes: &'a mut [u8],
        now: i64,
    ) -> Result<&'a mut [u8], ClientError> {
        self.first_byte_at = now;
        match frame_length(bytes)? {
            // The usual case: a whole frame, decoded in place.
            Some(length) if length <= bytes.len() => {
                let (frame, rest) = bytes.split_at_mut(length);
                self.message(frame, length, now)?;
                Ok(rest)
            }
            _ => {
                self.partial = Partial::Head(Vec::new());
                Ok(bytes)
            }
        }
    }

    /// Adds bytes to a frame's head; once it is long enough, it shows whether the rest is kept.
    fn continue_head<'a>(
        &mut self,
        mut head: Vec<u8>,
        bytes: &'a mut [u8],
        now: i64,
    ) -> Result<&'a mut [u8], ClientError> {
        let length = frame_length(&head)?;
        let goal = length.map_or(nbss::HEADER_BYTES, |length| length.min(HEAD_BYTES));
        let rest = append(&mut head, goal, bytes);
        match length {
            Some(length) if head.len() == length => self.message(&mut head, length, now)?,
            Some(length) if head.len() == HEAD_BYTES => {
                let left = length - head.len();
                self.partial = if self.may_skip(&head) {
                    Partial::Skip { head, length, left }
                } else {
                    head.reserve_exact(left);
                    Partial::Whole { bytes: head, length }
                };
            }
            _ => self.partial = Partial::Head(head),
        }
        Ok(rest)
    }

    /// Adds bytes to a frame that is kept whole.
    fn continue_whole<'a>(
        &mut self,
        mut kept: Vec<u8>,
        length: usize,
        bytes: &'a mut [u8],
        now: i64,
    ) -> Result<&'a mut [u8], ClientError> {
        let rest = append(&mut kept, length, bytes);
        if kept.len() == length {
            self.message(&mut kept, length, now)?;
        } else {
            self.partial = Partial::Whole { bytes: kept, length };
        }
        Ok(rest)
    }

    /// Counts bytes of a read's payload, which is not kept.
    fn skip_payload<'a>(
        &mut self,
        mut head: Vec<u8>,
        (length, left): (usize, usize),
        bytes: &'a mut [u8],
        now: i64,
    ) -> Result<&'a mut [u8], ClientError> {
        let (skipped, rest) = bytes.split_at_mut(left.min(bytes.len()));
        if skipped.len() == left {
            self.message(&mut head, length, now)?;
        } else {
            self.partial = Partial::Skip { head, length, left: left - skipped.len() };
        }
        Ok(rest)
    }

    /// Whether the rest of the frame with this head is a read's payload that the caller does not want,
    /// so that it is not kept.
    fn may_skip(&self, head: &[u8]) -> bool {
        let message = head.get(nbss::HEADER_BYTES..).unwrap_or_default();
        let Some(header) = Header::parse(message) else { return false };
        let plain = !header.flags.is_signed() || self.protection.signer.is_none();
        header.command == Command::READ
            && header.next_command == 0
            && plain
            && self.pending.iter().any(|pending| {
                pending.message_id == header.message_id && pending.want != Want::Message
            })
    }

    /// Processes a whole frame, or the head of one with a read's reply, and its length.
    fn message(&mut self, frame: &mut [u8], length: usize, now: i64) -> Result<(), ClientError> {
        let bytes = frame.get_mut(nbss::HEADER_BYTES..).unwrap_or_default();
        let mut message: &[u8] = bytes;
        let mut sealed = None;
        if bytes.starts_with(&ENCRYPTED_MAGIC) {
            let Some((_, decryptor)) = &self.protection.seal else {
                return Err(ClientError::Unverified("it is encrypted, but the session has no key"));
            };
            sealed = Transform(bytes).session_id();
            let place = decryptor
                .decrypt_in_place(bytes)
                .map_err(|_| ClientError::Unverified("it cannot be decrypted"))?;
            message = bytes.get(place).unwrap_or_default();
        } else if message.is_empty() {
            // A keep-alive of the session service.
            return Ok(());
        }
        let mut end = None;
        for (index, member) in members(message).enumerate() {
            end = Some((member.offset, member.header.next_command));
            self.member(&member, sealed, (index == 0, length as u64), now)?;
        }
        match end {
            None => Err(ClientError::Protocol("the server sent a message that is not SMB2".into())),
            Some((_, 0)) => Ok(()),
            Some((offset, next)) => Err(ClientError::Protocol(format!(
                "the compound's member at byte {offset} of a reply points {next} bytes further, where no member begins"
            ))),
        }
    }

    /// Processes one message, once it is known to be what it claims to be.
    fn member(
        &mut self,
        member: &Member<'_>,
        sealed: Option<u64>,
        (first, wire_bytes): (bool, u64),
        now: i64,
    ) -> Result<(), ClientError> {
        let header = &member.header;
        let Some(admitted) = self.admit(member, sealed)? else { return Ok(()) };
        let credits = self.credits.saturating_add(u32::from(header.credits));
        self.credits = credits.min(CREDITS_MAX);
        self.table.credits_max = self.table.credits_max.max(u64::from(self.credits));
        match admitted {
            Admitted::Notification => self.notification(member, now),
            Admitted::Reply(place) if header.is_interim() => {
                self.interim_reply(place, header, first, wire_bytes, now)
            }
            Admitted::Reply(place) => self.final_reply(place, member, first, wire_bytes, now),
        }
    }

    /// STATUS_PENDING: the final reply follows.
    fn interim_reply(
        &mut self,
        place: usize,
        header: &Header,
        first: bool,
        wire_bytes: u64,
        now: i64,
    ) -> Result<(), ClientError> {
        let Some(pending) = self.pending.get_mut(place) else { return Ok(()) };
        pending.interim_replies += 1;
        if pending.interim_replies > INTERIM_REPLIES_MAX {
            return Err(ClientError::Protocol(format!(
                "the server sent more than {INTERIM_REPLIES_MAX} interim replies to one request"
            )));
        }
        pending.async_id = header.async_id();
        if header.command == Command::LOCK && !pending.waits {
            pending.waits = true;
            if let Some(mark) = pending.busy.take() {
                self.busy.end(now, mark);
            }
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        let Some(row) = pending.row.as_mut().map(|row| &mut row.operation) else { return Ok(()) };
        row.set_pending_at(now);
        if pending.waits {
            row.set_waits(true);
        }
        if let Some(id) = header.async_id() {
            row.set_async_id(id);
        }
        let granted = row.credits_granted().unwrap_or(0);
        row.set_credits_granted(granted.saturating_add(header.credits));
        if first && pending.lead {
            let bytes = row.response_wire_bytes().unwrap_or(0) + wire_bytes;
            row.set_response_wire_bytes(bytes);
        }
        Ok(())
    }

    fn final_reply(
        &mut self,
        place: usize,
        member: &Member<'_>,
        first: bool,
        wire_bytes: u64,
        now: i64,
    ) -> Result<(), ClientError> {
        let header = &member.header;
        let mut pending = self.pending.swap_remove(place);
        let busy = pending.busy.take().map(|mark| self.busy.end(now, mark));
        if !pending.waits {
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        self.last_reply = Some(now);
        self.breaks_in_a_row = 0;
        self.table.operations += 1;
        let row = pending.row.as_mut().map(|row| &mut row.operation);
        let reply = Reply::read(member, wire_bytes, pending.want, row);
        let is_transfer = matches!(header.command, Command::READ | Command::WRITE);
        if is_transfer && reply.transferred > pending.payload_bytes {
            return Err(ClientError::Protocol(format!(
                "the server says that it transferred {} bytes of {}",
                reply.transferred, pending.payload_bytes
            )));
        }
        if let (Command::CREATE, Some(row)) = (header.command, &pending.row) {
            self.opened(&row.operation);
        }
        if let Some(mut row) = pending.row.take() {
            let operation = &mut row.operation;
            if let Some(busy) = busy.filter(|_| !pending.waits) {
                operation.set_busy_ns(busy);
            }
            if pending.lead || first {
                if let Some((start, end)) = pending.sent {
                    operation.set_request_start(start);
                    operation.set_request_end(end);
                }
                // A server may refuse a request before it has all of it.
                if let (Some(start), Some(end)) =
                    (operation.request_start(), operation.request_end())
                {
                    operation.set_request_end(end.min(self.first_byte_at).max(start));
                }
                operation.set_response_start(self.first_byte_at);
                operation.set_response_end(now);
                let bytes = operation.response_wire_bytes().unwrap_or(0) + wire_bytes;
                operation.set_response_wire_bytes(bytes);
                operation.derive_durations();
            }
            self.complete_row(&pending, header, operation);
            row.told = reply.told();
            row.read_late_ns = self.arrival.is_some().then_some(self.read_late_ns);
            self.keep(row);
        }
        if pending.want != Want::Nothing {
            self.done.push((pending.message_id, reply));
        }
        Ok(())
    }

    /// The columns that the final reply's header fills, and the server's time.
    fn complete_row(&mut self, pending: &Pending, header: &Header, operation: &mut Operation) {
        if pending.waits {
            operation.set_waits(true);
        }
        let granted = operation.credits_granted().unwrap_or(0);
        operation.set_credits_granted(granted.saturating_add(header.credits));
        if operation.session_id().is_none() && header.session_id != 0 {
            operation.set_session_id(header.session_id);
        }
        if let (Command::TREE_CONNECT, Some(tree)) = (header.command, header.tree_id()) {
            operation.set_tree_id(tree);
        }
        if pending.lead && !pending.waits {
            self.share_of_server(operation);
        }
        self.table.signed += u64::from(operation.signed() == Some(true));
        self.table.encrypted += u64::from(operation.encrypted() == Some(true));
    }

    /// Sets the file in the rows of a compound that begins with a Create.
    fn opened(&mut self, create: &Operation) {
        let (Some(handle), Some(file)) = (create.handle(), create.file_id()) else { return };
        let rows = self.pending.iter_mut().filter_map(|pending| pending.row.as_mut());
        for row in rows.map(|row| &mut row.operation) {
            if row.handle() == Some(handle) && row.file_id().is_none() {
                row.set_file_id(file);
            }
        }
    }

    /// The server's part of an operation's time.
    fn share_of_server(&self, operation: &mut Operation) {
        if let (Some(sent), Some(answered)) =
            (operation.request_start(), operation.response_start())
        {
            self.round_trip.add_sample(answered - sent);
        }
        if let (Some(turnaround), Some(round_trip)) =
            (operation.turnaround_ns(), self.round_trip.least_ns())
        {
            operation.set_server_ns(turnaround - round_trip);
            // The shortest sample contains client time too; half of it is the assumed error.
            operation.set_server_error_ns(round_trip / 2);
        }
    }

    /// A break notification: the server sends it unsolicited, so it gets its own row.
    fn notification(&mut self, member: &Member<'_>, now: i64) -> Result<(), ClientError> {
        self.table.breaks += 1;
        self.breaks_in_a_row += 1;
        if self.breaks.len().max(self.breaks_in_a_row) > BREAKS_MAX {
            return Err(ClientError::Protocol(format!(
                "the server sent more than {BREAKS_MAX} breaks in a row"
            )));
        }
        if self.rows.is_some() {
            let mut row = self.blank_row();
            let operation = &mut row.operation;
            operation.set_command(code::command(2, member.header.command.0));
            operation.set_message_id(member.header.message_id);
            operation.set_status(member.header.status_or_channel_sequence);
            operation.set_status_name(code::status_name(member.header.status_or_channel_sequence));
            operation.set_response_start(self.first_byte_at);
            operation.set_response_end(now);
            operation.set_signed(false);
            operation.set_encrypted(self.protection.seal.is_some());
            message::set_break(operation, member.bytes, true);
            self.scene.fill(operation);
            self.keep(row);
        }
        self.table.operations += 1;
        self.breaks.extend(OplockBreak::parse(member.bytes));
        Ok(())
    }
}

/// Appends from `bytes` until `kept` has `goal` bytes; returns the rest.
fn append<'a>(kept: &mut Vec<u8>, goal: usize, bytes: &'a mut [u8]) -> &'a mut [u8] {
    let missing = goal.saturating_sub(kept.len()).min(bytes.len());
    let (taken, rest) = bytes.split_at_mut(missing);
    kept.extend_from_slice(taken);
    rest
}

/// Length in bytes of the frame that begins here, its NetBIOS header included; `None` while that header
/// is incomplete.
fn frame_length(bytes: &[u8]) -> Result<Option<usize>, ClientError> {
    let Some(header) = nbss::Header::parse(bytes) else { return Ok(None) };
    let length = header.length as usize;
    let keep_alive = header.kind == nbss::Kind::KEEP_ALIVE && length == 0;
    if keep_alive || header.kind == nbss::Kind::SESSION_MESSAGE && length <= MESSAGE_BYTES_MAX {
        return Ok(Some(nbss::HEADER_BYTES + length));
    }
    Err(ClientError::Protocol(other_protocol(bytes)))
}

/// What a server speaks whose bytes are not frames of SMB, and what to do.
fn other_protocol(bytes: &[u8]) -> String {
    let known: [(&[u8], &str); 9] = [
        (b"HTTP", "HTTP"),
        (b"<!DO", "HTTP"),
        (b"<htm", "HTTP"),
        (b"SSH-", "SSH"),
        (b"RFB ", "VNC"),
        (b"220", "FTP or SMTP"),
        (b"\x15\x03", "TLS"),
        (b"\x16\x03", "TLS"),
        (b"\x83", "NetBIOS, which wants a name first"),
    ];
    let found = known.iter().find(|(start, _)| bytes.starts_with(start));
    let shown: Vec<_> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let speaks = found.map_or_else(
        || format!("the server sent bytes that are not SMB ({})", shown.join(" ")),
        |(_, name)| format!("the server speaks {name} here, not SMB"),
    );
    format!("{speaks}: check the port; SMB is at 445 unless the server was set up otherwise")
}
