//! Writes the subset of Perfetto's trace format that tracks with nested slices need
//! (perfetto/protos/perfetto/trace: trace_packet.proto, track_event/).
//!
//! We use protobuf instead of Chrome's JSON for four reasons. JSON stores times as floating-point microseconds,
//! whose resolution for times since 1970 is only 0.25 µs. Its tracks are threads, and a connection is not a
//! thread. It is four times as large. And in protobuf, tracks of the same name under one parent are shown as one
//! track, so concurrent operations appear below each other on their connection's track. Every packet is
//! self-contained, so a truncated trace still opens.

use std::io::{self, Write};

/// Field numbers of the .proto files, by message.
mod field {
    pub(super) const TRACE_PACKET: u32 = 1;
    pub(super) const PACKET_CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const PACKET_TIMESTAMP: u32 = 8;
    pub(super) const PACKET_SEQUENCE: u32 = 10;
    pub(super) const PACKET_EVENT: u32 = 11;
    pub(super) const PACKET_TRACK: u32 = 60;
    pub(super) const SNAPSHOT_CLOCK: u32 = 1;
    pub(super) const CLOCK_ID: u32 = 1;
    pub(super) const CLOCK_TIMESTAMP: u32 = 2;
    pub(super) const TRACK_UUID: u32 = 1;
    pub(super) const TRACK_NAME: u32 = 2;
    pub(super) const TRACK_PARENT: u32 = 5;
    pub(super) const TRACK_CHILD_ORDERING: u32 = 11;
    pub(super) const TRACK_RANK: u32 = 12;
    pub(super) const EVENT_ANNOTATION: u32 = 4;
    pub(super) const EVENT_TYPE: u32 = 9;
    pub(super) const EVENT_TRACK: u32 = 11;
    pub(super) const EVENT_CATEGORY: u32 = 22;
    pub(super) const EVENT_NAME: u32 = 23;
    pub(super) const ANNOTATION_UINT: u32 = 3;
    pub(super) const ANNOTATION_INT: u32 = 4;
    pub(super) const ANNOTATION_STRING: u32 = 6;
    pub(super) const ANNOTATION_NAME: u32 = 10;
}

/// BUILTIN_CLOCK_REALTIME and BUILTIN_CLOCK_BOOTTIME; time stamps are read as the latter.
const CLOCKS: [u64; 2] = [1, 6];
/// ChildTracksOrdering EXPLICIT: by rank.
const BY_RANK: u64 = 3;
/// The identity of the only sequence of packets.
const SEQUENCE: u64 = 1;

/// What happens on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Type {
    /// A slice begins.
    Begin = 1,
    /// The innermost slice ends.
    End = 2,
    /// An event without a duration.
    Instant = 3,
}

/// A value that is shown when a slice is selected.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Text(&'a str),
    Unsigned(u64),
    Signed(i64),
}

/// Writes packets.
pub struct TraceWriter<W> {
    out: W,
    packet: Message,
    inner: Message,
    innermost: Message,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace in `out`.
    pub fn new(out: W) -> TraceWriter<W> {
        let [packet, inner, innermost] = std::array::from_fn(|_| Message::default());
        TraceWriter { out, packet, inner, innermost }
    }

    /// Ends the trace and returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Declares that time stamps are nanoseconds since 1970, so that the page can show the time of day.
    pub fn clock(&mut self, at: i64) -> io::Result<()> {
        self.packet.clear();
        self.inner.clear();
        for clock in CLOCKS {
            self.innermost.clear();
            self.innermost.number(field::CLOCK_ID, clock);
            self.innermost.number(field::CLOCK_TIMESTAMP, time(at));
            self.inner.message(field::SNAPSHOT_CLOCK, &self.innermost);
        }
        self.packet.message(field::PACKET_CLOCK_SNAPSHOT, &self.inner);
        self.packet.number(field::PACKET_TIMESTAMP, time(at));
        self.packet.number(field::PACKET_SEQUENCE, SEQUENCE);
        self.write_packet()
    }

