//! One direction of a link as a data structure over a virtual clock: serialisation at a rate, a bounded
//! queue in front of it, loss, propagation delay with jitter.
//!
//! Owns: when a frame leaves and which one never does. It does not own the frames' source and
//! destination (`forward`), and never reads a clock: the caller passes the time, so that its tests need
//! no clock. The model is a router's output port with one drop-tail FIFO and a fibre behind it (with
//! the terms of RFC 2697 and tc-netem(8): rate, delay, jitter, loss):
//!
//! ```text
//!  offer ─► queue (bytes, drop at the tail) ─► transmitter (rate) ─► fibre (delay, loss) ─► take
//! ```

use std::collections::VecDeque;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The properties of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Propagation from the end of transmission to arrival (ns).
    pub delay_ns: u64,
    /// Largest deviation from the delay, up or down, evenly distributed (ns). Frames keep their
    /// order: one that would overtake arrives together with the one before it.
    pub jitter_ns: u64,
    /// Bits per second; `None` transmits in zero time, and then the queue is always empty.
    pub rate_bits: Option<u64>,
    /// Bytes that may wait while another frame is sent. A frame that finds the transmitter idle
    /// needs no queue.
    pub queue_bytes: u64,
    /// Share of frames that are lost in flight, 0 to 1. They still use the transmitter.
    pub loss: f64,
    /// Mean number of frames lost in a row (the Gilbert model); `None` loses each frame
    /// independently of the others.
    pub loss_burst: Option<f64>,
    /// Bytes added to each frame when its transmission time is computed (24 for what Ethernet adds on a
    /// wire: preamble, check sequence, gap; -14 to count IP packets only).
    pub overhead_bytes: i32,
    /// Memory (bytes) for frames in flight.
    pub memory_bytes: u64,
}

/// Why a frame does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The queue was full.
    Queue,
    /// Lost at random.
    Loss,
    /// The memory limit for frames in flight was reached.
    Memory,
}

/// One direction of a link with its frames, in order.
#[derive(Debug)]
pub struct Line<F> {
    path: Path,
    loss: Loss,
    jitter: ChaCha8Rng,
    now_ns: u64,
    /// When the transmitter has sent everything accepted so far, with the fraction of a nanosecond in
    /// units of 1/rate, so that the rate is exact over any time.
    idle_at_ns: u64,
    idle_at_rest: u64,
    /// Frames whose transmission has not begun: when it will, and their bytes.
    waiting: VecDeque<(u64, u32)>,
    waiting_bytes: u64,
    waiting_bytes_max: u64,
    /// Frames that will arrive: when, their bytes, and the frames themselves.
    flying: VecDeque<(u64, u32, F)>,
    flying_bytes: u64,
    last_arrival_ns: u64,
}

