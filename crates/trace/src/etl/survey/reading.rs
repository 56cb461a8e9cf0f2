//! The first reading of a log: what is in its buffers, and which ones the second reading needs.

use super::Survey;
use crate::etl::Log;
use crate::etl::index::{BUFFERS_MAX, Buffer, Buffers, Entry};
use crate::etl::kernel::{self, config, group, images, power, samples, stacks, threads};
use crate::etl::log_header::LogHeader;
use crate::etl::record::{self, Next, Origin, Position, Record};
use crate::etl::times::{self, Bounds, Span};
use crate::windows;
use foldhash::{HashMap, HashMapExt as _};
use std::io::{self, Read, Seek};

/// Limits of what is remembered; more is counted as limited.
const THREADS_MAX: usize = 1 << 20;
const PROCESSES_MAX: usize = 1 << 18;
const PROVIDERS_MAX: usize = 4_096;
const CONFIG_MAX: usize = 4_096;
/// Origins that are looked for before the others: a log has long stretches of few.
const RECENT: usize = 4;

/// The first reading of a log while it runs.
#[derive(Debug)]
pub struct Reading {
    buffers: Buffers,
    entries: Vec<Entry>,
    survey: Survey,
    /// Number of events of the kernel, by group and opcode.
    kernel: Vec<u64>,
    providers: HashMap<Origin, u64>,
    /// Events of the latest origins that are not in `providers` yet.
    recent: [Option<Recent>; RECENT],
    /// Which of them is replaced next.
    oldest: usize,
    /// Times of the events of each buffer.
    spans: Vec<Span>,
    /// What the log says about SMB, if operations are wanted.
    windows: Option<Box<windows::Survey>>,
}

/// What the first reading found.
#[derive(Debug)]
pub struct Found {
    /// Buffers that the second reading needs, by time.
    pub entries: Vec<Entry>,
    /// Which times can be.
    pub bounds: Bounds,
    pub survey: Survey,
    pub windows: Option<Box<windows::Survey>>,
}

/// Events of one origin.
#[derive(Clone, Copy, Debug)]
struct Recent {
    origin: Origin,
    count: u64,
    /// They are packets of which the first reading needs their number only.
    is_counted_only: bool,
}

impl Reading {
    /// A reading that has not begun. Events about SMB are wanted if there is a survey of them, which can have those of
    /// another log.
    pub fn new(header: LogHeader, windows: Option<Box<windows::Survey>>) -> Reading {
        Reading {
            windows,
            buffers: Buffers::new(header),
            entries: Vec::new(),
            survey: Survey::default(),
            kernel: vec![0; 1 << 16],
            providers: HashMap::new(),
            recent: [None; RECENT],
            oldest: 0,
            spans: Vec::new(),
        }
    }

    /// Reads the next buffer; false at the end of the file.
    pub fn step(&mut self, source: &mut (impl Read + Seek), log: &mut Log) -> io::Result<bool> {
        let buffer = self.buffers.next(source)?;
        log.coverage.read_bytes = self.buffers.read_bytes;
        let Some(buffer) = buffer else { return Ok(false) };
        log.buffers += 1;
        log.buffers_after_loss += u64::from(buffer.header.is_after_loss);
        log.buffers_compressed += u64::from(buffer.header.is_compressed);
        if !buffer.is_whole {
            log.buffers_damaged += 1;
            log.damaged(|| format!("the buffer at byte {}", buffer.offset_bytes));
        }
        let records = std::mem::take(&mut self.buffers.records);
        let first = self.buffer(&records, &buffer, log);
        self.buffers.records = records;
        if let Some(ticks) = first {
            if self.entries.len() < BUFFERS_MAX {
                let offset_bytes = buffer.offset_bytes;
                self.entries.push(Entry { ticks, offset_bytes, header: buffer.header });
            } else {
                log.coverage.limited += 1;
            }
        }
        Ok(true)
    }

