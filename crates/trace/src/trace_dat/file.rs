//! Everything of a file but the events: what follows the magic number, of versions 6 and 7.
//!
//! trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

use std::io::{self, Read, Seek, SeekFrom};

use super::clock::Clock;
use super::compression::Compression;
use super::pages::{PAGE_BYTES_MAX, Place};
use crate::bytes::{Order, read_block, read_number, read_text, seek_to, until_zero};
use crate::linux::tracing::{self, Prefix, Tracing};

/// Largest section or option that is read.
const SECTION_BYTES_MAX: u64 = 64 << 20;
/// Most options sections; each one names the next.
const OPTION_SECTIONS_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 4096;
const CPUS_MAX: u64 = 8192;

/// Options.
const DATE: u64 = 1;
const CPU_STATISTICS: u64 = 2;
const BUFFER: u64 = 3;
const TRACE_CLOCK: u64 = 4;
const OFFSET: u64 = 7;
const TSC_TO_NS: u64 = 14;
const HEADER_INFO: u64 = 16;
const EVENT_FORMATS: u64 = 18;
/// A section's data is compressed.
const COMPRESSED: u64 = 1;

/// What precedes the events, and where they are.
#[derive(Debug)]
pub struct File {
    pub version: String,
    pub order: Order,
    pub page_bytes: u32,
    pub tracing: Tracing,
    pub clock: Clock,
    pub cpus: Vec<Place>,
    pub compression: Option<Compression>,
    /// Events that the kernel overwrote or dropped, by its own count.
    pub lost: u64,
    pub damaged: Vec<&'static str>,
}

impl File {
    /// Reads it.
    pub fn read(source: &mut (impl Read + Seek)) -> io::Result<File> {
        source.seek(SeekFrom::Start(0))?;
        let mut buffered = io::BufReader::with_capacity(1 << 16, source);
        let prefix = tracing::prefix(&mut buffered)?;
        let is_known = prefix.is_some();
        let Prefix { version, order, page_bytes } = prefix.unwrap_or_default();
        let mut file = File {
            version,
            order,
            page_bytes: page_bytes.clamp(64, PAGE_BYTES_MAX),
            tracing: Tracing::default(),
            clock: Clock::default(),
            cpus: Vec::new(),
            compression: None,
            lost: 0,
            damaged: Vec::new(),
        };
        let whole = match file.version.as_str() {
            "6" => file.read_6(&mut buffered)?,
            "7" => file.read_7(&mut buffered)?,
            _ if is_known => {
                file.damaged.push("this version of trace.dat is not supported");
                Some(())
            }
            _ => None,
        };
        if whole.is_none() {
            file.damaged.push("the file is cut, or damaged before its events");
        }
        Ok(file)
    }

    /// Version 6: one part after the other.
    fn read_6(&mut self, source: &mut (impl Read + Seek)) -> io::Result<Option<()>> {
        let order = self.order;
        if self.tracing.read(source, order)?.is_none() {
            return Ok(None);
        }
        // Addresses of functions, texts of trace_printk, and names of tasks.
        for length in [4, 4, 8] {
            let length = match length {
                4 => read_number::<4>(source, order)?,
                _ => read_number::<8>(source, order)?,
            };
            let Some(length) = length else { return Ok(None) };
            let skipped = io::copy(&mut source.by_ref().take(length), &mut io::sink())?;
            if skipped < length {
                return Ok(None);
            }
        }
        let Some(cpus) = read_number::<4>(source, order)? else { return Ok(None) };
        let mut kind = read_block(source, 10, 10)?;
        if kind.as_deref() == Some(b"options  \0") {
            loop {
                let Some(id) = read_number::<2>(source, order)? else { return Ok(None) };
                if id == 0 {
                    break;
                }
                let Some(length) = read_number::<4>(source, order)? else { return Ok(None) };
                let block = read_block(source, length, SECTION_BYTES_MAX)?;
                let Some(block) = block else { return Ok(None) };
                if id == BUFFER {
                    self.damaged.push("buffers of instances are not read");
                }
                self.option(id, &block);
            }
            kind = read_block(source, 10, 10)?;
        }
        if kind.as_deref() != Some(b"flyrecord\0") {
            self.damaged.push("it has no records (flyrecord)");
            return Ok(Some(()));
        }
        for cpu in 0..cpus.min(CPUS_MAX) {
            let (at, length) = (read_number::<8>(source, order)?, read_number::<8>(source, order)?);
            let (Some(at), Some(length)) = (at, length) else { return Ok(None) };
            self.cpus.push(Place { cpu: cpu as u32, at, length });
        }
        Ok(Some(()))
    }

