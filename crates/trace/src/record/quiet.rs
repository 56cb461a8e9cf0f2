//! CPUs that devices leave alone: where a recorder runs although others are locked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use super::interrupts;

/// How long counters are observed.
const LOOK: Duration = Duration::from_millis(200);
/// Ticks in interrupts within that time (of some 20) with which a CPU is loaded.
const TICKS_LOADED: u64 = 2;
/// Interrupts and softirqs of devices each second that load no CPU.
const RATE_HARMLESS: u64 = 1000;
/// Softirqs that threads and timers cause on their own CPU.
const OF_THREADS: [&str; 4] = ["TIMER", "SCHED", "HRTIMER", "RCU"];

/// CPUs to run on, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Empty if all will do.
    pub cpus: Vec<u32>,
    pub reason: String,
}

/// Counters of each CPU at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts(BTreeMap<u32, (u64, u64)>);

/// Observes this machine and chooses from `allowed` CPUs.
pub fn choose(allowed: &BTreeSet<u32>) -> Choice {
    let before = Counts::now();
    std::thread::sleep(LOOK);
    of(&before, &Counts::now(), LOOK, allowed)
}

impl Counts {
    fn now() -> Counts {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Counts::from_interrupts(
            &text("/proc/interrupts"),
            &text("/proc/softirqs"),
            &text("/proc/stat"),
        )
    }

    fn from_interrupts(interrupts: &str, softirqs: &str, stat: &str) -> Counts {
        let mut counts = Counts::default();
        let irqs = interrupts::read(interrupts);
        let softirqs = interrupts::read(softirqs);
        let irqs = (irqs.0, irqs.1.into_iter().filter(|line| line.irq().is_some()).collect());
        let all: [(Vec<u32>, Vec<interrupts::Line<'_>>); 2] = [irqs, softirqs];
        for (cpus, lines) in &all {
            for line in lines.iter().filter(|line| !OF_THREADS.contains(&line.label)) {
                for (cpu, count) in cpus.iter().zip(&line.counts) {
                    counts.0.entry(*cpu).or_default().0 += count;
                }
            }
        }
        for (cpu, ticks) in interrupts::ticks(stat) {
            counts.0.entry(cpu).or_default().1 = ticks;
        }
        counts
    }
}

fn of(before: &Counts, after: &Counts, time: Duration, allowed: &BTreeSet<u32>) -> Choice {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    let loads: Vec<(u32, u64, u64)> = allowed
        .iter()
        .map(|cpu| {
            let [(old, old_ticks), (new, ticks)] =
                [before, after].map(|counts| counts.0.get(cpu).copied().unwrap_or_default());
            let rate = new.saturating_sub(old).saturating_mul(1000) / milliseconds;
            (*cpu, rate, ticks.saturating_sub(old_ticks))
        })
        .collect();
    let busiest = loads.iter().max_by_key(|(_, rate, ticks)| (*ticks, *rate)).copied();
    let highest = loads.iter().map(|(_, rate, _)| *rate).max().unwrap_or(0);
    let is_quiet = |(_, rate, ticks): &&(u32, u64, u64)| {
        *ticks < TICKS_LOADED && *rate <= (highest / 10).max(RATE_HARMLESS)
    };
    let mut quiet: Vec<_> = loads.iter().filter(is_quiet).copied().collect();
    if quiet.len() == loads.len() {
        let reason = "interrupts of devices load no CPU".to_owned();
        return Choice { cpus: Vec::new(), reason };
    }
    if quiet.is_empty() {
        // The least loaded one is still the best.
        quiet.extend(loads.iter().min_by_key(|(_, rate, ticks)| (*ticks, *rate)).copied());
    }
    let most = quiet.iter().map(|(_, rate, _)| *rate).max().unwrap_or(0);
    let mut reason = format!("at most {most} interrupts and softirqs of devices each second there");
    if let Some((cpu, rate, _)) = busiest {
        reason.push_str(&format!(", {rate} on CPU {cpu}"));
    }
    Choice { cpus: quiet.into_iter().map(|(cpu, ..)| cpu).collect(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rx: [u64; 4], ticks: [u64; 4]) -> Counts {
        let heading = "      CPU0 CPU1 CPU2 CPU3\n";
        let line = |label: &str, counts: [u64; 4]| {
            format!("{label}: {}\n", counts.map(|count| count.to_string()).join(" "))
        };
        let interrupts =
            format!("{heading}{}{}", line("24", rx.map(|rx| rx / 10)), line("LOC", [9_000_000; 4]));
        let softirqs = format!("{heading}{}{}", line("NET_RX", rx), line("TIMER", [1 << 30; 4]));
        let stat: String =
            (0..4).map(|cpu| format!("cpu{cpu} 0 0 0 0 0 {} 0\n", ticks[cpu])).collect();
        Counts::from_interrupts(&interrupts, &softirqs, &stat)
    }

    fn chosen(rx: [u64; 4], ticks: [u64; 4]) -> Choice {
        let allowed = (0..4).collect();
        of(&counts([0; 4], [0; 4]), &counts(rx, ticks), Duration::from_millis(200), &allowed)
    }

    #[test]
    fn a_recorder_runs_where_devices_do_not() {
        let choice = chosen([20_000, 10, 30_000, 0], [0; 4]);
        assert_eq!(choice.cpus, [1, 3]);
        assert!(choice.reason.contains("165000 on CPU 2"), "{}", choice.reason);
    }

    #[test]
    fn a_processor_that_is_locked_by_few_long_softirqs_is_loaded() {
        assert_eq!(chosen([10, 10, 10, 10], [20, 0, 0, 0]).cpus, [1, 2, 3]);
    }

    #[test]
    fn all_quiet_means_all_will_do_and_all_loaded_the_least() {
        assert_eq!(chosen([5; 4], [0; 4]).cpus, [0; 0]);
        assert_eq!(chosen([50_000, 40_000, 50_000, 50_000], [9; 4]).cpus, [1]);
    }
}
