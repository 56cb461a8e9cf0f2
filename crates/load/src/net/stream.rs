//! The thread that writes or reads streams as fast as it can, or at their pace.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::control::is_timeout;
use super::cpu;
use super::message::Moved;

/// After this time a thread that waits looks whether the phase is over.
const LOOK: Duration = Duration::from_millis(200);
/// Longest sleep of a paced stream.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// Bytes of one read: as iperf3, so that CPU times can be compared.
const READ_BYTES: usize = 128 << 10;

/// What the threads of a phase share.
#[derive(Clone)]
pub(super) struct Shared {
    /// Start of the phase.
    pub(super) go: Instant,
    /// Ends sending.
    pub(super) stop: Arc<AtomicBool>,
    /// Ends everything, because the test failed.
    pub(super) abandoned: Arc<AtomicBool>,
    /// Whether receivers end with `stop`, not with the end of the stream.
    pub(super) receive_until_stop: bool,
}

/// How a stream sends.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    pub(super) write_bytes: u32,
    /// Ends after these bytes.
    pub(super) bytes: Option<u64>,
    pub(super) bits_per_second: Option<f64>,
}

/// A stream of a thread.
pub(super) struct Moving {
    pub(super) number: u32,
    pub(super) stream: TcpStream,
    /// The bytes so far, for others to see.
    pub(super) count: Arc<AtomicU64>,
    /// Options of a sender.
    pub(super) how: Sending,
}

/// What one stream moved, or why it failed.
pub(super) type Outcome = io::Result<Moved>;

/// Sends on all of the streams until it is stopped, then ends their direction.
pub(super) fn send(streams: Vec<Moving>, shared: &Shared) -> Vec<Outcome> {
    let longest = streams.iter().map(|one| one.how.write_bytes).max().unwrap_or(0);
    let content = content(longest as usize);
    let cpu = cpu::of_thread_ns();
    let is_alone = streams.len() == 1;
    let mut all: Vec<Open> = streams.into_iter().map(|one| Open::new(one, is_alone)).collect();
    while !shared.stop.load(Ordering::Relaxed) && !shared.abandoned.load(Ordering::Relaxed) {
        let mut next = LOOK;
        for one in all.iter_mut().filter(|one| one.is_open()) {
            let early = one.early(shared.go.elapsed());
            if !early.is_zero() {
                next = next.min(early);
            } else if one.is_ready {
                one.write(&content, shared);
            }
        }
        if all.iter().all(|one| !one.is_open()) {
            break;
        }
        let now = shared.go.elapsed();
        let (mut some_ready, mut waiting) = (false, Vec::new());
        for one in all.iter_mut().filter(|one| one.is_open() && one.early(now).is_zero()) {
            some_ready |= one.is_ready;
            waiting.push(one);
        }
        if waiting.is_empty() {
            std::thread::sleep(next.min(SLEEP_MAX));
        } else if !some_ready || !is_alone {
            // One that can always write must not keep the others waiting.
            let wait = if some_ready { Duration::ZERO } else { next };
            wait_until(&mut waiting, PollFlags::POLLOUT, wait);
        }
    }
    all.iter_mut().filter(|one| one.is_open()).for_each(|one| one.end(shared));
    outcomes(all, cpu)
}

/// Receives all of the streams until the other side ends them.
pub(super) fn receive(streams: Vec<Moving>, shared: &Shared) -> Vec<Outcome> {
    let mut buffer = vec![0; READ_BYTES];
    let cpu = cpu::of_thread_ns();
    let is_alone = streams.len() == 1;
    let mut all: Vec<Open> = streams.into_iter().map(|one| Open::new(one, is_alone)).collect();
    // Several streams have enough to read whenever one of them is looked at.
    if let [one] = all.as_mut_slice() {
        one.low_water = has_small_segments(&one.stream).then(LowWater::new);
    }
    while !shared.abandoned.load(Ordering::Relaxed) {
        if shared.receive_until_stop && shared.stop.load(Ordering::Relaxed) {
            break;
        }
        // While the reader is between two calls more arrives; iperf3 reads like this, too.
        let mut waiting: Vec<&mut Open> = all.iter_mut().filter(|one| one.is_open()).collect();
        if waiting.is_empty() {
            break;
        }
        // One that sleeps until there is enough need not be asked first.
        if waiting.iter().all(|one| one.low_water.is_none()) {
            wait_until(&mut waiting, PollFlags::POLLIN, LOOK);
        }
        for one in waiting.into_iter().filter(|one| one.is_ready || one.low_water.is_some()) {
            one.read(&mut buffer, shared);
        }
    }
    outcomes(all, cpu)
}

/// A stream of a thread, and what it moved.
struct Open {
    stream: TcpStream,
    count: Arc<AtomicU64>,
    how: Sending,
    moved: Moved,
    low_water: Option<LowWater>,
    /// Whether the kernel takes, or has, bytes.
    is_ready: bool,
    /// Whether it sent all of its bytes, or the other side ended it.
    is_done: bool,
    failed: Option<io::Error>,
}

impl Open {
    /// One that is alone in its thread sleeps in reads and writes; that costs less than to ask before each.
    fn new(one: Moving, is_alone: bool) -> Open {
        let prepared = if !is_alone {
            one.stream.set_nonblocking(true)
        } else {
            one.stream
                .set_read_timeout(Some(LOOK))
                .and_then(|()| one.stream.set_write_timeout(Some(LOOK)))
        };
        let failed = prepared.err();
        Open {
            stream: one.stream,
            count: one.count,
            how: one.how,
            moved: Moved { stream: one.number, ..Moved::default() },
            low_water: None,
            is_ready: true,
            is_done: false,
            failed,
        }
    }

