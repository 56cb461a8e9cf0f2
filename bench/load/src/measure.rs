//! CPU time and memory of this process, and the closed loop in which both are taken.
//!
//! Used by every client of the table, the `smb` crate's own program (`smb/`) included, so that all
//! are measured by the same code.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What one case gave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// User and system time for each operation, microseconds: the least of the rounds.
    pub cpu_us: f64,
    /// Operations each second in that round.
    pub per_second: f64,
    /// Growth of the resident set with each session, kB.
    pub session_kb: f64,
    /// The resident set at the end, MB.
    pub total_mb: f64,
}

impl Figures {
    /// As one line for the process that started this one.
    pub fn print(&self) {
        println!(
            "figures {} {} {} {}",
            self.cpu_us, self.per_second, self.session_kb, self.total_mb
        );
    }
}

/// User and system time of this process so far, microseconds.
pub fn cpu_us(who: libc::c_int) -> f64 {
    // SAFETY: the call fills the structure, of which every bit pattern is a value.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    us(usage.ru_utime) + us(usage.ru_stime)
}

/// The resident set, kB, counted exactly.
pub fn resident_kb() -> f64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0.0)
}

/// As many open files as are allowed.
pub fn raise_files() {
    // SAFETY: both calls get a valid structure.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// The runtime of `smbscope load`: a worker for each processor.
pub fn runtime() -> tokio::runtime::Runtime {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(threads).enable_all().build().unwrap()
}

/// The gate behind which sessions wait until all are connected, and their counters.
pub struct Gate {
    connected: tokio::sync::Semaphore,
    open: tokio::sync::watch::Sender<bool>,
    logons: tokio::sync::Semaphore,
}

impl Gate {
    /// Closed. `logons` run at a time.
    pub fn new(logons: usize) -> Arc<Gate> {
        Arc::new(Gate {
            connected: tokio::sync::Semaphore::new(0),
            open: tokio::sync::watch::Sender::new(false),
            logons: tokio::sync::Semaphore::new(logons),
        })
    }

    /// A turn to log on.
    pub async fn logon(&self) -> tokio::sync::SemaphorePermit<'_> {
        self.logons.acquire().await.unwrap()
    }

    /// Says that a session is connected, and waits until all are.
    pub async fn pass(&self) {
        self.connected.add_permits(1);
        let mut open = self.open.subscribe();
        while !*open.borrow_and_update() {
            open.changed().await.unwrap();
        }
    }

    async fn wait(&self, sessions: usize) {
        let all = self.connected.acquire_many(sessions as u32);
        let all = tokio::time::timeout(Duration::from_secs(120), all).await;
        all.expect("the sessions do not connect").unwrap().forget();
    }
}

/// Spawns `sessions` tasks by `spawn(number, counter)`, each of which passes the gate once
/// connected and counts its operations; measures memory before they work, and CPU while they do.
pub async fn closed_loop(
    sessions: usize,
    rounds: usize,
    round: Duration,
    gate: Arc<Gate>,
    mut spawn: impl FnMut(usize, Arc<AtomicU64>),
) -> Figures {
    let counters: Vec<Arc<AtomicU64>> = (0..sessions).map(|_| Arc::default()).collect();
    let sum = || counters.iter().map(|count| count.load(Ordering::Relaxed)).sum::<u64>();
    // The first half brings what all share: buffers of the threads, what a logon needs.
    let half = sessions.div_ceil(2);
    for (number, counter) in counters.iter().enumerate().take(half) {
        spawn(number, counter.clone());
    }
    gate.wait(half).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = resident_kb();
    for (number, counter) in counters.iter().enumerate().skip(half) {
        spawn(number, counter.clone());
    }
    gate.wait(sessions - half).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let after = resident_kb();
    let mut figures = Figures { cpu_us: f64::MAX, ..Figures::default() };
    figures.session_kb = (after - before) / (sessions - half).max(1) as f64;
    figures.total_mb = after / 1024.0;
    gate.open.send_replace(true);
    if rounds == 0 {
        figures.cpu_us = 0.0;
        return figures;
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    for _ in 0..rounds {
        let (begin, cpu, count) = (Instant::now(), cpu_us(libc::RUSAGE_SELF), sum());
        tokio::time::sleep(round).await;
        let count = (sum() - count) as f64;
        let cpu = (cpu_us(libc::RUSAGE_SELF) - cpu) / count.max(1.0);
        if cpu < figures.cpu_us {
            figures.cpu_us = cpu;
            figures.per_second = count / begin.elapsed().as_secs_f64();
        }
    }
    figures
}
