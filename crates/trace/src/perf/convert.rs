//! Records of `perf.data` to events.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::features::{self, KERNEL, hexadecimal, is_of_kernel};
use super::header::{Attribute, Attributes, Header, Source};
use super::mappings::Mappings;
use super::queue::{Key, Lane};
use super::sample::{self, Sample, addresses};
use super::stream::{self, Record};
use crate::bytes::{Order, until_zero};
use crate::event::{self, Coverage, Event, Frame, Image, Mode};
use crate::linux::format;
use crate::linux::stacks::FRAMES_MAX;
use crate::linux::tracing::{self, Tracing};
use crate::linux::{Head, State};

/// Kinds of records (`enum perf_event_type`); those of 64 and more belong to `perf` (`tools/lib/perf/include`).
const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const USER_MIN: u32 = 64;
/// Lost samples that a BPF filter dropped.
const LOST_SAMPLES_BPF: u16 = 1 << 15;
/// Most threads whose name is kept.
const TASKS_MAX: usize = 1 << 17;
const HEADER_ATTR: u32 = 64;
const BUILD_ID: u32 = 67;
const HEADER_FEATURE: u32 = 80;
/// A mapping with a build id instead of the numbers of the file.
const MMAP_BUILD_ID: u16 = 1 << 14;
/// A mapping that is not executed, and a name because another program begins.
const MMAP_DATA: u16 = 1 << 13;
const COMM_EXEC: u16 = 1 << 13;

/// Names of clocks (`include/uapi/linux/time.h`).
const CLOCKS: [(u32, &str); 5] = [
    (0, "CLOCK_REALTIME"),
    (1, "CLOCK_MONOTONIC"),
    (4, "CLOCK_MONOTONIC_RAW"),
    (7, "CLOCK_BOOTTIME"),
    (11, "CLOCK_TAI"),
];

/// Makes events.
#[derive(Debug)]
pub struct Converter {
    pub linux: State,
    order: Order,
    attributes: Attributes,
    tracing: Tracing,
    features: BTreeMap<u64, Vec<u8>>,
    build_ids: HashMap<String, String>,
    mappings: Mappings,
    /// Names of threads.
    tasks: HashMap<u32, Arc<str>>,
    /// Losses that `perf` itself counted at the end.
    lost_samples: u64,
    /// Samples of events that show the same time again.
    not_used: u64,
}

impl Converter {
    pub fn new(header: Header) -> Converter {
        let mut converter = Converter {
            linux: State::default(),
            order: header.order,
            attributes: header.attributes,
            tracing: Tracing::default(),
            features: BTreeMap::new(),
            build_ids: HashMap::new(),
            mappings: Mappings::default(),
            tasks: HashMap::new(),
            lost_samples: 0,
            not_used: 0,
        };
        "perf.data".clone_into(&mut converter.linux.coverage.format);
        converter.linux.coverage.events_lost = Some(0);
        if let Some(what) = header.damaged {
            converter.linux.damaged(|| what.to_owned());
        }
        for (feature, section) in header.features {
            converter.feature(feature, section);
        }
        converter
    }

    /// Coverage, without the bytes read.
    pub fn coverage(&self) -> Coverage {
        let clock = self.attributes.all.first().map(|attribute| match attribute.clock {
            None => "perf".to_owned(),
            Some(clock) => match CLOCKS.into_iter().find(|&(known, _)| known == clock) {
                Some((_, name)) => name.to_owned(),
                None => format!("clock {clock}"),
            },
        });
        let coverage = self.linux.coverage();
        let limited = coverage.limited + self.attributes.limited + self.mappings.limited;
        Coverage { clock, limited, ..coverage }
    }

    /// Times of the first and last sample, if the file says them.
    pub fn sample_times(&self) -> Option<(u64, u64)> {
        features::sample_times(&self.features, self.order)
    }

