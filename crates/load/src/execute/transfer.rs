//! Reading and writing a file's data: several requests at a time, over all connections in turn.

use std::collections::VecDeque;

use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::encode;
use smbscope_wire::smb2::read::ReadFlags;
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::status::Status;

use super::{Handle, Performer, shown};
use crate::fileset::content;
use crate::stats::{self, Failure};
use crate::workload::{Amount, Expect, Plan, Slot, Step, Transfer};
use smbscope_client::{Ask, ClientError, Reply, Session};

impl Performer {
    /// Reads or writes a file, several requests at a time, over all connections in turn.
    #[allow(clippy::too_many_arguments)]
    pub(super) async fn transfer(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        step: &Step,
        transfer: &Transfer,
        slot: Option<Slot>,
        expect: &Expect,
        write: bool,
    ) -> Result<(), ClientError> {
        let opened = match self.handle_mut(slot) {
            Some(Handle::Open(opened)) => opened.clone(),
            _ => {
                if let Some(request) = step.requests.first() {
                    self.trouble(Failure::Trouble(stats::Trouble::Client), step, plan, request);
                }
                return Ok(());
            }
        };
        let negotiated = session.negotiated();
        let largest =
            if write { negotiated.max_write_bytes } else { negotiated.max_read_bytes }.max(1);
        // Without large MTU a message carries 64 KiB at most (MS-SMB2 section 3.2.4.6).
        let largest = if session.channel().large_mtu { largest } else { largest.min(65_536) };
        let block = transfer.block_bytes.min(largest);
        let dialect = session.negotiated().dialect;
        let amount = plan.amount(transfer);
        let amount = Amount { requests: amount.bytes.div_ceil(u64::from(block)), ..amount };
        let file = *plan.file(transfer.file);
        let path = shown(&opened.path);
        let mut data = Vec::new();
        let mut flying: VecDeque<(usize, u64, u32)> = Default::default();
        let channels = session.channels().len();
        let depth = usize::from(transfer.depth.max(1)) * channels;
        let mut blocks = amount.blocks(block).enumerate();
        let mut trouble = None;
        loop {
            while flying.len() < depth
                && trouble.is_none()
                && let Some((number, (offset, length))) = blocks.next()
            {
                let channel = number % channels;
                let credits = session.channel().charge(length);
                if !flying.is_empty() && !session.has_credits(channel, credits) {
                    // Replies bring credits; this block is next after one came.
                    let Some((channel, id, length)) = flying.pop_front() else { break };
                    let reply = session.wait(channel, id).await?;
                    trouble = trouble.or(self.moved(&reply, length, expect));
                }
                session.have_credits(channel, credits).await?;
                let ask = Ask {
                    payload_bytes: length,
                    path: Some(path.clone()),
                    handle: Some(opened.number),
                    ..Ask::default()
                };
                let id = if write {
                    data.resize(length as usize, 0);
                    content(&file, offset, &mut data);
                    let mut flags = 0;
                    if transfer.write_through && dialect >= Dialect::SMB_2_1 {
                        flags |= WriteFlags::WRITE_THROUGH.0;
                    }
                    if transfer.unbuffered && dialect >= Dialect::SMB_3_0_2 {
                        flags |= WriteFlags::UNBUFFERED.0;
                    }
                    let (file_id, flags) = (opened.file_id, WriteFlags(flags));
                    let body = encode::Write { file_id, offset, flags, data: &data };
                    session.add(channel, false, &body, ask)
                } else {
                    let unbuffered = transfer.unbuffered && dialect >= Dialect::SMB_3_0_2;
                    let flags = if unbuffered { ReadFlags::UNBUFFERED } else { ReadFlags(0) };
                    let body = encode::Read { file_id: opened.file_id, offset, length, flags };
                    session.add(channel, false, &body, ask)
                };
                session.send(channel).await?;
                self.outcome.operations += 1;
                flying.push_back((channel, id, length));
            }
            let Some((channel, id, length)) = flying.pop_front() else { break };
            let reply = session.wait(channel, id).await?;
            trouble = trouble.or(self.moved(&reply, length, expect));
        }
        if let (Some(failure), Some(request)) = (trouble, step.requests.first()) {
            self.trouble(failure, step, plan, request);
        }
        Ok(())
    }

    /// What is wrong with the reply to a block.
    fn moved(&self, reply: &Reply, length: u32, expect: &Expect) -> Option<Failure> {
        if !expect.holds(reply.status) {
            return Some(Failure::Status(reply.status.0));
        }
        let short = reply.status == Status::SUCCESS && reply.transferred != length;
        short.then_some(Failure::Trouble(stats::Trouble::Short))
    }
}
