//! The time of each processor: interrupts, deferred work, threads, idle.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use smbscope_tables::tables::{Cpu, Trace};

use super::data::{Processor, SampleCounts, Section};
use super::groups::share;
use super::{Class, Row};

/// Most processors.
const CPUS_MAX: usize = 16_384;

/// A processor of one trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) recording: &'a str,
    pub(super) cpu: u64,
}

#[derive(Debug, Default)]
struct State {
    place: Option<Cpu>,
    interrupts: u64,
    /// Exclusive time in interrupts and deferred work, while idle and in threads.
    interrupt_ns: i64,
    deferred_ns: i64,
    within_idle_ns: i64,
    within_threads_ns: i64,
    samples: SampleCounts,
}

/// Time of threads and idle time of one processor in one trace, from its context switches.
#[derive(Debug)]
struct Switched {
    first: (i64, bool),
    /// Since when it is idle or not.
    since: (i64, bool),
    idle_ns: i64,
    thread_ns: i64,
}

#[derive(Debug, Default)]
pub(super) struct Processors {
    cpus: BTreeMap<u64, State>,
    switched: HashMap<String, HashMap<u64, Switched>>,
    discarded: u64,
}

/// The rows, and how many events belong to other processors.
pub(super) struct Finished {
    pub(super) rows: Vec<Processor>,
    pub(super) discarded: u64,
}

impl Processors {
    fn cpu(&mut self, cpu: u64) -> Option<&mut State> {
        if self.cpus.len() >= CPUS_MAX && !self.cpus.contains_key(&cpu) {
            self.discarded += 1;
            return None;
        }
        Some(self.cpus.entry(cpu).or_default())
    }

    pub(super) fn place(&mut self, row: &Cpu) {
        if let Some(state) = self.cpu(row.cpu) {
            state.place = Some(row.clone());
        }
    }

    pub(super) fn interrupt(&mut self, row: &Row<'_>) {
        let Some(state) = self.cpu(row.cpu) else { return };
        state.interrupts += 1;
        let Some(exclusive) = row.exclusive_ns else { return };
        let class = match row.class {
            Class::Interrupt => &mut state.interrupt_ns,
            Class::Deferred => &mut state.deferred_ns,
        };
        *class = class.saturating_add(exclusive);
        let within = match row.thread {
            Some(0) => &mut state.within_idle_ns,
            _ => &mut state.within_threads_ns,
        };
        *within = within.saturating_add(exclusive);
    }

    pub(super) fn sample(&mut self, cpu: u64, section: Section) {
        if let Some(state) = self.cpu(cpu) {
            state.samples.add(section);
        }
    }

    pub(super) fn switch(&mut self, place: Place<'_>, time: i64, old: u64, new: u64) {
        if self.cpu(place.cpu).is_none() {
            return;
        }
        if !self.switched.contains_key(place.recording) {
            self.switched.insert(place.recording.to_owned(), HashMap::new());
        }
        let Some(cpus) = self.switched.get_mut(place.recording) else { return };
        let state = cpus.entry(place.cpu).or_insert(Switched {
            first: (time, old == 0),
            since: (time, old == 0),
            idle_ns: 0,
            thread_ns: 0,
        });
        state.until(time, old == 0);
        state.since = (time, new == 0);
    }

    /// The processors, in the order of their numbers.
    pub(super) fn finish(mut self, traces: &[Trace], length_ns: i64) -> Finished {
        // A processor without a switch is unknown, not idle.
        let mut times = HashMap::<u64, (i64, i64)>::new();
        for trace in traces {
            let Some(cpus) = self.switched.remove(&trace.recording) else { continue };
            for (cpu, mut state) in cpus {
                let (first, was_idle) = state.first;
                let before = trace.started_at.map_or(0, |start| first.saturating_sub(start));
                state.add(before, was_idle);
                let (since, is_idle) = state.since;
                state.until(trace.ended_at.unwrap_or(since), is_idle);
                let sum = times.entry(cpu).or_default();
                sum.0 = sum.0.saturating_add(state.idle_ns);
                sum.1 = sum.1.saturating_add(state.thread_ns);
            }
        }
        let rows = self.cpus.into_iter().map(|(cpu, state)| {
            let place = state.place.unwrap_or_default();
            let known = times.get(&cpu);
            // Interrupts that began before the first switch can exceed the time around them.
            let idle = known.map(|known| known.0.saturating_sub(state.within_idle_ns).max(0));
            let thread = known.map(|known| known.1.saturating_sub(state.within_threads_ns).max(0));
            let share = |part: i64| share(part, length_ns);
            Processor {
                cpu,
                node: place.node,
                socket: place.socket,
                core: place.core,
                thread: place.thread,
                interrupt_ns: state.interrupt_ns,
                deferred_ns: state.deferred_ns,
                thread_ns: thread,
                idle_ns: idle,
                interrupt_share: share(state.interrupt_ns),
                deferred_share: share(state.deferred_ns),
                thread_share: thread.and_then(share),
                idle_share: idle.and_then(share),
                interrupts: state.interrupts,
                samples: state.samples,
            }
        });
        Finished { rows: rows.collect(), discarded: self.discarded }
    }
}

impl Switched {
    fn add(&mut self, ns: i64, idle: bool) {
        let sum = if idle { &mut self.idle_ns } else { &mut self.thread_ns };
        *sum = sum.saturating_add(ns.max(0));
    }

    /// The time since the last switch; lost switches can make the two disagree about who ran.
    fn until(&mut self, time: i64, idle: bool) {
        self.add(time.saturating_sub(self.since.0), idle);
    }
}
