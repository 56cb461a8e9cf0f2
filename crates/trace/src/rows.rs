//! Events of any reader to rows of the CPUs' tables.
//!
//! Owns what is derived from single events: the exclusive duration (`exclusive`), and the module of
//! an address and its function (`modules`).

mod exclusive;
mod modules;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::error::ArrowError;
use foldhash::{HashMap, HashMapExt as _};
use smbscope_tables::Part;
use smbscope_tables::tables::{self, StackFrame};

use crate::event::{
    Coverage, Cpu, Device, Event, Frame, Image, Interrupt, Kind, Mode, Power, Sample, StackId,
    Switch, Total,
};
use crate::linux::stacks::during;
use crate::symbols::Symbols;
use exclusive::Exclusive;
use modules::Modules;

/// Most CPUs of a trace; Windows has at most 2048, Linux 8192.
const CPUS_MAX: usize = 8192;
/// Most devices.
const DEVICES_MAX: usize = 65_536;
/// Most rows of a batch: more do not fit into a CPU's cache when they become columns, which takes a third
/// more time.
const BATCH_ROWS_MAX: usize = 4_096;
/// Most stacks whose innermost function is kept for the samples.
const FUNCTIONS_MAX: usize = 1 << 20;

/// Innermost function and module of a stack, and what its functions say about the CPU.
type Innermost = (Option<Arc<str>>, Option<Arc<str>>, Option<Kind>);

/// Takes events, makes rows.
#[derive(Debug)]
pub struct Rows {
    recording: Arc<str>,
    batch_rows: usize,
    interrupts: Vec<tables::Interrupt>,
    samples: Vec<tables::Sample>,
    stacks: Vec<StackFrame>,
    switches: Vec<tables::Switch>,
    images: Vec<tables::Image>,
    devices: Vec<tables::Device>,
    power: Vec<tables::Power>,
    totals: Vec<tables::InterruptTotal>,
    cpus: BTreeMap<u32, tables::Cpu>,
    /// Events of each CPU.
    events: Vec<u64>,
    exclusive: HashMap<u32, Exclusive>,
    modules: Modules,
    innermost: HashMap<StackId, Innermost>,
    /// Rows of the trace so far: interrupts, samples, switches.
    counts: [u64; 3],
    limited: u64,
}

impl Rows {
    /// Rows of a recording, in batches of about `batch_rows`.
    pub fn new(recording: &str, batch_rows: usize) -> Rows {
        Rows {
            recording: recording.into(),
            batch_rows: batch_rows.clamp(1, BATCH_ROWS_MAX),
            interrupts: Vec::new(),
            samples: Vec::new(),
            stacks: Vec::new(),
            switches: Vec::new(),
            images: Vec::new(),
            devices: Vec::new(),
            power: Vec::new(),
            totals: Vec::new(),
            cpus: BTreeMap::new(),
            events: Vec::new(),
            exclusive: HashMap::new(),
            modules: Modules::default(),
            innermost: HashMap::new(),
            counts: [0; 3],
            limited: 0,
        }
    }

    /// Names functions by `symbols` where the trace has only addresses.
    pub fn use_symbols(&mut self, symbols: Symbols, is_windows: bool) {
        self.modules.use_symbols(symbols, is_windows);
    }

