//! The processes of a server or of the generator: their number, processor time and memory
//! (`/proc/PID/stat`, proc(5)), and how long they were ready and waited for a processor (`schedstat`,
//! Documentation/scheduler/sched-stats.rst).
//!
//! Memory is the sum of the resident sets: pages that processes share (a forking smbd shares most of
//! its code and its databases) count once for each of them. The work of a process that ended since the
//! previous sample is lost, and so are the waits of its threads that ended.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use crate::rate::Reading;

use super::text;

/// Most processes of one sample; others are ignored.
const PROCESSES_MAX: usize = 100_000;
/// Most threads of one process.
const THREADS_MAX: usize = 10_000;
/// Ticks per second in `/proc` (USER_HZ), the same on all current architectures.
const TICKS_PER_SECOND: f64 = 100.0;

/// Names of other processes that are distinguished.
const NAMES_MAX: usize = 1_000;
/// CPU time above which a name is of interest: a second.
const BUSY_TICKS: u64 = 100;

/// Which processes belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processes {
    /// All whose name (as `ps -C` shows it) begins with this: `smbd` finds `smbd[192.0.2.1]` as well.
    Named(String),
    /// One process and all its descendants, with their name in a table.
    Tree(u32, String),
}

impl Processes {
    fn label(&self) -> String {
        match self {
            Processes::Named(name) | Processes::Tree(_, name) => name.clone(),
        }
    }
}

/// One process, as its `stat` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    parent: u32,
    name: String,
    user_ticks: u64,
    system_ticks: u64,
    threads: u64,
    started: u64,
    resident_pages: u64,
}

/// Parses a `stat`. The name is in parentheses and may contain parentheses, so the last one closes it.
pub fn parse(text: &str) -> Option<Process> {
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Process {
        pid: pid.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        name: name.to_owned(),
        user_ticks: field(11)?,
        system_ticks: field(12)?,
        threads: field(17)?,
        started: field(19)?,
        resident_pages: field(21)?,
    })
}

/// All processes of a `/proc`.
pub fn list(root: &Path) -> Vec<Process> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            !name.is_empty() && name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
        })
        .take(PROCESSES_MAX)
        // A process that ended in the meantime has no file any more.
        .filter_map(|entry| parse(&text(&entry.path().join("stat"))?))
        .collect()
}

/// Adds up processes from one sample to the next.
#[derive(Clone, Debug)]
pub struct Tracker {
    which: Processes,
    page_bytes: u64,
    /// By process and its start, because ids are reused.
    before: HashMap<(u32, u64), Used>,
    first: bool,
    sum: Used,
}

/// A process's use of the processors.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    user_ticks: u64,
    system_ticks: u64,
    /// `None` if the kernel does not report it.
    waited_ns: Option<u64>,
}

impl Used {
    fn read(root: &Path, process: &Process) -> Used {
        let Process { user_ticks, system_ticks, .. } = *process;
        Used { user_ticks, system_ticks, waited_ns: waited_ns(root, process) }
    }

    /// Adds the growth since the previous sample.
    fn add(&mut self, now: Used, before: Used) {
        let add = |sum: u64, now: u64, before| sum.saturating_add(now.saturating_sub(before));
        self.user_ticks = add(self.user_ticks, now.user_ticks, before.user_ticks);
        self.system_ticks = add(self.system_ticks, now.system_ticks, before.system_ticks);
        if let Some(waited) = now.waited_ns {
            let sum = self.waited_ns.unwrap_or(0);
            self.waited_ns = Some(add(sum, waited, before.waited_ns.unwrap_or(0)));
        }
    }
}

/// How long a process's threads were ready and waited for a processor.
fn waited_ns(root: &Path, process: &Process) -> Option<u64> {
    let folder = root.join(process.pid.to_string());
    let of = |folder: &Path| {
        let text = text(&folder.join("schedstat"))?;
        text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    };
    if process.threads <= 1 {
        return of(&folder);
    }
    let threads = fs::read_dir(folder.join("task")).ok()?;
    let threads = threads.flatten().take(THREADS_MAX).filter_map(|thread| of(&thread.path()));
    threads.reduce(u64::saturating_add)
}

impl Tracker {
    /// For the given processes, on a machine with pages of the given size.
    pub fn new(which: Processes, page_bytes: u64) -> Tracker {
        Tracker { which, page_bytes, before: HashMap::new(), first: true, sum: Used::default() }
    }

