//! Converts events of the BPF part to parts of tables.
//!
//! Owns the order of messages and the columns of a row that its messages do not determine. `capture`'s
//! decoder gets the messages as segments of two streams in plaintext (`assemble`). It owns neither the
//! kernel's side nor clocks (`recording`).

use std::collections::BTreeMap;
use std::sync::Arc;

use smbscope_capture::frame::{TcpFlags, TcpSegment};
use smbscope_capture::{Endpoints, Error, Options, PushDecoder};
use smbscope_tables::Part;
use smbscope_tables::code::{Source, Vantage};
use smbscope_tables::operation::{Column, Operation};
use smbscope_tables::slice::Rows;
use smbscope_tables::tables::Coverage;
use smbscope_wire::smb2::oplock::NOTIFICATION_MESSAGE_ID;

use crate::assemble::{Assembler, Losses, StreamMessage};
use crate::join::{WireRows, known};
use crate::operation::RequestKey;
use crate::ring_event;
use crate::ring_event::{Counted, Event, Head};

/// Explanation of the vantage.
pub const INSIDE: &str = "recorded inside the server";
/// Most messages that wait to be put in order.
const WAITING_MAX: usize = 1 << 16;
/// Length of a NetBIOS header.
const HEADER_BYTES: usize = 4;
/// Length of the first segment of a message: its headers.
const FIRST_BYTES: usize = HEADER_BYTES + 64;

/// Converts events to rows.
#[derive(Clone)]
pub struct RowMaker {
    feed: PushDecoder,
    context: RowContext,
    /// Messages in the order of time. A request becomes known when it is read, possibly after replies
    /// that were sent since it arrived.
    waiting: BTreeMap<(u64, u64), StreamMessage>,
    /// Number of the last message: keeps the order of messages with equal times.
    numbered: u64,
    /// Time of the last event, CLOCK_MONOTONIC ns.
    seen: u64,
}

/// Values that do not come from the messages.
#[derive(Clone)]
struct RowContext {
    recording: Arc<str>,
    assembler: Assembler,
    /// Epoch minus monotonic time when the recording began, ns. Messages are decoded with it: if it
    /// changed, a step of the clock would be part of the decoder's durations.
    first_offset: i64,
    /// The current value.
    offset: i64,
    /// Rows so far: they are numbered from 1.
    rows: u64,
    without_slices: u64,
    slices: Rows,
    off_cpu: bool,
    disk: bool,
    /// Rows of an interface, recorded at the same time.
    wire: Option<WireRows>,
    /// Rows that the interface did not show.
    unjoined: u64,
    /// Connections that ended and whose first message was recorded.
    connections_begun: u64,
    /// When the recording began, ns since 1970.
    began: i64,
}

/// The result at the end.
pub struct Ended {
    /// The last parts, the coverage the last of them.
    pub parts: Vec<Part>,
    /// Number of operations.
    pub operations: u64,
    /// Number of operations without slices.
    pub without_slices: u64,
    /// Rows of the wire without a row of the probe.
    pub wire_only: u64,
}

impl RowMaker {
    /// A maker without events; `offset` is the epoch minus CLOCK_MONOTONIC in ns.
    pub fn new(recording: &str, offset: i64, options: &Options) -> Result<RowMaker, Error> {
        let context = RowContext {
            recording: recording.into(),
            assembler: Assembler::default(),
            first_offset: offset,
            offset,
            rows: 0,
            without_slices: 0,
            slices: Rows::default(),
            off_cpu: false,
            disk: false,
            wire: None,
            unjoined: 0,
            connections_begun: 0,
            began: i64::MAX,
        };
        let feed = PushDecoder::new(recording, options)?;
        Ok(RowMaker { feed, context, waiting: BTreeMap::new(), numbered: 0, seen: 0 })
    }

    /// Joins rows of an interface; each is added before the messages of its operation are fed.
    pub fn join(&mut self, wire: WireRows) {
        self.context.wire = Some(wire);
    }

    /// Samba's functions are not probed.
    pub fn without_functions(&mut self) {
        self.context.assembler.by_reply = true;
    }

    /// Time off the CPU, and of block devices, is measured: zeros are real values.
    pub fn measures(&mut self, off_cpu: bool, disk: bool) {
        (self.context.off_cpu, self.context.disk) = (off_cpu, disk);
    }

