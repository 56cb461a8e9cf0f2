//! The reading thread: files to chunks, chunks to shards, their outputs to the resolver.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use smbscope_tables::tables::Coverage;

use super::Progress;
use super::clock::Clock;
use super::resolve_stage::{Disconnected, Event, EventSink};
use crate::closer_look::{CloserLook, Found};
use crate::file::{self, Chunk, FileError, FrameRef, Reader};
use crate::frame::{FlowKey, NotTcp, dissect, dissect_plain};
use crate::options::{Input, Options};
use crate::outcome::Output;
use crate::shard::Shard;
use crate::tcp::Context;

/// Files that follow each other within this time are one recording in pieces (a ring of files),
const CONTINUES_WITHIN_NS: i64 = 60_000_000_000;
/// or within this time when their names differ in digits only, as recorders number pieces: a quiet
/// network can leave a piece without packets for long.
const NUMBERED_WITHIN_NS: i64 = 3_600_000_000_000;
/// Clocks of the pieces may overlap a little.
const OVERLAP_NS: i64 = 1_000_000_000;
/// More shards than this only cost.
const SHARDS_MAX: usize = 8;

/// A chunk, the packet number of its first frame, and the frames that one shard is to look at.
struct Job {
    chunk: Arc<Chunk>,
    base: u64,
    frames: Vec<u32>,
}

enum Task {
    Work(Job),
    /// All connections end.
    End,
}

struct ShardThread {
    tasks: Sender<Task>,
    outputs: Receiver<Output>,
    recycle: Sender<Output>,
    thread: JoinHandle<()>,
}

/// What follows connections.
enum Followers {
    /// This thread.
    Inline(Box<Shard>),
    /// Other threads.
    Shards(Vec<ShardThread>),
}

/// The work of the reading thread.
pub struct ReadThread {
    files: Vec<Input>,
    first: Option<Reader>,
    followers: Followers,
    closer_look: CloserLook,
    chunks: Vec<Arc<Chunk>>,
    packets: u64,
    clock: Clock,
    progress: Arc<Progress>,
}

impl ReadThread {
    /// Opens the first input.
    pub fn open(
        mut inputs: Vec<Input>,
        options: &Options,
        progress: Arc<Progress>,
    ) -> Result<ReadThread, FileError> {
        if inputs.len() > 1 {
            order_by_time(&mut inputs)?;
        }
        let first = match inputs.first() {
            Some(input) => Some(Reader::open(input.path(), file::Limits::default())?),
            None => None,
        };
        let mut total = Some(0);
        for input in &inputs {
            total = match input {
                Input::Stdin => None,
                Input::Path(path) => {
                    total.and_then(|sum: u64| Some(sum + std::fs::metadata(path).ok()?.len()))
                }
            };
        }
        progress.set_total(total.unwrap_or(0));
        let context = || Context::new(options);
        // A session's channels learn from its first one how its keys are made.
        let has_session_key = options.keys.iter().any(|key| key.session_key.is_some());
        let is_one = has_session_key || !options.secrets.is_empty();
        let shards = if is_one { 1 } else { shard_count(options.threads) };
        let followers = match shards {
            1 => Followers::Inline(Box::new(Shard::new(context()))),
            _ => {
                Followers::Shards((0..shards).filter_map(|_| spawn_shard(context()).ok()).collect())
            }
        };
        Ok(ReadThread {
            files: inputs,
            first,
            followers,
            closer_look: CloserLook::default(),
            chunks: Vec::new(),
            packets: 0,
            clock: Clock::default(),
            progress,
        })
    }

    /// Whether this thread follows connections itself.
    pub fn is_alone(&self) -> bool {
        matches!(self.followers, Followers::Inline(_))
    }

    /// Reads everything; ends early when the receiver is gone.
    pub fn run(mut self, to: &mut EventSink) {
        let _ = self.read_all(to);
        if let Followers::Shards(shards) = self.followers {
            for ShardThread { tasks, outputs, thread, .. } in shards {
                drop((tasks, outputs));
                let _ = thread.join();
            }
        }
    }

