//! Makes logs of Windows from the packets of a capture: those of `netsh trace` and of `pktmon`, and those of the
//! provider of the SMB server, in the layouts of both ranges of builds.
//!
//! No public log with packets or of the server exists. These are synthetic: written from the fields that the
//! manifests list, apart from the reader, so that rows of the log can be compared with rows of the capture.

mod client;
mod conversation;
mod events;
mod packets;

pub use client::{CLIENT_SHARES, ClientRequest, client_requests};
pub use conversation::{Exchange, conversation};
pub use events::{Layout, server_events, server_messages};
pub use packets::{Layers, netsh, pktmon};

use crate::etl::{Builder, Manifest};

/// A frame of a capture.
#[derive(Clone, Debug)]
pub struct Frame {
    pub time_ns: i64,
    pub bytes: Vec<u8>,
}

/// Frames of a pcap with Ethernet and microseconds.
pub fn frames_of_pcap(pcap: &[u8]) -> Vec<Frame> {
    assert_eq!(pcap[..4], [0xd4, 0xc3, 0xb2, 0xa1], "a little-endian pcap with microseconds");
    let number = |at: usize| u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap());
    let (mut at, mut frames) = (24, Vec::new());
    while at + 16 <= pcap.len() {
        let length = number(at + 8) as usize;
        if at + 16 + length > pcap.len() {
            break;
        }
        let time_ns = i64::from(number(at)) * 1_000_000_000 + i64::from(number(at + 4)) * 1_000;
        frames.push(Frame { time_ns, bytes: pcap[at + 16..at + 16 + length].to_vec() });
        at += 16 + length;
    }
    frames
}

/// A log to which events are added in the order of time.
struct Log {
    builder: Builder,
    first_ns: i64,
    buffers: Vec<crate::etl::Buffer>,
}

const BUFFER_BYTES: usize = 128 << 10;
const CPUS: usize = 3;

impl Log {
    fn new(first_ns: i64, build: u32) -> Log {
        let filetime = 116_444_736_000_000_000 + first_ns.div_euclid(100);
        let mut builder = Builder {
            start_filetime: filetime,
            build,
            buffer_bytes: BUFFER_BYTES,
            cpus: CPUS as u32,
            ..Builder::default()
        };
        let buffers = (0..CPUS as u16).map(|cpu| builder.buffer(cpu)).collect();
        builder.buffers.clear();
        Log { builder, first_ns, buffers }
    }

    /// Ticks of a time.
    fn ticks(&self, time_ns: i64) -> i64 {
        self.builder.start_ticks + (time_ns - self.first_ns).div_euclid(100)
    }

    /// Adds an event. Those of one instant are written by one processor, which keeps their order.
    fn event(&mut self, head: &Manifest<'_>, time_ns: i64, fields: &[u8]) {
        let ticks = self.ticks(time_ns);
        self.builder.length = self.builder.length.max(ticks - self.builder.start_ticks);
        let needed = 80 + fields.len() + 128;
        let place = ticks.rem_euclid(CPUS as i64) as usize;
        if self.buffers[place].filled_bytes() + needed > BUFFER_BYTES {
            let fresh = self.builder.buffer(place as u16);
            let full = std::mem::replace(&mut self.buffers[place], fresh);
            self.builder.add(full);
        }
        self.buffers[place].manifest(head, ticks, fields);
    }

    fn finish(mut self) -> Vec<u8> {
        for buffer in self.buffers.drain(..) {
            self.builder.add(buffer);
        }
        self.builder.build()
    }
}

/// Two logs of the same time in one: the buffers of the second one after those of the first one.
pub fn join(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut joined = first.to_vec();
    joined.extend_from_slice(&second[BUFFER_BYTES..]);
    joined
}

/// A GUID as logs have it.
fn guid(digits: u128) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = digits.to_be_bytes();
    let mut out = [d, c, b, a, f, e, h, g, 0, 0, 0, 0, 0, 0, 0, 0];
    out[8..].copy_from_slice(&rest);
    out
}
