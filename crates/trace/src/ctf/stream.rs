//! Events of one stream, packet after packet (CTF 1.8.3, sections 5 and 6; CTF 2, section 6).

use std::io;

use super::decode::{Cursor, Values};
use super::folder::Files;
use super::metadata::{Metadata, StreamClass};
use super::types::ALIGN_BITS_MAX;
use crate::linux::State;

const MAGIC: u64 = 0xc1fc_1fc1;
/// Bytes of a packet in memory: as a rule, and when an event is longer.
const WINDOW_BYTES: u64 = 32_768;
const WINDOW_BYTES_MAX: u64 = 1 << 17;
/// Windows begin where no alignment can be wrong.
const STEP_BYTES: u64 = ALIGN_BITS_MAX as u64 / 8;

/// A packet that is being read.
#[derive(Clone, Copy, Debug)]
struct Packet {
    class: StreamClass,
    stream_id: u64,
    content_bits: u64,
    packet_bytes: u64,
    /// No event is later.
    end: u64,
}

/// An event that was read.
#[derive(Debug)]
pub struct Pending {
    pub time: u64,
    /// Numbers of its stream and of its kind.
    pub class: (u64, u64),
    /// The thread, if the trace has it with each event.
    pub thread: Option<u32>,
}

/// A stream: the events of one CPU.
#[derive(Debug)]
pub struct Stream {
    file: usize,
    name: String,
    size_bytes: u64,
    packet_at: u64,
    packet: Option<Packet>,
    /// A part of the packet, and where in it that begins.
    pub window: Vec<u8>,
    window_at: u64,
    at_bits: u64,
    time: u64,
    pub cpu: u32,
    discarded: Option<u64>,
    sequence: Option<u64>,
    pub event: Option<Pending>,
    /// The event's values; texts are in the window.
    pub values: Values,
}

impl Stream {
    pub fn new(file: usize, name: String, size_bytes: u64) -> Stream {
        Stream {
            file,
            name,
            size_bytes,
            packet_at: 0,
            packet: None,
            window: Vec::new(),
            window_at: 0,
            at_bits: 0,
            time: 0,
            cpu: 0,
            discarded: None,
            sequence: None,
            event: None,
            values: Values::default(),
        }
    }

    /// Bytes of the file that were read or skipped.
    pub fn read_bytes(&self) -> u64 {
        self.packet_at.saturating_add(self.at_bits / 8).min(self.size_bytes)
    }

    /// Reads the next event into `event`; none at the end.
    pub fn advance(
        &mut self,
        files: &mut impl Files,
        metadata: &Metadata,
        linux: &mut State,
    ) -> io::Result<()> {
        loop {
            let packet = match self.packet {
                Some(packet) => packet,
                None => match self.open(files, metadata, linux)? {
                    Some(packet) => packet,
                    None => {
                        self.event = None;
                        return Ok(());
                    }
                },
            };
            if self.at_bits < packet.content_bits {
                let before = self.time;
                if let Some(event) = self.read(packet, metadata) {
                    if event.time > packet.end {
                        self.time = before;
                        self.damaged(linux, "the time of an event");
                        continue;
                    }
                    self.event = Some(event);
                    return Ok(());
                }
                if self.grow(files, packet)? {
                    continue;
                }
                self.damaged(linux, "an event");
            }
            self.packet_at = self.packet_at.saturating_add(packet.packet_bytes);
            self.packet = None;
        }
    }

    fn damaged(&self, linux: &mut State, what: &str) {
        let at = self.packet_at.saturating_add(self.at_bits / 8);
        linux.damaged(|| format!("{}: {what} at byte {at}", self.name));
    }

    /// Begins the next packet; `None` at the end, or if its place is not known.
    fn open(
        &mut self,
        files: &mut impl Files,
        metadata: &Metadata,
        linux: &mut State,
    ) -> io::Result<Option<Packet>> {
        (self.window_at, self.at_bits) = (0, 0);
        self.window.clear();
        if self.packet_at >= self.size_bytes {
            return Ok(None);
        }
        files.read(self.file, self.packet_at, WINDOW_BYTES, &mut self.window)?;
        self.packet = self.header(metadata, linux);
        let left = self.size_bytes - self.packet_at;
        match self.packet {
            None => {
                self.damaged(linux, "a packet");
                self.packet_at = self.size_bytes;
            }
            Some(packet) if packet.packet_bytes > left => {
                self.damaged(linux, "a packet that is cut");
            }
            Some(_) => {}
        }
        Ok(self.packet)
    }