    fn read_all(&mut self, to: &mut EventSink) -> Result<(), Disconnected> {
        let files = std::mem::take(&mut self.files);
        for (index, input) in files.iter().enumerate() {
            let reader = match self.first.take() {
                Some(reader) => Ok(reader),
                None => Reader::open(input.path(), file::Limits::default()),
            };
            let reader = match reader {
                Ok(reader) => reader,
                Err(error) => return to.send(Event::Failed(error)),
            };
            self.progress.begin_file();
            to.send(Event::Begin(input.name()))?;
            let next = files.get(index + 1);
            self.read_file(reader, input, next, to)?;
        }
        Ok(())
    }

    fn read_file(
        &mut self,
        mut reader: Reader,
        input: &Input,
        next: Option<&Input>,
        to: &mut EventSink,
    ) -> Result<(), Disconnected> {
        let mut coverage = Box::<Coverage>::default();
        let is_live = reader.is_live();
        let failure = loop {
            match reader.next_chunk(self.unused_chunk()) {
                Ok(Some(mut chunk)) => {
                    if reader.summary().interfaces.iter().any(|one| one.link.is_wireless()) {
                        self.closer_look.split_aggregated(&mut chunk);
                    }
                    coverage.file_bytes = chunk.consumed;
                    self.progress.advance(chunk.consumed, chunk.frames.len() as u64);
                    self.clock.correct(&mut chunk, &mut coverage);
                    let mut outputs = to.spare();
                    self.follow(chunk, &mut outputs, &mut coverage)?;
                    to.send(Event::Outputs { outputs, is_live })?;
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let last = failure.is_some() || !next.is_some_and(|next| self.continues(input, next));
        if last {
            let outputs = self.end_connections()?;
            to.send(Event::Outputs { outputs, is_live })?;
            self.clock = Clock::default();
        }
        self.closer_look.end_file(last, &mut coverage);
        let summary = Box::new(reader.summary().clone());
        to.send(Event::End { summary, coverage, last })?;
        match failure {
            Some(error) => {
                to.send(Event::Failed(error))?;
                Err(Disconnected)
            }
            None => Ok(()),
        }
    }

    fn continues(&self, input: &Input, next: &Input) -> bool {
        let within = if is_numbered_alike(&input.name(), &next.name()) {
            NUMBERED_WITHIN_NS
        } else {
            CONTINUES_WITHIN_NS
        };
        first_time(next).is_ok_and(|first| {
            first.is_some_and(|first| {
                (-OVERLAP_NS..within).contains(&first.saturating_sub(self.clock.last_in_file()))
            })
        })
    }

    /// A chunk that is no longer in use.
    fn unused_chunk(&mut self) -> Option<Chunk> {
        let place = self.chunks.iter().position(|chunk| Arc::strong_count(chunk) == 1)?;
        Arc::into_inner(self.chunks.swap_remove(place))
    }

    /// Fills used outputs with the results of a chunk.
    fn follow(
        &mut self,
        chunk: Chunk,
        outputs: &mut Vec<Output>,
        coverage: &mut Coverage,
    ) -> Result<(), Disconnected> {
        let base = self.packets;
        self.packets += chunk.frames.len() as u64;
        match &mut self.followers {
            Followers::Inline(shard) => {
                let mut output = outputs.pop().unwrap_or_default();
                output.reset();
                for (index, frame) in chunk.frames.iter().enumerate() {
                    output.order = base + index as u64;
                    match dissect_plain(frame.link, chunk.frame(frame), frame.original) {
                        Some(segment) => {
                            shard.packet(segment, frame.time_ns, frame.number, &mut output);
                        }
                        None => {
                            let shard = &mut **shard;
                            other(
                                &chunk,
                                frame,
                                &mut self.closer_look,
                                shard,
                                &mut output,
                                coverage,
                            );
                        }
                    }
                }
                self.chunks.push(Arc::new(chunk));
                outputs.clear();
                outputs.push(output);
                Ok(())
            }
            Followers::Shards(shards) => {
                let mut deals: Vec<Vec<u32>> = vec![Vec::new(); shards.len()];
                let mut deal = |shard: usize, index: usize| {
                    if let Some(deal) = deals.get_mut(shard) {
                        deal.push(index as u32);
                    }
                };
                let mut chunk = chunk;
                let mut reassembled = Vec::new();
                for (index, frame) in chunk.frames.iter().enumerate() {
                    let bytes = chunk.frame(frame);
                    if let Some(segment) = dissect_plain(frame.link, bytes, frame.original) {
                        deal(FlowKey::from_segment(&segment).0.shard(shards.len()), index);
                        continue;
                    }
                    let packet =
                        self.closer_look.look(frame, bytes, coverage, |found| match found {
                            Found::Segment(segment) => {
                                deal(FlowKey::from_segment(&segment).0.shard(shards.len()), index);
                            }
                            Found::Datagram(_) | Found::NetBeui(_) => deal(0, index),
                            Found::Unreachable(report) => {
                                deal(report.flow_shard(shards.len()), index);
                            }
                        });
                    reassembled.extend(packet.map(|packet| (index, packet)));
                }
                for (index, packet) in reassembled {
                    chunk.replace(index, packet.link, &packet.bytes, packet.original);
                }
                let chunk = Arc::new(chunk);
                for (shard, frames) in shards.iter().zip(deals) {
                    if let Some(output) = outputs.pop() {
                        let _ = shard.recycle.send(output);
                    }
                    let job = Job { chunk: chunk.clone(), base, frames };
                    shard.tasks.send(Task::Work(job)).map_err(|_| Disconnected)?;
                }
                self.chunks.push(chunk);
                *outputs = collect(shards)?;
                Ok(())
            }
        }
    }

    fn end_connections(&mut self) -> Result<Vec<Output>, Disconnected> {
        match &mut self.followers {
            Followers::Inline(shard) => {
                let mut output = Output { order: self.packets, ..Output::default() };
                shard.end(&mut output);
                Ok(vec![output])
            }
            Followers::Shards(shards) => {
                for shard in shards.iter() {
                    shard.tasks.send(Task::End).map_err(|_| Disconnected)?;
                }
                collect(shards)
            }
        }
    }
}

fn collect(shards: &[ShardThread]) -> Result<Vec<Output>, Disconnected> {
    shards.iter().map(|shard| shard.outputs.recv().map_err(|_| Disconnected)).collect()
}

/// Looks closer at a frame.
#[cold]
fn other(
    chunk: &Chunk,
    frame: &FrameRef,
    closer_look: &mut CloserLook,
    shard: &mut Shard,
    output: &mut Output,
    coverage: &mut Coverage,
) {
    closer_look.look(frame, chunk.frame(frame), coverage, |found| match found {
        Found::Segment(segment) => shard.packet(segment, frame.time_ns, frame.number, output),
        Found::Datagram(datagram) => {
            shard.datagram(&datagram, frame.time_ns, frame.number, output);
        }
        Found::Unreachable(report) => {
            shard.unreachable(&report, frame.time_ns, frame.number, output);
        }
        Found::NetBeui(llc) => shard.netbeui(&llc, frame.time_ns, frame.number, output),
    });
}

/// Looks at a frame's UDP datagram, RoCE packet, ICMP report or NetBEUI frame, if it has one.
fn datagram(
    chunk: &Chunk,
    frame: &FrameRef,
    reason: NotTcp,
    shard: &mut Shard,
    output: &mut Output,
) {
    let datagram = match reason {
        NotTcp::Udp(udp) => udp.datagram(chunk.frame(frame)).ok(),
        NotTcp::Roce(roce) => Some(roce.datagram(chunk.frame(frame))),
        NotTcp::Icmp(icmp) => {
            if let Some(report) = icmp.unreachable(chunk.frame(frame)) {
                shard.unreachable(&report, frame.time_ns, frame.number, output);
            }
            None
        }
        NotTcp::NetBeui(llc) => {
            let llc = llc.frame(chunk.frame(frame));
            shard.netbeui(&llc, frame.time_ns, frame.number, output);
            None
        }
        _ => None,
    };
    if let Some(datagram) = datagram {
        shard.datagram(&datagram, frame.time_ns, frame.number, output);
    }
}

/// With two cores one builds the parts and the other consumes them. With more the reader deals
/// frames out.
fn shard_count(threads: usize) -> usize {
    let cores = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from).saturating_sub(1),
        threads => threads,
    };
    cores.clamp(1, SHARDS_MAX)
}

fn spawn_shard(context: Context) -> std::io::Result<ShardThread> {
    let (tasks, inbox) = bounded::<Task>(2);
    let (outbox, outputs) = bounded(2);
    let (recycle, recycled) = bounded::<Output>(8);
    let thread =
        std::thread::Builder::new().name("smbscope-follow".to_owned()).spawn(move || {
            let mut shard = Shard::new(context);
            let mut packets = 0;
            for task in inbox {
                let mut output = recycled.try_recv().unwrap_or_default();
                output.reset();
                match task {
                    Task::Work(job) => {
                        packets = job.base;
                        for &index in &job.frames {
                            let Some(frame) = job.chunk.frames.get(index as usize) else {
                                continue;
                            };
                            let bytes = job.chunk.frame(frame);
                            packets = job.base + u64::from(index);
                            output.order = packets;
                            match dissect(frame.link, bytes, frame.original) {
                                Ok(segment) => {
                                    let (time, number) = (frame.time_ns, frame.number);
                                    shard.packet(segment, time, number, &mut output);
                                }
                                Err(reason) => {
                                    datagram(&job.chunk, frame, reason, &mut shard, &mut output);
                                }
                            }
                        }
                    }
                    Task::End => {
                        output.order = packets + 1;
                        shard.end(&mut output);
                    }
                }
                if outbox.send(output).is_err() {
                    return;
                }
            }
        })?;
    Ok(ShardThread { tasks, outputs, recycle, thread })
}

/// Time of the first frame of a file.
fn first_time(input: &Input) -> Result<Option<i64>, FileError> {
    if *input == Input::Stdin {
        return Ok(None);
    }
    let mut reader = Reader::open(input.path(), file::Limits::default())?;
    let chunk = reader.next_chunk(None)?;
    Ok(chunk.and_then(|chunk| chunk.frames.first().map(|frame| frame.time_ns)))
}

/// Files in the order of their first packets, so that a ring of files reads as it was written.
fn order_by_time(inputs: &mut [Input]) -> Result<(), FileError> {
    let mut keyed = Vec::with_capacity(inputs.len());
    for input in inputs.iter() {
        keyed.push((first_time(input)?.unwrap_or(i64::MAX), input.clone()));
    }
    keyed.sort_by_key(|(time, _)| *time);
    for (place, (_, input)) in inputs.iter_mut().zip(keyed) {
        *place = input;
    }
    Ok(())
}

/// Whether two names differ in digits only, or end in a number (`tcpdump -C` begins with none).
fn is_numbered_alike(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        name.chars().filter(|c| !c.is_ascii_digit()).collect()
    };
    letters(one) == letters(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_recording_are_known_by_their_names() {
        for (one, other) in [
            ("ring_00001_20261121120000.pcapng", "ring_00002_20261121120500.pcapng"),
            ("trace.pcap", "trace.pcap1"),
            ("trace.pcap1.gz", "trace.pcap2"),
        ] {
            assert!(is_numbered_alike(one, other), "{one} {other}");
        }
        assert!(!is_numbered_alike("client.pcap", "server.pcap"));
    }
}
