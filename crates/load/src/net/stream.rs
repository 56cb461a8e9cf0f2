//! One stream: the thread that writes or reads it as fast as it can, or at its pace.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::control::is_timeout;
use super::cpu;
use super::message::Moved;

/// After this time a blocked read or write looks whether the phase is over.
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

/// Sends until it is stopped, then ends its direction. `count` has the bytes so far.
pub(super) fn send(
    mut stream: TcpStream,
    number: u32,
    how: &Sending,
    shared: &Shared,
    count: &AtomicU64,
) -> io::Result<Moved> {
    stream.set_write_timeout(Some(LOOK))?;
    let content = content(how.write_bytes as usize);
    let (mut moved, cpu) = (Moved { stream: number, ..Moved::default() }, cpu::of_thread_ns());
    while !shared.stop.load(Ordering::Relaxed) && !shared.abandoned.load(Ordering::Relaxed) {
        let left = how.bytes.map_or(u64::MAX, |bytes| bytes.saturating_sub(moved.bytes));
        let length = left.min(content.len() as u64) as usize;
        if length == 0 {
            break;
        }
        if let Some(rate) = how.bits_per_second {
            let due = Duration::from_secs_f64(moved.bytes as f64 * 8.0 / rate);
            let early = due.saturating_sub(shared.go.elapsed());
            if !early.is_zero() {
                std::thread::sleep(early.min(SLEEP_MAX));
                continue;
            }
        }
        match stream.write(content.get(..length).unwrap_or_default()) {
            Ok(written) => {
                if moved.bytes == 0 {
                    moved.first_ns = nanoseconds(shared.go.elapsed());
                }
                moved.bytes += written as u64;
                count.store(moved.bytes, Ordering::Relaxed);
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    moved.last_ns = nanoseconds(shared.go.elapsed());
    moved.cpu_ns = cpu::of_thread_ns().saturating_sub(cpu);
    if !shared.receive_until_stop {
        stream.shutdown(Shutdown::Write)?;
    }
    Ok(moved)
}

/// Receives until the other side ends the stream. `count` has the bytes so far.
pub(super) fn receive(
    mut stream: TcpStream,
    number: u32,
    shared: &Shared,
    count: &AtomicU64,
) -> io::Result<Moved> {
    stream.set_read_timeout(Some(LOOK))?;
    let mut buffer = vec![0; READ_BYTES];
    let mut low_water = has_small_segments(&stream).then(LowWater::new);
    let (mut moved, cpu) = (Moved { stream: number, ..Moved::default() }, cpu::of_thread_ns());
    while !shared.abandoned.load(Ordering::Relaxed) {
        if shared.receive_until_stop && shared.stop.load(Ordering::Relaxed) {
            break;
        }
        if low_water.is_none() {
            wait_readable(&stream);
        }
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                moved.last_ns = nanoseconds(shared.go.elapsed());
                if moved.bytes == 0 {
                    moved.first_ns = moved.last_ns;
                }
                moved.bytes += read as u64;
                count.store(moved.bytes, Ordering::Relaxed);
                if let Some(low_water) = &mut low_water {
                    low_water.read(&stream, read);
                }
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    moved.cpu_ns = cpu::of_thread_ns().saturating_sub(cpu);
    Ok(moved)
}

/// Whether a segment carries so little that it should not wake the reader up: not on the loopback interface, where segments
/// have 64 KiB and a reader that goes to sleep for two of them halves the rate.
fn has_small_segments(stream: &TcpStream) -> bool {
    const SMALL_BYTES: u64 = 16 << 10;
    #[cfg(target_os = "linux")]
    return super::socket_option::segment_bytes(stream).is_some_and(|bytes| bytes < SMALL_BYTES);
    #[cfg(not(target_os = "linux"))]
    false
}

/// Waits until there is something to read, at most [`LOOK`]. While the reader is between two calls more arrives; iperf3
/// reads like this, too.
#[cfg(target_os = "linux")]
fn wait_readable(stream: &TcpStream) {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd as _;
    let timeout = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::ZERO);
    // An error is seen by the read that follows.
    let _ = poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLIN)], timeout);
}

#[cfg(not(target_os = "linux"))]
fn wait_readable(_: &TcpStream) {}

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

    fn new() -> LowWater {
        LowWater { since: Instant::now(), bytes: 0, set: 1 }
    }

    #[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
    fn read(&mut self, stream: &TcpStream, bytes: usize) {
        self.bytes += bytes;
        if self.since.elapsed() < Self::EVERY {
            return;
        }
        let wanted = (self.bytes / Self::PART).clamp(1, READ_BYTES / 2);
        // Not for every small change of the rate.
        if wanted.abs_diff(self.set) > self.set / 4 {
            #[cfg(target_os = "linux")]
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
