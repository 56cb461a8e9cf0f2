//! What passed over a line and what did not, by direction and cause.
//!
//! Every frame that came in is in exactly one place: delivered, dropped by a cause, or still in
//! flight. Frames that the kernel could not hand over (`receive_buffer`) never came in.

use std::ops::Add;

use serde::Serialize;

/// A line's counters at a moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counters {
    /// Time since the line began (ns).
    pub elapsed_ns: u64,
    /// CPU time of the forwarding thread (ns). On virtual Ethernet pairs it includes what the
    /// receiving end's network stack does with a frame, which the kernel does in the same call.
    pub cpu_ns: u64,
    /// Whether the thread ran before all ordinary ones; if not, `late` grows as the machine is busy.
    pub realtime: bool,
    /// From the first end to the second, and back.
    pub directions: [Direction; 2],
}

/// Counters of one direction. Bytes are those of Ethernet frames without check sequence.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Direction {
    /// Interface where the frames come in.
    pub from: String,
    /// Interface where they go out.
    pub to: String,
    /// Frames that came in.
    pub received: Volume,
    /// Frames that went out.
    pub delivered: Volume,
    /// Frames that came in and will not go out, by cause.
    pub dropped: Dropped,
    /// Frames that are on the way.
    pub in_flight: Volume,
    /// Most bytes that ever waited for the transmitter.
    pub queue_bytes_max: u64,
    /// Frames larger than the interface's MTU allows: packets that an offload merged, which no
    /// line would carry as one.
    pub oversize_packets: u64,
    /// How much later than due frames went out.
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
    /// The line's queue was full.
    pub queue: u64,
    /// Lost at random.
    pub loss: u64,
    /// More would have been on the way than memory is granted for.
    pub memory: u64,
    /// The outgoing interface did not take them: its MTU is smaller, it is down or full.
    pub send: u64,
    /// The kernel's buffer was full, because this machine did not keep up: the line is slower than
    /// asked. Never received, so part of no other number.
    pub receive_buffer: u64,
}

/// Lateness of frames that went out (ns): what this machine's timers and scheduler add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Late {
    /// Half were at most so late.
    pub p50_ns: u64,
    /// 99 % were at most so late.
    pub p99_ns: u64,
    /// The latest.
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
    /// All of them.
    pub fn total(&self) -> u64 {
        self.queue + self.loss + self.memory + self.send + self.receive_buffer
    }
}

impl Counters {
    /// CPU time per frame that came in (ns); `None` without frames.
    pub fn cpu_ns_per_packet(&self) -> Option<u64> {
        let [there, back] = &self.directions;
        self.cpu_ns.checked_div((there.received + back.received).packets)
    }
}
