//! From what the BPF part tells to parts of tables.
//!
//! Owns the order of messages and what a row of the probe says beside its messages. The messages go
//! through `capture`'s decoder as segments of two streams in clear (`assemble`). It does not own the
//! kernel's side nor clocks (`recording`).

use std::collections::BTreeMap;
use std::sync::Arc;

use smbscope_capture::frame::{TcpFlags, TcpSegment};
use smbscope_capture::{Ends, Error, Feed, Options};
use smbscope_event::code::{Source, Vantage};
use smbscope_event::operation::{Column, Operation};
use smbscope_event::part::Part;
use smbscope_event::slice::Slice;
use smbscope_event::tables::Coverage;

use crate::assemble::{Assembler, Losses, Place, Told};
use crate::raw;

/// Why the vantage is what it is.
pub const INSIDE: &str = "recorded inside the server";
/// Messages that wait to be put in order at most.
const WAITING_MAX: usize = 1 << 16;
/// Of a NetBIOS header.
const HEADER_BYTES: usize = 4;
/// Of the first segment of a message: its headers.
const FIRST_BYTES: usize = HEADER_BYTES + 64;

/// From events to rows.
#[derive(Clone)]
pub struct Follow {
    feed: Feed,
    beside: Beside,
    /// Messages in the order of time. A request is known when it is read, perhaps after the replies
    /// to others that were sent since it came.
    waiting: BTreeMap<(u64, u64), Told>,
    told: u64,
}

/// What is known beside the messages.
#[derive(Clone)]
struct Beside {
    recording: Arc<str>,
    assembler: Assembler,
    /// Epoch less monotonic time, ns.
    offset: i64,
    /// Rows so far: they are numbered from 1.
    rows: u64,
    without_slices: u64,
    slices: Vec<Slice>,
}

impl Follow {
    /// One that saw nothing yet; `offset` is the epoch's distance from CLOCK_MONOTONIC in ns.
    pub fn new(recording: &str, offset: i64, options: &Options) -> Result<Follow, Error> {
        let beside = Beside {
            recording: recording.into(),
            assembler: Assembler::default(),
            offset,
            rows: 0,
            without_slices: 0,
            slices: Vec::new(),
        };
        let feed = Feed::new(recording, options)?;
        Ok(Follow { feed, beside, waiting: BTreeMap::new(), told: 0 })
    }

    /// The clocks were compared again.
    pub fn set_offset(&mut self, offset: i64) {
        self.beside.offset = offset;
    }

    /// Whether [`Follow::parts`] should be asked now.
    pub fn wants_out(&self) -> bool {
        self.feed.wants_out()
    }

    /// Operations in the parts so far.
    pub fn operations(&self) -> u64 {
        self.beside.rows
    }

    /// Operations without slices so far.
    pub fn without_slices(&self) -> u64 {
        self.beside.without_slices
    }

    /// What was given up so far.
    pub fn losses(&self) -> Losses {
        self.beside.assembler.losses
    }

    /// Takes an event as it lies in the ring buffer.
    pub fn event(&mut self, bytes: &[u8]) {
        let Some((head, event)) = raw::event(bytes) else { return };
        let (waiting, number) = (&mut self.waiting, &mut self.told);
        self.beside.assembler.event(head, event, &mut |told| {
            *number += 1;
            waiting.insert((told.last, *number), told);
        });
        if self.waiting.len() > WAITING_MAX
            && let Some(((time, _), _)) = self.waiting.first_key_value()
        {
            self.feed_until(*time);
        }
    }

    /// Decodes messages until that time, CLOCK_MONOTONIC ns: none before it will be told.
    pub fn feed_until(&mut self, time: u64) {
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 > time {
                break;
            }
            tell(&mut self.feed, self.beside.offset, &first.remove());
        }
    }

    /// What ended since the last time.
    pub fn parts(&mut self) -> Result<Vec<Part>, Error> {
        let Follow { feed, beside, .. } = self;
        let mut parts = feed.parts(&mut |row, ends| beside.amend(row, ends))?;
        parts.push(beside.take());
        parts.iter_mut().for_each(from_inside);
        Ok(parts)
    }

    /// A recording begins in the midst: parts of what ended until now. See [`Feed::begin`].
    pub fn begin(&mut self, recording: &str) -> Result<Vec<Part>, Error> {
        let Follow { feed, beside, .. } = self;
        let mut parts = feed.begin(recording, &mut |row, ends| beside.amend(row, ends))?;
        parts.push(beside.take());
        parts.iter_mut().for_each(from_inside);
        beside.recording = recording.into();
        Ok(parts)
    }

    /// What [`Follow::end`] would give now, while all goes on.
    pub fn ended(&self, fill: impl FnOnce(&mut Coverage)) -> Result<Vec<Part>, Error> {
        Ok(self.clone().end(fill)?.0)
    }

    /// Everything ends: the last parts, how many operations there were, and how many of them without
    /// slices. `fill` completes the coverage.
    pub fn end(mut self, fill: impl FnOnce(&mut Coverage)) -> Result<(Vec<Part>, u64, u64), Error> {
        self.feed_until(u64::MAX);
        let Follow { feed, mut beside, .. } = self;
        let mut parts = feed.end(&mut |row, ends| beside.amend(row, ends), fill)?;
        // The coverage is the last.
        let slices = beside.take();
        parts.insert(parts.len().saturating_sub(1), slices);
        parts.iter_mut().for_each(from_inside);
        Ok((parts, beside.rows, beside.without_slices))
    }
}

