//! One writer: the requests of its way, in the order of its pattern.

use std::collections::VecDeque;
use std::time::Duration;

use smbscope_client::clock::Clock;
use smbscope_client::{Ask, ClientError, Reply, Session};
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions};
use smbscope_wire::smb2::create_context::DurableFlags;
use smbscope_wire::smb2::encode::{self, Body, DurableWish, OpenWish};
use smbscope_wire::smb2::tree::ShareCapabilities;
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::smb2::{Dialect, FileId};
use smbscope_wire::status::Status;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{End, Phase, Round};
use crate::durability::block::{Label, fill};
use crate::durability::files;
use crate::durability::journal::{Kind, Record};
use crate::durability::plan::{Lane, Pattern, Way};

/// Writes between two Flushes before Close.
const WRITES_BEFORE_CLOSE: u32 = 16;
/// Writes to one file before the next one, if blocks are in random order.
const WRITES_BEFORE_NEXT: u64 = 32;
/// How long the other writers still wait for replies after one lost its connection.
const GRACE: Duration = Duration::from_secs(2);

/// A Write without a reply.
#[derive(Clone, Copy)]
struct Flying {
    id: u64,
    record: Record,
    bytes: u32,
}

/// An open file of the writer.
#[derive(Clone)]
struct Opened {
    file_id: FileId,
    file: u32,
    path: String,
    writes: u32,
}

/// A writer and its state.
pub(super) struct WriterTask {
    round: Round,
    session: Session,
    lane: Lane,
    number: u16,
    phase: watch::Receiver<Phase>,
    run: [u8; 16],
    sequence: u64,
    /// How often each block was written; for renamed files, of the version.
    generations: Vec<u32>,
    in_flight: VecDeque<Flying>,
    buffer: Vec<u8>,
    next_at: Instant,
}

impl WriterTask {
    pub(super) fn new(
        round: Round,
        session: Session,
        lane: Lane,
        number: u16,
        phase: watch::Receiver<Phase>,
    ) -> WriterTask {
        let run = round.plan.run_bytes().unwrap_or_default();
        let blocks = lane.files as usize * lane.blocks as usize;
        WriterTask {
            run,
            session,
            lane,
            number,
            phase,
            sequence: 0,
            generations: vec![0; blocks],
            in_flight: VecDeque::new(),
            buffer: vec![0; lane.block_bytes as usize],
            next_at: Instant::now(),
            round,
        }
    }

    /// Writes until something ends it.
    pub(super) async fn run(mut self) -> End {
        if let Err(why) = self.is_offered() {
            let _ = self.session.close().await;
            return End::NotOffered(why);
        }
        let ended = match self.lane.pattern {
            Pattern::Append | Pattern::Overwrite => self.rewrite().await,
            Pattern::Rename => self.rename().await,
        };
        let end = ended.err().unwrap_or(End::Asked);
        // There is no server to log off from after the connection was lost.
        match end {
            End::Lost(_) => drop(self.session.end("reset")),
            _ => drop(self.session.close().await),
        }
        end
    }