    /// Version 7: sections, which options name.
    fn read_7(&mut self, source: &mut (impl Read + Seek)) -> io::Result<Option<()>> {
        let order = self.order;
        let Some(name) = read_text(source, TEXT_BYTES_MAX)? else { return Ok(None) };
        let Some(_version) = read_text(source, TEXT_BYTES_MAX)? else { return Ok(None) };
        let compression = Compression::from_name(&name);
        if compression == Compression::Unknown {
            self.damaged.push("its compression is not supported");
        }
        let Some(mut next) = read_number::<8>(source, order)? else { return Ok(None) };
        let mut sections = Vec::new();
        for _ in 0..OPTION_SECTIONS_MAX {
            if next == 0 {
                break;
            }
            let Some(options) = self.section(source, next, compression)? else { return Ok(None) };
            let mut rest = &options[..];
            next = 0;
            while let (Some(id), Some(length)) = (order.u16(rest, 0), order.u32(rest, 2)) {
                let end = 6_usize.saturating_add(length as usize);
                let Some((option, after)) = rest.split_at_checked(end) else { return Ok(None) };
                let value = option.get(6..).unwrap_or_default();
                rest = after;
                match (u64::from(id), order.u64(value, 0)) {
                    (0, at) => next = at.unwrap_or(0),
                    (id @ (HEADER_INFO | EVENT_FORMATS), Some(at)) => sections.push((id, at)),
                    (BUFFER, Some(at)) => {
                        if self.buffer(source, at, value, compression)?.is_none() {
                            return Ok(None);
                        }
                    }
                    (id, _) => self.option(id, value),
                }
            }
        }
        if self.damaged.is_empty() && (sections.is_empty() || self.cpus.is_empty()) {
            self.damaged.push("its options name no events, or no records");
        }
        for (id, at) in sections {
            let Some(section) = self.section(source, at, compression)? else { return Ok(None) };
            let mut section = &section[..];
            let whole = match id {
                HEADER_INFO => self.tracing.read_headers(&mut section, order)?,
                _ => self.tracing.read_systems(&mut section, order)?,
            };
            if whole.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Flags and length of a section.
    fn section_header(
        &self,
        source: &mut (impl Read + Seek),
        at: u64,
    ) -> io::Result<Option<(u64, u64)>> {
        if !seek_to(source, at)? {
            return Ok(None);
        }
        let header = read_block(source, 16, 16)?;
        Ok(header.and_then(|header| {
            let flags = self.order.u16(&header, 2)?;
            Some((u64::from(flags), self.order.u64(&header, 8)?))
        }))
    }

    /// The contents of a section.
    fn section(
        &self,
        source: &mut (impl Read + Seek),
        at: u64,
        compression: Compression,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some((flags, length)) = self.section_header(source, at)? else { return Ok(None) };
        let Some(block) = read_block(source, length, SECTION_BYTES_MAX)? else { return Ok(None) };
        if flags & COMPRESSED == 0 {
            return Ok(Some(block));
        }
        let lengths = (self.order.u32(&block, 0), self.order.u32(&block, 4));
        let (Some(packed_bytes), Some(plain_bytes)) = lengths else { return Ok(None) };
        let end = 8_usize.saturating_add(packed_bytes as usize);
        let Some(packed) = block.get(8..end) else { return Ok(None) };
        let plain_bytes = u64::from(plain_bytes).min(SECTION_BYTES_MAX);
        let mut plain = Vec::new();
        Ok(compression.unpack(packed, plain_bytes, &mut plain).then_some(plain))
    }

    /// Where the pages of a buffer are. The top one has no name; instances are left out.
    fn buffer(
        &mut self,
        source: &mut (impl Read + Seek),
        at: u64,
        option: &[u8],
        compression: Compression,
    ) -> io::Result<Option<()>> {
        let Some((flags, _)) = self.section_header(source, at)? else { return Ok(None) };
        let order = self.order;
        let mut rest = option.get(8..).unwrap_or_default();
        let Some(name) = read_text(&mut rest, TEXT_BYTES_MAX)? else { return Ok(None) };
        let Some(clock) = read_text(&mut rest, TEXT_BYTES_MAX)? else { return Ok(None) };
        if !name.is_empty() {
            self.damaged.push("buffers of instances are not read");
            return Ok(Some(()));
        }
        self.clock.name = Some(clock).filter(|clock| !clock.is_empty()).or(self.clock.name.take());
        let (page_bytes, cpus) = (order.u32(rest, 0), order.u32(rest, 4));
        let (Some(page_bytes), Some(cpus)) = (page_bytes, cpus) else { return Ok(None) };
        self.page_bytes = page_bytes.clamp(64, PAGE_BYTES_MAX);
        self.compression = (flags & COMPRESSED != 0).then_some(compression);
        let places = rest.get(8..).unwrap_or_default().chunks_exact(20);
        for place in places.take(u64::from(cpus).min(CPUS_MAX) as usize) {
            let numbers = (order.u32(place, 0), order.u64(place, 4), order.u64(place, 12));
            let (Some(cpu), Some(at), Some(length)) = numbers else { return Ok(None) };
            self.cpus.push(Place { cpu, at, length });
        }
        Ok(Some(()))
    }

    fn option(&mut self, id: u64, value: &[u8]) {
        let text = String::from_utf8_lossy(until_zero(value));
        match id {
            DATE => self.clock.shift(&text, 1_000),
            OFFSET => self.clock.shift(&text, 1),
            TRACE_CLOCK => self.clock.choose(&text),
            TSC_TO_NS => self.clock.scale(value, self.order),
            CPU_STATISTICS => {
                let lines = text.lines().filter_map(|line| line.split_once(": "));
                let lost = lines.filter(|(key, _)| matches!(*key, "overrun" | "dropped events"));
                let counts = lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok());
                self.lost = counts.fold(self.lost, u64::saturating_add);
            }
            _ => {}
        }
    }
}
