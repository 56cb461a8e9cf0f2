//! The time of each CPU: interrupts, deferred work, threads, idle.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use smbscope_tables::tables::{Cpu, Trace};

use super::context::Context;
use super::data::{Processor, Recorded, SampleCounts, Section};
use super::groups::share;
use super::sampled::{Known, Weights};
use super::{Class, Row, is_own};

/// Most CPUs.
const CPUS_MAX: usize = 16_384;

/// A CPU of one trace.
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
    weights: Weights,
}

/// Time of threads and idle time of one CPU in one trace, from its context switches.
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

/// The rows, and how many events belong to other CPUs.
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

    pub(super) fn sample(&mut self, cpu: u64, section: Section, weight_ns: Option<i64>) {
        if let Some(state) = self.cpu(cpu) {
            state.samples.add(section);
            state.weights.add(section, weight_ns);
        }
    }

    /// Adds sums of a trace that has no single interrupts.
    pub(super) fn sums(&mut self, cpu: u64, interrupt_ns: Option<i64>, deferred_ns: Option<i64>) {
        let Some(state) = self.cpu(cpu) else { return };
        state.interrupt_ns = state.interrupt_ns.saturating_add(interrupt_ns.unwrap_or(0));
        state.deferred_ns = state.deferred_ns.saturating_add(deferred_ns.unwrap_or(0));
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

    /// The CPUs, in the order of their numbers. What was not recorded is not known.
    pub(super) fn finish(
        mut self,
        traces: &[Trace],
        length_ns: i64,
        recorded: &Recorded,
        has_runs: bool,
        context: &Context,
    ) -> Finished {
        let sampled = traces.iter().filter(|trace| trace.samples > 0);
        let is_own = sampled.clone().count() > 0 && sampled.clone().all(is_own);
        // Many clocks do not tick in handlers, so no sample of one does not say that none ran.
        let during = self.cpus.values().map(|state| state.weights.during());
        let during = during.fold((recorded.interrupts, recorded.deferred), |all, one| {
            (all.0 || one.0, all.1 || one.1)
        });
        // A CPU without a switch is unknown, not idle.
        let mut times = HashMap::<u64, (i64, i64)>::new();
        for trace in traces {
            let mut cpus = self.switched.remove(&trace.recording).unwrap_or_default();
            // A CPU without a switch in the period does what its last one before says.
            if let Some(start) = trace.started_at {
                for (cpu, is_idle) in context.of(&trace.recording) {
                    if self.cpus.contains_key(&cpu) || self.cpus.len() < CPUS_MAX {
                        self.cpus.entry(cpu).or_default();
                        cpus.entry(cpu).or_insert(Switched {
                            first: (start, is_idle),
                            since: (start, is_idle),
                            idle_ns: 0,
                            thread_ns: 0,
                        });
                    }
                }
            }
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
            let interrupt = Some(state.interrupt_ns).filter(|_| recorded.interrupts);
            let deferred = Some(state.deferred_ns).filter(|_| recorded.deferred);
            let known = Known { length_ns, is_own, during, idle_ns: idle };
            Processor {
                cpu,
                node: place.node,
                socket: place.socket,
                core: place.core,
                thread: place.thread,
                interrupt_ns: interrupt,
                deferred_ns: deferred,
                thread_ns: thread,
                idle_ns: idle,
                interrupt_share: interrupt.and_then(share),
                deferred_share: deferred.and_then(share),
                thread_share: thread.and_then(share),
                idle_share: idle.and_then(share),
                interrupts: Some(state.interrupts).filter(|_| has_runs),
                samples: state.samples,
                sampled: state.weights.shares(known),
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
