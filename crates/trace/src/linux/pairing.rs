//! Beginnings and ends of interrupts on each CPU.
//!
//! Interrupts nest: an irq can interrupt a softirq. An end belongs to the innermost beginning of the
//! same handler; beginnings within that have lost their ends.

use std::sync::Arc;

use foldhash::HashMap;

use crate::event::{Interrupt, Kind};

/// Most CPUs of a trace (Linux: `CONFIG_NR_CPUS` is at most 8192).
const CPUS_MAX: usize = 8192;
/// Most nested interrupts of one CPU; Linux does not nest as many.
const DEPTH_MAX: usize = 16;
/// The handler of the CPU's timer (x86).
const TIMER: &str = "local_timer";
/// Softirqs that can be pending (`NR_SOFTIRQS` is 10).
const SOFTIRQS: usize = 16;

/// A beginning.
#[derive(Clone, Debug)]
pub struct Begin {
    pub kind: Kind,
    pub vector: Option<u32>,
    pub name: Option<Arc<str>>,
    pub device: Option<Arc<str>>,
    pub queue: Option<u32>,
    pub thread: Option<u32>,
    pub start_ns: i64,
}

#[derive(Debug, Default)]
struct Cpu {
    open: Vec<(Begin, Option<i64>)>,
    /// When each softirq was requested first since it last began.
    raised_ns: [Option<i64>; SOFTIRQS],
}

/// What has begun on each CPU, and counts of what does not match.
#[derive(Debug, Default)]
pub struct Pairing {
    cpus: HashMap<u32, Cpu>,
    pub starts_unmatched: u64,
    pub ends_unmatched: u64,
    /// Events of too many CPUs or too deeply nested.
    pub limited: u64,
}

impl Pairing {
    fn cpu(&mut self, cpu: u32) -> Option<&mut Cpu> {
        if self.cpus.len() >= CPUS_MAX && !self.cpus.contains_key(&cpu) {
            self.limited += 1;
            return None;
        }
        Some(self.cpus.entry(cpu).or_default())
    }

    /// A softirq is requested on a CPU.
    pub fn raise(&mut self, cpu: u32, vector: u32, time_ns: i64) {
        let Some(cpu) = self.cpu(cpu) else { return };
        if let Some(raised) = cpu.raised_ns.get_mut(vector as usize) {
            raised.get_or_insert(time_ns);
        }
    }

    /// A handler begins.
    pub fn begin(&mut self, cpu: u32, begin: Begin) {
        let Some(state) = self.cpu(cpu) else { return };
        if state.open.len() >= DEPTH_MAX {
            // Ends were lost: what began first cannot be running any more.
            state.open.remove(0);
            self.starts_unmatched += 1;
            return self.begin(cpu, begin);
        }
        let (mut raised, mut lost) = (None, 0);
        if begin.kind == Kind::Softirq {
            // Softirqs of a CPU do not interrupt each other: the end of the one before is missing.
            let before = state.open.iter().position(|(open, _)| open.kind == Kind::Softirq);
            if let Some(place) = before {
                lost = (state.open.len() - place) as u64;
                state.open.truncate(place);
            }
            let vector = begin.vector.map_or(usize::MAX, |vector| vector as usize);
            raised = state.raised_ns.get_mut(vector).and_then(Option::take);
        }
        state.open.push((begin, raised));
        self.starts_unmatched += lost;
    }

    /// A handler ends: the interrupt, if its beginning is known.
    pub fn end(
        &mut self,
        cpu: u32,
        kind: Kind,
        vector: Option<u32>,
        end_ns: i64,
    ) -> Option<Interrupt> {
        let state = self.cpu(cpu)?;
        let same = |(begin, _): &(Begin, _)| begin.kind == kind && begin.vector == vector;
        let Some(place) = state.open.iter().rposition(same) else {
            self.ends_unmatched += 1;
            return None;
        };
        let lost = state.open.len() - place - 1;
        state.open.truncate(place + 1);
        let (begin, raised_ns) = state.open.pop()?;
        self.starts_unmatched += lost as u64;
        if end_ns < begin.start_ns {
            // The clock went back.
            self.starts_unmatched += 1;
            self.ends_unmatched += 1;
            return None;
        }
        Some(Interrupt {
            cpu,
            kind,
            vector,
            routine: None,
            name: begin.name,
            device: begin.device,
            queue: begin.queue,
            thread: begin.thread,
            start_ns: Some(begin.start_ns),
            end_ns,
            raised_ns: raised_ns.filter(|&raised| raised <= begin.start_ns),
            work: None,
            budget: None,
        })
    }

