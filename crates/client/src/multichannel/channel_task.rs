//! The task of one connection: sends what it is given as far as credits allow, and reports answers.
//!
//! It chooses nothing and repeats nothing.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use smbscope_wire::smb2::encode::Echo;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Request;
use crate::channel::{Ask, Channel};
use crate::error::ClientError;
use crate::reply::{Reply, Want};
use crate::row::Row;

/// Send buffers are kept up to this size: the largest Write and its headers.
const KEEP_BYTES: usize = 9 << 20;
/// Most Echo requests in a row to get more credits.
const ECHOES_MAX: u32 = 16;

/// A request to be sent.
pub(super) struct Job {
    pub id: u64,
    pub request: Arc<dyn Request>,
    pub replay: bool,
}

/// What a task reports.
pub(super) enum Report {
    /// A request was answered.
    #[expect(clippy::vec_box, reason = "a row is 600 bytes and goes through several lists")]
    Done { lane: usize, id: u64, reply: Reply, is_intact: bool, rows: Vec<Box<Row>> },
    /// The connection is lost, at this time.
    Lost { lane: usize, channel: Box<Channel>, error: ClientError, at: i64 },
    /// A binding ended.
    Bound {
        channel: u32,
        to: SocketAddr,
        bound: Result<(), ClientError>,
        slot: Option<Box<Channel>>,
    },
}

/// What the task has in addition to its connection.
pub(super) struct ChannelTask {
    pub index: usize,
    pub ids: (u64, u32),
    pub jobs: UnboundedReceiver<Job>,
    pub report: UnboundedSender<Report>,
    pub sequence: Arc<AtomicU16>,
    pub timeout: Duration,
}

/// The requests of a connection.
#[derive(Default)]
struct Work {
    /// Given, and not sent.
    queue: VecDeque<Job>,
    /// Sent, by MessageId.
    sent: HashMap<u64, Job>,
    scratch: Vec<u8>,
    echoes: u32,
}

impl ChannelTask {
    /// Works until the connection is lost (reported, `None`), or until no more requests can come and all are
    /// answered.
    pub async fn run(mut self, mut channel: Channel) -> Option<Channel> {
        channel.keep_bytes = KEEP_BYTES;
        let mut work = Work::default();
        match self.work(&mut channel, &mut work).await {
            Ok(()) => Some(channel),
            Err(error) => {
                let (lane, at) = (self.index, channel.now());
                let lost = Report::Lost { lane, channel: Box::new(channel), error, at };
                // If the receiver is gone, so is the session.
                let _ = self.report.send(lost);
                None
            }
        }
    }

    async fn work(&mut self, channel: &mut Channel, work: &mut Work) -> Result<(), ClientError> {
        let mut is_open = true;
        let mut deadline = Instant::now() + self.timeout;
        loop {
            while work.queue.front().is_some() && self.send_next(channel, work, deadline).await? {
                deadline = Instant::now() + self.timeout;
            }
            if self.report_replies(channel, work) {
                deadline = Instant::now() + self.timeout;
                continue;
            }
            let is_idle = work.sent.is_empty() && work.queue.is_empty();
            if is_idle && !is_open {
                return Ok(());
            }
            tokio::select! {
                received = channel.receive() => received?,
                job = self.jobs.recv(), if is_open => match job {
                    Some(job) => {
                        if is_idle {
                            deadline = Instant::now() + self.timeout;
                        }
                        work.queue.push_back(job);
                    }
                    None => is_open = false,
                },
                () = sleep_until(deadline), if !is_idle => {
                    return Err(ClientError::Timeout(self.timeout));
                }
            }
        }
    }

    /// Sends the first request of the queue; false if credits are missing.
    async fn send_next(
        &self,
        channel: &mut Channel,
        work: &mut Work,
        deadline: Instant,
    ) -> Result<bool, ClientError> {
        let Some(job) = work.queue.front() else { return Ok(false) };
        let charge = channel.charge(job.request.payload_bytes());
        channel.channel_sequence = self.sequence.load(Ordering::SeqCst);
        if channel.credits() < charge {
            if work.sent.is_empty() && channel.waiting() == 0 {
                ask_for_credits(channel, self.ids, work, charge).await?;
            }
            return Ok(false);
        }
        let Some(job) = work.queue.pop_front() else { return Ok(false) };
        work.echoes = 0;
        let id = job.request.add(channel, self.ids, &mut work.scratch, job.replay);
        work.sent.insert(id, job);
        match timeout_at(deadline, channel.send_while_receiving()).await {
            Ok(sent) => sent?,
            Err(_) => return Err(ClientError::Timeout(self.timeout)),
        }
        Ok(true)
    }

    /// Reports the replies that have come; false if there are none.
    fn report_replies(&self, channel: &mut Channel, work: &mut Work) -> bool {
        let replies = channel.take_replies();
        if replies.is_empty() {
            return false;
        }
        let mut rows = channel.take_rows();
        for (message_id, mut reply) in replies {
            let Some(job) = work.sent.remove(&message_id) else { continue };
            let is_intact = job.request.is_intact(&reply, &mut work.scratch);
            if !job.request.keeps_message() {
                reply.message = Vec::new();
            }
            let (lane, id, rows) = (self.index, job.id, std::mem::take(&mut rows));
            let _ = self.report.send(Report::Done { lane, id, reply, is_intact, rows });
        }
        true
    }
}

/// Sends an Echo: its reply grants credits. A server may grant few at the beginning.
async fn ask_for_credits(
    channel: &mut Channel,
    (session_id, tree_id): (u64, u32),
    work: &mut Work,
    charge: u32,
) -> Result<(), ClientError> {
    let held = channel.credits();
    if work.echoes == ECHOES_MAX || held == 0 {
        return Err(ClientError::Protocol(format!(
            "the server grants {held} credits, the request needs {charge}: use smaller blocks"
        )));
    }
    work.echoes += 1;
    channel.add(session_id, tree_id, false, &Echo, Ask { want: Want::Nothing, ..Ask::default() });
    channel.send_while_receiving().await
}