    /// By what a record is put in order; `None` if it is used at once.
    pub fn key(&self, record: Record<'_>) -> Option<Key> {
        if record.kind >= USER_MIN {
            return None;
        }
        let is_sample = record.kind == SAMPLE;
        let Some(found) = self.attributes.find(is_sample, record.body, self.order) else {
            // Records that `perf` makes by itself belong to no event.
            let attribute = usize::from(u16::MAX);
            return Some(Key { attribute, time: 0, lane: None, is_sample });
        };
        let layout = self.attributes.all.get(found)?.layout;
        let (time, cpu) = if is_sample {
            let sample = layout.sample(record.body, self.order).unwrap_or_default();
            (sample.time, sample.cpu)
        } else {
            let trailer = layout.trailer(record.body, self.order);
            (trailer.time, trailer.cpu)
        };
        let id = layout.id(is_sample, record.body, self.order);
        let lane = id.map(Lane::Id).or(cpu.map(Lane::Cpu));
        Some(Key { attribute: found, time: time.unwrap_or(0), lane, is_sample })
    }

    /// A record that `perf` wrote about the recording.
    pub fn user_record(&mut self, record: Record<'_>) {
        let (order, body) = (self.order, record.body);
        match record.kind {
            HEADER_ATTR => {
                let length = order.u32(body, 4).unwrap_or(0) as usize;
                let ids = body.get(length..).unwrap_or_default();
                match Attribute::parse(body, order) {
                    Some(attribute) => self.attributes.add(attribute, ids, order),
                    None => self.linux.damaged(|| "attributes".to_owned()),
                }
            }
            stream::TRACING_DATA => self.feature(features::TRACING_DATA, body.to_vec()),
            HEADER_FEATURE => {
                if let (Some(feature), Some(section)) = (order.u64(body, 0), body.get(8..)) {
                    self.feature(feature, section.to_vec());
                }
            }
            BUILD_ID => {
                let size = (body.len() + 8) as u16;
                let header = [&record.kind.to_le_bytes()[..], &[0; 4]].concat();
                let mut section = [&header[..], body].concat();
                let (misc, size) = match order {
                    Order::Little => (record.misc.to_le_bytes(), size.to_le_bytes()),
                    Order::Big => (record.misc.to_be_bytes(), size.to_be_bytes()),
                };
                section.splice(4..8, [misc, size].concat());
                self.build_ids.extend(features::build_ids(&section, order));
            }
            _ => {}
        }
    }

    fn feature(&mut self, feature: u64, section: Vec<u8>) {
        match feature {
            features::TRACING_DATA => self.tracing_data(&section),
            features::BUILD_ID => self.build_ids = features::build_ids(&section, self.order),
            feature if features::USED.contains(&feature) => {
                self.features.insert(feature, section);
            }
            _ => {}
        }
    }

    fn tracing_data(&mut self, mut section: &[u8]) {
        let source = &mut section;
        // Reading from memory does not fail.
        let whole = match tracing::prefix(source) {
            Ok(Some(prefix)) => self.tracing.read(source, prefix.order).ok().flatten(),
            _ => None,
        };
        if whole.is_none() {
            self.linux.damaged(|| "description of the tracepoints".to_owned());
        }
    }

    /// A record of the kernel.
    pub fn record(&mut self, attribute: usize, record: Record<'_>, sink: &mut dyn FnMut(Event)) {
        let attribute = self.attributes.all.get(attribute).copied();
        let layout = attribute.map(|attribute| attribute.layout).unwrap_or_default();
        let trailer = layout.trailer(record.body, self.order);
        match record.kind {
            SAMPLE => {
                let sample = layout.sample(record.body, self.order);
                let (Some(attribute), Some(sample)) = (attribute, sample) else {
                    return self.linux.damaged(|| "a sample".to_owned());
                };
                self.sample(attribute, sample, record.misc, sink);
            }
            LOST => {
                let count = self.order.u64(record.body, 8).unwrap_or(0);
                self.linux.lost(trailer.cpu, count);
            }
            // Not lost: a filter dropped them.
            LOST_SAMPLES if record.misc & LOST_SAMPLES_BPF != 0 => {}
            LOST_SAMPLES => {
                let count = self.order.u64(record.body, 0).unwrap_or(0);
                match layout.counts_losses() {
                    true => self.lost_samples = self.lost_samples.saturating_add(count),
                    false => self.linux.lost(trailer.cpu, count),
                }
            }
            MMAP | MMAP2 if is_of_kernel(record.misc) || record.misc & MMAP_DATA == 0 => {
                let Some(image) = self.image(record, trailer.time) else { return };
                if image.process != 0 {
                    let (base, name) = (image.base, image.name.clone());
                    self.mappings.add(image.process, base, image.size_bytes, name);
                }
                sink(Event::Image(image));
            }
            FORK | EXIT | COMM => {
                self.process(record);
                self.task(record);
            }
            _ => {}
        }
    }