    /// What a sample hits on a CPU: the innermost handler, without the timer's own that takes
    /// the sample.
    pub fn sampled(&self, cpu: u32) -> Option<Kind> {
        let mut open = self.cpus.get(&cpu)?.open.iter().rev().map(|(begin, _)| begin);
        let innermost = open.next()?;
        let hit = match innermost.name.as_deref() {
            Some(TIMER) => open.next()?,
            _ => innermost,
        };
        Some(hit.kind)
    }

    /// Events of a CPU are missing here: what was open has no known end.
    pub fn lost(&mut self, cpu: u32) {
        if let Some(state) = self.cpus.remove(&cpu) {
            self.starts_unmatched += state.open.len() as u64;
        }
    }

    /// The trace ends.
    pub fn finish(&mut self) {
        for (_, state) in self.cpus.drain() {
            self.starts_unmatched += state.open.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(kind: Kind, vector: u32, start_ns: i64) -> Begin {
        Begin {
            kind,
            vector: Some(vector),
            name: None,
            device: None,
            queue: None,
            thread: None,
            start_ns,
        }
    }

    #[test]
    fn an_irq_within_a_softirq_ends_first() {
        let mut pairing = Pairing::default();
        pairing.raise(0, 3, 5);
        pairing.raise(0, 3, 8);
        pairing.begin(0, begin(Kind::Softirq, 3, 10));
        pairing.begin(0, begin(Kind::Irq, 24, 12));
        // Another CPU has its own state.
        assert_eq!(pairing.end(1, Kind::Irq, Some(24), 13), None);
        assert_eq!(pairing.sampled(0), Some(Kind::Irq));
        pairing.begin(0, Begin { name: Some(TIMER.into()), ..begin(Kind::Irq, 236, 13) });
        assert_eq!(pairing.sampled(0), Some(Kind::Irq));
        pairing.end(0, Kind::Irq, Some(236), 13);
        pairing.begin(2, Begin { name: Some(TIMER.into()), ..begin(Kind::Irq, 236, 13) });
        assert_eq!(pairing.sampled(2), None);
        pairing.end(2, Kind::Irq, Some(236), 13);
        let irq = pairing.end(0, Kind::Irq, Some(24), 14).unwrap();
        assert_eq!((irq.start_ns, irq.end_ns, irq.raised_ns), (Some(12), 14, None));
        let softirq = pairing.end(0, Kind::Softirq, Some(3), 20).unwrap();
        assert_eq!((softirq.start_ns, softirq.raised_ns), (Some(10), Some(5)));
        assert_eq!((pairing.starts_unmatched, pairing.ends_unmatched), (0, 1));
    }

    #[test]
    fn a_softirq_ends_before_the_next_one_begins() {
        let mut pairing = Pairing::default();
        pairing.begin(0, begin(Kind::Softirq, 3, 10));
        pairing.begin(0, begin(Kind::Softirq, 1, 20));
        assert!(pairing.end(0, Kind::Softirq, Some(1), 25).is_some());
        assert_eq!(pairing.end(0, Kind::Softirq, Some(3), 900), None);
        assert_eq!((pairing.starts_unmatched, pairing.ends_unmatched), (1, 1));
    }

    #[test]
    fn what_lost_its_end_is_counted() {
        let mut pairing = Pairing::default();
        pairing.begin(0, begin(Kind::Softirq, 3, 10));
        pairing.begin(0, begin(Kind::Irq, 24, 12));
        assert!(pairing.end(0, Kind::Softirq, Some(3), 20).is_some());
        assert_eq!(pairing.starts_unmatched, 1);
        pairing.begin(0, begin(Kind::Softirq, 3, 30));
        pairing.lost(0);
        assert_eq!(pairing.end(0, Kind::Softirq, Some(3), 40), None);
        for start in 0..100 {
            pairing.begin(0, begin(Kind::Irq, 1, start));
        }
        pairing.finish();
        assert_eq!((pairing.starts_unmatched, pairing.ends_unmatched), (102, 1));
        pairing.begin(0, begin(Kind::Irq, 1, 50));
        assert_eq!(pairing.end(0, Kind::Irq, Some(1), 49), None);
    }
}
