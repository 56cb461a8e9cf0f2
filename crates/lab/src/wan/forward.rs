//! The loop that moves frames: from each port into the link, and when they are due, out of the other.
//!
//! Owns: reading the clock, waiting exactly until the next frame is due or one comes in, counting. It
//! does not own the link's arithmetic (`line`) nor the sockets (`port`). One thread handles both
//! directions: waking it costs more than a frame.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;

use super::counters::{Counters, Direction, Dropped, Late, Volume};
use super::error::Error;
use super::line::{self, Line};
use super::netns;
use super::options::Options;
use super::port::{BATCH, HEADER_BYTES, Headers, Port, is_merged};

/// How soon a request to stop is noticed.
const TICK: Duration = Duration::from_millis(100);
/// Above ordinary threads, below those of interrupts (50).
const REALTIME_PRIORITY: &str = "10";
/// The largest lateness that is measured.
const LATE_MAX_NS: u64 = 10_000_000_000;

/// A link between two interfaces, open and ready.
pub struct Forwarder {
    ports: [Port; 2],
    ways: [Way; 2],
    realtime: bool,
}

/// One direction.
struct Way {
    line: Line<Box<[u8]>>,
    received: Volume,
    delivered: Volume,
    dropped: Dropped,
    oversize_packets: u64,
    late: Histogram<u64>,
}

/// A link that runs in its own thread. Dropping it stops it.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Counters, Error>>>,
}

impl Forwarder {
    /// Opens both interfaces, in the network namespace of this name or in the thread's own. From then
    /// on they are promiscuous, and frames are queued until [`Forwarder::run`].
    ///
    /// # Errors
    /// The options contradict themselves, an interface does not exist, or CAP_NET_RAW and
    /// CAP_NET_ADMIN are missing.
    pub fn open(
        first: &str,
        second: &str,
        namespace: Option<&str>,
        options: &Options,
    ) -> Result<Forwarder, Error> {
        options.check()?;
        if first == second {
            return Err(Error::SameInterface(first.to_owned()));
        }
        let open = |place: &str| -> Result<_, Error> {
            Ok([Port::open(first, place)?, Port::open(second, place)?])
        };
        // A socket stays in the namespace in which it was created.
        let ports = match namespace {
            None => open("")?,
            Some(name) => netns::inside(name, || open(&format!(" in namespace {name}")))??,
        };
        let paths = options.paths();
        let ways = [Way::new(paths.there, options.seed, 0), Way::new(paths.back, options.seed, 1)];
        Ok(Forwarder { ports, ways, realtime: false })
    }

    /// Forwards frames until `duration` has passed or `stop` returns true (checked ten times a second),
    /// and reports the counters every second. Frames in flight at the end are discarded.
    ///
    /// # Errors
    /// An interface went away, or the system refuses to read or wait.
    pub fn run(
        mut self,
        duration: Option<Duration>,
        stop: impl Fn() -> bool,
        mut every_second: impl FnMut(&Counters),
    ) -> Result<Counters, Error> {
        // Waiting ends 50 us late by default, so that timers can be batched (prctl(2)). Not worth
        // an error.
        let _ = nix::sys::prctl::set_timerslack(1);
        self.realtime = realtime();
        let headers = &mut Headers::new();
        let begin = Instant::now();
        let clock = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let cpu_before = thread_cpu_ns();
        let end_ns = duration.map_or(u64::MAX, ns);
        let (mut tick_ns, mut second_ns) = (0, 1_000_000_000);
        let mut ready = [false, false];
        loop {
            let now_ns = clock();
            if now_ns >= tick_ns {
                tick_ns = now_ns.saturating_add(ns(TICK));
                if now_ns >= end_ns || stop() {
                    break;
                }
                if now_ns >= second_ns {
                    second_ns = second_ns.saturating_add(1_000_000_000).max(now_ns);
                    every_second(&self.counters(now_ns, thread_cpu_ns() - cpu_before));
                }
            }
            let next_ns = self.deliver(headers, &clock)?.min(tick_ns).min(end_ns.max(1));
            if ready == [false, false] {
                ready = self.wait(next_ns.saturating_sub(clock()))?;
            }
            for (port, ready) in ready.iter_mut().enumerate().filter(|(_, ready)| **ready) {
                *ready = self.receive(port, headers, &clock)?;
            }
        }
        Ok(self.counters(clock(), thread_cpu_ns() - cpu_before))
    }