    /// What was found.
    pub fn finish(mut self, log: &mut Log) -> Found {
        let kernel = self.kernel.iter().zip(0..=u16::MAX).filter(|(count, _)| **count > 0);
        log.counts.extend(kernel.map(|(&count, number)| {
            let [group, opcode] = number.to_be_bytes();
            (Origin::Kernel { group, opcode }, count)
        }));
        for place in 0..RECENT {
            self.end(place);
        }
        log.counts.extend(self.providers);
        let clock = self.buffers.log().clock;
        let (bounds, range) = times::bounds(self.buffers.log(), &self.spans);
        log.coverage.start_ns = range.map(|(first, _)| clock.time_ns(first));
        log.coverage.end_ns = range.map(|(_, last)| clock.time_ns(last));
        self.survey.dictionary.sort();
        for entry in &mut self.entries {
            entry.ticks = entry.ticks.clamp(bounds.first, bounds.last);
        }
        self.entries.sort_by_key(|entry| entry.ticks);
        Found { entries: self.entries, bounds, survey: self.survey, windows: self.windows }
    }

    /// Reads the records of a buffer. Returns the time of the first one if the second reading needs
    /// any of them.
    fn buffer(&mut self, records: &[u8], buffer: &Buffer, log: &mut Log) -> Option<i64> {
        let mut position = Position::default();
        let (mut span, mut is_needed) = (None, false);
        let mut order = times::order(self.buffers.log());
        loop {
            match position.next(records, buffer.header.cpu) {
                Next::End => break,
                Next::Damaged => {
                    log.damaged(|| format!("the buffer at byte {}", buffer.offset_bytes));
                    break;
                }
                Next::Record(record) => {
                    log.coverage.events += 1;
                    let is_timed = record.ticks != 0
                        && record.origin != (Origin::Kernel { group: 0, opcode: 0 });
                    let next = || record::ticks(position.rest(records));
                    if is_timed {
                        if !order.check(record.ticks, next()) {
                            continue;
                        }
                        Span::add(&mut span, record.ticks);
                    }
                    is_needed |= self.record(&record, log);
                }
            }
        }
        let span = span?;
        if self.spans.len() < BUFFERS_MAX {
            self.spans.push(span);
        }
        is_needed.then_some(span.first)
    }

    /// Remembers what the record says. Returns whether the second reading needs it.
    #[inline]
    fn record(&mut self, record: &Record<'_>, log: &mut Log) -> bool {
        match record.origin {
            Origin::Kernel { group, opcode } => {
                let number = usize::from(u16::from_be_bytes([group, opcode]));
                if let Some(count) = self.kernel.get_mut(number) {
                    *count += 1;
                }
                let is_event = kernel::is_event(group, opcode);
                if is_event && !kernel::is_context(group, opcode) {
                    return true;
                }
                match self.context(group, opcode, record, log) {
                    Known::Yes => {}
                    Known::No => log.coverage.events_other += 1,
                    Known::Damaged => log.damaged(|| format!("an event {group}:{opcode}")),
                }
                return is_event;
            }
            origin => {
                if self.count(origin) {
                    return true;
                }
                if power::is_event(origin, record.version) {
                    return true;
                }
                if let Some(windows) = &mut self.windows
                    && windows.event(record, &self.buffers.log().clock)
                {
                    return true;
                }
                if !images::has_symbols(&origin) {
                    log.coverage.events_other += 1;
                } else if let Some(symbols) = images::symbols(record) {
                    log.coverage.limited += self.survey.modules.symbols(symbols);
                } else {
                    log.damaged(|| "an event that names a PDB file".to_owned());
                }
            }
        }
        false
    }

    /// Remembers an event that others refer to.
    fn context(
        &mut self,
        group_number: u8,
        opcode: u8,
        record: &Record<'_>,
        log: &mut Log,
    ) -> Known {
        let survey = &mut self.survey;
        if let Some(reason) = images::reason(group_number, opcode) {
            return known(images::image(reason, record).map(|image| {
                log.coverage.limited += survey.modules.image(image, record.ticks);
            }));
        }
        match (group_number, opcode) {
            // The header of the log.
            (0, 0) => Known::Yes,
            (group::PERFINFO, opcode) if samples::INTERVALS.contains(&opcode) => {
                let interval_ns = samples::interval_ns(record);
                survey.sample_interval_ns = survey.sample_interval_ns.or(interval_ns);
                Known::Yes
            }
            (group::STACK_WALK, opcode) if stacks::DICTIONARY.contains(&opcode) => {
                known(stacks::entry(record).map(|(key, frames)| {
                    let until = if opcode == stacks::KEY_DELETED { record.ticks } else { i64::MAX };
                    let frames = stacks::frames(frames, record.pointer_bytes);
                    log.coverage.limited += survey.dictionary.add(key, until, frames);
                }))
            }
            (group::PROCESS, opcode)
                if threads::LIFE.contains(&opcode) || opcode == threads::PROCESS_DEFUNCT =>
            {
                known(threads::process(record).map(|(process, name)| {
                    let names = &mut survey.threads.names;
                    if names.len() < PROCESSES_MAX || names.contains_key(&process) {
                        names.insert(process, name.into());
                    } else {
                        log.coverage.limited += 1;
                    }
                }))
            }
            (group::THREAD, opcode) if threads::LIFE.contains(&opcode) => {
                known(threads::thread(record).map(|(process, thread)| {
                    let processes = &mut survey.threads.processes;
                    if processes.len() < THREADS_MAX {
                        processes.entry(thread).or_insert(process);
                    } else {
                        log.coverage.limited += 1;
                    }
                }))
            }
            (group::CONFIG, opcode) => self.config(opcode, record, log),
            _ => Known::No,
        }
    }

