//! Reads and writes a file's data: several requests in flight, over all connections in turn.

use std::collections::VecDeque;
use std::sync::Arc;

use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::encode;
use smbscope_wire::smb2::read::ReadFlags;
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::status::Status;

use super::{Handle, Opened, Performer, shown};
use crate::fileset::content;
use crate::stats::{self, Failure};
use crate::workload::{Amount, Expect, Plan, Slot, Step, Transfer};
use smbscope_client::{Ask, ClientError, Reply, Session};

/// A read or write of a step, and what its replies should say.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub plan: &'a Plan,
    pub step: &'a Step,
    pub transfer: &'a Transfer,
    pub expect: &'a Expect,
    pub write: bool,
}

/// One block: the data of one message.
#[derive(Clone, Copy)]
struct Block {
    channel: usize,
    offset: u64,
    length: u32,
}

/// A block whose reply has not arrived.
type InFlight = (usize, u64, u32);

impl Performer {
    /// Reads or writes a file, with several requests in flight, over all connections in turn.
    pub(super) async fn transfer(
        &mut self,
        session: &mut Session,
        job: Job<'_>,
        slot: Option<Slot>,
    ) -> Result<(), ClientError> {
        let Job { plan, step, transfer, expect, .. } = job;
        let opened = match self.handle_mut(slot) {
            Some(Handle::Open(opened)) => opened.clone(),
            _ => {
                if let Some(request) = step.requests.first() {
                    self.fail(Failure::Other(stats::FailureKind::Client), step, plan, request);
                }
                return Ok(());
            }
        };
        let block_bytes = block_bytes(session, &job);
        let amount = plan.amount(transfer);
        let amount = Amount { requests: amount.bytes.div_ceil(u64::from(block_bytes)), ..amount };
        let mut sender =
            BlockSender { job, opened: &opened, path: shown(&opened.path), data: Vec::new() };
        let mut in_flight: VecDeque<InFlight> = VecDeque::new();
        let channels = session.channels().len();
        let depth = usize::from(transfer.depth.max(1)) * channels;
        let mut blocks = amount.blocks(block_bytes).enumerate();
        let mut failure = None;
        loop {
            while in_flight.len() < depth
                && failure.is_none()
                && let Some((number, (offset, length))) = blocks.next()
            {
                let channel = number % channels;
                let credits = session.channel().charge(length);
                if !in_flight.is_empty() && !session.has_credits(channel, credits) {
                    // A reply grants credits: wait for one before sending this block.
                    let Some(oldest) = in_flight.pop_front() else { break };
                    failure = failure.or(self.block_reply(session, oldest, expect).await?);
                }
                session.have_credits(channel, credits).await?;
                let id = sender.send(session, Block { channel, offset, length }).await?;
                self.outcome.operations += 1;
                in_flight.push_back((channel, id, length));
            }
            let Some(oldest) = in_flight.pop_front() else { break };
            failure = failure.or(self.block_reply(session, oldest, expect).await?);
        }
        if let (Some(failure), Some(request)) = (failure, step.requests.first()) {
            self.fail(failure, step, plan, request);
        }
        Ok(())
    }

    /// Waits for the reply to a block; returns what is wrong with it.
    async fn block_reply(
        &mut self,
        session: &mut Session,
        (channel, id, length): InFlight,
        expect: &Expect,
    ) -> Result<Option<Failure>, ClientError> {
        let reply = session.wait(channel, id).await?;
        Ok(self.moved(&reply, length, expect))
    }

    /// What is wrong with the reply to a block; `None` if nothing is.
    fn moved(&self, reply: &Reply, length: u32, expect: &Expect) -> Option<Failure> {
        if !expect.holds(reply.status) {
            return Some(Failure::Status(reply.status.0));
        }
        let short = reply.status == Status::SUCCESS && reply.transferred != length;
        short.then_some(Failure::Other(stats::FailureKind::Short))
    }
}

/// The largest block that the workload wants and the server accepts.
fn block_bytes(session: &mut Session, job: &Job<'_>) -> u32 {
    let negotiated = session.negotiated();
    let largest =
        if job.write { negotiated.max_write_bytes } else { negotiated.max_read_bytes }.max(1);
    // Without large MTU a message carries at most 64 KiB (MS-SMB2 section 3.2.4.6).
    let largest = if session.channel().large_mtu { largest } else { largest.min(65_536) };
    job.transfer.block_bytes.min(largest)
}

/// Sends the blocks of a transfer.
struct BlockSender<'a> {
    job: Job<'a>,
    opened: &'a Opened,
    path: Arc<str>,
    /// Content of the block that is written; reused.
    data: Vec<u8>,
}

impl BlockSender<'_> {
    async fn send(&mut self, session: &mut Session, block: Block) -> Result<u64, ClientError> {
        let Block { channel, offset, length } = block;
        let (transfer, file_id) = (self.job.transfer, self.opened.file_id);
        let dialect = session.negotiated().dialect;
        let unbuffered = transfer.unbuffered && dialect >= Dialect::SMB_3_0_2;
        let ask = Ask {
            payload_bytes: length,
            path: Some(self.path.clone()),
            handle: Some(self.opened.number),
            ..Ask::default()
        };
        let id = if self.job.write {
            self.data.resize(length as usize, 0);
            content(self.job.plan.file(transfer.file), offset, &mut self.data);
            let mut flags = 0;
            if transfer.write_through && dialect >= Dialect::SMB_2_1 {
                flags |= WriteFlags::WRITE_THROUGH.0;
            }
            if unbuffered {
                flags |= WriteFlags::UNBUFFERED.0;
            }
            let flags = WriteFlags(flags);
            let body = encode::Write { file_id, offset, flags, data: &self.data };
            session.add(channel, false, &body, ask)
        } else {
            let flags = if unbuffered { ReadFlags::UNBUFFERED } else { ReadFlags(0) };
            let body = encode::Read { file_id, offset, length, flags };
            session.add(channel, false, &body, ask)
        };
        session.send(channel).await?;
        Ok(id)
    }
}
