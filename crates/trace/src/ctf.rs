//! Traces of LTTng: a folder in the Common Trace Format, 1.8 or 2.
//!
//! [`metadata`] is the description of the trace, which [`tsdl`] (1.8) or [`json`] (2) reads, [`types`] and
//! [`decode`] read values by it, [`stream`] the events of a CPU; [`folder`] gives the bytes. Events of
//! all streams are read in the order of their times; what they mean is in [`crate::linux`].

mod decode;
mod folder;
mod json;
mod lexer;
mod metadata;
mod stream;
mod tsdl;
mod types;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;

use foldhash::HashMap;

use crate::event::{Coverage, Cpu, Event, EventReader};
use crate::linux::action::Action;
use crate::linux::{Fields, Head, State};
use decode::Decoded;
pub use folder::{Files, Folder, Memory};
use metadata::{Clock, Metadata};
use stream::Stream;

/// Largest metadata that is read; LTTng's has less than one MiB.
const METADATA_BYTES_MAX: u64 = 32 << 20;
/// Most streams that are read at the same time.
const STREAMS_MAX: usize = 2048;
/// Most CPUs whose place is kept.
const CPUS_MAX: usize = 8192;
/// Events of a step.
const STEP_EVENTS: usize = 1024;
/// LTTng describes the machine when a recording begins.
const TOPOLOGY: &str = "lttng_statedump_cpu_topology";

/// What an event is used for.
#[derive(Clone, Copy, Debug)]
enum Use {
    Action(Action),
    Topology,
}

/// Reads a trace.
#[derive(Debug)]
pub struct Reader<F> {
    files: F,
    metadata: Metadata,
    clock: Clock,
    uses: HashMap<(u64, u64), Use>,
    streams: Vec<Stream>,
    /// Times of the next events, and their streams.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    linux: State,
    /// The thread of each CPU, by the switches.
    threads: HashMap<u32, u32>,
    places: BTreeMap<u32, Cpu>,
}

impl<F: Files> Reader<F> {
    /// Reads the metadata, and the beginning of each stream.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn new(mut files: F) -> io::Result<Reader<F>> {
        let (metadata, version) = Metadata::read(&files.metadata(METADATA_BYTES_MAX)?);
        let mut linux = State::default();
        version.clone_into(&mut linux.coverage.format);
        for place in &metadata.damaged {
            linux.damaged(|| format!("metadata: {place}"));
        }
        let uses = metadata.events.iter().filter_map(|(&class, event)| {
            let used = match Action::from_event(&event.name) {
                Some(action) => Use::Action(action),
                None if event.name == TOPOLOGY => Use::Topology,
                None => return None,
            };
            Some((class, used))
        });
        let clock = metadata.clock.clone();
        linux.coverage.clock = clock.as_ref().map(|clock| clock.name.clone());
        let nanoseconds =
            Clock { name: String::new(), frequency: 1_000_000_000, offset: 0, offset_seconds: 0 };
        let streams = files.streams();
        linux.coverage.limited += streams.len().saturating_sub(STREAMS_MAX) as u64;
        let streams = streams.into_iter().take(STREAMS_MAX).enumerate();
        let streams = streams.map(|(file, (name, size))| Stream::new(file, name, size)).collect();
        let mut reader = Reader {
            uses: uses.collect(),
            files,
            clock: clock.unwrap_or(nanoseconds),
            metadata,
            streams,
            next: BinaryHeap::new(),
            linux,
            threads: HashMap::default(),
            places: BTreeMap::new(),
        };
        for place in 0..reader.streams.len() {
            reader.advance(place)?;
        }
        Ok(reader)
    }

    fn advance(&mut self, place: usize) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(place) else { return Ok(()) };
        stream.advance(&mut self.files, &self.metadata, &mut self.linux)?;
        if let Some(event) = &stream.event {
            self.next.push(Reverse((event.time, place)));
        }
        Ok(())
    }

    fn event(&mut self, place: usize, sink: &mut dyn FnMut(Event)) {
        let Some(stream) = self.streams.get_mut(place) else { return };
        let Some(event) = stream.event.take() else { return };
        let cpu = stream.cpu;
        let Some(time_ns) = self.clock.nanoseconds(event.time) else {
            return self.linux.damaged(|| "a time".to_owned());
        };
        if !self.linux.count(cpu, time_ns, || None, sink) {
            return;
        }
        let (types, values) = (&self.metadata.types, &stream.values);
        let is_before_4_14 = self.metadata.kernel.is_some_and(|version| version < (4, 14));
        let fields = Decoded { types, values, bytes: &stream.window, is_before_4_14 };
        match self.uses.get(&event.class) {
            None => self.linux.other(),
            Some(Use::Topology) => {
                self.linux.other();
                if let Some(cpu) = topology(&fields)
                    && self.places.len() < CPUS_MAX
                {
                    self.places.insert(cpu.cpu, cpu);
                }
            }
            Some(Use::Action(action)) => {
                let thread = event.thread.or_else(|| self.threads.get(&cpu).copied());
                let head = Head { cpu, time_ns, thread };
                if self.linux.event(head, *action, &fields, sink).is_err() {
                    let name = self.metadata.events.get(&event.class).map(|event| &event.name);
                    let name = name.map_or("an event", String::as_str);
                    self.linux.damaged(|| format!("{name} at {time_ns} ns"));
                }
                let next = fields.number("next_tid").filter(|_| *action == Action::Switch);
                if let Some(next) = next.and_then(|next| u32::try_from(next).ok())
                    && (self.threads.len() < CPUS_MAX || self.threads.contains_key(&cpu))
                {
                    self.threads.insert(cpu, next);
                }
            }
        }
    }
}

fn topology(fields: &impl Fields) -> Option<Cpu> {
    let number = |name| fields.number(name).and_then(|number| u32::try_from(number).ok());
    let (socket, core) = (number("physical_id"), number("core_id"));
    Some(Cpu { cpu: number("cpu_id")?, socket, core, ..Cpu::default() })
}

impl<F: Files> EventReader for Reader<F> {
    fn step(&mut self, sink: &mut dyn FnMut(Event)) -> io::Result<bool> {
        for _ in 0..STEP_EVENTS {
            let Some(Reverse((_, place))) = self.next.pop() else {
                for cpu in std::mem::take(&mut self.places).into_values() {
                    sink(Event::Cpu(cpu));
                }
                self.linux.finish();
                return Ok(false);
            };
            self.event(place, sink);
            self.advance(place)?;
        }
        Ok(true)
    }

    fn coverage(&self) -> Coverage {
        Coverage { read_bytes: self.read_bytes(), ..self.linux.coverage() }
    }

    fn read_bytes(&self) -> u64 {
        self.streams.iter().map(Stream::read_bytes).sum()
    }
}
