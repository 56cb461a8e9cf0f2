//! Counts what passed over a link and what did not, by direction and cause.
//!
//! Every frame that came in is counted exactly once: delivered, dropped by a cause, or still in flight.
//! Frames that the kernel could not hand over (`receive_buffer`) never came in.

use std::ops::Add;

use serde::Serialize;

/// A link's counters at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counters {
    /// Time since the link was started (ns).
    pub elapsed_ns: u64,
    /// CPU time of the forwarding thread (ns). On virtual Ethernet pairs it includes what the
    /// receiving end's network stack does with a frame, which the kernel does in the same call.
    pub cpu_ns: u64,
    /// Whether the thread ran before all ordinary ones; if not, `late` grows when the machine is busy.
    pub realtime: bool,
    /// From the first end to the second, and back.
    pub directions: [Direction; 2],
}

/// Counters of one direction. Bytes are those of Ethernet frames without check sequence.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Direction {
    /// Interface at which the frames come in.
    pub from: String,
    /// Interface at which they leave.
    pub to: String,
    /// Frames that came in.
    pub received: Volume,
    /// Frames that left.
    pub delivered: Volume,
    /// Frames that came in and will never leave, by cause.
    pub dropped: Dropped,
    /// Frames in flight.
    pub in_flight: Volume,
    /// Most bytes that ever waited for the transmitter.
    pub queue_bytes_max: u64,
    /// Frames larger than the interface's MTU allows: packets that an offload merged, which no real
    /// link would carry as one.
    pub oversize_packets: u64,
    /// How much later than due frames left.
    pub late: Late,
}

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Frames.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Dropped frames by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// The link's queue was full.
    pub queue: u64,
    /// Lost at random.
    pub loss: u64,
    /// The memory limit for frames in flight was reached.
    pub memory: u64,
    /// The outgoing interface did not accept them: its MTU is smaller, it is down or full.
    pub send: u64,
    /// The kernel's buffer was full, because this machine did not keep up: the link is slower than
    /// requested. Never received, so not part of any other number.
    pub receive_buffer: u64,
}

/// Lateness of frames (ns): what this machine's timers and scheduler add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Late {
    /// Half of the frames were at most this late.
    pub p50_ns: u64,
    /// 99 % were at most this late.
    pub p99_ns: u64,
    /// The largest lateness.
    pub max_ns: u64,
}

impl Volume {
    /// Counts a frame.
    pub(super) fn count(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

impl Add for Volume {
    type Output = Volume;

    fn add(self, other: Volume) -> Volume {
        Volume { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl Dropped {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.queue + self.loss + self.memory + self.send + self.receive_buffer
    }
}

impl Counters {
    /// CPU time per frame that came in (ns); `None` if there were no frames.
    pub fn cpu_ns_per_packet(&self) -> Option<u64> {
        let [there, back] = &self.directions;
        self.cpu_ns.checked_div((there.received + back.received).packets)
    }
}
