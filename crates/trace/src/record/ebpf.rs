//! Events by eBPF: the programs of [`super::loader`], and their events as those of a trace.

use std::fs;
use std::path::Path;

use crate::event::{Coverage, Cpu, Event};

use super::Options;
use super::convert::{self, Convert};
use super::devices::Devices;
use super::loader::{CpuCounters, LoadError, Programs, What};
use super::ring_event::RingEvent;

/// Attached programs, and what is known about their events.
pub struct Ebpf {
    programs: Programs,
    convert: Convert,
    hz: u32,
    /// When all programs were attached.
    started: u64,
    pending: Vec<RingEvent>,
}

impl Ebpf {
    /// Attaches the programs. `offset_ns` is the time of day when the clock was 0.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn start(cpus: &[u32], options: Options, offset_ns: i64) -> Result<Ebpf, LoadError> {
        let Options { buffer_bytes, hz, switches, .. } = options;
        let programs = Programs::attach(cpus, What { buffer_bytes, hz, switches })?;
        let started = super::now();
        // After the programs were loaded, which are functions, too. It takes a part of a second.
        let functions = super::functions();
        let interrupts = fs::read_to_string("/proc/interrupts").unwrap_or_default();
        let devices = Devices::read(&interrupts, Path::new("/sys/class"));
        let convert = Convert::new(offset_ns, hz, devices, functions);
        Ok(Ebpf { programs, convert, hz, started, pending: Vec::new() })
    }

    /// When all programs were attached, by their clock.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Gives the events up to a time to the sink, in the order of time: how many, and whether there may be more.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn read(
        &mut self,
        until: u64,
        sink: &mut dyn FnMut(Event),
    ) -> Result<(u64, bool), LoadError> {
        let more = self.programs.read(&mut self.pending)?;
        // Almost in order: each CPU's are.
        self.pending.sort_by_key(RingEvent::time);
        let ready = self.pending.partition_point(|event| event.time() <= until);
        let mut events = 0;
        for event in self.pending.drain(..ready) {
            events += u64::from(!matches!(event, RingEvent::Name(_)));
            self.convert.event(event, &mut |event| sink(event));
        }
        Ok((events, more))
    }

    /// What this kernel cannot record.
    pub fn missing(&self) -> &[String] {
        &self.programs.missing
    }

    /// Bytes of the ring of one CPU.
    pub fn ring_bytes(&self) -> u64 {
        u64::from(self.programs.ring_bytes)
    }

    /// Takes a sample only every `every` ticks.
    pub fn sample_every(&mut self, every: u32) {
        self.programs.sample_every(every);
    }

    /// Records no more context switches.
    pub fn no_switches(&mut self) {
        self.programs.no_switches();
    }

    /// Removes the programs; the events until then can still be read.
    pub fn detach(&mut self) {
        self.programs.detach();
    }

    /// Counters of a CPU.
    pub fn counters(&self, cpu: u32) -> CpuCounters {
        self.programs.counters(cpu)
    }

    /// What could not be paired or named, and events of CPUs that there is no memory for.
    pub fn coverage(&self, cpus: &[Cpu]) -> Coverage {
        let sum = |of: fn(&CpuCounters) -> u64| {
            cpus.iter().map(|cpu| of(&self.programs.counters(cpu.cpu))).sum()
        };
        let has_no_names = self.hz > 0 && !self.convert.knows_functions();
        Coverage {
            events_lost: Some(self.programs.beyond()),
            starts_unmatched: sum(|counters| counters.starts_unmatched),
            ends_unmatched: sum(|counters| counters.ends_unmatched),
            stacks_discarded: self.convert.stacks_discarded,
            names_discarded: self.convert.names_discarded(),
            notes: has_no_names.then(|| convert::NO_NAMES.to_owned()),
            ..Coverage::default()
        }
    }
}
