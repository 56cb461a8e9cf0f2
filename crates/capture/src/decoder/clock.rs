//! The recorder's clock: packets that are stored out of the order of their times, and steps back.
//!
//! A recorder that writes several queues, or a program that merges files, stores packets in
//! another order. Their times are right, so the packets of a chunk are put in that order. A clock
//! that was set back shows in the bytes: a connection continues what it sent, or acknowledges it,
//! at an earlier time. The times of everything behind the step are then moved by its size, so that
//! durations stay right.
//!
//! Owns no connection: the segments on both sides of the place where times run backwards decide.

use smbscope_tables::tables::Coverage;

use crate::file::{Chunk, FrameRef};
use crate::frame::{Direction, TcpSegment, dissect, dissect_plain};

/// The smallest step that is distinguished from disorder, ns.
const STEP_NS_MIN: i64 = 1_000_000;
/// Frames that are compared before the place, also across the beginning of a chunk, and behind it.
const FRAMES_BEFORE: usize = 32;
const FRAMES_BEFORE_CHUNK: usize = 16;
const FRAMES_BEHIND: usize = 64;
/// Contradictions that make a step. A single one is a packet with a wrong time, which gets that of
/// the packet before.
const CONTRADICTIONS_MIN: usize = 2;
/// A number that is ahead by more belongs to another stream.
const AHEAD_BYTES: i32 = 64 << 20;

/// Moves the times of frames, and puts frames in order.
pub struct Clock {
    /// What is added to the times in the file, ns.
    offset: i64,
    /// Time of the last frame.
    last: i64,
    /// The latest time so far.
    high: i64,
    /// The last segments of the chunk before.
    before: Vec<Sent>,
}

/// Payload that was sent.
struct Sent {
    direction: Direction,
    /// The sequence number behind it.
    end: u32,
    time: i64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { offset: 0, last: i64::MIN, high: i64::MIN, before: Vec::new() }
    }
}

impl Clock {
    /// Corrects the frames of a chunk, and counts what is wrong with their times.
    pub fn correct(&mut self, chunk: &mut Chunk, coverage: &mut Coverage) {
        let ends = chunk.frames.first().zip(chunk.frames.last());
        let Some((first, last)) = ends.map(|(first, last)| (first.time_ns, last.time_ns)) else {
            return;
        };
        let is_ordered = self.offset == 0
            && self.last <= first
            && chunk.frames.is_sorted_by_key(|frame| frame.time_ns);
        if is_ordered {
            (self.last, self.high) = (last, self.high.max(last));
            coverage.start.get_or_insert(first);
        } else {
            self.correct_each(chunk, coverage);
        }
        coverage.end = Some(self.high);
        let tail = chunk.frames.len().saturating_sub(FRAMES_BEFORE_CHUNK);
        self.before.clear();
        self.before.extend(chunk.frames.iter().skip(tail).filter_map(|frame| sent(chunk, frame)));
    }

    /// The last frame's time as the file has it.
    pub fn last_in_file(&self) -> i64 {
        self.last.saturating_sub(self.offset)
    }

    #[cold]
    fn correct_each(&mut self, chunk: &mut Chunk, coverage: &mut Coverage) {
        let mut is_disordered = false;
        for index in 0..chunk.frames.len() {
            let Some(&FrameRef { time_ns, number, .. }) = chunk.frames.get(index) else { break };
            let mut time = time_ns.saturating_add(self.offset);
            if time < self.last {
                coverage.frames_time_backwards += 1;
                let step = self.last.saturating_sub(time);
                // A place where times run backwards again before they are as late as they were
                // belongs to the one before.
                let contradictions = if step >= STEP_NS_MIN && self.last == self.high {
                    self.contradictions(chunk, index)
                } else {
                    0
                };
                if contradictions >= CONTRADICTIONS_MIN {
                    self.offset = self.offset.saturating_add(step);
                    note_step(step.unsigned_abs(), number, coverage);
                }
                if contradictions > 0 {
                    time = self.last;
                } else if step >= STEP_NS_MIN {
                    // Other protocols have numbers of their own, which say what was sent first.
                    is_disordered |= is_tcp(chunk, index);
                }
            }
            if let Some(frame) = chunk.frames.get_mut(index) {
                frame.time_ns = time;
            }
            self.last = time;
            self.high = self.high.max(time);
            let start = coverage.start.get_or_insert(time);
            *start = time.min(*start);
        }
        if is_disordered {
            chunk.frames.sort_by_key(|frame| frame.time_ns);
        }
    }

    /// The number of segments from frame `index` on that come after others by their bytes, but
    /// before them by their times, until times are as late as they were.
    fn contradictions(&self, chunk: &Chunk, index: usize) -> usize {
        let (before, behind) = chunk.frames.split_at(index);
        let known = before.iter().skip(index.saturating_sub(2 * FRAMES_BEFORE));
        let known: Vec<_> = known.filter_map(|frame| sent(chunk, frame)).collect();
        let near = before.iter().skip(index.saturating_sub(FRAMES_BEFORE));
        let near: Vec<_> = near.filter_map(|frame| sent(chunk, frame)).collect();
        let later = |segment: &TcpSegment<'_>, time: i64| {
            let direction = Direction::from_segment(segment);
            let is_behind = |number: u32, end: u32| {
                (0..AHEAD_BYTES).contains(&(number.wrapping_sub(end) as i32))
            };
            self.before.iter().chain(&near).any(|sent| {
                let number = match sent.direction == direction {
                    true => segment.sequence,
                    false if sent.direction == direction.back() => segment.acknowledgement,
                    false => return false,
                };
                // Not a copy of what was sent before (a mirror port).
                let is_new = || {
                    !self.before.iter().chain(&known).any(|other| {
                        other.direction == sent.direction
                            && other.time <= time
                            && is_behind(other.end, sent.end)
                    })
                };
                sent.time > time && is_behind(number, sent.end) && is_new()
            })
        };
        behind
            .iter()
            .take(FRAMES_BEHIND)
            .map(|frame| (frame, frame.time_ns.saturating_add(self.offset)))
            .take_while(|&(_, time)| time < self.high)
            .filter(|&(frame, time)| segment(chunk, frame).is_some_and(|one| later(&one, time)))
            .count()
    }
}

/// Counts a step, and keeps the largest.
fn note_step(size_ns: u64, frame: u64, coverage: &mut Coverage) {
    coverage.clock_steps += 1;
    if coverage.clock_step_ns.is_none_or(|largest| largest < size_ns) {
        coverage.clock_step_ns = Some(size_ns);
        coverage.clock_step_frame = Some(frame);
    }
}

fn is_tcp(chunk: &Chunk, index: usize) -> bool {
    chunk.frames.get(index).is_some_and(|frame| segment(chunk, frame).is_some())
}

fn segment<'a>(chunk: &'a Chunk, frame: &FrameRef) -> Option<TcpSegment<'a>> {
    let (link, bytes, original) = (frame.link, chunk.frame(frame), frame.original);
    dissect_plain(link, bytes, original).or_else(|| dissect(link, bytes, original).ok())
}

#[inline]
fn sent(chunk: &Chunk, frame: &FrameRef) -> Option<Sent> {
    let segment = segment(chunk, frame).filter(|segment| segment.payload_len > 0)?;
    Some(Sent {
        direction: Direction::from_segment(&segment),
        end: segment.sequence.wrapping_add(segment.payload_len),
        time: frame.time_ns,
    })
}
