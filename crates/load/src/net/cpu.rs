//! CPU time of this process (getrusage(2)) and of the machine (`/proc/stat`, proc(5)).

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::{Deserialize, Serialize};

/// One tick of `/proc/stat`: USER_HZ is 100 on every architecture that has this program.
const TICK_NS: i64 = 10_000_000;

/// CPU time spent in a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuUse {
    /// This process in user mode.
    pub user_ns: i64,
    /// This process in the kernel.
    pub system_ns: i64,
    /// All programs and interrupts of the machine.
    pub machine_ns: Option<i64>,
    /// Interrupts and softirqs of the machine.
    pub softirq_ns: Option<i64>,
    /// Idle time of the machine.
    pub idle_ns: Option<i64>,
}

impl CpuUse {
    /// The totals so far.
    pub(super) fn now() -> CpuUse {
        let usage = getrusage(UsageWho::RUSAGE_SELF);
        let (user_ns, system_ns) = usage.map_or((0, 0), |usage| {
            (usage.user_time().num_nanoseconds(), usage.system_time().num_nanoseconds())
        });
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let (machine_ns, softirq_ns, idle_ns) = match machine(&stat) {
            Some((busy, softirq, idle)) => (Some(busy), Some(softirq), Some(idle)),
            None => (None, None, None),
        };
        CpuUse { user_ns, system_ns, machine_ns, softirq_ns, idle_ns }
    }

    /// What was spent since `before`.
    pub(super) fn since(&self, before: &CpuUse) -> CpuUse {
        let less = |a: Option<i64>, b: Option<i64>| Some(a?.saturating_sub(b?).max(0));
        CpuUse {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            machine_ns: less(self.machine_ns, before.machine_ns),
            softirq_ns: less(self.softirq_ns, before.softirq_ns),
            idle_ns: less(self.idle_ns, before.idle_ns),
        }
    }

    /// Both parts of the process.
    pub(super) fn process_ns(&self) -> i64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// Busy part of the machine's CPUs, 0 to 1.
    pub(super) fn machine_share(&self) -> Option<f64> {
        let (busy, idle) = (self.machine_ns? as f64, self.idle_ns? as f64);
        (busy + idle > 0.0).then(|| busy / (busy + idle))
    }
}

/// CPU time of the calling thread.
pub(super) fn of_thread_ns() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| {
        let (user, system) = (usage.user_time(), usage.system_time());
        user.num_nanoseconds().saturating_add(system.num_nanoseconds())
    })
}

/// Busy, interrupt and idle time from the first line: user, nice, system, idle, iowait, irq, softirq.
fn machine(stat: &str) -> Option<(i64, i64, i64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers = line.split_whitespace().map(|word| word.parse().ok());
    let numbers: Vec<i64> = numbers.take(7).collect::<Option<_>>()?;
    let [user, nice, system, idle, iowait, irq, softirq] = numbers.try_into().ok()?;
    let ns = |parts: &[i64]| {
        parts.iter().fold(0i64, |sum, part| sum.saturating_add(*part)).saturating_mul(TICK_NS)
    };
    Some((ns(&[user, nice, system, irq, softirq]), ns(&[irq, softirq]), ns(&[idle, iowait])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_proc_stat_is_read() {
        let text = "cpu  10 1 5 100 7 2 3 9 0 0\ncpu0 1 2 3\n";
        assert_eq!(machine(text), Some((210_000_000, 50_000_000, 1_070_000_000)));
        assert_eq!(machine("cpu 1 2"), None);
        assert_eq!(machine(""), None);
        assert_eq!(machine("intr 5"), None);
    }

    #[test]
    fn differences_never_run_backwards_for_the_machine() {
        let before = CpuUse { machine_ns: Some(50), idle_ns: Some(10), ..CpuUse::default() };
        let after = CpuUse { machine_ns: Some(40), idle_ns: Some(30), ..CpuUse::default() };
        let since = after.since(&before);
        assert_eq!((since.machine_ns, since.softirq_ns), (Some(0), None));
        assert_eq!(since.machine_share(), Some(0.0));
    }
}
