//! The load generator monitors itself: a run is only meaningful while the server is the limit.
//!
//! Owns the share of the usable CPU time that the process used, the lateness of its own timers,
//! and when a step is therefore marked as limited by the client. Sources: getrusage(2),
//! sched_getaffinity(2), cgroups(7) (`cpu.max`, `cpu.cfs_quota_us`).

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::stats::{Latencies, Tally};
use smbscope_client::clock::Clock;

/// Percent of the usable CPU time; above it, the generator is the limit.
pub const CPU_LIMIT_PERCENT: f64 = 80.0;
/// Timers that are later than this (99th percentile) and than [`LATE_LIMIT_SHARE`] of the median
/// response time falsify what is measured, in nanoseconds.
pub const LATE_LIMIT_NS: i64 = 10_000_000;
/// The share of the median response time that a late timer may take.
pub const LATE_LIMIT_SHARE: f64 = 0.05;
/// Interval of the probe's wake-ups.
pub const PROBE_EVERY: Duration = Duration::from_millis(20);

/// The generator's own condition in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientLoad {
    /// CPU time, in percent of what the generator may use; `None` if unknown.
    pub cpu_percent: Option<f64>,
    /// How late its timers were, 99th percentile, in nanoseconds.
    pub late_ns: Option<i64>,
    /// Whether the CPU was the limit.
    pub limited_by_cpu: bool,
    /// Whether its timers were too late.
    pub limited_by_timers: bool,
}

impl ClientLoad {
    /// Evaluates the measurements; the median response time determines how much lateness matters.
    pub fn judge(
        cpu_percent: Option<f64>,
        late_ns: Option<i64>,
        response_ns_p50: Option<i64>,
    ) -> ClientLoad {
        let bound_ns = response_ns_p50.map_or(0.0, |ns| ns as f64 * LATE_LIMIT_SHARE);
        ClientLoad {
            cpu_percent,
            late_ns,
            limited_by_cpu: cpu_percent.is_some_and(|percent| percent > CPU_LIMIT_PERCENT),
            limited_by_timers: late_ns.is_some_and(|ns| ns > LATE_LIMIT_NS && ns as f64 > bound_ns),
        }
    }

    /// Whether the generator, not the server, was the limit.
    pub fn limited(&self) -> bool {
        self.limited_by_cpu || self.limited_by_timers
    }

    /// Why, and what to do about it; `None` if it was not.
    pub fn reason(&self) -> Option<String> {
        let mut reasons = Vec::new();
        if let (true, Some(percent)) = (self.limited_by_cpu, self.cpu_percent) {
            reasons.push(format!(
                "it used {percent:.0} % of its CPU time (limit {CPU_LIMIT_PERCENT:.0} %)"
            ));
        }
        if let (true, Some(ns)) = (self.limited_by_timers, self.late_ns) {
            reasons.push(format!(
                "its timers were {:.0} ms late (99th percentile; limit {} ms and {:.0} % of the \
                 median response time)",
                ns as f64 / 1e6,
                LATE_LIMIT_NS / 1_000_000,
                100.0 * LATE_LIMIT_SHARE
            ));
        }
        (!reasons.is_empty()).then(|| {
            format!(
                "The load generator was the limit: {}. Use a larger machine, or several with \
                 --shard.",
                reasons.join("; ")
            )
        })
    }
}

/// Monitors the process that it runs in, one step after another.
#[derive(Debug)]
pub struct SelfCheck {
    cpus: f64,
    late: Mutex<Latencies>,
    from: Mutex<(Instant, Option<Duration>)>,
}

impl SelfCheck {
    /// For a process with the given number of worker threads: one thread can be at its limit while the
    /// machine idles.
    pub fn new(worker_threads: usize) -> SelfCheck {
        SelfCheck {
            cpus: cpus_allowed().min(worker_threads.max(1) as f64),
            late: Mutex::default(),
            from: Mutex::new((Instant::now(), cpu_time())),
        }
    }

    /// CPUs that the generator may use and has threads for.
    pub fn cpus(&self) -> f64 {
        self.cpus
    }

    /// Counts the lateness of one of the generator's timers.
    pub fn late(&self, late: Duration) {
        let late_ns = i64::try_from(late.as_nanos()).unwrap_or(i64::MAX);
        self.late.lock().unwrap_or_else(PoisonError::into_inner).record(late_ns);
    }

    /// Begins a step (its measured window).
    pub fn begin(&self) {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.from.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), cpu_time());
    }

    /// The generator's condition since [`SelfCheck::begin`]. `tally` is the step's so far.
    pub fn load(&self, tally: &Tally) -> ClientLoad {
        let (from, before) = *self.from.lock().unwrap_or_else(PoisonError::into_inner);
        let cpu_percent = match (before, cpu_time()) {
            (Some(before), Some(now)) => {
                cpu_percent(now.saturating_sub(before), from.elapsed(), self.cpus)
            }
            _ => None,
        };
        let late_ns = self.late.lock().unwrap_or_else(PoisonError::into_inner).quantile_ns(0.99);
        ClientLoad::judge(cpu_percent, late_ns, tally.response().quantile_ns(0.5))
    }

    /// Asks the clock for wake-ups at fixed times and counts their lateness, until it is dropped: one
    /// such task for each runtime that runs users.
    pub async fn probe(&self, clock: &Clock) {
        let mut due = tokio::time::Instant::now();
        loop {
            due += PROBE_EVERY;
            clock.wait(due).await;
            let now = tokio::time::Instant::now();
            let late = now.saturating_duration_since(due);
            self.late(late);
            // After a long stall, the wake-ups during the stall were late as well.
            while due + PROBE_EVERY < now {
                due += PROBE_EVERY;
                self.late(now.saturating_duration_since(due));
            }
        }
    }
}

