//! The second reading of a log: records in the order of their times to [`Event`]s.

use super::Log;
use super::clock::Clock;
use super::kernel::{group, interrupts, power, samples, stacks, threads};
use super::log_header::LogHeader;
use super::record::{Origin, Record};
use super::stacks::{Number, Numbers, Waiting};
use super::survey::Survey;
use super::times::{Bounds, Deferred};
use crate::event::{Event, Frame, Image, Interrupt, Kind, Power, PowerKind, Sample, Switch};
use std::collections::VecDeque;
use std::sync::Arc;

/// CPUs whose threads are remembered; Windows has at most 2048.
const CPUS_MAX: usize = 4_096;

type Sink<'a> = &'a mut dyn FnMut(Event);

/// Makes events.
#[derive(Debug)]
pub struct Converter {
    clock: Clock,
    survey: Survey,
    /// By the header of the log.
    cpu_mhz: u32,
    /// Images that are loaded later, in the order of their times.
    images: VecDeque<Image>,
    waiting: Waiting,
    numbers: Numbers,
    states: Vec<Arc<str>>,
    /// The thread of each CPU after its last context switch.
    running: Vec<Option<u32>>,
    /// Since when each CPU runs its idle thread.
    idle_since: Vec<Option<i64>>,
    bounds: Bounds,
    deferred: Deferred,
}

impl Converter {
    pub fn new(header: &LogHeader, survey: Survey, bounds: Bounds, log: &mut Log) -> Converter {
        log.sample_interval_ns = survey.sample_interval_ns;
        Converter {
            clock: header.clock,
            survey,
            cpu_mhz: header.cpu_mhz,
            images: VecDeque::new(),
            waiting: Waiting::default(),
            numbers: Numbers::new(),
            states: threads::STATES.iter().map(|&name| name.into()).collect(),
            running: vec![None; CPUS_MAX],
            idle_since: vec![None; CPUS_MAX],
            bounds,
            deferred: Deferred::new(header, bounds, CPUS_MAX),
        }
    }

    /// Yields what events refer to: CPUs, and images that were there before them.
    pub fn before_events(&mut self, header: &LogHeader, sink: Sink<'_>) {
        for cpu in self.survey.cpus(header.cpus, header.cpu_mhz) {
            sink(Event::Cpu(cpu));
        }
        for device in self.survey.devices() {
            sink(Event::Device(device));
        }
        self.images = self.survey.images(&self.clock, &self.bounds).into();
        self.images_until(None, sink);
    }

    fn images_until(&mut self, time_ns: Option<i64>, sink: Sink<'_>) {
        while let Some(image) = self.images.pop_front_if(|image| image.time_ns <= time_ns) {
            sink(Event::Image(image));
        }
    }

