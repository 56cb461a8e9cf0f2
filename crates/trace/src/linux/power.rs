//! Idle states and frequencies of CPUs: events `cpu_idle` and `cpu_frequency`
//! (include/trace/events/power.h).
//!
//! A CPU enters an idle state by `cpu_idle` with its number, and leaves it by the same event
//! with the number -1 (PWR_EVENT_EXIT).

use std::collections::HashMap;

use crate::event::{Power, PowerKind};

/// The idle states in which CPUs are: since when, and which.
#[derive(Debug, Default)]
pub struct Idle {
    open: HashMap<u32, (i64, u64)>,
}

impl Idle {
    /// A CPU enters or leaves an idle state; returns its stay in the one before. It has no end
    /// if that is not in the trace.
    pub fn change(&mut self, cpu: u32, time_ns: i64, state: u64) -> Option<Power> {
        // The field has 32 bits; some formats extend its sign.
        let is_exit = state as u32 == u32::MAX;
        let before =
            if is_exit { self.open.remove(&cpu) } else { self.open.insert(cpu, (time_ns, state)) };
        let (since_ns, value) = before?;
        let duration_ns = is_exit.then(|| time_ns.saturating_sub(since_ns).max(0));
        Some(Power { time_ns: since_ns, cpu, kind: PowerKind::CState, value, duration_ns })
    }

    /// Events of a CPU, or of all, were lost.
    pub fn lost(&mut self, cpu: Option<u32>) {
        match cpu {
            Some(cpu) => drop(self.open.remove(&cpu)),
            None => self.open.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stay_ends_when_the_processor_leaves_the_state() {
        const EXIT: u64 = u32::MAX as u64;
        let mut idle = Idle::default();
        let stay = |found: Option<Power>| found.map(|it| (it.time_ns, it.value, it.duration_ns));
        assert_eq!(stay(idle.change(0, 5, EXIT)), None);
        assert_eq!(stay(idle.change(0, 10, 2)), None);
        assert_eq!(stay(idle.change(1, 11, 1)), None);
        assert_eq!(stay(idle.change(0, 30, u64::MAX)), Some((10, 2, Some(20))));
        // The end of this one is missing.
        idle.change(0, 40, 3);
        assert_eq!(stay(idle.change(0, 50, 1)), Some((40, 3, None)));
        idle.lost(Some(0));
        assert_eq!(stay(idle.change(0, 60, EXIT)), None);
        assert_eq!(stay(idle.change(1, 61, EXIT)), Some((11, 1, Some(50))));
    }
}