/// CPU time used, in percent of what was available; `None` for an interval of zero.
fn cpu_percent(used: Duration, elapsed: Duration, cpus: f64) -> Option<f64> {
    let had = elapsed.as_secs_f64() * cpus;
    (had > 0.0).then(|| 100.0 * used.as_secs_f64() / had)
}

/// CPU time of the process.
fn cpu_time() -> Option<Duration> {
    cpu_times().map(|(user, system)| user + system)
}

/// User and system time of the process.
#[cfg(target_os = "linux")]
pub(crate) fn cpu_times() -> Option<(Duration, Duration)> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let time = |value: nix::sys::time::TimeVal| {
        let micros = value.tv_sec() as i128 * 1_000_000 + value.tv_usec() as i128;
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    Some((time(usage.user_time()), time(usage.system_time())))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn cpu_times() -> Option<(Duration, Duration)> {
    None
}

/// CPUs that this process may use: its affinity, reduced by a cgroup's quota.
pub fn cpus_allowed() -> f64 {
    let affinity = affinity().unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1.0, |threads| threads.get() as f64)
    });
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let quota = quota(&groups, |path| fs::read_to_string(path).ok());
    quota.map_or(affinity, |quota| quota.min(affinity))
}

#[cfg(target_os = "linux")]
fn affinity() -> Option<f64> {
    use nix::sched::{CpuSet, sched_getaffinity};
    let set = sched_getaffinity(nix::unistd::Pid::from_raw(0)).ok()?;
    let cpus = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).count();
    (cpus > 0).then_some(cpus as f64)
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Option<f64> {
    None
}

/// The smallest quota on the path from the process's cgroup (`/proc/self/cgroup`) to the root, in CPUs.
fn quota(groups: &str, read: impl Fn(&str) -> Option<String>) -> Option<f64> {
    let mut least: Option<f64> = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let unified = controllers.is_empty();
        if !unified && !controllers.split(',').any(|controller| controller == "cpu") {
            continue;
        }
        let root = if unified { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/cpu" };
        // A path has as many ancestors as slashes; the kernel allows 4,096 characters.
        let mut path = path.trim_end_matches('/');
        loop {
            let group = format!("{root}{path}");
            let found = if unified {
                read(&format!("{group}/cpu.max")).and_then(|text| cpu_max(&text))
            } else {
                let number = |name| read(&format!("{group}/{name}"))?.trim().parse::<f64>().ok();
                ratio(number("cpu.cfs_quota_us"), number("cpu.cfs_period_us"))
            };
            least = match (least, found) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            match path.rfind('/') {
                Some(at) => path = &path[..at],
                None => break,
            }
        }
    }
    least
}

/// `cpu.max`: quota and period in microseconds, or `max`.
fn cpu_max(text: &str) -> Option<f64> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    ratio(numbers.next()?, numbers.next()?)
}

fn ratio(quota: Option<f64>, period: Option<f64>) -> Option<f64> {
    let (quota, period) = (quota?, period?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_documentation() {
        let judge = |cpu, late, response| ClientLoad::judge(cpu, late, response).limited();
        assert!(!judge(None, None, None));
        assert!(!judge(Some(80.0), None, None));
        assert!(judge(Some(80.1), None, None));
        assert!(!judge(None, Some(10_000_000), None));
        assert!(judge(None, Some(11_000_000), None));
        // 11 ms are too much of 100 ms, but not of a second.
        assert!(judge(None, Some(11_000_000), Some(100_000_000)));
        assert!(!judge(None, Some(11_000_000), Some(1_000_000_000)));
        let both = ClientLoad::judge(Some(93.0), Some(25_000_000), None);
        let reason = both.reason().unwrap();
        assert!(reason.contains("93 %") && reason.contains("25 ms late"), "{reason}");
        assert_eq!(ClientLoad::default().reason(), None);
    }

    #[test]
    fn quotas_of_both_kinds_of_cgroups() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        let read =
            |path: &str| files.iter().find(|file| file.0 == path).map(|file| file.1.to_owned());
        assert_eq!(quota("0::/a/b\n", read), Some(1.5));
        assert_eq!(quota("4:memory:/c\n3:cpu,cpuacct:/c\n0::/x\n", read), Some(0.5));
        assert_eq!(quota("3:cpu:/\n0::/\n", read), None);
        assert_eq!(quota("nonsense\n::\n:\n0::", read), None);
        assert_eq!(cpu_max("x y"), None);
        assert_eq!(cpu_max("5 0"), None);
    }

    #[test]
    fn processor_time_is_a_share_of_the_usable_time() {
        let second = Duration::from_secs(1);
        assert_eq!(cpu_percent(second, second, 4.0), Some(25.0));
        assert_eq!(cpu_percent(second, Duration::ZERO, 4.0), None);
        let watch = SelfCheck::new(1);
        assert!(watch.cpus() > 0.0 && watch.cpus() <= 1.0);
        watch.late(Duration::from_millis(40));
        let load = watch.load(&Tally::new(0));
        assert!(load.limited_by_timers, "{load:?}");
        watch.begin();
        assert_eq!(watch.load(&Tally::new(0)).late_ns, None);
        #[cfg(target_os = "linux")]
        assert!(load.cpu_percent.is_some());
    }
}