    fn is_open(&self) -> bool {
        !self.is_done && self.failed.is_none()
    }

    /// How long its pace lets it wait.
    fn early(&self, now: Duration) -> Duration {
        let due = |rate| Duration::from_secs_f64(self.moved.bytes as f64 * 8.0 / rate);
        self.how.bits_per_second.map_or(Duration::ZERO, |rate| due(rate).saturating_sub(now))
    }

    fn write(&mut self, content: &[u8], shared: &Shared) {
        let left = self.how.bytes.map_or(u64::MAX, |all| all.saturating_sub(self.moved.bytes));
        let length = left.min(self.how.write_bytes.into()).min(content.len() as u64) as usize;
        if length == 0 {
            return self.end(shared);
        }
        match self.stream.write(content.get(..length).unwrap_or_default()) {
            Ok(written) => {
                if self.moved.bytes == 0 {
                    self.moved.first_ns = nanoseconds(shared.go.elapsed());
                }
                self.add(written);
            }
            Err(error) => self.failed(error),
        }
    }

    /// Ends its direction.
    fn end(&mut self, shared: &Shared) {
        (self.is_done, self.moved.last_ns) = (true, nanoseconds(shared.go.elapsed()));
        if !shared.receive_until_stop {
            self.failed = self.stream.shutdown(Shutdown::Write).err();
        }
    }

    fn read(&mut self, buffer: &mut [u8], shared: &Shared) {
        match self.stream.read(buffer) {
            Ok(0) => self.is_done = true,
            Ok(read) => {
                self.moved.last_ns = nanoseconds(shared.go.elapsed());
                if self.moved.bytes == 0 {
                    self.moved.first_ns = self.moved.last_ns;
                }
                self.add(read);
                if let Some(low_water) = &mut self.low_water {
                    low_water.read(&self.stream, read);
                }
            }
            Err(error) => self.failed(error),
        }
    }

    fn add(&mut self, bytes: usize) {
        self.moved.bytes += bytes as u64;
        self.count.store(self.moved.bytes, Ordering::Relaxed);
    }

    fn failed(&mut self, error: io::Error) {
        self.is_ready = false;
        if !is_timeout(&error) && error.kind() != io::ErrorKind::Interrupted {
            self.failed = Some(error);
        }
    }
}

/// Waits until one of them can be written or read, and marks those that can.
fn wait_until(streams: &mut [&mut Open], event: PollFlags, wait: Duration) {
    let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
    let mut all: Vec<_> =
        streams.iter().map(|one| PollFd::new(one.stream.as_fd(), event)).collect();
    // An error, of the call or of a stream, is seen by the call that follows.
    let is_answered = poll(&mut all, timeout).is_ok();
    let ready: Vec<bool> = all.iter().map(|one| is_answered && one.any().unwrap_or(true)).collect();
    for (one, is_ready) in streams.iter_mut().zip(ready) {
        one.is_ready = is_ready;
    }
}

/// What became of the streams of a thread, which began with this much CPU time.
fn outcomes(all: Vec<Open>, cpu_ns: i64) -> Vec<Outcome> {
    let cpu_ns = cpu::of_thread_ns().saturating_sub(cpu_ns);
    let outcome = |one: Open| {
        let _ = one.stream.set_nonblocking(false);
        one.failed.map_or(Ok(Moved { cpu_ns, ..one.moved }), Err)
    };
    all.into_iter().map(outcome).collect()
}

/// Whether a segment carries so little that it should not wake the reader up: not on the loopback interface, where segments
/// have 64 KiB and a reader that goes to sleep for two of them halves the rate.
fn has_small_segments(stream: &TcpStream) -> bool {
    const SMALL_BYTES: u64 = 16 << 10;
    super::socket_option::segment_bytes(stream).is_some_and(|bytes| bytes < SMALL_BYTES)
}

/// How many bytes wake the reader up: what arrives in a short time, so that samples are not late on slow links.
struct LowWater {
    since: Instant,
    bytes: usize,
    set: usize,
}

impl LowWater {
    /// How often it is adapted, and the part of that time whose bytes wake the reader up.
    const EVERY: Duration = Duration::from_millis(20);
    const PART: usize = 40;
    /// More would make the reader late on fast paths: with half of a read a stream was 9 % slower than iperf3's, with this
    /// it is 2 to 8 % faster (docs/measurements/net.md).
    const BYTES_MAX: usize = READ_BYTES / 4;

    fn new() -> LowWater {
        LowWater { since: Instant::now(), bytes: 0, set: 1 }
    }

    fn read(&mut self, stream: &TcpStream, bytes: usize) {
        self.bytes += bytes;
        if self.since.elapsed() < Self::EVERY {
            return;
        }
        let wanted = (self.bytes / Self::PART).clamp(1, Self::BYTES_MAX);
        // Not for every small change of the rate.
        if wanted.abs_diff(self.set) > self.set / 4 {
            super::socket_option::set_low_water(stream, wanted);
            self.set = wanted;
        }
        (self.since, self.bytes) = (Instant::now(), 0);
    }
}

/// Bytes that a link cannot compress.
pub(super) fn content(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    ChaCha8Rng::seed_from_u64(445).fill_bytes(&mut bytes);
    bytes
}

pub(super) fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