    fn header(&mut self, metadata: &Metadata, linux: &mut State) -> Option<Packet> {
        let types = &metadata.types;
        let end_bits = 8 * self.window.len();
        let mut cursor = Cursor { bytes: &self.window, at_bits: 0, end_bits, time: 0 };
        let mut values = Values::default();
        if let Some(header) = metadata.packet_header {
            cursor.read(types, header, &mut values)?;
        }
        let number = |values: &Values, name| values.number(types, name);
        if number(&values, "magic").is_some_and(|magic| magic != MAGIC) {
            return None;
        }
        let stream_id = number(&values, "stream_id").unwrap_or(0);
        let class = *metadata.streams.get(&stream_id)?;
        if let Some(context) = class.packet_context {
            cursor.read(types, context, &mut values)?;
        }
        self.at_bits = cursor.at_bits as u64;
        let left_bits = (self.size_bytes - self.packet_at).checked_mul(8)?;
        let packet_bits = number(&values, "packet_size").unwrap_or(left_bits);
        let content_bits = number(&values, "content_size").unwrap_or(packet_bits);
        let is_possible = packet_bits % 8 == 0
            && content_bits <= packet_bits
            && self.at_bits <= content_bits
            && self.at_bits > 0;
        if !is_possible {
            return None;
        }
        self.time = number(&values, "timestamp_begin").unwrap_or(0);
        let end = number(&values, "timestamp_end").filter(|&end| end != 0).unwrap_or(u64::MAX);
        if self.time > end {
            return None;
        }
        self.cpu = match number(&values, "cpu_id") {
            Some(cpu) => u32::try_from(cpu).ok()?,
            None => 0,
        };
        self.losses(number(&values, "events_discarded"), number(&values, "packet_seq_num"), linux);
        Some(Packet { class, stream_id, content_bits, packet_bytes: packet_bits / 8, end })
    }

    /// Counters of the stream: events that were discarded so far, and the packet's number.
    fn losses(&mut self, discarded: Option<u64>, sequence: Option<u64>, linux: &mut State) {
        if let Some(discarded) = discarded {
            // A trace that does not begin with the first packet has lost nothing by that.
            let is_first = sequence.is_none_or(|sequence| sequence == 0);
            let before = self.discarded.unwrap_or(if is_first { 0 } else { discarded });
            let lost = discarded.saturating_sub(before);
            linux.coverage.events_lost.get_or_insert(0);
            if lost > 0 {
                linux.lost(Some(self.cpu), lost);
            }
            self.discarded = Some(discarded);
        }
        if let Some(sequence) = sequence {
            let expected = self.sequence.map_or(sequence, |before| before.saturating_add(1));
            let lost = linux.coverage.buffers_lost.get_or_insert(0);
            *lost = lost.saturating_add(sequence.saturating_sub(expected));
            self.sequence = Some(sequence);
        }
    }

    /// Reads the event at this place; `None` if it is not whole in the window.
    fn read(&mut self, packet: Packet, metadata: &Metadata) -> Option<Pending> {
        let types = &metadata.types;
        let base = self.window_at * 8;
        let start = usize::try_from(self.at_bits.checked_sub(base)?).ok()?;
        let content = usize::try_from(packet.content_bits.saturating_sub(base));
        let end_bits = content.unwrap_or(usize::MAX).min(8 * self.window.len());
        let time = self.time;
        let mut cursor = Cursor { bytes: &self.window, at_bits: start, end_bits, time };
        let values = &mut self.values;
        values.clear();
        cursor.read(types, packet.class.event_header?, values)?;
        let class = (packet.stream_id, values.number(types, "id").unwrap_or(0));
        let event = metadata.events.get(&class)?;
        for context in [packet.class.event_context, event.context].into_iter().flatten() {
            cursor.read(types, context, values)?;
        }
        let thread = values.number(types, "tid").and_then(|thread| u32::try_from(thread).ok());
        if let Some(fields) = event.fields {
            cursor.read(types, fields, values)?;
        }
        if cursor.at_bits <= start {
            return None;
        }
        (self.time, self.at_bits) = (cursor.time, base + cursor.at_bits as u64);
        Some(Pending { time: self.time, class, thread })
    }

    /// Reads more of the packet; false if there is no more, or an event is too long.
    fn grow(&mut self, files: &mut impl Files, packet: Packet) -> io::Result<bool> {
        let window_at = self.at_bits / 8 / STEP_BYTES * STEP_BYTES;
        let unused = usize::try_from(window_at - self.window_at).unwrap_or(usize::MAX);
        self.window.drain(..unused.min(self.window.len()));
        self.window_at = window_at;
        let length = self.window.len() as u64;
        let wanted = if unused > 0 { WINDOW_BYTES } else { 2 * length };
        let wanted = wanted.clamp(WINDOW_BYTES, WINDOW_BYTES_MAX);
        let rest = packet.content_bits.div_ceil(8).saturating_sub(window_at + length);
        let more = wanted.saturating_sub(length).min(rest);
        let at = self.packet_at.saturating_add(window_at + length);
        files.read(self.file, at, more, &mut self.window)?;
        Ok(self.window.len() as u64 > length)
    }
}