    /// Whether dialect and share have the way.
    fn is_offered(&self) -> Result<(), &'static str> {
        let dialect = self.session.negotiated().dialect;
        match self.lane.way {
            Way::WriteThrough if dialect < Dialect::SMB_2_1 => {
                Err("the write-through flag needs dialect 2.1 or later")
            }
            Way::Persistent if dialect < Dialect::SMB_3_0 => {
                Err("persistent handles need dialect 3.0 or later")
            }
            Way::Persistent
                if !self
                    .session
                    .share_capabilities()
                    .contains(ShareCapabilities::CONTINUOUS_AVAILABILITY) =>
            {
                Err("the share is not continuously available")
            }
            _ => Ok(()),
        }
    }

    /// Writes blocks of a fixed set of files, again and again.
    async fn rewrite(&mut self) -> Result<(), End> {
        let (files, blocks) = (u64::from(self.lane.files), u64::from(self.lane.blocks));
        let mut opened: Option<Opened> = None;
        for step in 0_u64.. {
            let (file, block) = match self.lane.pattern {
                Pattern::Overwrite => {
                    let random = crate::durability::block::hash(step, &self.number.to_le_bytes());
                    (step / WRITES_BEFORE_NEXT % files, random % blocks)
                }
                _ => (step / blocks % files, step % blocks),
            };
            let (file, block) = (file as u32, block as u32);
            let is_full = |open: &Opened| {
                let ends = self.lane.way == Way::FlushClose && open.writes >= WRITES_BEFORE_CLOSE;
                open.file != file || ends
            };
            if opened.as_ref().is_some_and(is_full)
                && let Some(done) = opened.take()
            {
                self.close(&done).await?;
            }
            let mut open = match opened.take() {
                Some(open) => open,
                None => {
                    let path = self.round.plan.file(self.round.number, self.number, file);
                    self.open(path, file, CreateDisposition::OPEN_IF).await?
                }
            };
            let place = file as usize * self.lane.blocks as usize + block as usize;
            self.write(&open, block, place).await?;
            open.writes += 1;
            opened = Some(open);
        }
        Ok(())
    }

    /// Writes a new file and renames it over the one before, again and again.
    async fn rename(&mut self) -> Result<(), End> {
        let renamed = self.round.plan.renamed(self.round.number, self.number);
        for version in 1.. {
            let path = self.round.plan.file(self.round.number, self.number, version);
            self.generations.fill(0);
            let opened = self.open(path, version, CreateDisposition::OVERWRITE_IF).await?;
            for block in 0..self.lane.blocks {
                self.write(&opened, block, block as usize).await?;
            }
            self.drain(&opened).await?;
            if self.lane.way == Way::FlushClose {
                self.flush(&opened).await?;
            }
            let body = encode::Rename { file_id: opened.file_id, name: &renamed, replace: true };
            let (reply, sent_ns, acked_ns) = self.call(&body, files::ask(&opened.path)).await?;
            if reply.status != Status::SUCCESS {
                return Err(End::Refused("a rename was refused", reply.status));
            }
            self.record(Record { file: version, ..self.blank(Kind::Rename, sent_ns, acked_ns) })
                .await?;
            self.close_only(&opened).await?;
        }
        Ok(())
    }

    /// Waits for replies, flushes if the way says so, and closes.
    async fn close(&mut self, opened: &Opened) -> Result<(), End> {
        self.drain(opened).await?;
        if self.lane.way == Way::FlushClose {
            self.flush(opened).await?;
        }
        self.close_only(opened).await
    }

    async fn close_only(&mut self, opened: &Opened) -> Result<(), End> {
        use smbscope_wire::smb2::close::CloseFlags;
        let body = encode::Close { file_id: opened.file_id, flags: CloseFlags(0) };
        let (reply, sent_ns, acked_ns) = self.call(&body, files::ask(&opened.path)).await?;
        if reply.status != Status::SUCCESS {
            return Err(End::Refused("a Close was refused", reply.status));
        }
        self.record(Record { file: opened.file, ..self.blank(Kind::Close, sent_ns, acked_ns) })
            .await
    }

    async fn open(
        &mut self,
        path: String,
        file: u32,
        disposition: CreateDisposition,
    ) -> Result<Opened, End> {
        let mut options = CreateOptions::NON_DIRECTORY_FILE.0;
        let mut wish = OpenWish::default();
        match self.lane.way {
            Way::OpenThrough => options |= CreateOptions::WRITE_THROUGH.0,
            Way::Unbuffered => options |= CreateOptions::NO_INTERMEDIATE_BUFFERING.0,
            Way::Persistent => {
                let mut create_guid = [0; 16];
                getrandom::fill(&mut create_guid)
                    .map_err(|_| End::NotOffered("this machine has no random bytes"))?;
                let flags = DurableFlags::PERSISTENT;
                wish.durable = Some(DurableWish::V2 { timeout_ms: 0, flags, create_guid });
            }
            Way::Plain | Way::FlushEach | Way::FlushClose | Way::WriteThrough => {}
        }
        let options = CreateOptions(options);
        let body = files::create(&path, files::WRITE, disposition, options, wish);
        let (reply, sent_ns, acked_ns) = self.call(&body, files::ask(&path)).await?;
        let open = reply
            .opened()
            .map_err(End::Lost)?
            .map_err(|status| End::Refused("a file cannot be opened", status))?;
        let is_persistent = open.persistent == Some(true);
        if self.lane.way == Way::Persistent && !is_persistent {
            return Err(End::NotOffered("the server grants no persistent handle"));
        }
        let blank = self.blank(Kind::Open, sent_ns, acked_ns);
        self.record(Record { file, sequence: u64::from(is_persistent), ..blank }).await?;
        Ok(Opened { file_id: open.file_id, file, path, writes: 0 })
    }

    /// Sends a Write; waits for earlier ones as the depth requires. `place` is the block among the writer's.
    async fn write(&mut self, opened: &Opened, block: u32, place: usize) -> Result<(), End> {
        let depth = usize::from(self.lane.depth);
        // Two Writes to one block at a time would have no order.
        while self.in_flight.len() >= depth
            || self.in_flight.iter().any(|f| f.record.block == block)
        {
            self.reap(opened).await?;
        }
        let bytes = self.lane.block_bytes;
        let credits = self.session.channel().charge(bytes);
        while !self.in_flight.is_empty() && !self.session.has_credits(0, credits) {
            self.reap(opened).await?;
        }
        let phase = *self.phase.borrow();
        if phase != Phase::Write {
            self.close(opened).await?;
            return Err(End::Asked);
        }
        if !self.round.gap.is_zero() {
            tokio::time::sleep_until(self.next_at).await;
            self.next_at = Instant::now().max(self.next_at + self.round.gap);
        }
        self.sequence += 1;
        let generation = self.generations.get_mut(place).map_or(1, |generation| {
            *generation = generation.saturating_add(1);
            *generation
        });
        let label = Label {
            run: self.run,
            round: self.round.number,
            lane: self.number,
            way: self.lane.way.number(),
            file: opened.file,
            block,
            sequence: self.sequence,
            generation,
        };
        fill(&label, &mut self.buffer);
        let dialect = self.session.negotiated().dialect;
        let flags = match self.lane.way {
            Way::WriteThrough => WriteFlags::WRITE_THROUGH,
            Way::Unbuffered if dialect >= Dialect::SMB_3_0_2 => WriteFlags::UNBUFFERED,
            _ => WriteFlags(0),
        };
        let offset = u64::from(block) * u64::from(bytes);
        let body = encode::Write { file_id: opened.file_id, offset, flags, data: &self.buffer };
        let ask = Ask { payload_bytes: bytes, ..files::ask(&opened.path) };
        let (silence, clock) = (self.round.silence, &self.round.host.clock);
        let (id, sent_ns) = send(&mut self.session, clock, silence, credits, &body, ask).await?;
        let record = Record {
            file: opened.file,
            block,
            sequence: self.sequence,
            generation,
            ..self.blank(Kind::Write, sent_ns, 0)
        };
        self.in_flight.push_back(Flying { id, record, bytes });
        Ok(())
    }

    /// Waits for the oldest Write in flight and records its reply.
    async fn reap(&mut self, opened: &Opened) -> Result<(), End> {
        let Some(flying) = self.in_flight.pop_front() else { return Ok(()) };
        let (reply, acked_ns) = self.wait(flying.id).await?;
        if reply.status != Status::SUCCESS {
            return Err(End::Refused("a Write was refused", reply.status));
        }
        if reply.transferred != flying.bytes {
            return Err(End::Refused("a Write was done in part", Status::DISK_FULL));
        }
        self.record(Record { acked_ns, ..flying.record }).await?;
        if self.lane.way == Way::FlushEach {
            self.flush(opened).await?;
        }
        Ok(())
    }

    async fn drain(&mut self, opened: &Opened) -> Result<(), End> {
        while !self.in_flight.is_empty() {
            self.reap(opened).await?;
        }
        Ok(())
    }

    async fn flush(&mut self, opened: &Opened) -> Result<(), End> {
        let body = encode::Flush { file_id: opened.file_id };
        let (reply, sent_ns, acked_ns) = self.call(&body, files::ask(&opened.path)).await?;
        if reply.status != Status::SUCCESS {
            return Err(End::Refused("a Flush was refused", reply.status));
        }
        self.record(Record { file: opened.file, ..self.blank(Kind::Flush, sent_ns, acked_ns) })
            .await
    }

    /// A request, its reply, and when they were sent and read.
    async fn call<B: Body>(&mut self, body: &B, ask: Ask) -> Result<(Reply, i64, i64), End> {
        let credits = self.session.channel().charge(ask.payload_bytes);
        let (silence, clock) = (self.round.silence, &self.round.host.clock);
        let (id, sent_ns) = send(&mut self.session, clock, silence, credits, body, ask).await?;
        let (reply, acked_ns) = self.wait(id).await?;
        Ok((reply, sent_ns, acked_ns))
    }

    async fn wait(&mut self, id: u64) -> Result<(Reply, i64), End> {
        let silence = self.round.silence;
        let phase = &mut self.phase;
        let lost = async {
            // An error: no writer is left that could report a lost connection.
            if phase.wait_for(|phase| *phase == Phase::Lost).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(GRACE).await;
        };
        let waited = tokio::select! {
            biased;
            waited = tokio::time::timeout(silence, self.session.wait(0, id)) => waited.ok(),
            () = lost => None,
        };
        let reply = waited.unwrap_or(Err(ClientError::Timeout(silence))).map_err(End::Lost)?;
        Ok((reply, self.round.host.clock.now()))
    }

    fn blank(&self, kind: Kind, sent_ns: i64, acked_ns: i64) -> Record {
        let event = Record::event(kind, self.round.number, 0, sent_ns);
        Record { lane: self.number, acked_ns, ..event }
    }

    async fn record(&self, record: Record) -> Result<(), End> {
        let journal = &self.round.journal;
        if journal.add(record).await {
            Ok(())
        } else {
            Err(match journal.failed() {
                Some(error) => End::JournalFailed(error.to_owned()),
                None => End::JournalFull,
            })
        }
    }
}

/// Sends a request when there are credits for it; returns its number, and when it was sent. A server without power
/// neither grants credits nor takes bytes: both have a limit.
async fn send<B: Body>(
    session: &mut Session,
    clock: &Clock,
    silence: Duration,
    credits: u32,
    body: &B,
    ask: Ask,
) -> Result<(u64, i64), End> {
    let sending = async {
        session.have_credits(0, credits).await?;
        let sent_ns = clock.now();
        let id = session.add(0, false, body, ask);
        session.send(0).await?;
        Ok((id, sent_ns))
    };
    let sent = tokio::time::timeout(silence, sending).await;
    sent.unwrap_or(Err(ClientError::Timeout(silence))).map_err(End::Lost)
}
