//! The course of a migration.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use smbscope_client::error::status_text;
use smbscope_client::multichannel::{ChannelState, Event, Multichannel, Request, Settings};
use smbscope_client::{ClientError, Reply, Scene, Session};
use smbscope_wire::status::Status;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::blocks::Blocks;
use super::request::{Act, Block, Opened};
use super::timeline::{Outcome, Timeline, judged_for};
use super::{
    MigrateError, MigrationObserver, MigrationOutcome, MigrationPlan, MigrationProgress, Phase,
    files,
};
use crate::self_check::cpu_times;
use crate::workload::Stream;

/// Time between two samples of TCP.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Samples between two progress reports.
const PROGRESS_EVERY: u64 = 10;
/// Time until a lost or refused path is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Most blocks whose difference is listed.
const DIFFERENT_SHOWN: usize = 16;
/// The user, and the execution, in the rows.
pub(super) const USER: u64 = 1;

/// Moves the data. What went wrong after the logon is in the outcome.
///
/// # Errors
/// There is no session.
pub async fn run(
    plan: MigrationPlan,
    observer: &mut dyn MigrationObserver,
) -> Result<MigrationOutcome, ClientError> {
    let (host, credential) = (plan.host.clone(), &plan.credential);
    let connected = Session::connect(plan.timeout, host, credential, 0, None).await;
    let session = match connected {
        Ok(session) => session,
        Err(failed) => {
            plan.recorder.ended(USER, failed.left, false);
            return Err(failed.error);
        }
    };
    let settings = Settings {
        choice: plan.choice,
        depth: usize::from(plan.migration.depth),
        timeout: plan.timeout,
        scene: Scene { scenario_run: Some(USER), scheduled_at: None },
    };
    let channels = Multichannel::new(session, credential, settings);
    let timeline = Timeline::new(plan.recorder.recording(), channels.session_id());
    let now = Instant::now();
    let mut mover = Mover {
        channels,
        timeline,
        observer,
        interfaces: Vec::new(),
        query: None,
        not_listed: None,
        wanted: HashMap::new(),
        retries: Vec::new(),
        refused: Vec::new(),
        lost: HashMap::new(),
        repeated: 0,
        phase: (Phase::Moving, now),
        progress: (0, 0),
        different: Vec::new(),
        different_blocks: 0,
        window: None,
        flush: Duration::ZERO,
        plan: &plan,
    };
    mover.joined_first();
    let moved = mover.course().await;
    let outcome = mover.end(moved).await;
    plan.recorder.flush();
    Ok(outcome)
}

/// A run.
pub(super) struct Mover<'a> {
    pub plan: &'a MigrationPlan,
    pub channels: Multichannel,
    pub timeline: Timeline,
    pub observer: &'a mut dyn MigrationObserver,
    pub interfaces: Vec<Outcome>,
    /// The request for the server's interfaces.
    pub query: Option<u64>,
    /// Why it was refused.
    pub not_listed: Option<String>,
    /// Paths whose channels are bound or being bound, by number.
    pub wanted: HashMap<u32, SocketAddr>,
    /// Paths that are tried again, and when.
    pub retries: Vec<(Instant, SocketAddr)>,
    pub refused: Vec<(SocketAddr, String)>,
    /// Why channels were lost.
    pub lost: HashMap<u32, String>,
    pub repeated: u64,
    pub phase: (Phase, Instant),
    /// Bytes done and to be done in the phase.
    pub progress: (u64, u64),
    pub different: Vec<(String, u64)>,
    pub different_blocks: u64,
    pub window: Option<Window>,
    pub flush: Duration,
}

/// The measured part.
pub(super) struct Window {
    pub begin: i64,
    pub end: i64,
    pub bytes: u64,
    pub took: Duration,
    pub cpu: Option<(Duration, Duration)>,
    /// Bytes of each channel.
    pub channels: Vec<(u32, u64)>,
    pub states: Vec<ChannelState>,
    pub requests: u64,
}