    /// The receiver of the interface's rows.
    pub fn wire(&mut self) -> Option<&mut WireRows> {
        self.context.wire.as_mut()
    }

    /// Sets the offset after the clocks were compared again.
    pub fn set_offset(&mut self, offset: i64) {
        self.context.offset = offset;
    }

    /// Epoch minus CLOCK_MONOTONIC, ns.
    pub fn offset(&self) -> i64 {
        self.context.offset
    }

    /// Time of the last event, CLOCK_MONOTONIC ns.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether [`RowMaker::parts`] should be called now.
    pub fn wants_out(&self) -> bool {
        self.feed.wants_out()
    }

    /// Operations in the parts so far.
    pub fn operations(&self) -> u64 {
        self.context.rows
    }

    /// Operations without slices so far.
    pub fn without_slices(&self) -> u64 {
        self.context.without_slices
    }

    /// The losses so far.
    pub fn losses(&self) -> Losses {
        self.context.assembler.losses
    }

    /// Processes an event as it is in the ring buffer.
    pub fn event(&mut self, bytes: &[u8]) {
        if let Some((head, event)) = ring_event::event(bytes) {
            self.take(head, event);
        }
    }

    fn take(&mut self, head: Head, event: Event<'_>) {
        self.seen = head.time;
        let (waiting, number) = (&mut self.waiting, &mut self.numbered);
        self.context.assembler.event(head, event, &mut |message| {
            *number += 1;
            waiting.insert((message.last, *number), message);
        });
        if self.waiting.len() > WAITING_MAX
            && let Some(((time, _), _)) = self.waiting.first_key_value()
        {
            self.feed_until(*time);
        }
    }

    /// Decodes messages before the given time, CLOCK_MONOTONIC ns: no earlier message follows.
    pub fn feed_until(&mut self, time: u64) {
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 > time {
                break;
            }
            feed_message(&mut self.feed, self.context.first_offset, &first.remove());
        }
    }

    /// Everything that ended since the last call.
    pub fn parts(&mut self) -> Result<Vec<Part>, Error> {
        let RowMaker { feed, context, .. } = self;
        let mut parts = feed.parts(&mut |row, ends| context.amend(row, ends))?;
        parts.push(context.take()?);
        parts.iter_mut().for_each(|part| context.complete(part));
        Ok(parts)
    }

    /// Begins a recording mid-stream: returns parts of what ended until now. See [`PushDecoder::begin`].
    pub fn begin(&mut self, recording: &str) -> Result<Vec<Part>, Error> {
        let RowMaker { feed, context, .. } = self;
        let mut parts = feed.begin(recording, &mut |row, ends| context.amend(row, ends))?;
        parts.push(context.take()?);
        parts.iter_mut().for_each(|part| context.complete(part));
        context.recording = recording.into();
        (context.without_slices, context.unjoined, context.connections_begun) = (0, 0, 0);
        context.assembler.losses = Losses::default();
        context.began = i64::MAX;
        Ok(parts)
    }

    /// The recording begins, at `time`, ns since 1970.
    pub fn began(&mut self, time: i64) {
        self.context.began = time;
    }

    /// Everything ends at `time`, ns since 1970; the counters of the kernel's side complete the coverage.
    pub fn end(mut self, counted: Counted, time: i64) -> Result<Ended, Error> {
        let (waiting, number) = (&mut self.waiting, &mut self.numbered);
        self.context.assembler.end_all(&mut |message| {
            *number += 1;
            waiting.insert((message.last, *number), message);
        });
        self.feed_until(u64::MAX);
        let RowMaker { feed, mut context, .. } = self;
        let mut parts = feed.end(&mut |row, ends| context.amend(row, ends), |_| ())?;
        // The coverage is the last part.
        let slices = context.take()?;
        parts.insert(parts.len().saturating_sub(1), slices);
        parts.iter_mut().for_each(|part| context.complete(part));
        if let Some(Part::Coverage(coverage)) = parts.last_mut() {
            context.cover(coverage, counted, time);
        }
        Ok(Ended {
            parts,
            operations: context.rows,
            without_slices: context.without_slices,
            wire_only: context.wire.as_ref().map_or(0, WireRows::left),
        })
    }
}

