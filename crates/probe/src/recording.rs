//! A running recording: events from the kernel become parts of tables.
//!
//! Owns the clock between the kernel's monotonic time and the rows' epoch, and what a row of the
//! probe says beside its messages. The messages go through `capture`'s decoder as segments of two
//! streams in clear (`assemble`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use smbscope_capture::frame::{TcpFlags, TcpSegment};
use smbscope_capture::{Ends, Feed, Options};
use smbscope_event::code::{Source, Vantage};
use smbscope_event::operation::{Column, Operation};
use smbscope_event::part::Part;
use smbscope_event::slice::Slice;
use smbscope_event::tables::Coverage;

use crate::assemble::{Assembler, Losses, Place, Told};
use crate::find::{Choice, FindError, Found, find};
use crate::loader::{Counted, LoadError, LoadOptions, Probe};
use crate::raw;

/// Parts are handed over at least so often.
const PARTS_EVERY: Duration = Duration::from_secs(1);
/// The two clocks are compared so often.
const CLOCKS_EVERY: Duration = Duration::from_secs(10);

/// Messages that are known so late are still put in order.
const ORDER_WITHIN_NS: u64 = 100_000_000;
/// Messages that wait for that at most.
const WAITING_MAX: usize = 1 << 16;
/// When so many events were read at once, the reader is behind, and more of this time may come.
const EVENTS_MANY: usize = 4096;
/// Of a NetBIOS header.
const HEADER_BYTES: usize = 4;
/// Of the first segment of a message: its headers.
const FIRST_BYTES: usize = HEADER_BYTES + 64;

/// Why a recording does not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is no smbd.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The probe does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Rows cannot be made.
    #[error(transparent)]
    Decode(#[from] smbscope_capture::Error),
}

/// How far a recording is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Operations in the parts so far.
    pub operations: u64,
    /// Events from the kernel.
    pub events: u64,
    /// What the kernel's side counted.
    pub counted: Counted,
    /// What was given up on this side.
    pub losses: Losses,
    /// Operations without slices: they were under way when the recording began, or lost.
    pub without_slices: u64,
}

/// A running recording.
pub struct Recording {
    probe: Probe,
    found: Found,
    follow: Follow,
    parted: Instant,
    compared: Instant,
    events: u64,
}

/// From events to rows.
struct Follow {
    feed: Feed,
    beside: Beside,
    /// Messages in the order of time. A request is known when it is read, perhaps after the replies
    /// to others that were sent since it came.
    waiting: BTreeMap<(u64, u64), Told>,
    told: u64,
}

/// What is known beside the messages.
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

impl Recording {
    /// Finds smbd, attaches to it and begins.
    pub fn begin(
        name: &str,
        choice: &Choice,
        load: LoadOptions,
        decode: &Options,
    ) -> Result<Recording, RecordError> {
        let found = find(choice)?;
        let feed = Feed::new(name, decode)?;
        let probe = Probe::attach(&found, load)?;
        let beside = Beside {
            recording: name.into(),
            assembler: Assembler::default(),
            offset: offset(),
            rows: 0,
            without_slices: 0,
            slices: Vec::new(),
        };
        let follow = Follow { feed, beside, waiting: BTreeMap::new(), told: 0 };
        let now = Instant::now();
        Ok(Recording { probe, found, follow, parted: now, compared: now, events: 0 })
    }

    /// What is recorded.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Functions at which a probe costs ten times as much as elsewhere.
    pub fn expensive(&self) -> BTreeSet<&str> {
        self.probe.expensive.iter().map(String::as_str).collect()
    }

    /// Takes what happened since the last time: some parts, whether there was nothing to be taken.
    /// To be called some fifty times a second.
    pub fn poll(&mut self) -> Result<(Vec<Part>, bool), RecordError> {
        if self.compared.elapsed() >= CLOCKS_EVERY {
            self.compared = Instant::now();
            self.follow.beside.offset = offset();
        }
        let follow = &mut self.follow;
        let read = self.probe.read(|event| follow.event(event))?;
        self.events += read as u64;
        let before = (read < EVENTS_MANY).then(|| monotonic().saturating_sub(ORDER_WITHIN_NS));
        follow.feed_until(before.unwrap_or(0));
        if !follow.feed.wants_out() && self.parted.elapsed() < PARTS_EVERY {
            return Ok((Vec::new(), read == 0));
        }
        self.parted = Instant::now();
        Ok((self.follow.parts()?, read == 0))
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress {
            operations: self.follow.feed.operations(),
            events: self.events,
            counted: self.probe.counted(),
            losses: self.follow.beside.assembler.losses,
            without_slices: self.follow.beside.without_slices,
        }
    }

    /// Ends it: the last parts, and how far it came.
    pub fn end(mut self) -> Result<(Vec<Part>, Progress), RecordError> {
        loop {
            let follow = &mut self.follow;
            if self.probe.read(|event| follow.event(event))? == 0 {
                break;
            }
        }
        self.follow.feed_until(u64::MAX);
        let mut progress = self.progress();
        let dropped = progress.counted.dropped;
        // The probes go before the rest is worked on: smbd is free of them.
        drop(self.probe);
        let Follow { feed, mut beside, .. } = self.follow;
        let fill = |coverage: &mut Coverage| {
            coverage.format = "probe inside smbd".to_owned();
            coverage.frames_dropped = Some(dropped);
        };
        let mut parts = feed.end(&mut |row, ends| beside.amend(row, ends), fill)?;
        let slices = beside.take();
        parts.insert(parts.len().saturating_sub(1), slices);
        parts.iter_mut().for_each(from_inside);
        progress.operations = beside.rows;
        progress.without_slices = beside.without_slices;
        Ok((parts, progress))
    }
}

impl Follow {
    fn event(&mut self, bytes: &[u8]) {
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

    /// Feeds messages until that time.
    fn feed_until(&mut self, time: u64) {
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 > time {
                break;
            }
            tell(&mut self.feed, self.beside.offset, &first.remove());
        }
    }

    fn parts(&mut self) -> Result<Vec<Part>, RecordError> {
        let Follow { feed, beside, .. } = self;
        let mut parts = feed.parts(&mut |row, ends| beside.amend(row, ends))?;
        parts.push(beside.take());
        parts.iter_mut().for_each(from_inside);
        Ok(parts)
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
            row.vantage_reason = "recorded inside the server".into();
        }
    }
}

fn clock(which: ClockId) -> i64 {
    let time = clock_gettime(which);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn monotonic() -> u64 {
    clock(ClockId::Monotonic).unsigned_abs()
}

/// Epoch less CLOCK_MONOTONIC, ns: the reading of several that was disturbed least.
fn offset() -> i64 {
    let reading = |_| {
        let before = clock(ClockId::Monotonic);
        let epoch = clock(ClockId::Realtime);
        let after = clock(ClockId::Monotonic);
        (after - before, epoch - before - (after - before) / 2)
    };
    (0..5).map(reading).min().map_or(0, |(_, offset)| offset)
}
