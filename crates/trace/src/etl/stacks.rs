//! Which stack belongs to which sample.
//!
//! A stack is an event of its own and comes after its sample: the kernel's part on the same
//! CPU, the program's part when the thread returns to it. Samples wait for their stacks.

use super::kernel::stacks::Owner;
use crate::event::{Sample, StackId};
use foldhash::{HashMap, HashMapExt as _};
use std::collections::VecDeque;
use std::hash::BuildHasher as _;

/// How long and how many samples wait.
const WAIT_NS: i64 = 250_000_000;
const WAITING_MAX: usize = 16_384;
/// Samples of the same time that are compared: one for each CPU.
const SAME_TIME_MAX: usize = 2_048;
/// Frames of one stack, different stacks.
const FRAMES_MAX: usize = 1_024;
const STACKS_MAX: usize = 1 << 20;

/// Samples that wait for their stacks, in the order of their times.
#[derive(Debug, Default)]
pub struct Waiting {
    queue: VecDeque<(i64, Sample, Vec<u64>)>,
    /// Lists of frames to be used again.
    spare: Vec<Vec<u64>>,
}

impl Waiting {
    pub fn add(&mut self, ticks: i64, sample: Sample) {
        let frames = self.spare.pop().unwrap_or_default();
        // The queue is sorted. Samples that come out of order, which is counted, find no stack.
        let last_ticks = self.queue.back().map_or(ticks, |(last, ..)| ticks.max(*last));
        self.queue.push_back((last_ticks, sample, frames));
    }

    /// Adds a part of a stack to its sample. Returns whether there is one.
    pub fn attach(
        &mut self,
        owner: Owner,
        cpu: u32,
        kernel_half: u64,
        part: impl Iterator<Item = u64>,
    ) -> bool {
        let start = self.queue.partition_point(|(ticks, ..)| *ticks < owner.ticks);
        let same_time = self.queue.range(start..).take(SAME_TIME_MAX);
        let same_time = same_time.take_while(|(ticks, ..)| *ticks == owner.ticks);
        let mut found = None;
        for (index, (_, sample, _)) in same_time.enumerate() {
            if sample.thread == Some(owner.thread) {
                found = Some(start + index);
                // The idle threads of all CPUs have the same number.
                if sample.cpu == Some(cpu) {
                    break;
                }
            }
        }
        let Some((.., frames)) = found.and_then(|index| self.queue.get_mut(index)) else {
            return false;
        };
        let before = frames.len();
        frames.extend(part.take(FRAMES_MAX.saturating_sub(before)));
        // The kernel's part is the inner one, whichever comes first.
        let is_kernel = |address: Option<&u64>| address.is_some_and(|&it| it >= kernel_half);
        if before > 0 && is_kernel(frames.get(before)) && !is_kernel(frames.first()) {
            frames.rotate_left(before);
        }
        true
    }

    /// The next sample that waited long enough at `now_ns`, with its frames. They come back by
    /// [`Waiting::reuse`].
    pub fn next_before(&mut self, now_ns: i64) -> Option<(Sample, Vec<u64>)> {
        let (_, sample, _) = self.queue.front()?;
        let is_due = sample.time_ns < now_ns.saturating_sub(WAIT_NS);
        if !is_due && self.queue.len() <= WAITING_MAX {
            return None;
        }
        self.next()
    }

    /// The next sample, however long it waited.
    pub fn next(&mut self) -> Option<(Sample, Vec<u64>)> {
        self.queue.pop_front().map(|(_, sample, frames)| (sample, frames))
    }

    pub fn reuse(&mut self, mut frames: Vec<u64>) {
        frames.clear();
        self.spare.push(frames);
    }
}

/// Numbers for stacks.
#[derive(Debug)]
pub struct Numbers {
    /// By hash; with 64 bits a million stacks are different ones.
    known: HashMap<u64, StackId>,
    hasher: foldhash::quality::FixedState,
}

/// The number of a stack.
pub enum Number {
    Known(StackId),
    New(StackId),
    /// There are too many.
    Limited,
}

impl Numbers {
    pub fn new() -> Numbers {
        let hasher = foldhash::quality::FixedState::with_seed(1);
        Numbers { known: HashMap::new(), hasher }
    }

    pub fn of(&mut self, frames: &[u64]) -> Number {
        let hash = self.hasher.hash_one(frames);
        if let Some(&id) = self.known.get(&hash) {
            return Number::Known(id);
        }
        if self.known.len() >= STACKS_MAX {
            return Number::Limited;
        }
        let id = self.known.len() as StackId;
        self.known.insert(hash, id);
        Number::New(id)
    }
}