    /// Declares a track. Tracks under one parent are ordered by rank.
    pub fn track(
        &mut self,
        uuid: u64,
        parent: Option<u64>,
        name: &str,
        rank: u64,
    ) -> io::Result<()> {
        self.packet.clear();
        self.inner.clear();
        self.inner.number(field::TRACK_UUID, uuid);
        self.inner.bytes(field::TRACK_NAME, name.as_bytes());
        match parent {
            Some(parent) => self.inner.number(field::TRACK_PARENT, parent),
            None => self.inner.number(field::TRACK_CHILD_ORDERING, BY_RANK),
        }
        self.inner.number(field::TRACK_RANK, rank);
        self.packet.number(field::PACKET_SEQUENCE, SEQUENCE);
        self.packet.message(field::PACKET_TRACK, &self.inner);
        self.write_packet()
    }

    /// Adds an event to a track. The end of a slice needs no name.
    pub fn event(
        &mut self,
        track: u64,
        at: i64,
        kind: Type,
        (category, name): (&str, &str),
        values: &[(&str, Value<'_>)],
    ) -> io::Result<()> {
        self.packet.clear();
        self.inner.clear();
        for (name, value) in values {
            self.innermost.clear();
            match value {
                Value::Text(text) => {
                    self.innermost.bytes(field::ANNOTATION_STRING, text.as_bytes());
                }
                Value::Unsigned(value) => self.innermost.number(field::ANNOTATION_UINT, *value),
                // A negative int64 is its two's complement.
                Value::Signed(value) => {
                    self.innermost.number(field::ANNOTATION_INT, value.cast_unsigned());
                }
            }
            self.innermost.bytes(field::ANNOTATION_NAME, name.as_bytes());
            self.inner.message(field::EVENT_ANNOTATION, &self.innermost);
        }
        self.inner.number(field::EVENT_TYPE, kind as u64);
        self.inner.number(field::EVENT_TRACK, track);
        if kind != Type::End {
            self.inner.bytes(field::EVENT_CATEGORY, category.as_bytes());
            self.inner.bytes(field::EVENT_NAME, name.as_bytes());
        }
        self.packet.number(field::PACKET_TIMESTAMP, time(at));
        self.packet.number(field::PACKET_SEQUENCE, SEQUENCE);
        self.packet.message(field::PACKET_EVENT, &self.inner);
        self.write_packet()
    }

    fn write_packet(&mut self) -> io::Result<()> {
        self.inner.clear();
        self.inner.message(field::TRACE_PACKET, &self.packet);
        self.out.write_all(&self.inner.0)
    }
}

/// Perfetto's times are unsigned; no recording is older than 1970.
fn time(at: i64) -> u64 {
    u64::try_from(at).unwrap_or(0)
}

/// A message that is being encoded (protobuf.dev, "Encoding").
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, message: &Message) {
        self.bytes(field, &message.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_as_perfetto_s_own_library_writes_them() {
        // python3, with perfetto_trace_pb2 of the package perfetto 0.59: Trace(packet=[TracePacket(
        // timestamp=300, trusted_packet_sequence_id=1, track_event=TrackEvent(type=1,
        // track_uuid=200, categories=["smb"], name="Read", debug_annotations=[DebugAnnotation(
        // name="n", int_value=-1)]))]).SerializeToString().hex()
        let mut writer = TraceWriter::new(Vec::new());
        let values = [("n", Value::Signed(-1))];
        writer.event(200, 300, Type::Begin, ("smb", "Read"), &values).unwrap();
        let hex: String = writer.into_inner().iter().map(|byte| format!("{byte:02x}")).collect();
        let annotation = "220e20ffffffffffffffffff0152016e";
        let event = format!("{annotation}480158c801b20103736d62ba010452656164");
        assert_eq!(hex, format!("0a2940ac0250015a22{event}"));
    }
}
