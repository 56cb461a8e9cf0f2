//! The sending half of a connection: requests become frames, signed or encrypted, and rows.
//!
//! Owns credits, MessageIds, and the columns of an operation that are known when it is sent. MS-SMB2
//! section 3.2.4.1.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};

use smbscope_tables::code;
use smbscope_tables::message;
use smbscope_tables::operation::{Column, Operation};
use smbscope_wire::crypto::PreauthIntegrity;
use smbscope_wire::nbss;
use smbscope_wire::smb2::encode::{Body, Cancel, Frame, Head};
use smbscope_wire::smb2::header::{Flags, Header};
use smbscope_wire::smb2::{Command, Dialect};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{Ask, Channel, Pending, Proof, Protection, Scene};
use crate::clock::Clock;
use crate::error::ClientError;
use crate::transport::Transport;

impl Channel {
    /// Waits until the server has granted the given number of credits.
    pub async fn have_credits(&mut self, credits: u32) -> Result<(), ClientError> {
        while self.credits < credits {
            if self.pending.is_empty() {
                let held = self.credits;
                return Err(ClientError::Protocol(format!(
                    "the server grants {held} credits, the request needs {credits}: use smaller blocks"
                )));
            }
            self.receive().await?;
        }
        Ok(())
    }

    /// Appends a request to the frame that [`Channel::send`] sends, as its only request or as a member
    /// of a compound. A member with `related` works on the file of the member before it. Returns the
    /// MessageId, which identifies the reply.
    pub fn add<B: Body>(
        &mut self,
        session_id: u64,
        tree_id: u32,
        related: bool,
        body: &B,
        ask: Ask,
    ) -> u64 {
        let charge = self.charge(ask.payload_bytes);
        let message_id = self.next_message_id;
        self.next_message_id += u64::from(charge);
        self.credits = self.credits.saturating_sub(charge);
        let wanted = self.credits_wanted.saturating_sub(self.credits).clamp(charge, 512);
        let mut flags = if related { Flags::RELATED } else { Flags::default() };
        if ask.replay {
            flags.0 |= Flags::REPLAY.0;
        }
        let head = Head {
            credit_charge: if self.large_mtu { charge as u16 } else { 0 },
            credits: wanted as u16,
            status: self.sequence_in_header(),
            flags,
            message_id,
            tree_or_async_id: u64::from(tree_id) << 32,
            session_id,
        };
        if self.unsent == 0 {
            self.frame.clear();
        }
        let before = self.frame.message().len();
        self.frame.member(&head, body);
        self.sign_next |= ask.sign;
        let row = self.rows.is_some().then(|| {
            let mut row = self.blank_row();
            row.path = ask.path;
            let operation = &mut row.operation;
            fill_head(operation, B::COMMAND, &head, tree_id);
            if let Some(handle) = ask.handle {
                operation.set_handle(handle);
            }
            let bytes = self.frame.message();
            let start = before.next_multiple_of(8);
            message::request(B::COMMAND, bytes.get(start..).unwrap_or_default(), operation);
            // A related member uses the file of the member before it.
            let before = self.pending.last().filter(|_| related).and_then(|it| it.row.as_ref());
            if let (None, Some(before)) = (operation.file_id(), before)
                && let Some(file) = before.operation.file_id()
            {
                operation.set_file_id(file);
            }
            self.scene.fill(operation);
            row
        });
        self.pending.push(Pending {
            message_id,
            command: B::COMMAND,
            session_id,
            proof: Proof::None,
            payload_bytes: ask.payload_bytes,
            interim_replies: 0,
            want: ask.want,
            waits: ask.waits,
            lead: self.unsent == 0,
            sent: None,
            busy: None,
            async_id: None,
            row,
        });
        self.unsent += 1;
        message_id
    }

    /// Sends the frame.
    pub async fn send(&mut self) -> Result<(), ClientError> {
        self.send_hashed(None).await
    }