/// A message as two segments: its head at the time of its first byte, the rest at that of its last one.
fn feed_message(feed: &mut PushDecoder, offset: i64, message: &StreamMessage) {
    let time = |monotonic: u64| monotonic as i64 + offset;
    let (source, destination) = if message.from_client {
        (message.client, message.server)
    } else {
        (message.server, message.client)
    };
    let segment = TcpSegment {
        source: source.ip().into(),
        destination: destination.ip().into(),
        source_port: source.port(),
        destination_port: destination.port(),
        sequence: message.sequence,
        acknowledgement: 0,
        flags: if message.ends { TcpFlags::FIN } else { TcpFlags::PSH },
        window: u16::MAX,
        ttl: 64,
        options: &[],
        payload: &[],
        payload_len: 0,
    };
    if message.ends {
        feed.segment(&segment, time(message.last));
        return;
    }
    if message.begins {
        let flags = TcpFlags::SYN;
        let sequence = message.sequence.wrapping_sub(1);
        feed.segment(&TcpSegment { sequence, flags, ..segment }, time(message.first));
    }
    let captured = message.bytes.len().min(message.length as usize);
    let mut bytes = Vec::with_capacity(HEADER_BYTES + captured);
    let [_, length @ ..] = message.length.to_be_bytes();
    bytes.push(0);
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(message.bytes.get(..captured).unwrap_or_default());
    let all = message.length.saturating_add(HEADER_BYTES as u32);
    // The first segment includes the SMB2 header, by which the decoder recognizes the message.
    let split =
        if message.first == message.last { bytes.len() } else { FIRST_BYTES.min(bytes.len()) };
    let (first, rest) = bytes.split_at(split);
    let first_len = if rest.is_empty() { all } else { split as u32 };
    feed.segment(
        &TcpSegment { payload: first, payload_len: first_len, ..segment },
        time(message.first),
    );
    if !rest.is_empty() {
        let rest = TcpSegment {
            sequence: message.sequence.wrapping_add(first_len),
            payload: rest,
            payload_len: all - first_len,
            ..segment
        };
        feed.segment(&rest, time(message.last));
    }
}

impl RowContext {
    /// Slices of the rows since the last call.
    fn take(&mut self) -> Result<Part, Error> {
        Ok(Part::Slices(self.slices.finish(&self.recording)?))
    }

    /// Converts all times of a row with the same offset of the clocks.
    fn to_clock(&self, row: &mut Operation) {
        let step = self.offset - self.first_offset;
        if step == 0 {
            return;
        }
        let moved = |time: Option<i64>| time.map(|time| time + step);
        known(row, moved(row.request_start()), Operation::set_request_start);
        known(row, moved(row.request_end()), Operation::set_request_end);
        known(row, moved(row.pending_at()), Operation::set_pending_at);
        known(row, moved(row.response_start()), Operation::set_response_start);
        known(row, moved(row.response_end()), Operation::set_response_end);
    }