    fn sample(
        &mut self,
        attribute: Attribute,
        one: Sample<'_>,
        misc: u16,
        sink: &mut dyn FnMut(Event),
    ) {
        let Some(time_ns) = one.time.and_then(|time| i64::try_from(time).ok()) else {
            return self.linux.damaged(|| "samples without a time".to_owned());
        };
        match one.cpu {
            Some(cpu) if !self.linux.count(cpu, time_ns, || None, sink) => return,
            Some(_) => {}
            None => self.linux.count_without_cpu(time_ns),
        }
        let is_clock = match (attribute.source, one.cpu) {
            (Source::Tracepoint(id), Some(cpu)) => {
                return self.tracepoint(id, cpu, time_ns, one, sink);
            }
            (Source::Tracepoint(_), None) | (Source::Other, _) => return self.linux.other(),
            (Source::Clock, _) => true,
            (Source::Cycles, _) => false,
        };
        // A clock and cycles both show where the time goes.
        if !is_clock && self.attributes.has_clock() {
            self.not_used += 1;
            return self.linux.other();
        }
        let period = one.period.or(attribute.period).filter(|_| is_clock);
        let mode = sample::mode(misc);
        let frames = addresses(one.chain, self.order).take(FRAMES_MAX);
        let frames: Vec<_> = frames
            .map(|(address, of_frame)| Frame {
                address,
                function: None,
                module: self.file(one.process, address, of_frame.or(mode)),
            })
            .collect();
        let sample = event::Sample {
            time_ns,
            cpu: one.cpu,
            process: running(one.process),
            thread: running(one.thread),
            task: one.thread.and_then(|thread| self.tasks.get(&thread).cloned()),
            mode,
            address: one.address,
            module: one.address.and_then(|address| self.file(one.process, address, mode)),
            stack: None,
            during: one.cpu.and_then(|cpu| self.linux.sampled(cpu)),
            weight_ns: period.and_then(|period| i64::try_from(period).ok()),
        };
        self.linux.sample(sample, frames, sink);
    }

    /// The file of a program that an address belongs to. Modules of the kernel are in the images.
    fn file(&mut self, process: Option<u32>, address: u64, mode: Option<Mode>) -> Option<Arc<str>> {
        let found = match mode {
            Some(Mode::User) | None => self.mappings.find(process?, address),
            _ => None,
        };
        found.or_else(|| match mode {
            Some(Mode::User) => self.linux.names.intern("[unknown]"),
            _ => None,
        })
    }

    fn tracepoint(
        &mut self,
        id: u16,
        cpu: u32,
        time_ns: i64,
        sample: Sample<'_>,
        sink: &mut dyn FnMut(Event),
    ) {
        let Some(known) = self.tracing.events.get(&id) else { return self.linux.other() };
        let head = Head { cpu, time_ns, thread: running(sample.thread) };
        let fields = format::Record { format: &known.format, bytes: sample.raw, order: self.order };
        if self.linux.event(head, known.action, &fields, sink).is_err() {
            self.linux.damaged(|| format!("{} at {time_ns} ns", known.format.name));
        }
    }