    /// Sends the frame and adds it to a preauthentication hash.
    pub async fn send_hashed(
        &mut self,
        preauth: Option<&mut PreauthIntegrity>,
    ) -> Result<(), ClientError> {
        let count = std::mem::take(&mut self.unsent);
        let first = self.pending.len().saturating_sub(count);
        let sign = std::mem::take(&mut self.sign_next) || self.protection.sign_all;
        let session_id = self.session_in_frame();
        let (bytes, proof) = protect(&mut self.frame, &self.protection, session_id, sign)?;
        if let Some(preauth) = preauth {
            preauth.update(bytes.get(nbss::HEADER_BYTES..).unwrap_or_default());
        }
        let start = self.clock.now();
        let outstanding = self.in_flight;
        // A request that waits by design is not in flight; each message that was sent counts once.
        for pending in self.pending.iter_mut().skip(first) {
            pending.proof = proof;
            if pending.waits {
                continue;
            }
            self.in_flight += 1;
            pending.busy = pending.lead.then(|| self.busy.begin(start));
        }
        let end = write(&mut self.stream, &self.clock, start, bytes).await?;
        self.table.packets_to_server += 1;
        self.table.bytes_to_server += bytes.len() as u64;
        self.table.outstanding_max = self.table.outstanding_max.max(u64::from(self.in_flight));
        let wire_bytes = bytes.len() as u64;
        let compound = (count > 1).then_some(self.compound);
        self.compound += u64::from(count > 1);
        self.table.compounds += u64::from(count > 1);
        let idle = outstanding == 0;
        for (index, pending) in self.pending.iter_mut().skip(first).enumerate() {
            pending.sent = (index > 0).then_some((start, end));
            let Some(row) = pending.row.as_mut().map(|row| &mut row.operation) else { continue };
            proof.fill(row);
            // The members of a message are sent at the same time.
            row.set_outstanding(outstanding);
            if let Some(compound) = compound {
                row.set_related(row.related() == Some(true));
                row.set_compound(compound);
                row.set_compound_index(index as u16);
                row.set_compound_size(count as u16);
            }
            if index == 0 {
                row.set_request_start(start);
                row.set_request_end(end);
                row.set_request_wire_bytes(wire_bytes);
                if let (true, Some(last)) = (idle, self.last_reply) {
                    row.set_client_gap_ns(start - last);
                }
            }
        }
        self.frame.shrink(self.keep_bytes);
        Ok(())
    }

