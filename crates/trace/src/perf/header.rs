//! Header, attributes and feature sections of `perf.data`.
//!
//! `tools/perf/Documentation/perf.data-file-format.txt`, `tools/perf/util/header.c` and
//! `struct perf_event_attr` in `include/uapi/linux/perf_event.h`.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use foldhash::HashMap;

use super::sample::Layout;
use crate::bytes::{Order, read_block, seek_to};

/// First bytes, in either byte order.
pub const MAGIC: [(&[u8; 8], Order); 2] = [(b"PERFILE2", Order::Little), (b"2ELIFREP", Order::Big)];
/// First bytes of version 1 (`perf` before 2012), the same in both byte orders.
const MAGIC_V1: &[u8; 8] = b"PERFFILE";
/// Header of a file, and of what `perf record -o -` writes.
const FILE_HEADER_BYTES: u64 = 104;
const PIPE_HEADER_BYTES: u64 = 16;
/// Place of the 256 bits that say which feature sections there are.
const FEATURES_AT: usize = 72;
/// Largest feature section that is read.
pub const FEATURE_BYTES_MAX: u64 = 64 << 20;
/// Most attributes and most of their numbers: an event has one for each CPU.
const ATTRIBUTES_MAX: u64 = 4096;
const IDS_MAX: usize = 1 << 20;

/// Kinds of events in an attribute.
const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
/// Bits of an attribute's flags.
const FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;

/// What an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A tracepoint, by its number.
    Tracepoint(u16),
    /// A clock: the period is in nanoseconds.
    Clock,
    Cycles,
    Other,
}

/// An event that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub source: Source,
    pub layout: Layout,
    /// Every how many counts there is a sample; `None` if that varies.
    pub period: Option<u64>,
    /// The clock of the times, if it was chosen.
    pub clock: Option<u32>,
}

impl Attribute {
    /// Reads `struct perf_event_attr`.
    pub fn parse(bytes: &[u8], order: Order) -> Option<Attribute> {
        let kind = order.u32(bytes, 0)?;
        // The upper half names the kind of cores.
        let config = order.u64(bytes, 8)?;
        let flags = order.u64(bytes, 40)?;
        let source = match (kind, config & 0xffff_ffff) {
            (TYPE_TRACEPOINT, id) => u16::try_from(id).map_or(Source::Other, Source::Tracepoint),
            (TYPE_SOFTWARE, 0 | 1) => Source::Clock,
            (TYPE_HARDWARE, 0) => Source::Cycles,
            _ => Source::Other,
        };
        let layout = Layout {
            contents: order.u64(bytes, 24)?,
            read_format: order.u64(bytes, 32)?,
            has_trailer: flags & SAMPLE_ID_ALL != 0,
        };
        let period = order.u64(bytes, 16).filter(|_| flags & FREQUENCY == 0);
        let clock = order.u32(bytes, 92).filter(|_| flags & USE_CLOCKID != 0);
        Some(Attribute { source, layout, period, clock })
    }
}

/// The events that were recorded, and the numbers by which records name them.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    pub all: Vec<Attribute>,
    by_id: HashMap<u64, usize>,
    /// Numbers left out because there were too many.
    pub limited: u64,
}

impl Attributes {
    /// Whether samples of a clock were recorded.
    pub fn has_clock(&self) -> bool {
        self.all.iter().any(|attribute| attribute.source == Source::Clock)
    }

    /// Adds one, with its numbers as bytes.
    pub fn add(&mut self, attribute: Attribute, ids: &[u8], order: Order) {
        if self.all.len() as u64 >= ATTRIBUTES_MAX {
            self.limited += 1;
            return;
        }
        for id in ids.chunks_exact(8).filter_map(|bytes| order.number(bytes)) {
            if self.by_id.len() < IDS_MAX {
                self.by_id.insert(id, self.all.len());
            } else {
                self.limited += 1;
            }
        }
        self.all.push(attribute);
    }

    /// Place of the attribute of a record.
    pub fn find(&self, is_sample: bool, body: &[u8], order: Order) -> Option<usize> {
        let first = self.all.first()?;
        if self.all.len() == 1 {
            return Some(0);
        }
        let id = first.layout.id(is_sample, body, order)?;
        self.by_id.get(&id).copied()
    }
}

/// What a file has outside of its records.
#[derive(Clone, Debug, Default)]
pub struct Header {
    pub order: Order,
    /// Where the records are; without a length up to the end of the file.
    pub data_at: u64,
    pub data_bytes: Option<u64>,
    pub attributes: Attributes,
    /// Feature sections by their number.
    pub features: BTreeMap<u64, Vec<u8>>,
    /// What is missing or cut.
    pub damaged: Option<&'static str>,
}