/// A message as two segments: its head when its first byte passed, the rest when its last one did.
fn tell(feed: &mut Feed, offset: i64, told: &Told) {
    let time = |monotonic: u64| monotonic as i64 + offset;
    let (source, destination) = match told.from_client {
        true => (told.client, told.server),
        false => (told.server, told.client),
    };
    let segment = TcpSegment {
        source: source.ip(),
        destination: destination.ip(),
        source_port: source.port(),
        destination_port: destination.port(),
        sequence: told.sequence,
        acknowledgement: 0,
        flags: if told.ends { TcpFlags::FIN } else { TcpFlags::PSH },
        window: u16::MAX,
        ttl: 64,
        options: &[],
        payload: &[],
        payload_len: 0,
    };
    if told.ends {
        feed.segment(&segment, time(told.last));
        return;
    }
    let captured = told.bytes.len().min(told.length as usize);
    let mut bytes = Vec::with_capacity(HEADER_BYTES + captured);
    let [_, length @ ..] = told.length.to_be_bytes();
    bytes.push(0);
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(told.bytes.get(..captured).unwrap_or_default());
    let all = told.length.saturating_add(HEADER_BYTES as u32);
    // The first segment has the SMB2 header too, by which the decoder knows what this is.
    let split = if told.first == told.last { bytes.len() } else { FIRST_BYTES.min(bytes.len()) };
    let (first, rest) = bytes.split_at(split);
    let first_len = if rest.is_empty() { all } else { split as u32 };
    feed.segment(
        &TcpSegment { payload: first, payload_len: first_len, ..segment },
        time(told.first),
    );
    if !rest.is_empty() {
        let rest = TcpSegment {
            sequence: told.sequence.wrapping_add(first_len),
            payload: rest,
            payload_len: all - first_len,
            ..segment
        };
        feed.segment(&rest, time(told.last));
    }
}

impl Beside {
    /// Slices of the rows since the last time.
    fn take(&mut self) -> Part {
        Part::Slices(std::mem::take(&mut self.slices))
    }

    /// What a row of the probe says that its messages do not.
    fn amend(&mut self, row: &mut Operation, ends: &Ends) {
        self.rows += 1;
        let number = self.rows;
        row.set_source(Source::Probe as u64);
        row.set_vantage(Vantage::Inside as u64);
        // There are no frames, and the streams' own numbers are nobody's.
        row.clear(Column::request_frame);
        row.clear(Column::response_frame);
        let place = row.tcp_sequence().map(|sequence| Place {
            client: ends.client,
            server: ends.server,
            sequence,
            index: row.compound_index().unwrap_or(0),
        });
        row.clear(Column::tcp_sequence);
        let Some(inside) = place.and_then(|place| self.assembler.inside(&place)) else {
            self.without_slices += 1;
            return;
        };
        let offset = self.offset;
        if row.request_end().is_some() {
            row.set_request_start(inside.first as i64 + offset);
            row.set_request_end(inside.arrived as i64 + offset);
            row.derive_durations();
        }
        if let Some(turnaround) = row.turnaround_ns() {
            row.set_server_ns(turnaround);
            row.set_server_error_ns(0);
        }
        row.set_tcp_sequence(inside.tcp_sequence);
        row.set_pid(inside.process);
        row.set_tid(inside.thread);
        row.set_cpu(u32::from(inside.cpu));
        inside.slices.fill(row);
        self.slices.extend(inside.slices.0.iter().map(|slice| Slice {
            recording: self.recording.clone(),
            operation: number,
            kind: slice.kind.name().into(),
            start: slice.start as i64 + offset,
            duration_ns: slice.duration as i64,
            ..Slice::default()
        }));
        if inside.encrypted {
            row.set_encrypted(true);
            let more = u64::from(inside.more_bytes);
            if let Some(bytes) = row.request_wire_bytes() {
                row.set_request_wire_bytes(bytes + more);
            }
            if let Some(bytes) = row.response_wire_bytes() {
                // An interim reply is encrypted by itself; a compound's stands on its lead.
                let own = row.pending_at().is_some() && row.compound_index().unwrap_or(0) == 0;
                let replies = 1 + u64::from(own);
                row.set_response_wire_bytes(bytes + replies * more);
            }
        }
    }
}

fn from_inside(part: &mut Part) {
    if let Part::Connections(rows) = part {
        for row in rows {
            row.vantage = Some(Vantage::Inside.name().to_owned());
            row.vantage_reason = INSIDE.into();
        }
    }
}