    /// Sends the frame, which has one request, and reads replies while the peer does not take it: both sides
    /// could otherwise wait for each other. Not cancel-safe: a frame that was sent in part ends the connection.
    pub async fn send_while_receiving(&mut self) -> Result<(), ClientError> {
        self.unsent = 0;
        let sign = std::mem::take(&mut self.sign_next) || self.protection.sign_all;
        let session_id = self.session_in_frame();
        // Replies that arrive meanwhile reorder `pending`.
        let Some(message_id) = self.pending.last().map(|pending| pending.message_id) else {
            return Ok(());
        };
        let mut frame = std::mem::take(&mut self.frame);
        let (bytes, proof) = protect(&mut frame, &self.protection, session_id, sign)?;
        let start = self.clock.now();
        let outstanding = self.in_flight;
        if let Some(pending) = self.pending.last_mut() {
            pending.proof = proof;
            if !pending.waits {
                self.in_flight += 1;
                pending.busy = Some(self.busy.begin(start));
            }
        }
        let idle_since = self.last_reply.filter(|_| outstanding == 0);
        let (mut rest, mut end) = (bytes, start);
        poll_fn(|context| {
            while !rest.is_empty() {
                // The first call is at the start.
                if rest.len() < bytes.len() {
                    end = self.clock.now();
                }
                match Pin::new(&mut self.stream).poll_write(context, rest) {
                    Poll::Ready(Ok(0)) => {
                        let error = std::io::ErrorKind::WriteZero.into();
                        return Poll::Ready(Err(ClientError::Lost(error)));
                    }
                    Poll::Ready(Ok(count)) => rest = rest.get(count..).unwrap_or_default(),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(ClientError::Lost(error))),
                    Poll::Pending => match self.poll_receive(context) {
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => return Poll::Pending,
                    },
                }
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        let wire_bytes = bytes.len() as u64;
        self.table.packets_to_server += 1;
        self.table.bytes_to_server += wire_bytes;
        self.table.outstanding_max = self.table.outstanding_max.max(u64::from(self.in_flight));
        let sent = self.pending.iter_mut().find(|pending| pending.message_id == message_id);
        if let Some(row) = sent.and_then(|pending| pending.row.as_mut()) {
            let row = &mut row.operation;
            proof.fill(row);
            row.set_outstanding(outstanding);
            row.set_request_start(start);
            row.set_request_end(end);
            row.set_request_wire_bytes(wire_bytes);
            if let Some(last) = idle_since {
                row.set_client_gap_ns(start - last);
            }
        }
        frame.shrink(self.keep_bytes);
        self.frame = frame;
        Ok(())
    }

    /// The header's field that is the status in replies: ChannelSequence since 3.0, otherwise zero (MS-SMB2
    /// section 2.2.1.2).
    fn sequence_in_header(&self) -> u32 {
        match self.dialect {
            Some(dialect) if dialect >= Dialect::SMB_3_0 => u32::from(self.channel_sequence),
            _ => 0,
        }
    }

    /// The session id in the frame's first header.
    fn session_in_frame(&self) -> u64 {
        Header::parse(self.frame.message()).map_or(0, |header| header.session_id)
    }

    /// Cancels a waiting request; false, with nothing sent, if it was answered already. The Cancel
    /// itself has no reply; the request's own reply follows.
    pub async fn cancel(
        &mut self,
        session_id: u64,
        tree_id: u32,
        message_id: u64,
    ) -> Result<bool, ClientError> {
        let Some(pending) = self.pending.iter().find(|pending| pending.message_id == message_id)
        else {
            return Ok(false);
        };
        let mut head = Head { session_id, message_id, ..Head::default() };
        match pending.async_id {
            Some(id) => {
                head.flags = Flags::ASYNC;
                head.tree_or_async_id = id;
            }
            None => head.tree_or_async_id = u64::from(tree_id) << 32,
        }
        self.frame.clear();
        self.frame.member(&head, &Cancel);
        let sign = self.protection.sign_all;
        let (bytes, proof) = protect(&mut self.frame, &self.protection, session_id, sign)?;
        let start = self.clock.now();
        self.stream.write_all(bytes).await.map_err(ClientError::Lost)?;
        let wire_bytes = bytes.len() as u64;
        self.table.bytes_to_server += wire_bytes;
        if self.rows.is_some() {
            let mut row = self.blank_row();
            let operation = &mut row.operation;
            fill_head(operation, Command::CANCEL, &head, 0);
            operation.clear(Column::tree_id);
            proof.fill(operation);
            operation.set_request_start(start);
            operation.set_request_end(self.clock.now());
            operation.set_request_wire_bytes(wire_bytes);
            operation.set_outstanding(self.in_flight);
            if let (0, Some(last)) = (self.in_flight, self.last_reply) {
                operation.set_client_gap_ns(start - last);
            }
            self.scene.fill(operation);
            self.keep(row);
            self.table.operations += 1;
        }
        Ok(true)
    }
}

impl Scene {
    pub(super) fn fill(&self, row: &mut Operation) {
        if let Some(run) = self.scenario_run {
            row.set_scenario_run(run);
        }
        if let Some(time) = self.scheduled_at {
            row.set_scheduled_at(time);
        }
    }
}

impl Proof {
    fn fill(self, row: &mut Operation) {
        row.set_signed(self == Proof::Signature);
        row.set_encrypted(self == Proof::Encryption);
    }
}

/// Sends all bytes, from `start` on. Returns when the system was given the last of them: the call itself may take
/// longer than the server's reply, on a machine with other work.
async fn write(
    stream: &mut Box<dyn Transport>,
    clock: &Clock,
    start: i64,
    bytes: &[u8],
) -> Result<i64, ClientError> {
    let (mut rest, mut end) = (bytes, start);
    poll_fn(|context| {
        while !rest.is_empty() {
            // The first call is at the start.
            if rest.len() < bytes.len() {
                end = clock.now();
            }
            let count = ready!(Pin::new(&mut *stream).poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
            }
            rest = rest.get(count..).unwrap_or_default();
        }
        Poll::Ready(Ok(()))
    })
    .await
    .map_err(ClientError::Lost)?;
    Ok(end)
}

/// The columns that a request's header fills.
fn fill_head(row: &mut Operation, command: Command, head: &Head, tree_id: u32) {
    row.set_command(code::command(2, command.0));
    row.set_message_id(head.message_id);
    if head.session_id != 0 {
        row.set_session_id(head.session_id);
    }
    if tree_id != 0 {
        row.set_tree_id(tree_id);
    }
    row.set_credit_charge(head.credit_charge);
    row.set_credits_requested(head.credits);
    if head.flags.is_related() {
        row.set_related(true);
    }
}

/// Signs or encrypts the contents of the frame; returns the bytes for the transport.
fn protect<'a>(
    frame: &'a mut Frame,
    protection: &Protection,
    session_id: u64,
    sign: bool,
) -> Result<(&'a [u8], Proof), ClientError> {
    match (&protection.seal, &protection.signer) {
        (Some((encryptor, _)), _) if !protection.is_binding => {
            let mut sealed = Ok(());
            let bytes = frame.encrypted(|bytes| sealed = encryptor.encrypt(session_id, bytes));
            sealed.map_err(|error| ClientError::Protocol(error.to_string()))?;
            Ok((bytes, Proof::Encryption))
        }
        (_, Some(signer)) if sign => {
            frame.each_member(|member| {
                signer.sign(member);
            });
            Ok((frame.plain(), Proof::Signature))
        }
        _ => Ok((frame.plain(), Proof::None)),
    }
}

#[cfg(test)]
mod tests;