    /// Readings from the `/proc` at `root`.
    pub fn read(&mut self, root: &Path, processes: &[Process], out: &mut Vec<Reading>) {
        let mine = self.select(processes);
        let mut now = HashMap::with_capacity(mine.len());
        let (mut threads, mut pages) = (0_u64, 0_u64);
        for process in &mine {
            let key = (process.pid, process.started);
            let used = Used::read(root, process);
            // Work before the first sample does not count; a process that began later counts completely.
            let before = match self.before.get(&key) {
                Some(&before) => before,
                None if self.first => used,
                None => Used::default(),
            };
            self.sum.add(used, before);
            threads = threads.saturating_add(process.threads);
            pages = pages.saturating_add(process.resident_pages);
            now.insert(key, used);
        }
        self.before = now;
        self.first = false;
        let percent = |ticks: u64| ticks as f64 / TICKS_PER_SECOND * 100.0;
        let Used { user_ticks, system_ticks, waited_ns } = self.sum;
        let label = self.which.label();
        let readings = [
            Reading::level("process_count", "", mine.len() as f64),
            Reading::level("process_threads", "", threads as f64),
            Reading::level("process_memory_bytes", "bytes", pages as f64 * self.page_bytes as f64),
            Reading::rate(
                "process_cpu_percent",
                "percent of one processor",
                percent(user_ticks.saturating_add(system_ticks)),
            ),
            Reading::rate(
                "process_cpu_system_percent",
                "percent of one processor",
                percent(system_ticks),
            ),
        ];
        out.extend(readings.map(|reading| reading.of_instance(&label)));
        if let Some(ns) = waited_ns {
            let waiting = ns as f64 / 1e9 * 100.0;
            let unit = "percent of one processor";
            out.push(Reading::rate("process_waiting_percent", unit, waiting).of_instance(&label));
        }
    }

    /// Whether the process was in the last sample.
    pub fn has(&self, process: &Process) -> bool {
        self.before.contains_key(&(process.pid, process.started))
    }

    fn select<'a>(&self, processes: &'a [Process]) -> Vec<&'a Process> {
        match &self.which {
            Processes::Named(name) => {
                processes.iter().filter(|process| process.name.starts_with(name)).collect()
            }
            Processes::Tree(root, _) => {
                let mut children: HashMap<u32, Vec<&Process>> = HashMap::new();
                for process in processes {
                    children.entry(process.parent).or_default().push(process);
                }
                let mut found: Vec<&Process> =
                    processes.iter().filter(|process| process.pid == *root).collect();
                let mut known: HashSet<u32> = HashSet::from([*root]);
                let mut at = 0;
                while let Some(process) = found.get(at).copied() {
                    at += 1;
                    for &child in children.get(&process.pid).into_iter().flatten() {
                        if known.insert(child.pid) {
                            found.push(child);
                        }
                    }
                }
                found
            }
        }
    }
}

/// CPU time of the processes that no tracker has, summed by name: what else runs on the machine.
#[derive(Clone, Debug, Default)]
pub struct Others {
    before: HashMap<(u32, u64), u64>,
    sums: HashMap<String, u64>,
    is_started: bool,
}