    /// A thread gets a name, or begins with that of the thread that began it.
    fn task(&mut self, record: Record<'_>) {
        let number = |at| self.order.u32(record.body, at);
        let (thread, name) = match record.kind {
            COMM => {
                let name = until_zero(record.body.get(8..).unwrap_or_default());
                (number(4), self.linux.names.intern(&String::from_utf8_lossy(name)))
            }
            FORK => {
                let parent = number(12).and_then(|parent| self.tasks.get(&parent).cloned());
                (number(8), parent)
            }
            _ => return,
        };
        let Some((thread, name)) = thread.zip(name) else { return };
        if self.tasks.len() < TASKS_MAX || self.tasks.contains_key(&thread) {
            self.tasks.insert(thread, name);
        } else {
            self.linux.coverage.limited += 1;
        }
    }

    /// A process begins or ends, or begins another program.
    fn process(&mut self, record: Record<'_>) {
        let number = |at| self.order.u32(record.body, at);
        let (Some(process), Some(second)) = (number(0), number(4)) else { return };
        match record.kind {
            FORK => self.mappings.fork(process, second),
            // Process and thread are the same when the process ends.
            EXIT if number(8) == Some(process) => self.mappings.end(process),
            COMM if record.misc & COMM_EXEC != 0 => self.mappings.end(process),
            _ => {}
        }
    }

    /// A mapping of the kernel, of a module, or of a program.
    fn image(&mut self, record: Record<'_>, time: Option<u64>) -> Option<Image> {
        let (order, body) = (self.order, record.body);
        // Process and thread, address, length, offset in the file; then the file.
        let (base, size_bytes) = (order.u64(body, 8)?, order.u64(body, 16)?);
        let (name_at, mut build_id) = match record.kind {
            MMAP => (32, None),
            _ => (64, None),
        };
        if record.kind == MMAP2 && record.misc & MMAP_BUILD_ID != 0 {
            let length = usize::from(*body.get(32)?);
            build_id = body.get(36..56)?.get(..length).map(hexadecimal);
        }
        let name = String::from_utf8_lossy(until_zero(body.get(name_at..)?));
        // `[kernel.kallsyms]_text` says where it begins.
        let name = if name.starts_with(KERNEL) { KERNEL } else { &*name };
        let symbols = build_id.or_else(|| self.build_ids.get(name).cloned());
        let is_of_kernel = is_of_kernel(record.misc);
        Some(Image {
            time_ns: time.filter(|&time| time != 0).and_then(|time| i64::try_from(time).ok()),
            base,
            size_bytes,
            name: self.linux.names.intern(name)?,
            process: if is_of_kernel { 0 } else { order.u32(body, 0)? },
            symbols: symbols.map(Arc::from),
        })
    }

    /// The trace ends.
    pub fn finish(&mut self, late: u64, damaged: u64, sink: &mut dyn FnMut(Event)) {
        if damaged > 0 {
            self.linux.coverage.damaged += damaged;
            let first = &mut self.linux.coverage.first_damaged;
            first.get_or_insert_with(|| "times of records".to_owned());
        }
        if late > 0 {
            self.linux.coverage.damaged += late;
            let first = &mut self.linux.coverage.first_damaged;
            first.get_or_insert_with(|| "records that are older than their round".to_owned());
        }
        for cpu in features::cpus(&self.features, self.order) {
            sink(Event::Cpu(cpu));
        }
        // The records of the kernel have counted most of these losses when they happened.
        let known = self.linux.coverage.events_lost.unwrap_or(0);
        let unknown = self.lost_samples.saturating_sub(known);
        if unknown > 0 {
            self.linux.lost(None, unknown);
        }
        if self.not_used > 0 {
            self.linux.coverage.notes = Some(format!(
                "The file has samples by a clock and by cycles, which show the same time: those of the clock are used, {} of \
                 cycles are not.",
                self.not_used
            ));
        }
        self.linux.finish();
    }
}

/// A process or thread that has ended has the number -1.
fn running(task: Option<u32>) -> Option<u32> {
    task.filter(|&task| task != u32::MAX)
}
