//! One phase at one side: starts the threads of the streams, samples them, ends them, and adds up.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::NetError;
use super::cpu::CpuUse;
use super::message::{Interval, SideReport};
use super::sample::Sampled;
use super::socket_option::{path_mtu, segment_bytes};
use super::spec::{Direction, Length, Spec};
use super::stream::{Moving, Outcome, Sending, Shared, nanoseconds, receive, send};

/// A phase that moves no byte for this time has failed.
const STALL: Duration = Duration::from_secs(20);
/// Longest wait between two looks.
const TICK: Duration = Duration::from_millis(50);

/// A stream before it starts.
pub(super) struct Stream {
    pub(super) direction: Direction,
    pub(super) number: u32,
    pub(super) stream: TcpStream,
    /// Whether this side sends.
    pub(super) sends: bool,
}

/// How a phase of this side ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Receivers wait for the end of each stream, which the other side sends.
    WithStreams,
    /// Everything ends with the time, as iperf3 does; bytes that arrive are reported as intervals.
    WithTime,
}

/// Runs the streams. `tick` gets new intervals, must return within its time, and ends the phase by an
/// error.
pub(super) fn run(
    spec: &Spec,
    streams: Vec<Stream>,
    ends: Ends,
    peer: &str,
    tick: &mut dyn FnMut(Vec<Interval>, Duration) -> Result<(), NetError>,
) -> Result<SideReport, NetError> {
    let system = |error| NetError::System("streams", error);
    let before = CpuUse::now();
    let shared = Shared {
        go: Instant::now(),
        stop: Arc::new(AtomicBool::new(false)),
        abandoned: Arc::new(AtomicBool::new(false)),
        receive_until_stop: ends == Ends::WithTime,
    };
    let mut running =
        Running { threads: Vec::new(), sampled: Vec::new(), shared, mtu: None, mss: None };
    running.start(spec, streams).map_err(system)?;
    let followed = running.follow(spec, ends, peer, tick);
    if followed.is_err() {
        running.abandon();
    }
    let after = CpuUse::now();
    let (mtu, mss) = (running.mtu, running.mss);
    let mut report = SideReport { cpu: after.since(&before), mtu, mss, ..SideReport::default() };
    for (sends, thread) in std::mem::take(&mut running.threads) {
        let panicked = || std::io::Error::other("its thread ended unexpectedly");
        for moved in thread.join().unwrap_or_else(|_| vec![Err(panicked())]) {
            let moved = match (moved, &followed) {
                (Ok(moved), _) => moved,
                (Err(_), Err(_)) => continue,
                (Err(error), Ok(())) => return Err(NetError::Connection(peer.to_owned(), error)),
            };
            if sends { &mut report.sent } else { &mut report.received }.push(moved);
        }
    }
    for side in [&mut report.sent, &mut report.received] {
        side.sort_by_key(|one| one.stream);
    }
    followed.map(|()| report)
}

struct Running {
    threads: Vec<(bool, JoinHandle<Vec<Outcome>>)>,
    sampled: Vec<Sampled>,
    shared: Shared,
    mtu: Option<u64>,
    mss: Option<u64>,
}