impl<F> Line<F> {
    /// An empty link. Its random choices follow only from `seed` and `stream` (the direction): whether
    /// the n-th offered frame is lost does not depend on the other frames.
    pub fn new(path: Path, seed: u64, stream: u64) -> Line<F> {
        let random = |purpose| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(stream * 2 + purpose);
            random
        };
        Line {
            path,
            loss: Loss::new(path.loss, path.loss_burst, random(0)),
            jitter: random(1),
            now_ns: 0,
            idle_at_ns: 0,
            idle_at_rest: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            waiting_bytes_max: 0,
            flying: VecDeque::new(),
            flying_bytes: 0,
            last_arrival_ns: 0,
        }
    }

    /// Offers a frame of `bytes` at `now_ns`; returns when it will arrive at the other end, or why not.
    /// A frame that does not arrive is returned. Time does not go backwards: an earlier `now_ns` counts
    /// as the latest one.
    pub fn offer(&mut self, now_ns: u64, bytes: u32, frame: F) -> Result<u64, (Drop, F)> {
        self.advance(now_ns);
        let lost = self.loss.draw();
        let busy = self.idle_at_ns > self.now_ns;
        if busy && self.waiting_bytes + u64::from(bytes) > self.path.queue_bytes {
            return Err((Drop::Queue, frame));
        }
        let held = self.flying_bytes + (self.flying.len() as u64 + 1) * FRAME_COST_BYTES;
        if held + u64::from(bytes) > self.path.memory_bytes {
            return Err((Drop::Memory, frame));
        }
        let sent_ns = self.transmit(bytes, busy);
        if lost {
            return Err((Drop::Loss, frame));
        }
        let arrival_ns = sent_ns.saturating_add(self.propagation()).max(self.last_arrival_ns);
        self.last_arrival_ns = arrival_ns;
        self.flying.push_back((arrival_ns, bytes, frame));
        self.flying_bytes += u64::from(bytes);
        Ok(arrival_ns)
    }

    /// When the next frame arrives.
    pub fn next_ns(&self) -> Option<u64> {
        self.flying.front().map(|(arrival_ns, ..)| *arrival_ns)
    }

    /// The next frame that has arrived by `now_ns`, with its arrival.
    pub fn take(&mut self, now_ns: u64) -> Option<(u64, F)> {
        let (arrival_ns, bytes, frame) =
            self.flying.pop_front_if(|(arrival_ns, ..)| *arrival_ns <= now_ns)?;
        self.flying_bytes -= u64::from(bytes);
        Some((arrival_ns, frame))
    }

    /// Frames and bytes in flight, waiting ones included.
    pub fn in_flight(&self) -> (u64, u64) {
        (self.flying.len() as u64, self.flying_bytes)
    }

    /// Most bytes that ever waited for the transmitter.
    pub fn queue_bytes_max(&self) -> u64 {
        self.waiting_bytes_max
    }

    /// Removes frames whose transmission has begun from the queue.
    fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let now_ns = self.now_ns;
        while let Some((_, bytes)) = self.waiting.pop_front_if(|(start_ns, _)| *start_ns <= now_ns)
        {
            self.waiting_bytes -= u64::from(bytes);
        }
    }

    /// Reserves the transmitter for a frame; returns the end of its transmission.
    fn transmit(&mut self, bytes: u32, busy: bool) -> u64 {
        let Some(rate) = self.path.rate_bits else {
            return self.now_ns;
        };
        if busy {
            self.waiting.push_back((self.idle_at_ns, bytes));
            self.waiting_bytes += u64::from(bytes);
            self.waiting_bytes_max = self.waiting_bytes_max.max(self.waiting_bytes);
        } else if self.idle_at_ns < self.now_ns {
            (self.idle_at_ns, self.idle_at_rest) = (self.now_ns, 0);
        }
        let bytes = (i64::from(bytes) + i64::from(self.path.overhead_bytes)).max(1);
        let bits = u128::from(bytes.unsigned_abs()) * 8;
        let (rate, rest) = (u128::from(rate), u128::from(self.idle_at_rest));
        let work = bits * 1_000_000_000 + rest;
        // Both fit: 2^32 bytes at one bit per second are 2^65 ns, which saturates.
        let ns = u64::try_from(work / rate).unwrap_or(u64::MAX);
        self.idle_at_ns = self.idle_at_ns.saturating_add(ns);
        self.idle_at_rest = u64::try_from(work % rate).unwrap_or(0);
        self.idle_at_ns
    }

    fn propagation(&mut self) -> u64 {
        let Path { delay_ns, jitter_ns, .. } = self.path;
        if jitter_ns == 0 {
            return delay_ns;
        }
        let span = jitter_ns.saturating_mul(2).saturating_add(1);
        let drawn = (u128::from(self.jitter.next_u64()) * u128::from(span)) >> 64;
        let drawn = u64::try_from(drawn).unwrap_or(0);
        delay_ns.saturating_add(drawn).saturating_sub(jitter_ns)
    }
}

/// Memory that a stored frame needs in addition to its bytes.
const FRAME_COST_BYTES: u64 = 128;

/// Which frames are lost: independently, or in bursts (E. N. Gilbert, "Capacity of a burst-noise
/// channel", 1960: every frame of the bad state is lost, none of the good one).
#[derive(Debug)]
struct Loss {
    random: ChaCha8Rng,
    bad: bool,
    to_bad: Chance,
    stay_bad: Chance,
}

impl Loss {
    fn new(share: f64, burst: Option<f64>, random: ChaCha8Rng) -> Loss {
        let (to_bad, stay_bad) = match burst {
            None => (share, share),
            Some(mean) => (share / (mean * (1.0 - share)), 1.0 - 1.0 / mean),
        };
        Loss { random, bad: false, to_bad: Chance::new(to_bad), stay_bad: Chance::new(stay_bad) }
    }

    fn draw(&mut self) -> bool {
        let chance = if self.bad { self.stay_bad } else { self.to_bad };
        self.bad = match chance {
            Chance::Never => false,
            Chance::Always => true,
            Chance::Below(limit) => self.random.next_u64() < limit,
        };
        self.bad
    }
}

#[derive(Clone, Copy, Debug)]
enum Chance {
    Never,
    Always,
    Below(u64),
}

impl Chance {
    fn new(share: f64) -> Chance {
        match share {
            share if share >= 1.0 => Chance::Always,
            share if share > 0.0 => Chance::Below((share * 2f64.powi(64)) as u64),
            // Also NaN.
            _ => Chance::Never,
        }
    }
}

#[cfg(test)]
mod tests;