    /// Takes one event.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Interrupt(interrupt) => self.interrupt(interrupt),
            Event::Sample(sample) => self.sample(&sample),
            Event::Stack { id, frames } => self.stack(id, frames),
            Event::Switch(switch) => self.switch(switch),
            Event::Image(image) => self.image(&image),
            Event::Cpu(cpu) => self.cpu(&cpu),
            Event::Device(device) => self.device(&device),
            Event::Power(power) => self.power(&power),
            Event::Total(total) => self.total(&total),
        }
    }

    /// Whether there are enough rows for [`Rows::take`].
    pub fn is_full(&self) -> bool {
        let longest = self.interrupts.len().max(self.samples.len()).max(self.stacks.len());
        let longest = longest.max(self.switches.len()).max(self.images.len());
        longest.max(self.power.len()).max(self.totals.len()) >= self.batch_rows
    }

    /// The rows so far.
    ///
    /// # Errors
    ///
    /// Arrow's, for rows that contradict the schema.
    pub fn take(&mut self) -> Result<Vec<Part>, ArrowError> {
        let mut parts = Vec::new();
        if !self.images.is_empty() {
            parts.push(Part::Images(std::mem::take(&mut self.images)));
        }
        if !self.totals.is_empty() {
            parts.push(Part::InterruptTotals(std::mem::take(&mut self.totals)));
        }
        macro_rules! batch {
            ($rows:expr, $row:ty, $part:path) => {
                if !$rows.is_empty() {
                    parts.push($part(<$row>::to_batch(&$rows)?));
                    $rows.clear();
                }
            };
        }
        batch!(self.stacks, StackFrame, Part::Stacks);
        batch!(self.interrupts, tables::Interrupt, Part::Interrupts);
        batch!(self.samples, tables::Sample, Part::Samples);
        batch!(self.switches, tables::Switch, Part::Switches);
        batch!(self.power, tables::Power, Part::Power);
        Ok(parts)
    }

    /// The rest of the rows, the CPUs, and what the trace contained.
    ///
    /// # Errors
    ///
    /// Arrow's, for rows that contradict the schema.
    pub fn finish(&mut self, coverage: Coverage) -> Result<Vec<Part>, ArrowError> {
        let mut parts = self.take()?;
        let [interrupts, samples, switches] = self.counts;
        let used = self.modules.used();
        let trace = tables::Trace {
            recording: self.recording.to_string(),
            format: coverage.format,
            clock: coverage.clock,
            started_at: coverage.start_ns,
            ended_at: coverage.end_ns,
            file_bytes: coverage.read_bytes,
            cpus: self.cpus.len() as u64,
            events: coverage.events,
            events_other: coverage.events_other,
            events_lost: coverage.events_lost,
            buffers_lost: coverage.buffers_lost,
            damaged: coverage.damaged,
            first_damaged: coverage.first_damaged,
            interrupts,
            starts_unmatched: coverage.starts_unmatched,
            ends_unmatched: coverage.ends_unmatched,
            samples,
            switches,
            stacks_discarded: coverage.stacks_discarded,
            names_discarded: coverage.names_discarded + self.modules.names_discarded(),
            limited: coverage.limited + self.limited + self.modules.discarded(),
            symbol_files: used.files,
            symbol_files_damaged: used.damaged,
            first_symbol_file_damaged: used.first_damaged.as_deref().map(str::to_owned),
            notes: coverage.notes,
        };
        for (cpu, row) in &mut self.cpus {
            row.events += self.events.get(*cpu as usize).copied().unwrap_or(0);
        }
        self.events.clear();
        let cpus: Vec<_> = std::mem::take(&mut self.cpus).into_values().collect();
        if !cpus.is_empty() {
            parts.push(Part::Cpus(cpus));
        }
        if !self.devices.is_empty() {
            parts.push(Part::Devices(std::mem::take(&mut self.devices)));
        }
        parts.push(Part::Traces(vec![trace]));
        Ok(parts)
    }

    /// The row of a CPU; `None` if there are too many.
    fn known_cpu(&mut self, cpu: u32) -> Option<&mut tables::Cpu> {
        if self.cpus.len() >= CPUS_MAX && !self.cpus.contains_key(&cpu) {
            self.limited += 1;
            return None;
        }
        let recording = &self.recording;
        Some(self.cpus.entry(cpu).or_insert_with(|| tables::Cpu {
            recording: recording.to_string(),
            cpu: u64::from(cpu),
            ..tables::Cpu::default()
        }))
    }

    fn cpu(&mut self, cpu: &Cpu) {
        let Some(row) = self.known_cpu(cpu.cpu) else { return };
        row.node = cpu.node.map(u64::from);
        row.socket = cpu.socket.map(u64::from);
        row.core = cpu.core.map(u64::from);
        row.thread = cpu.thread.map(u64::from);
        row.hyper_threading = cpu.is_hyper_threaded;
        row.processor_group = cpu.group.map(|(group, _)| u64::from(group));
        row.processor_number = cpu.group.map(|(_, number)| u64::from(number));
        row.mhz = cpu.mhz.map(u64::from);
        row.events_lost = cpu.events_lost;
    }

    /// Counts an event of a CPU; false if there are too many CPUs.
    fn count(&mut self, cpu: u32) -> bool {
        let place = cpu as usize;
        if let Some(events @ 1..) = self.events.get_mut(place) {
            *events += 1;
            return true;
        }
        let Some(row) = self.known_cpu(cpu) else { return false };
        if place >= CPUS_MAX {
            row.events += 1;
            return true;
        }
        if self.events.len() <= place {
            self.events.resize(place + 1, 0);
        }
        self.events.get_mut(place).into_iter().for_each(|events| *events += 1);
        true
    }

    fn interrupt(&mut self, one: Interrupt) {
        if !self.count(one.cpu) {
            return;
        }
        let exclusive = one.start_ns.map(|start| {
            let nested = self.exclusive.entry(one.cpu).or_default();
            nested.end(start, one.end_ns)
        });
        let place = one.routine.map(|routine| self.modules.find(routine)).unwrap_or_default();
        self.counts[0] += 1;
        self.interrupts.push(tables::Interrupt {
            recording: self.recording.clone(),
            cpu: u64::from(one.cpu),
            kind: Cow::Borrowed(one.kind.name()),
            name: one.name.or(place.module),
            routine: one.routine,
            routine_offset: place.offset,
            vector: one.vector.map(u64::from),
            device: one.device.or(place.device),
            queue: one.queue.map(u64::from),
            thread: one.thread.map(u64::from),
            start: one.start_ns.unwrap_or(one.end_ns),
            duration_ns: one.start_ns.map(|start| one.end_ns.saturating_sub(start)),
            exclusive_ns: exclusive,
            delay_ns: one.start_ns.zip(one.raised_ns).map(|(start, raised)| start - raised),
            work: one.work.map(u64::from),
            budget: one.budget.map(u64::from),
            function: place.function,
        });
    }

    fn sample(&mut self, one: &Sample) {
        if one.cpu.is_some_and(|cpu| !self.count(cpu)) {
            return;
        }
        // The innermost frame of a stack was looked up with it.
        let innermost = one.stack.and_then(|stack| self.innermost.get(&stack)).cloned();
        let (function, module, during) = innermost.unwrap_or_default();
        let module = module.or_else(|| one.module.clone());
        // Images are those of the kernel.
        let is_of_kernel =
            !matches!(one.mode, Some(Mode::User | Mode::GuestKernel | Mode::GuestUser));
        let address = one.address.filter(|_| module.is_none() && is_of_kernel);
        let place = address.map(|address| self.modules.find(address)).unwrap_or_default();
        self.counts[1] += 1;
        self.samples.push(tables::Sample {
            recording: self.recording.clone(),
            time: one.time_ns,
            cpu: one.cpu.map(u64::from),
            process: one.process.map(u64::from),
            thread: one.thread.map(u64::from),
            task: one.task.clone(),
            mode: one.mode.map(Mode::name).map(Cow::Borrowed),
            during: one.during.or(during).map(Kind::name).map(Cow::Borrowed),
            address: one.address,
            function: function.or(place.function),
            module: module.or(place.module),
            stack: one.stack,
            weight_ns: one.weight_ns,
        });
    }

    fn stack(&mut self, id: StackId, mut frames: Vec<Frame>) {
        for (depth, frame) in frames.iter_mut().enumerate() {
            if frame.function.is_some() && frame.module.is_some() {
                continue;
            }
            let place = match depth {
                0 => self.modules.find(frame.address),
                _ => self.modules.find_caller(frame.address),
            };
            // A frame of a program is not in the images, which are those of the kernel.
            let same = |known: &Arc<str>| place.module.as_deref() == known.rsplit('/').next();
            if frame.module.as_ref().is_none_or(same) {
                frame.function = frame.function.take().or(place.function);
                frame.module = frame.module.take().or(place.module);
            }
        }
        if let Some(first) = frames.first() {
            let full = self.innermost.len() >= FUNCTIONS_MAX;
            match self.innermost.entry(id) {
                Entry::Vacant(vacant) if !full => {
                    let during = during(&frames);
                    vacant.insert((first.function.clone(), first.module.clone(), during));
                }
                Entry::Vacant(_) => self.limited += 1,
                Entry::Occupied(_) => {}
            }
        }
        for (depth, frame) in frames.into_iter().enumerate() {
            self.stacks.push(StackFrame {
                recording: self.recording.clone(),
                stack: id,
                depth: depth as u64,
                address: frame.address,
                function: frame.function,
                module: frame.module,
            });
        }
    }

    fn switch(&mut self, one: Switch) {
        if !self.count(one.cpu) {
            return;
        }
        self.counts[2] += 1;
        self.switches.push(tables::Switch {
            recording: self.recording.clone(),
            time: one.time_ns,
            cpu: u64::from(one.cpu),
            old_thread: u64::from(one.old_thread),
            old_name: one.old_name,
            old_state: one.old_state,
            new_thread: u64::from(one.new_thread),
            new_name: one.new_name,
        });
    }

    fn device(&mut self, one: &Device) {
        if self.devices.len() >= DEVICES_MAX {
            self.limited += 1;
            return;
        }
        self.modules.add_device(one);
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        self.devices.push(tables::Device {
            recording: self.recording.to_string(),
            name: text(&one.name),
            instance: one.instance.to_string(),
            class: text(&one.class),
            driver: text(&one.driver),
            filters: text(&one.filters),
            irq: one.irq.map(i64::from),
            affinity: one.affinity,
            node: one.node.map(u64::from),
        });
    }

    fn power(&mut self, one: &Power) {
        if self.known_cpu(one.cpu).is_none() {
            return;
        }
        self.power.push(tables::Power {
            recording: self.recording.clone(),
            time: one.time_ns,
            cpu: u64::from(one.cpu),
            kind: Cow::Borrowed(one.kind.name()),
            value: one.value,
            duration_ns: one.duration_ns,
        });
    }

    fn total(&mut self, one: &Total) {
        self.totals.push(tables::InterruptTotal {
            recording: self.recording.to_string(),
            kind: one.kind.name().to_owned(),
            name: one.name.as_deref().map(str::to_owned),
            cpu: one.cpu.map(u64::from),
            start: one.start_ns,
            end: one.end_ns,
            above_ns: one.above_ns,
            up_to_ns: one.up_to_ns,
            count: one.count,
            duration_ns: one.duration_ns,
        });
    }

    fn image(&mut self, one: &Image) {
        if one.process == 0 {
            self.modules.add(one.base, one.size_bytes, &one.name, one.symbols.clone());
        }
        self.images.push(tables::Image {
            recording: self.recording.to_string(),
            process: u64::from(one.process),
            name: one.name.to_string(),
            base: one.base,
            size_bytes: one.size_bytes,
            symbols: one.symbols.as_deref().map(str::to_owned),
            loaded_at: one.time_ns,
        });
    }
}

#[cfg(test)]
mod tests;