    /// Sets the columns of a row of the probe that its messages do not determine.
    fn amend(&mut self, row: &mut Operation, ends: &Endpoints) {
        self.rows += 1;
        let number = self.rows;
        row.set_source(Source::Probe as u64);
        row.set_vantage(Vantage::Inside as u64);
        self.to_clock(row);
        // There are no frames, and the streams' own numbers are meaningless outside.
        row.clear(Column::request_frame);
        row.clear(Column::response_frame);
        row.clear(Column::pending_frame);
        let index = row.compound_index().unwrap_or(0);
        let Endpoints { client, server } = *ends;
        let key = row.tcp_sequence().map(|sequence| RequestKey { client, server, sequence, index });
        row.clear(Column::tcp_sequence);
        let Some(key) = key else {
            // Unsolicited messages of the server were never served.
            let is_break = row.message_id() == Some(NOTIFICATION_MESSAGE_ID);
            self.without_slices += u64::from(!is_break);
            return;
        };
        let Some(server_side) = self.assembler.take_server_side(&key) else {
            self.without_slices += 1;
            self.unjoined += u64::from(self.wire.is_some());
            return;
        };
        let offset = self.offset;
        if row.request_end().is_some() {
            row.set_request_start(server_side.first as i64 + offset);
            row.set_request_end(server_side.arrived as i64 + offset);
            row.derive_durations();
        }
        if server_side.slices.0.is_empty() {
            self.without_slices += 1;
        } else if let Some(turnaround) = row.turnaround_ns() {
            row.set_server_ns(turnaround);
            row.set_server_error_ns(0);
        }
        row.set_tcp_sequence(server_side.tcp_sequence);
        row.set_pid(server_side.process);
        row.set_tid(server_side.thread);
        row.set_cpu(u32::from(server_side.cpu));
        server_side.slices.fill(row);
        if !server_side.slices.0.is_empty() {
            if self.off_cpu {
                row.set_offcpu_ns(server_side.within.off as i64);
            }
            if self.disk {
                row.set_disk_ns(server_side.within.disk as i64);
            }
        }
        for slice in &server_side.slices.0 {
            let start = slice.start as i64 + offset;
            self.slices.push(number, slice.kind, start, slice.duration as i64);
        }
        if server_side.encrypted {
            row.set_encrypted(true);
            let more = u64::from(server_side.more_bytes);
            if let Some(bytes) = row.request_wire_bytes() {
                row.set_request_wire_bytes(bytes + more);
            }
            if let Some(bytes) = row.response_wire_bytes() {
                // An interim reply is encrypted separately; a compound's size is in the row of its
                // first member.
                let own = row.pending_at().is_some() && row.compound_index().unwrap_or(0) == 0;
                let replies = 1 + u64::from(own);
                row.set_response_wire_bytes(bytes + replies * more);
            }
        }
        if let Some(wire) = &mut self.wire {
            let key = RequestKey { client, server, sequence: server_side.tcp_sequence, index };
            self.unjoined += u64::from(index == 0 && !wire.join(&key, row));
        }
    }

    /// Sets the vantage of connections, and the wire's values.
    fn complete(&mut self, part: &mut Part) {
        let Part::Connections(rows) = part else { return };
        for row in rows {
            row.vantage = Some(Vantage::Inside.name().to_owned());
            row.vantage_reason = INSIDE.into();
            // Credits are counted only if the first message was recorded.
            row.handshake_seen = row.credits_min.is_some();
            self.connections_begun += u64::from(row.handshake_seen);
            // Messages went through the decoder as segments; there were no packets.
            (row.packets_to_server, row.packets_to_client) = (0, 0);
            (row.out_of_order_to_server, row.out_of_order_to_client) = (0, 0);
            (row.retransmissions_to_server, row.retransmissions_to_client) = (0, 0);
            if let Some(wire) = &mut self.wire {
                *row = wire.joined(std::mem::take(row));
            }
        }
    }

    fn cover(&self, coverage: &mut Coverage, counted: Counted, ended: i64) {
        let Losses { without_message, without_clear, without_connection, .. } =
            self.assembler.losses;
        coverage.format = if self.assembler.by_reply {
            "probe inside smbd, system calls only".to_owned()
        } else {
            "probe inside smbd".to_owned()
        };
        coverage.vantage = Some(Vantage::Inside.name().to_owned());
        coverage.vantage_reason = INSIDE.into();
        // It began before the first operation and ended after the last one.
        let start = coverage.start.unwrap_or(i64::MAX).min(self.began);
        coverage.start = Some(start.min(ended));
        coverage.end = coverage.end.max(Some(ended));
        // There were no packets.
        coverage.frames = 0;
        coverage.frames_time_backwards = 0;
        coverage.out_of_order = 0;
        coverage.retransmissions = 0;
        coverage.connections_mid_stream =
            coverage.connections.saturating_sub(self.connections_begun);
        coverage.frames_dropped = Some(counted.dropped);
        coverage.operations_unjoined = self.unjoined;
        coverage.operations_without_slices = self.without_slices;
        coverage.events_unexplained =
            without_message + without_clear + without_connection + counted.strange_sends;
        coverage.flushes_ambiguous = self.assembler.losses.ambiguous_flushes;
        coverage.state_discarded =
            self.assembler.losses.given_up + counted.threads + counted.processes;
    }
}

#[cfg(test)]
mod tests;
