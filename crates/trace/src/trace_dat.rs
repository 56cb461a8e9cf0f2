//! `trace.dat`: what `trace-cmd record` writes, versions 6 and 7.
//!
//! [`file`](mod@file) reads everything but the events, [`pages`] the pages of each CPU,
//! [`page`] their records; what tracepoints mean is in [`crate::linux`]. Pages of all CPUs are
//! read in the order of their beginnings, so that rows are nearly in the order of time, and of one
//! CPU exactly. If the CPUs are too many for memory, some of them come later.

mod clock;
mod compression;
mod file;
pub(crate) mod page;
mod pages;

use std::io::{self, Read, Seek, SeekFrom};

use crate::event::{Coverage, Event, EventReader};
use crate::linux::format::Record;
use crate::linux::{Fields as _, Head, State, tracing};
use crate::order::{JUMP_MAX_NS, Order, TOLERANCE_NS};
use file::File;
use page::{Layout, Page};
use pages::{Next, Pages};

/// Bytes of the pages in memory, of all CPUs.
const BYTES_MAX: usize = 128 << 20;

/// Whether a file that begins with `head` is `trace.dat`.
pub fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(tracing::MAGIC)
}

/// A CPU: its next page, and the one after it, with their times.
#[derive(Debug)]
struct Cpu {
    pages: Pages,
    order: Order,
    next: (i64, Vec<u8>),
    ahead: Option<(i64, Vec<u8>)>,
}

/// Reads `trace.dat`.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    file: File,
    layout: Layout,
    /// CPUs with pages.
    cpus: Vec<Cpu>,
    /// CPUs whose turn comes when others end, so that memory is limited.
    waiting: Vec<Pages>,
    linux: State,
    /// Bytes of everything but pages, and of the pages so far.
    read_bytes: u64,
    size_bytes: u64,
}

impl<R: Read + Seek> Reader<R> {
    /// Reads everything but the events.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn new(mut source: R) -> io::Result<Reader<R>> {
        let file = File::read(&mut source)?;
        let mut linux = State::default();
        linux.coverage.format = format!("trace.dat version {}", file.version);
        linux.coverage.clock.clone_from(&file.clock.name);
        linux.coverage.events_lost = Some(0);
        for &what in &file.damaged {
            linux.damaged(|| what.to_owned());
        }
        if !file.clock.is_time() {
            linux.damaged(|| "times are cycles or counts, not nanoseconds".to_owned());
        }
        let layout = Layout::new(file.order, &file.tracing.page);
        let compression = file.compression.map(|compression| (compression, file.order));
        let pages = file.cpus.iter().map(|&place| Pages::new(place, file.page_bytes, compression));
        let waiting: Vec<_> = pages.rev().collect();
        let size_bytes = source.seek(SeekFrom::End(0))?;
        let pages_bytes = file.cpus.iter().fold(0_u64, |sum, cpu| sum.saturating_add(cpu.length));
        let read_bytes = size_bytes.saturating_sub(pages_bytes);
        let cpus = Vec::new();
        let mut reader =
            Reader { source, file, layout, cpus, waiting, linux, read_bytes, size_bytes };
        reader.fill()?;
        Ok(reader)
    }

    /// Begins with as many of the waiting CPUs as memory allows.
    fn fill(&mut self) -> io::Result<()> {
        while let Some(mut pages) = self.waiting.pop() {
            if !self.cpus.is_empty() && (self.cpus.len() + 1) * pages.bytes_max() > BYTES_MAX {
                self.waiting.push(pages);
                break;
            }
            if let Some(ahead) = self.load(&mut pages)? {
                let (order, next) = (Order::of_nanoseconds(), (0, Vec::new()));
                self.advance(Cpu { pages, order, next, ahead: Some(ahead) })?;
            }
        }
        Ok(())
    }

    /// Goes to the next page of a CPU whose time can be.
    fn advance(&mut self, mut cpu: Cpu) -> io::Result<()> {
        while let Some(next) = cpu.ahead.take() {
            cpu.ahead = self.load(&mut cpu.pages)?;
            if cpu.order.check(next.0, cpu.ahead.as_ref().map(|ahead| ahead.0)) {
                cpu.next = next;
                self.cpus.push(cpu);
                return Ok(());
            }
            let number = cpu.pages.cpu;
            self.linux.damaged(|| format!("the time of a page of CPU {number}"));
            self.linux.lost(Some(number), 0);
        }
        Ok(())
    }

    /// Loads the next page that can be read, with its time; `None` at the end.
    fn load(&mut self, pages: &mut Pages) -> io::Result<Option<(i64, Vec<u8>)>> {
        loop {
            let before = pages.at;
            let next = pages.next(&mut self.source)?;
            self.read_bytes = self.read_bytes.saturating_add(pages.at.saturating_sub(before));
            let time = Page::new(&pages.page, self.layout)
                .and_then(|_| self.layout.order.u64(&pages.page, 0))
                .and_then(|time| i64::try_from(time).ok());
            match (next, time) {
                (Next::End, _) => return Ok(None),
                (Next::Page, Some(time)) => {
                    return Ok(Some((time, std::mem::take(&mut pages.page))));
                }
                _ => {
                    let cpu = pages.cpu;
                    self.linux.damaged(|| format!("a page of CPU {cpu}"));
                }
            }
        }
    }

    fn record(&mut self, cpu: u32, time: u64, bytes: &[u8], sink: &mut dyn FnMut(Event)) {
        let time_ns = self.file.clock.nanoseconds(time);
        let (Some(id), Some(time_ns)) = (self.layout.order.u16(bytes, 0), time_ns) else {
            return self.linux.damaged(|| format!("a record of CPU {cpu}"));
        };
        if !self.linux.count(cpu, time_ns, || None, sink) {
            return;
        }
        let Some(known) = self.file.tracing.events.get(&id) else { return self.linux.other() };
        let fields = Record { format: &known.format, bytes, order: self.layout.order };
        let thread = fields.number("common_pid").and_then(|thread| u32::try_from(thread).ok());
        let head = Head { cpu, time_ns, thread };
        if self.linux.event(head, known.action, &fields, sink).is_err() {
            self.linux.damaged(|| format!("{} at {time_ns} ns", known.format.name));
        }
    }
}

