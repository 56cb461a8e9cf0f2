//! Frames and messages that wait until the events of the server about the same operations were read.
//!
//! The server writes the event of a response after it has sent it: later than the packet in the log. The
//! decoder yields a row as soon as it sees the response, and the row needs the server's work.

use std::collections::VecDeque;

use smbscope_capture::file::LinkType;

use super::packets::Packet;

/// How long a frame waits, by the log's clock.
const WAIT_NS: i64 = 200_000_000;
/// Bytes and number of those that wait; beyond them a frame waits less long.
const BYTES_MAX: usize = 32 << 20;
const LINE_MAX: usize = 1 << 18;
/// Buffers that are kept to be used again.
const RECYCLED_MAX: usize = 256;

/// What waits.
#[derive(Clone, Copy, Debug)]
pub enum What {
    Frame { link: LinkType, original_bytes: u32 },
    Message { is_server: bool },
}

/// Something that waits.
#[derive(Debug)]
pub struct Waiting {
    pub time_ns: i64,
    pub what: What,
    pub bytes: Vec<u8>,
}

/// The line in which frames and messages wait.
#[derive(Debug, Default)]
pub struct Delay {
    line: VecDeque<Waiting>,
    bytes: usize,
    recycled: Vec<Vec<u8>>,
}

impl Delay {
    /// A frame waits.
    pub fn frame(&mut self, packet: Packet<'_>, time_ns: i64) {
        let Packet { link, bytes, original_bytes } = packet;
        self.add(What::Frame { link, original_bytes }, bytes, time_ns);
    }

    /// A message waits.
    pub fn message(&mut self, payload: &[u8], is_server: bool, time_ns: i64) {
        self.add(What::Message { is_server }, payload, time_ns);
    }

    fn add(&mut self, what: What, bytes: &[u8], time_ns: i64) {
        let mut copy = self.recycled.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        self.bytes += copy.len();
        self.line.push_back(Waiting { time_ns, what, bytes: copy });
    }

    /// The next one that has waited long enough at `time_ns`.
    pub fn next(&mut self, time_ns: i64) -> Option<Waiting> {
        let first = self.line.front()?;
        let fits = self.bytes <= BYTES_MAX && self.line.len() <= LINE_MAX;
        if fits && time_ns.saturating_sub(first.time_ns) < WAIT_NS {
            return None;
        }
        let first = self.line.pop_front()?;
        self.bytes -= first.bytes.len();
        Some(first)
    }

    /// Takes a buffer back.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.recycled.len() < RECYCLED_MAX && bytes.capacity() <= 1 << 16 {
            self.recycled.push(bytes);
        }
    }
}