    /// Forwards frames in its own thread until it is stopped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn spawn(self) -> Result<Running, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || self.run(None, || stopped.load(Ordering::Relaxed), |_| ());
        let thread = std::thread::Builder::new().name("wan".to_owned()).spawn(run);
        let failed = |error| Error::Io { what: "starting a thread for the link".into(), error };
        Ok(Running { stop, thread: Some(thread.map_err(failed)?) })
    }

    /// Sends the due frames; returns when the next one is due (ns, `u64::MAX` if there is none).
    fn deliver(&mut self, headers: &mut Headers, clock: &impl Fn() -> u64) -> Result<u64, Error> {
        let mut next_ns = u64::MAX;
        for (way, port) in self.ways.iter_mut().zip(self.ports.iter().rev()) {
            let now_ns = clock();
            let mut frames = Vec::new();
            while let Some((due_ns, frame)) =
                (frames.len() < BATCH).then(|| way.line.take(now_ns)).flatten()
            {
                way.late.saturating_record(now_ns - due_ns);
                frames.push(frame);
            }
            if !frames.is_empty() {
                let (refused, why) = port.send(headers, &frames);
                way.count_sent(&frames, &refused);
                // A device that is down may come up again; a removed one does not.
                if matches!(why, Some(Errno::ENXIO | Errno::ENODEV | Errno::ENETDOWN)) {
                    check(port)?;
                }
            }
            next_ns = next_ns.min(way.line.next_ns().unwrap_or(u64::MAX));
        }
        Ok(next_ns)
    }

    /// Waits for at most the given time; returns which ports have frames.
    fn wait(&self, ns: u64) -> Result<[bool; 2], Error> {
        let mut fds =
            [&self.ports[0], &self.ports[1]].map(|port| PollFd::new(port.fd(), PollFlags::POLLIN));
        match ppoll(&mut fds, Some(TimeSpec::from_duration(Duration::from_nanos(ns))), None) {
            // Reading reports the error.
            Ok(_) => Ok(fds.map(|fd| fd.any().unwrap_or(true))),
            Err(Errno::EINTR) => Ok([false, false]),
            Err(error) => Err(Error::Io { what: "waiting for frames".into(), error: error.into() }),
        }
    }

    /// Puts a port's frames onto the link; returns whether there may be more.
    fn receive(
        &mut self,
        port: usize,
        headers: &mut Headers,
        clock: &impl Fn() -> u64,
    ) -> Result<bool, Error> {
        let (port, way) = (&mut self.ports[port], &mut self.ways[port]);
        // The delay counts from when the kernel saw a frame, not from when this thread woke up. The
        // clock is read after the frame's age: an interruption in between makes the link
        // longer, never shorter.
        let received = port
            .receive(headers, |age_ns, frame| way.take_in(clock().saturating_sub(age_ns), frame));
        match received {
            Ok(count) => Ok(count == BATCH),
            // The kernel reports once that the interface went down; reading continues when it is up.
            Err(error) if error.raw_os_error() == Some(Errno::ENETDOWN as i32) => {
                check(port)?;
                Ok(false)
            }
            Err(error) => {
                Err(Error::Io { what: format!("{}: reading frames", port.name()), error })
            }
        }
    }

    fn counters(&mut self, elapsed_ns: u64, cpu_ns: u64) -> Counters {
        for (way, port) in self.ways.iter_mut().zip(&self.ports) {
            way.dropped.receive_buffer += port.dropped();
        }
        let name = |port: usize| self.ports[port].name();
        let directions =
            [self.ways[0].counters(name(0), name(1)), self.ways[1].counters(name(1), name(0))];
        Counters { elapsed_ns, cpu_ns, realtime: self.realtime, directions }
    }
}

impl Way {
    fn new(path: line::Path, seed: u64, stream: u64) -> Way {
        // Its bounds are constants that it allows.
        let late = Histogram::new_with_bounds(1, LATE_MAX_NS, 2).unwrap_or_else(|_| unreachable!());
        Way {
            line: Line::new(path, seed, stream),
            received: Volume::default(),
            delivered: Volume::default(),
            dropped: Dropped::default(),
            oversize_packets: 0,
            late,
        }
    }

    fn take_in(&mut self, now_ns: u64, frame: &[u8]) {
        let bytes = frame.len().saturating_sub(HEADER_BYTES);
        self.received.count(bytes as u64);
        self.oversize_packets += u64::from(is_merged(frame));
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        match self.line.offer(now_ns, bytes, frame.into()) {
            Ok(_) => {}
            Err((line::Drop::Queue, _)) => self.dropped.queue += 1,
            Err((line::Drop::Loss, _)) => self.dropped.loss += 1,
            Err((line::Drop::Memory, _)) => self.dropped.memory += 1,
        }
    }

    fn count_sent(&mut self, frames: &[Box<[u8]>], refused: &[usize]) {
        for (place, frame) in frames.iter().enumerate() {
            if refused.contains(&place) {
                self.dropped.send += 1;
            } else {
                self.delivered.count(frame.len().saturating_sub(HEADER_BYTES) as u64);
            }
        }
    }

    fn counters(&self, from: &str, to: &str) -> Direction {
        let (packets, bytes) = self.line.in_flight();
        let late = |share| self.late.value_at_quantile(share);
        Direction {
            from: from.to_owned(),
            to: to.to_owned(),
            received: self.received,
            delivered: self.delivered,
            dropped: self.dropped,
            in_flight: Volume { packets, bytes },
            queue_bytes_max: self.line.queue_bytes_max(),
            oversize_packets: self.oversize_packets,
            late: Late { p50_ns: late(0.5), p99_ns: late(0.99), max_ns: self.late.max() },
        }
    }
}

impl Running {
    /// Whether it still forwards.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stops the link; returns its counters, or why it had ended before.
    pub fn stop(mut self) -> Result<Counters, Error> {
        self.end().unwrap_or_else(|| Ok(Counters::default()))
    }

    fn end(&mut self) -> Option<Result<Counters, Error>> {
        self.stop.store(true, Ordering::Relaxed);
        let panicked = |_| {
            Err(Error::Io {
                what: "the link".into(),
                error: std::io::Error::other("its thread panicked"),
            })
        };
        self.thread.take().map(|thread| thread.join().unwrap_or_else(panicked))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn check(port: &Port) -> Result<(), Error> {
    if port.exists() { Ok(()) } else { Err(Error::Gone(port.name().to_owned())) }
}

/// Runs this thread before all ordinary ones (SCHED_FIFO, sched(7)), because on a busy machine a frame
/// would otherwise wait for a time slice of milliseconds; returns whether that worked. It uses an
/// external program, because nix has no call for it.
fn realtime() -> bool {
    let mut command = Command::new("chrt");
    command.args(["--fifo", "--pid", REALTIME_PRIORITY, &gettid().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// CPU time of this thread.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