    /// Yields the events of one record.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>, log: &mut Log, sink: Sink<'_>) {
        let Origin::Kernel { group, opcode } = record.origin else {
            return self.power(record, log, sink);
        };
        if !self.images.is_empty() {
            self.images_until(Some(self.clock.time_ns(record.ticks)), sink);
        }
        let done = match (group, opcode) {
            (group::PERFINFO, samples::SAMPLE) => self.sample(record, log, sink),
            (group::PERFINFO, _) => match interrupts::kind(opcode) {
                Some(kind) => self.interrupt(kind, record, sink),
                None if samples::INTERVALS.contains(&opcode) => {
                    let interval_ns = samples::interval_ns(record);
                    log.sample_interval_ns = interval_ns.or(log.sample_interval_ns);
                    Some(())
                }
                None => Some(()),
            },
            (group::STACK_WALK, stacks::WITH_FRAMES) => self.stack(record, log),
            (group::STACK_WALK, _) if stacks::WITH_KEY.contains(&opcode) => self.key(record, log),
            (group::THREAD, threads::SWITCH) => self.switch(record, sink),
            (group::THREAD, threads::START) => {
                if let Some((process, thread)) = threads::thread(record) {
                    self.survey.threads.start(process, thread);
                }
                Some(())
            }
            _ => Some(()),
        };
        if done.is_none() {
            log.damaged(|| format!("an event {group}:{opcode}"));
        }
    }

    /// Yields what still waits.
    pub fn finish(&mut self, log: &mut Log, sink: Sink<'_>) {
        while let Some(image) = self.images.pop_front() {
            sink(Event::Image(image));
        }
        while let Some((sample, frames)) = self.waiting.next() {
            self.yield_sample(sample, frames, log, sink);
        }
    }

    fn interrupt(&mut self, kind: Kind, record: &Record<'_>, sink: Sink<'_>) -> Option<()> {
        let run = interrupts::parse(kind, record)?;
        let is_threaded = kind == Kind::ThreadedDpc;
        let is_dpc = matches!(kind, Kind::Dpc | Kind::TimerDpc);
        let (start, end) = (run.start_ticks, record.ticks);
        if !self.deferred.check(record.cpu, start, end, is_threaded, is_dpc) {
            return None;
        }
        sink(Event::Interrupt(Interrupt {
            cpu: record.cpu,
            kind,
            vector: run.vector.map(u32::from),
            routine: Some(run.routine),
            name: None,
            device: None,
            thread: self.running.get(record.cpu as usize).copied().flatten(),
            queue: None,
            start_ns: Some(self.clock.time_ns(run.start_ticks)),
            end_ns: self.clock.time_ns(record.ticks),
            raised_ns: None,
            work: None,
            budget: None,
        }));
        Some(())
    }

    /// The frequency of a CPU, if the event says one.
    fn power(&self, record: &Record<'_>, log: &mut Log, sink: Sink<'_>) {
        if !power::is_event(record.origin, record.version) {
            return;
        }
        let Some(found) = power::parse(record) else {
            return log.damaged(|| "an event of a CPU's frequency".to_owned());
        };
        let cpu = self.survey.cpu(found.group, found.number);
        let mhz = self.survey.mhz.unwrap_or(self.cpu_mhz);
        let (Some(cpu), true) = (cpu, power::is_plausible(found.mhz, mhz)) else {
            log.coverage.events_other += 1;
            return;
        };
        let time_ns = self.clock.time_ns(record.ticks);
        // The clock of a machine counts from its start at the earliest.
        let before_ns = found
            .before_us
            .and_then(|us| i64::try_from(us.checked_mul(1_000)?).ok())
            .filter(|before_ns| (0..=time_ns).contains(before_ns));
        sink(Event::Power(Power {
            time_ns: time_ns - before_ns.unwrap_or(0),
            cpu,
            kind: PowerKind::Frequency,
            value: u64::from(found.mhz) * 1_000,
            duration_ns: before_ns,
        }));
    }

    fn sample(&mut self, record: &Record<'_>, log: &mut Log, sink: Sink<'_>) -> Option<()> {
        let raw = samples::parse(record)?;
        let time_ns = self.clock.time_ns(record.ticks);
        let sample = Sample {
            time_ns,
            cpu: Some(record.cpu),
            process: self.survey.threads.process(raw.thread),
            thread: Some(raw.thread),
            address: Some(raw.address),
            during: raw.during,
            weight_ns: log.sample_interval_ns,
            ..Sample::default()
        };
        self.waiting.add(record.ticks, sample);
        while let Some((sample, frames)) = self.waiting.next_before(time_ns) {
            self.yield_sample(sample, frames, log, sink);
        }
        Some(())
    }

    fn yield_sample(
        &mut self,
        mut sample: Sample,
        frames: Vec<u64>,
        log: &mut Log,
        sink: Sink<'_>,
    ) {
        if !frames.is_empty() {
            sample.stack = match self.numbers.of(&frames) {
                Number::Known(id) => Some(id),
                Number::New(id) => {
                    let frame = |&address| Frame { address, ..Frame::default() };
                    let frames = frames.iter().map(frame).collect();
                    sink(Event::Stack { id, frames });
                    Some(id)
                }
                Number::Limited => {
                    log.coverage.stacks_discarded += 1;
                    None
                }
            };
        }
        self.waiting.reuse(frames);
        sink(Event::Sample(sample));
    }

    fn stack(&mut self, record: &Record<'_>, log: &mut Log) -> Option<()> {
        let (owner, frames) = stacks::owner(record)?;
        let frames = stacks::frames(frames, record.pointer_bytes);
        let half = kernel_half(record);
        let is_sample = self.waiting.attach(owner, record.cpu, half, frames);
        log.stacks_of_others += u64::from(!is_sample);
        Some(())
    }

    fn key(&mut self, record: &Record<'_>, log: &mut Log) -> Option<()> {
        let (owner, rest) = stacks::owner(record)?;
        let key = stacks::key(rest, record.pointer_bytes)?;
        let frames = self.survey.dictionary.frames(key, record.ticks);
        let frames = frames.unwrap_or(&[]).iter().copied();
        let half = kernel_half(record);
        let is_sample = self.waiting.attach(owner, record.cpu, half, frames);
        log.stacks_of_others += u64::from(!is_sample);
        Some(())
    }

    fn switch(&mut self, record: &Record<'_>, sink: Sink<'_>) -> Option<()> {
        let raw = threads::switch(record)?;
        let time_ns = self.clock.time_ns(record.ticks);
        if let Some(running) = self.running.get_mut(record.cpu as usize) {
            *running = Some(raw.new_thread);
        }
        if let Some(idle_since) = self.idle_since.get_mut(record.cpu as usize) {
            if let Some(since) = idle_since.take().filter(|_| raw.old_thread == 0) {
                sink(Event::Power(Power {
                    time_ns: since,
                    cpu: record.cpu,
                    kind: PowerKind::CState,
                    value: u64::from(raw.idle_state),
                    duration_ns: Some(time_ns.saturating_sub(since)),
                }));
            }
            *idle_since = (raw.new_thread == 0).then_some(time_ns);
        }
        let threads = &self.survey.threads;
        sink(Event::Switch(Switch {
            time_ns,
            cpu: record.cpu,
            old_thread: raw.old_thread,
            old_name: threads.name(raw.old_thread),
            old_state: self.states.get(usize::from(raw.old_state)).cloned(),
            new_thread: raw.new_thread,
            new_name: threads.name(raw.new_thread),
        }));
        Some(())
    }
}

/// Where the kernel's half of the address space begins.
fn kernel_half(record: &Record<'_>) -> u64 {
    if record.pointer_bytes == 8 { 1 << 63 } else { 1 << 31 }
}