    fn config(&mut self, opcode: u8, record: &Record<'_>, log: &mut Log) -> Known {
        let survey = &mut self.survey;
        match opcode {
            config::CPU => {
                survey.hyper_threads = config::hyper_threads(record).or(survey.hyper_threads);
                known(config::mhz(record).map(|mhz| survey.mhz = Some(mhz)))
            }
            config::ADAPTER => known(config::adapter(record).map(|adapter| {
                if log.adapters.len() < CONFIG_MAX && !log.adapters.contains(&adapter) {
                    log.adapters.push(adapter);
                }
            })),
            config::INTERRUPT_LINE => known(config::interrupt_line(record).map(|line| {
                survey.devices.interrupts(&line);
                if log.interrupt_lines.len() < CONFIG_MAX && !log.interrupt_lines.contains(&line) {
                    log.interrupt_lines.push(line);
                }
            })),
            config::DEVICE => known_if(record.version >= 4, || {
                let device = config::pnp_device(record)?;
                log.coverage.limited += survey.devices.add(device);
                Some(())
            }),
            config::PROCESSOR => known(config::processor(record).map(|(cpu, mhz)| {
                if survey.mhz_by_cpu.len() < CONFIG_MAX {
                    survey.mhz_by_cpu.insert(cpu, mhz);
                }
            })),
            config::NUMA_NODES => {
                survey.nodes = config::numa_nodes(record).take(CONFIG_MAX).collect();
                Known::Yes
            }
            config::PROCESSOR_NUMBERS => {
                survey.numbers = config::processor_numbers(record).take(CONFIG_MAX).collect();
                Known::Yes
            }
            _ => Known::No,
        }
    }

    /// Counts an event that is not the kernel's. Returns whether nothing else of it is needed in this reading, but the
    /// event in the second one.
    #[inline]
    fn count(&mut self, origin: Origin) -> bool {
        for recent in self.recent.iter_mut().flatten() {
            if recent.origin == origin {
                recent.count += 1;
                return recent.is_counted_only;
            }
        }
        let is_counted_only = self.windows.is_some() && windows::is_counted_only(origin);
        self.end(self.oldest);
        if let Some(place) = self.recent.get_mut(self.oldest) {
            *place = Some(Recent { origin, count: 1, is_counted_only });
        }
        self.oldest = (self.oldest + 1) % RECENT;
        is_counted_only
    }

    /// Adds the events of one of the latest origins to the others.
    fn end(&mut self, place: usize) {
        let recent = self.recent.get_mut(place).and_then(Option::take);
        let Some(Recent { origin, count, is_counted_only }) = recent else { return };
        if let Some(windows) = self.windows.as_mut().filter(|_| is_counted_only) {
            windows.packets(count);
        }
        let providers = &mut self.providers;
        let is_room = providers.len() < PROVIDERS_MAX || providers.contains_key(&origin);
        *providers.entry(if is_room { origin } else { Origin::Further }).or_default() += count;
    }
}

/// Whether a record was understood.
enum Known {
    Yes,
    No,
    Damaged,
}

/// Other layouts are not damaged.
fn known_if(is_layout: bool, read: impl FnOnce() -> Option<()>) -> Known {
    if is_layout { known(read()) } else { Known::No }
}

fn known(read: Option<()>) -> Known {
    if read.is_some() { Known::Yes } else { Known::Damaged }
}