impl Running {
    /// Starts the threads. Those of a direction share its streams: as many as there are streams, at most half of the
    /// CPUs, whose other half works for interrupts, and on one machine for the other side.
    fn start(&mut self, spec: &Spec, streams: Vec<Stream>) -> std::io::Result<()> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let most = (processors / 2).max(1);
        let pace =
            spec.pace_bits_per_second.map(|pace| pace as f64 / f64::from(spec.streams.max(1)));
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for stream in streams {
            let Stream { direction, number, stream, sends } = stream;
            if self.sampled.is_empty() {
                (self.mtu, self.mss) = (path_mtu(&stream), segment_bytes(&stream));
            }
            let count = Arc::new(AtomicU64::new(0));
            let own = Moving {
                number,
                stream: stream.try_clone()?,
                count: count.clone(),
                how: Sending {
                    write_bytes: spec.write_bytes(direction),
                    bytes: spec.stream_bytes(number),
                    bits_per_second: pace,
                },
            };
            self.sampled.push(Sampled::new(direction, number, stream, count, sends));
            if sends { &mut senders } else { &mut receivers }.push(own);
        }
        for (sends, all) in [(true, senders), (false, receivers)] {
            let mut groups: Vec<Vec<Moving>> = Vec::new();
            groups.resize_with(all.len().min(most), Vec::new);
            let count = groups.len();
            for (place, one) in all.into_iter().enumerate() {
                groups[place % count].push(one);
            }
            for (place, group) in groups.into_iter().enumerate() {
                let shared = self.shared.clone();
                let name = if sends { "send" } else { "receive" };
                let thread = std::thread::Builder::new().name(format!("{name}-{place}"));
                let thread = thread.spawn(move || {
                    if sends { send(group, &shared) } else { receive(group, &shared) }
                })?;
                self.threads.push((sends, thread));
            }
        }
        Ok(())
    }

    /// Samples and waits until all threads ended and all bytes are acknowledged.
    fn follow(
        &mut self,
        spec: &Spec,
        ends: Ends,
        peer: &str,
        tick: &mut dyn FnMut(Vec<Interval>, Duration) -> Result<(), NetError>,
    ) -> Result<(), NetError> {
        let interval = Duration::from_nanos(spec.interval_ns);
        let end = match spec.length {
            Length::DurationNs(ns) => Duration::from_nanos(ns),
            Length::Bytes(_) => Duration::MAX,
        };
        let stall = STALL.max(3 * gap(spec));
        let mut sample_at = interval;
        let (mut moved, mut moved_at) = (0, Duration::ZERO);
        loop {
            let now = self.shared.go.elapsed();
            if now >= end || (ends == Ends::WithTime && self.has_all(spec)) {
                self.shared.stop.store(true, Ordering::Relaxed);
            }
            let mut intervals = Vec::new();
            if now >= sample_at {
                intervals = self.sample(now, ends);
                while sample_at <= now {
                    sample_at = sample_at.saturating_add(interval);
                }
            }
            let bytes = self.sampled.iter().map(|one| one.count.load(Ordering::Relaxed)).sum();
            if bytes != moved {
                (moved, moved_at) = (bytes, now);
            }
            let ended = self.threads.iter().all(|(_, thread)| thread.is_finished());
            if ended {
                let is_drained = (ends == Ends::WithTime && end != Duration::MAX)
                    || self.sampled.iter().all(|one| !one.sends || one.is_drained());
                if is_drained {
                    intervals.extend(self.sample(self.shared.go.elapsed(), ends));
                    intervals.retain(|one| {
                        one.bytes > 0 || one.duration_ns * 10 > spec.interval_ns as i64
                    });
                    return tick(intervals, Duration::ZERO);
                }
            }
            if now.saturating_sub(moved_at) > stall {
                return Err(NetError::Stalled(peer.to_owned(), stall.as_secs()));
            }
            let next = if now < end { end } else { now + TICK };
            let next =
                next.min(sample_at).min(now + if ended { Duration::from_millis(5) } else { TICK });
            tick(intervals, next.saturating_sub(self.shared.go.elapsed()))?;
        }
    }

    /// Whether a number of bytes was sent and received. An iperf3 server does not end its streams then.
    fn has_all(&self, spec: &Spec) -> bool {
        let Length::Bytes(bytes) = spec.length else { return false };
        let received = self.sampled.iter().filter(|one| !one.sends);
        let counts = received.map(|one| one.count.load(Ordering::Relaxed));
        let received: Option<u64> = counts.fold(None, |sum, one| Some(sum.unwrap_or(0) + one));
        received.is_none_or(|received| received >= bytes)
            && self.threads.iter().all(|(sends, thread)| !sends || thread.is_finished())
    }

    /// Samples of the streams that this side sends, and of the others where the other side does not report them.
    fn sample(&mut self, now: Duration, ends: Ends) -> Vec<Interval> {
        let now = nanoseconds(now);
        // The kernel may have found a smaller MTU on the way.
        if let Some((mtu, mss)) = self
            .sampled
            .first()
            .and_then(|one| Some((path_mtu(&one.stream)?, segment_bytes(&one.stream)?)))
        {
            (self.mtu, self.mss) = (Some(mtu), Some(mss));
        }
        let shown = self.sampled.iter_mut().filter(|one| one.sends || ends == Ends::WithTime);
        shown.map(|one| one.sample(now)).collect()
    }

    /// Ends all threads of a failed phase.
    fn abandon(&mut self) {
        self.shared.abandoned.store(true, Ordering::Relaxed);
        for one in &self.sampled {
            let _ = one.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Time between two writes of a paced stream.
fn gap(spec: &Spec) -> Duration {
    let write = spec.send_write_bytes.max(spec.receive_write_bytes);
    let Some(pace) = spec.pace_bits_per_second else { return Duration::ZERO };
    let bits = u128::from(write) * 8 * u128::from(spec.streams) * 1_000_000_000;
    Duration::from_nanos(u64::try_from(bits / u128::from(pace.max(1))).unwrap_or(u64::MAX / 8))
}