/// A stream with its open file.
struct Open {
    stream: Stream,
    opened: Arc<Opened>,
    bytes_before: u64,
}

impl Mover<'_> {
    /// The first connection is there.
    fn joined_first(&mut self) {
        for state in self.channels.states() {
            self.timeline.joined(&state, None);
        }
    }

    async fn course(&mut self) -> Result<(), MigrateError> {
        let folder = self.plan.host.target.folder.as_str();
        let mut streams = self.plan.migration.streams(self.plan.seed);
        for stream in &mut streams {
            if !folder.is_empty() {
                stream.path = format!("{folder}\\{}", stream.path);
            }
        }
        let mut open = Vec::new();
        for stream in streams {
            files::make_folders(&mut self.channels, &stream.path).await?;
            let opened = files::open_file(&mut self.channels, &stream.path, stream.is_out).await?;
            let (opened, bytes_before) = opened;
            if stream.is_out || bytes_before != stream.file.bytes {
                files::set_size(&mut self.channels, &opened, stream.file.bytes).await?;
            }
            open.push(Open { stream, opened: Arc::new(opened), bytes_before });
        }
        let moved = self.move_all(&open).await;
        // What went wrong first is reported.
        let tidied = self.tidy(&open).await;
        moved.and(tidied)
    }

    /// Closes the files, and removes them unless they are to stay.
    async fn tidy(&mut self, open: &[Open]) -> Result<(), MigrateError> {
        for one in open {
            if self.plan.keep {
                files::close(&mut self.channels, &one.opened).await?
            } else {
                files::remove(&mut self.channels, &one.opened).await?
            }
        }
        let folder = open.first().and_then(|one| one.stream.path.rsplit_once('\\'));
        if let Some((folder, _)) = folder
            && !self.plan.keep
            && !self.plan.migration.folder.is_empty()
        {
            files::remove_folder(&mut self.channels, folder).await?;
        }
        Ok(())
    }

    async fn move_all(&mut self, open: &[Open]) -> Result<(), MigrateError> {
        let lacking = |one: &&Open| !one.stream.is_out && one.bytes_before != one.stream.file.bytes;
        let missing: Vec<&Open> = open.iter().filter(lacking).collect();
        if !missing.is_empty() {
            self.observer.say("writing the files that are read to the share first");
            let blocks = self.blocks(&missing, |_| Act::Write);
            self.transfer(Phase::Preparing, blocks).await?;
        }
        self.begin_paths();
        let all: Vec<&Open> = open.iter().collect();
        let check = self.plan.verify;
        let act = move |one: &Open| match (one.stream.is_out, check) {
            (true, _) => Act::Write,
            (false, true) => Act::Check,
            (false, false) => Act::Read,
        };
        let blocks = self.blocks(&all, act);
        self.measure(blocks).await?;
        let written: Vec<&Open> = open.iter().filter(|one| one.stream.is_out).collect();
        let begun = Instant::now();
        for one in &written {
            files::flush(&mut self.channels, &one.opened).await?;
        }
        self.flush = begun.elapsed();
        if check && !written.is_empty() && !self.is_interrupted() {
            let blocks = self.blocks(&written, |_| Act::Check);
            self.transfer(Phase::Verifying, blocks).await?;
        }
        Ok(())
    }

    /// The blocks of all streams, one of each in turn, and their bytes.
    fn blocks(&self, open: &[&Open], act: impl Fn(&Open) -> Act) -> Blocks {
        let negotiated = self.channels.negotiated();
        let streams = open.iter().map(|one| {
            let act = act(one);
            let largest = match act {
                Act::Write => negotiated.max_write_bytes,
                Act::Read | Act::Check => negotiated.max_read_bytes,
            };
            let length = self.plan.migration.block_bytes.min(largest.max(1));
            // Without large MTU a message carries at most 64 KiB (MS-SMB2 section 3.2.4.6).
            let is_large = negotiated.has_large_mtu();
            let length = if is_large { length } else { length.min(65_536) };
            (one.opened.clone(), one.stream.file, act, length, 0)
        });
        let total = open.iter().map(|one| one.stream.file.bytes).sum();
        Blocks { streams: streams.collect(), turn: 0, total }
    }

    /// Moves the blocks and measures it.
    async fn measure(&mut self, blocks: Blocks) -> Result<(), MigrateError> {
        let clock = self.plan.host.clock.clone();
        let before = self.channels.states();
        let (begin, cpu) = (clock.now(), cpu_times());
        let begun = Instant::now();
        let moved = self.transfer(Phase::Moving, blocks).await;
        let took = begun.elapsed();
        let states = self.channels.states();
        let earlier = |state: &ChannelState| {
            let found = before.iter().find(|earlier| earlier.channel == state.channel);
            found.map_or((0, 0), |earlier| (earlier.bytes, earlier.requests))
        };
        let cpu = cpu_times().zip(cpu).map(|(after, before)| {
            (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1))
        });
        self.window = Some(Window {
            begin,
            end: clock.now(),
            bytes: self.progress.0,
            took,
            cpu,
            channels: states.iter().map(|it| (it.channel, it.bytes - earlier(it).0)).collect(),
            requests: states.iter().map(|it| it.requests - earlier(it).1).sum(),
            states,
        });
        moved
    }

    /// Sends the blocks over the channels and waits for all answers.
    async fn transfer(&mut self, phase: Phase, mut blocks: Blocks) -> Result<(), MigrateError> {
        self.phase = (phase, Instant::now());
        self.timeline.begin_phase(phase.word(), self.plan.host.clock.now());
        self.progress = (0, blocks.total);
        let mut in_flight: HashMap<u64, Arc<Block>> = HashMap::new();
        let mut failed = None;
        let mut tick = interval(SAMPLE_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = 0;
        loop {
            let is_over = failed.is_some() || self.is_interrupted();
            while !is_over
                && self.channels.has_room()
                && let Some(block) = blocks.next()
            {
                let request: Arc<dyn Request> = block.clone();
                in_flight.insert(self.channels.submit(request), block);
            }
            if in_flight.is_empty() && (is_over || blocks.is_empty()) {
                break;
            }
            tokio::select! {
                event = self.channels.next() => {
                    let event = event?;
                    if let Event::Done { id, reply, is_intact, .. } = &event
                        && let Some(block) = in_flight.remove(id)
                    {
                        match self.block_done(&block, reply, *is_intact) {
                            Ok(()) => self.progress.0 += u64::from(block.length),
                            Err(error) => failed = failed.or(Some(error)),
                        }
                    } else {
                        self.event(event);
                    }
                    // An answer is rarely alone: take the others before anything else is sent.
                    let rows = self.channels.take_rows();
                    self.timeline.rows(&rows);
                    self.plan.recorder.rows(USER, rows);
                }
                _ = tick.tick() => {
                    self.sample(ticks);
                    ticks += 1;
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn block_done(
        &mut self,
        block: &Block,
        reply: &Reply,
        is_intact: bool,
    ) -> Result<(), MigrateError> {
        let path = || block.opened.path.to_string();
        let what = if block.act == Act::Write { "a write failed" } else { "a read failed" };
        if reply.status != Status::SUCCESS {
            return Err(MigrateError::Refused { path: path(), what, status: reply.status });
        }
        if reply.transferred != block.length {
            let (offset, length, transferred) = (block.offset, block.length, reply.transferred);
            return Err(MigrateError::Short { path: path(), offset, length, transferred });
        }
        if !is_intact {
            self.different_blocks += 1;
            if self.different.len() < DIFFERENT_SHOWN {
                self.different.push((path(), block.offset));
            }
        }
        Ok(())
    }

    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Done { id, reply, .. } => {
                if self.query == Some(id) {
                    self.query = None;
                    self.offered(&reply);
                }
            }
            Event::Joined { channel, to } => {
                if let Some(state) =
                    self.channels.states().into_iter().find(|state| state.channel == channel)
                {
                    let judged = judged_for(&self.interfaces, &state.server.0);
                    self.timeline.joined(&state, judged.as_ref());
                    self.observer.say(&format!(
                        "channel {channel} from {} to {} carries data",
                        state.client.0,
                        to.ip()
                    ));
                }
            }
            Event::Refused { channel, to, state, error } => {
                let status = error.status().map(status_text);
                let word = if status.is_some() { "refused" } else { "connect_failed" };
                if let Some(state) = state {
                    let judged = judged_for(&self.interfaces, &to.ip().to_string());
                    let name = error.status_name();
                    self.timeline.refused(&state, judged.as_ref(), &name);
                }
                let sentence = error.to_string();
                self.fail(to.ip(), word, status.clone(), &sentence);
                if self.refused.iter().all(|(address, text)| (*address, text) != (to, &sentence)) {
                    self.observer.say(&format!("no channel to {to}: {sentence}"));
                    self.refused.push((to, sentence));
                }
                self.wanted.remove(&channel);
                // What the server refuses stays refused; a path may come back.
                if status.is_none() {
                    self.retries.push((Instant::now() + RETRY_AFTER, to));
                }
            }
            Event::Lost { channel, repeated, is_last, error } => {
                self.repeated += repeated as u64;
                let states = self.channels.states();
                let state = states.iter().find(|state| state.channel == channel);
                let (from, to) = state.map_or((String::new(), String::new()), |state| {
                    (state.client.0.clone(), state.server.0.clone())
                });
                let effect = match (is_last, repeated) {
                    (true, _) => "no other one is left".to_owned(),
                    (false, 1) => "1 request is repeated on others".to_owned(),
                    (false, repeated) => format!("{repeated} requests are repeated on others"),
                };
                self.observer.say(&format!(
                    "channel {channel} from {from} to {to} is lost ({error}): {effect}"
                ));
                self.lost.insert(channel, error.to_string());
                if let Some(state) = state {
                    let now = self.plan.host.clock.now();
                    self.timeline.lost(state, now, error.to_string(), repeated as u64);
                }
                if is_last {
                    return;
                }
                let port = self.plan.host.target.port;
                let address = to.parse().ok().map(|address| SocketAddr::new(address, port));
                if let Some(to) = self.wanted.remove(&channel).or(address) {
                    self.retries.push((Instant::now() + RETRY_AFTER, to));
                }
            }
        }
    }

    fn fail(&mut self, address: IpAddr, word: &'static str, status: Option<String>, text: &str) {
        for one in &mut self.interfaces {
            if one.judged.offered.address == Some(address) {
                one.failure = Some((word, status.clone(), text.to_owned()));
            }
        }
    }

    fn sample(&mut self, ticks: u64) {
        let now = self.plan.host.clock.now();
        let states = self.channels.states();
        self.timeline.sample(now, &states, &self.plan.recorder);
        let due = Instant::now();
        let (retry, later) = self.retries.drain(..).partition(|(when, _)| *when <= due);
        self.retries = later;
        let retry: Vec<(Instant, SocketAddr)> = retry;
        for (_, to) in retry {
            self.join(to);
        }
        if ticks.is_multiple_of(PROGRESS_EVERY) {
            self.plan.recorder.flush();
            let (phase, begun) = self.phase;
            let (bytes, total) = self.progress;
            let elapsed = begun.elapsed();
            let progress = MigrationProgress { phase, elapsed, bytes, total, channels: states };
            self.observer.progress(&progress);
        }
    }

    pub fn is_interrupted(&self) -> bool {
        *self.plan.interrupted.borrow()
    }
}