impl Others {
    /// Readings of the names that used the most.
    pub fn read(&mut self, processes: &[Process], trackers: &[Tracker], out: &mut Vec<Reading>) {
        let is_other = |process: &&Process| !trackers.iter().any(|tracker| tracker.has(process));
        let mut now = HashMap::new();
        for process in processes.iter().filter(is_other) {
            let key = (process.pid, process.started);
            let ticks = process.user_ticks.saturating_add(process.system_ticks);
            let before = match self.before.get(&key) {
                Some(&before) => before,
                None if self.is_started => 0,
                None => ticks,
            };
            now.insert(key, ticks);
            let growth = ticks.saturating_sub(before);
            if growth > 0 && (self.sums.len() < NAMES_MAX || self.sums.contains_key(&process.name))
            {
                let sum = self.sums.entry(process.name.clone()).or_default();
                *sum = sum.saturating_add(growth);
            }
        }
        (self.before, self.is_started) = (now, true);
        let busy = self.sums.iter().filter(|(_, ticks)| **ticks >= BUSY_TICKS);
        out.extend(busy.map(|(name, ticks)| {
            let percent = *ticks as f64 / TICKS_PER_SECOND * 100.0;
            Reading::rate("other_process_cpu_percent", "percent of one processor", percent)
                .of_instance(name)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn process(pid: u32, parent: u32, name: &str, ticks: u64) -> Process {
        let line = format!(
            "{pid} ({name}) S {parent} 1 1 0 -1 4194304 101 0 0 0 {ticks} {ticks} 7 7 20 0 2 0 900 3133440 389 1 2 3"
        );
        parse(&line).unwrap()
    }

    fn values(tracker: &mut Tracker, processes: &[Process]) -> Vec<f64> {
        let mut out = Vec::new();
        tracker.read(Path::new("no such folder"), processes, &mut out);
        out.iter().map(|reading| reading.value).collect()
    }

    #[test]
    fn names_may_hold_anything() {
        let line = "31180 (a) S (b) R 31167 31167 17549 0 -1 4194304 101 0 0 0 5 6 0 0 20 0 1 0 185783 3133440 389 18446744073709551615";
        let process = parse(line).unwrap();
        assert_eq!((process.name.as_str(), process.parent), ("a) S (b", 31_167));
        assert_eq!((process.user_ticks, process.system_ticks), (5, 6));
        assert_eq!((process.started, process.resident_pages), (185_783, 389));
        assert_eq!(parse("1 (x) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn processor_time_never_shrinks() {
        let mut tracker = Tracker::new(Processes::Named("smbd".to_owned()), 4_096);
        let first = [
            process(10, 1, "smbd", 500),
            process(11, 10, "smbd[192.0.2.1]", 20),
            process(12, 1, "bash", 9),
        ];
        let memory = 2.0 * 389.0 * 4_096.0;
        assert_eq!(values(&mut tracker, &first), [2.0, 4.0, memory, 0.0, 0.0]);
        // One process worked, one ended, one is new.
        let second = [process(10, 1, "smbd", 530), process(13, 10, "smbd[192.0.2.2]", 5)];
        assert_eq!(values(&mut tracker, &second), [2.0, 4.0, memory, 70.0, 35.0]);
        assert_eq!(values(&mut tracker, &[]), [0.0, 0.0, 0.0, 70.0, 35.0]);
    }

    #[test]
    fn a_tree_holds_all_that_was_started() {
        let mut tracker = Tracker::new(Processes::Tree(10, "smbd".to_owned()), 4_096);
        let all = [
            process(10, 1, "smbd", 0),
            process(11, 10, "x", 0),
            process(12, 11, "y", 0),
            process(13, 1, "smbd", 0),
            // A loop, which a listing may show when ids are reused.
            process(10, 12, "smbd", 0),
        ];
        assert_eq!(values(&mut tracker, &all[..4])[0], 3.0);
        values(&mut tracker, &all);
    }

    #[test]
    fn what_else_runs_is_summed_by_name() {
        let mut tracker = Tracker::new(Processes::Named("smbd".to_owned()), 4_096);
        let mut others = Others::default();
        let mut sample = |processes: &[Process]| {
            tracker.read(Path::new("no such folder"), processes, &mut Vec::new());
            let mut out = Vec::new();
            others.read(processes, std::slice::from_ref(&tracker), &mut out);
            out.iter().map(|one| (one.instance.clone().unwrap(), one.value)).collect::<Vec<_>>()
        };
        // What they used before does not count.
        assert_eq!(sample(&[process(1, 0, "smbd", 900), process(2, 1, "cc", 900)]), []);
        let later = [
            process(1, 0, "smbd", 999),
            process(2, 1, "cc", 930),
            process(3, 1, "cc", 40),
            process(4, 1, "sh", 1),
        ];
        assert_eq!(sample(&later), [("cc".to_owned(), 140.0)]);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,120}", fields in "[0-9]{1,12} \\(.{0,9}\\) [A-Z]( [0-9]{1,25}){0,30}") {
            let processes: Vec<Process> = [parse(&text), parse(&fields)].into_iter().flatten().collect();
            let mut tracker = Tracker::new(Processes::Named(String::new()), 4_096);
            values(&mut tracker, &processes);
            values(&mut tracker, &processes);
        }
    }
}