impl<R: Read + Seek> EventReader for Reader<R> {
    fn step(&mut self, sink: &mut dyn FnMut(Event)) -> io::Result<bool> {
        let earliest = self.cpus.iter().enumerate().min_by_key(|(_, cpu)| cpu.next.0);
        let Some((place, _)) = earliest else {
            let lost = self.linux.coverage.events_lost.unwrap_or(0);
            self.linux.coverage.events_lost = Some(lost.max(self.file.lost));
            self.linux.finish();
            return Ok(false);
        };
        let mut cpu = self.cpus.swap_remove(place);
        let number = cpu.pages.cpu;
        let (begin, bytes) = std::mem::take(&mut cpu.next);
        // Records are not later than the next page.
        let end = match &cpu.ahead {
            Some((next, _)) => next.saturating_add(TOLERANCE_NS),
            None => begin.saturating_add(JUMP_MAX_NS),
        };
        let is_possible = |time: u64| i64::try_from(time).is_ok_and(|time| time <= end);
        if let Some(mut page) = Page::new(&bytes, self.layout) {
            if let Some(lost) = page.lost {
                // The kernel does not always say how many.
                self.linux.lost(Some(number), lost.max(1));
            }
            while let Some((time, record)) = page.next() {
                if !is_possible(time) {
                    // Times of records add up: those of the others are not known.
                    page.is_damaged = true;
                    break;
                }
                self.record(number, time, record, sink);
            }
            if page.is_damaged {
                self.linux.damaged(|| format!("a record of CPU {number}"));
                self.linux.lost(Some(number), 0);
            }
        }
        let before = self.cpus.len();
        self.advance(cpu)?;
        if self.cpus.len() == before {
            self.fill()?;
        }
        Ok(true)
    }

    fn coverage(&self) -> Coverage {
        Coverage { read_bytes: self.read_bytes(), ..self.linux.coverage() }
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes.min(self.size_bytes)
    }
}