impl Header {
    /// Reads it; `None` if the file has another form.
    pub fn read(source: &mut (impl Read + Seek)) -> io::Result<Option<Header>> {
        source.seek(SeekFrom::Start(0))?;
        let mut head = Vec::new();
        source.by_ref().take(FILE_HEADER_BYTES).read_to_end(&mut head)?;
        let Some((order, size)) = order_and_size(&head) else { return Ok(None) };
        let mut header = Header { order, ..Header::default() };
        if size == PIPE_HEADER_BYTES {
            header.data_at = PIPE_HEADER_BYTES;
            return Ok(Some(header));
        }
        let mut numbers = (16..FEATURES_AT).step_by(8).filter_map(|at| order.u64(&head, at));
        let mut number = || numbers.next().unwrap_or(0);
        let attribute_bytes = number();
        let (attributes_at, attributes_bytes) = (number(), number());
        header.data_at = number();
        let data_bytes = number();
        header.read_attributes(source, attribute_bytes, attributes_at, attributes_bytes)?;
        if data_bytes == 0 {
            // `perf record` writes the length and the features when it ends.
            header.damaged = Some("the recording did not end: it has no feature sections");
        } else {
            header.data_bytes = Some(data_bytes);
            header.read_features(source, head.get(FEATURES_AT..).unwrap_or_default())?;
        }
        Ok(Some(header))
    }

    /// Each attribute is followed by the place of its numbers.
    fn read_attributes(
        &mut self,
        source: &mut (impl Read + Seek),
        size: u64,
        at: u64,
        length: u64,
    ) -> io::Result<()> {
        let most = ATTRIBUTES_MAX * 1024;
        let Some(place_at) = size.checked_sub(16).and_then(|at| usize::try_from(at).ok()) else {
            self.damaged = Some("attributes");
            return Ok(());
        };
        let block = if seek_to(source, at)? { read_block(source, length, most)? } else { None };
        let Some(block) = block else {
            self.damaged = Some("attributes");
            return Ok(());
        };
        for bytes in block.chunks_exact(place_at.saturating_add(16)) {
            let place = bytes.get(place_at..).unwrap_or_default();
            let ids_at = self.order.u64(place, 0).unwrap_or(0);
            let ids_bytes = self.order.u64(place, 8).unwrap_or(0);
            let ids = if seek_to(source, ids_at)? {
                read_block(source, ids_bytes, 8 * IDS_MAX as u64)?
            } else {
                None
            };
            if ids.is_none() {
                self.damaged = Some("numbers of events");
            }
            let ids = ids.unwrap_or_default();
            match Attribute::parse(bytes, self.order) {
                Some(attribute) => self.attributes.add(attribute, &ids, self.order),
                None => self.damaged = Some("attributes"),
            }
        }
        Ok(())
    }

    /// The places of the sections follow the records, in the order of their numbers.
    fn read_features(&mut self, source: &mut (impl Read + Seek), bits: &[u8]) -> io::Result<()> {
        let table_at = self.data_at.saturating_add(self.data_bytes.unwrap_or(0));
        let order = self.order;
        if !seek_to(source, table_at)? {
            self.damaged = Some("the file is cut: it has no feature sections");
            return Ok(());
        }
        let is_there = |feature: u64| {
            let word = order.u64(bits, (feature / 64 * 8) as usize).unwrap_or(0);
            word >> (feature % 64) & 1 == 1
        };
        let present: Vec<u64> = (0..256).filter(|&feature| is_there(feature)).collect();
        let Some(table) = read_block(source, present.len() as u64 * 16, 256 * 16)? else {
            self.damaged = Some("the file is cut: it has no feature sections");
            return Ok(());
        };
        for (feature, place) in present.into_iter().zip(table.chunks_exact(16)) {
            if !super::features::USED.contains(&feature) {
                continue;
            }
            let (at, length) = (order.u64(place, 0), order.u64(place, 8));
            let section = if seek_to(source, at.unwrap_or(u64::MAX))? {
                read_block(source, length.unwrap_or(u64::MAX), FEATURE_BYTES_MAX)?
            } else {
                None
            };
            match section {
                Some(section) => drop(self.features.insert(feature, section)),
                None => self.damaged = Some("feature sections"),
            }
        }
        Ok(())
    }
}

/// Byte order, and size of the header.
pub fn order_and_size(head: &[u8]) -> Option<(Order, u64)> {
    let of = |order: Order| {
        let size = order.u64(head, 8)?;
        matches!(size, FILE_HEADER_BYTES | PIPE_HEADER_BYTES).then_some((order, size))
    };
    if head.starts_with(MAGIC_V1) {
        return of(Order::Little).or_else(|| of(Order::Big));
    }
    let (_, order) = MAGIC.into_iter().find(|(magic, _)| head.starts_with(&magic[..]))?;
    of(order)
}
