//! Steps of load runs with the server's counters of that time: one window for each step, however many
//! machines generated its load.
//!
//! A run on several machines (`--shard`) has one recording for each. Each machine counts its own users; all of them may
//! have the server's counters, which are then the same. [`Demand::finish`](super::Demand::finish) evaluates the
//! windows.

use std::collections::BTreeMap;

use smbscope_tables::run::{Counter, Step};

use super::super::Z_95;
use super::PROCESSORS;

/// Most resources, CPUs and steps that are kept.
const KEPT_MAX: usize = 4096;

/// Values of a counter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Samples {
    fn add(&mut self, value: f64) {
        (self.n, self.sum) = (self.n + 1.0, self.sum + value);
        self.squares += value * value;
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.n > 0.0).then(|| self.sum / self.n)
    }

    /// Half of the 95 % interval of the mean; the whole mean for a single value.
    pub(super) fn error(&self) -> f64 {
        let mean = self.sum / self.n.max(1.0);
        let variance = (self.squares / self.n.max(1.0) - mean * mean).max(0.0);
        if self.n > 1.0 { Z_95 * (variance / (self.n - 1.0)).sqrt() } else { mean }
    }
}

/// The counters of a step.
#[derive(Clone, Debug, Default)]
struct StepCounters {
    /// Tasks that waited for a CPU: of the machine, of the server's processes, of the client's.
    waiting: [Samples; 3],
    /// CPUs that the server's processes and the client's kept busy.
    used: [Samples; 2],
    /// Share of the CPUs' time in interrupts, hard and soft.
    interrupts: [Samples; 2],
    /// Busy share of a resource, by its name.
    busy: BTreeMap<String, Samples>,
}

/// One machine's part of a step.
#[derive(Clone, Debug)]
struct StepPart {
    recording: String,
    run: String,
    step: u64,
    start: i64,
    end: i64,
    /// Users of all machines.
    users: u64,
    users_here: u64,
    rate: f64,
    completed: f64,
    is_overloaded: bool,
    counters: StepCounters,
}

/// Steps and counters, as they come.
#[derive(Debug, Default)]
pub(super) struct StepParts {
    parts: Vec<StepPart>,
    processors: BTreeMap<String, ()>,
}

/// The measured window of a step, all machines together.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) users: f64,
    /// Users of the machines whose recordings are there; the others are assumed to have done the same.
    pub(super) users_seen: f64,
    pub(super) rate: f64,
    /// Scenarios per second.
    pub(super) throughput: f64,
    /// Scenarios that ended.
    pub(super) completed: f64,
    pub(super) is_overloaded: bool,
    /// Busy share of a resource, by its name.
    pub(super) busy: BTreeMap<String, Samples>,
    /// Tasks that waited for a CPU of the server's machine.
    waiting: Samples,
    /// Likewise for the processes of server and clients on that machine; none where the server's are not known.
    processes_waiting: Option<f64>,
    /// CPUs that these kept busy: the server's and each client's; empty where the server's are not known.
    used: Vec<Samples>,
    /// Share of the CPUs' time in interrupts, hard and soft.
    interrupts: [Samples; 2],
}

/// What kept the CPUs busy, as shares of all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    /// The processes of server and clients, and half of the 95 % interval.
    pub(super) processes: (f64, f64),
    /// Interrupts, mostly of network and disks, likewise.
    pub(super) interrupts: (f64, f64),
    /// Everything else.
    pub(super) rest: f64,
}

impl Split {
    /// Everything outside of these processes.
    pub(super) fn outside(&self) -> f64 {
        self.interrupts.0 + self.rest
    }

    /// What does not belong to the load, where work outside of its processes (kernel threads, helpers of the server) is
    /// up to `hidden` times what they did themselves.
    pub(super) fn others(&self, hidden: f64) -> f64 {
        (self.rest - hidden * self.processes.0).max(0.0)
    }
}

impl StepParts {
    pub(super) fn steps(&mut self, rows: &[Step]) {
        for row in rows {
            let is_known = |one: &StepPart| {
                (one.step, one.start) == (row.step, row.start)
                    && (&one.recording, &one.run) == (&row.recording, &row.run)
            };
            // The same input twice is not another shard.
            if self.parts.len() >= KEPT_MAX || self.parts.iter().any(is_known) {
                continue;
            }
            self.parts.push(StepPart {
                recording: row.recording.clone(),
                run: row.run.clone(),
                step: row.step,
                start: row.start,
                end: row.end,
                users: row.users,
                users_here: row.users_here,
                rate: row.rate,
                completed: row.completed as f64,
                is_overloaded: row.overloaded,
                counters: StepCounters::default(),
            });
        }
    }

    pub(super) fn counters(&mut self, rows: &[Counter]) {
        for row in rows.iter().filter(|row| row.value.is_finite()) {
            let is_client = row.source == "client";
            if let ("cpu_percent", Some(cpu), false) = (&*row.name, &row.instance, is_client) {
                if self.processors.len() < KEPT_MAX {
                    self.processors.insert(cpu.clone(), ());
                }
                continue;
            }
            let Some(counters) = self.counters_at(row) else { continue };
            let samples = match (&*row.name, &row.instance) {
                ("cpu_waiting_percent", _) if !is_client => &mut counters.waiting[0],
                ("process_waiting_percent", _) => &mut counters.waiting[1 + usize::from(is_client)],
                ("process_cpu_percent", _) => &mut counters.used[usize::from(is_client)],
                ("cpu_irq_percent", None) if !is_client => &mut counters.interrupts[0],
                ("cpu_softirq_percent", None) if !is_client => &mut counters.interrupts[1],
                ("cpu_percent" | "disk_busy_percent", _)
                    if is_client || counters.busy.len() >= KEPT_MAX =>
                {
                    continue;
                }
                ("cpu_percent", None) => counters.busy.entry(PROCESSORS.to_owned()).or_default(),
                ("disk_busy_percent", Some(disk)) => {
                    counters.busy.entry(format!("disk {disk}")).or_default()
                }
                _ => continue,
            };
            samples.add(row.value / 100.0);
        }
    }

    /// The counters of the step that the sample's machine measured at that time; a recording without steps counts for
    /// any machine's.
    fn counters_at(&mut self, row: &Counter) -> Option<&mut StepCounters> {
        let is_then = |one: &StepPart| (one.start..one.end).contains(&row.time);
        let is_own = |one: &StepPart| one.recording == row.recording;
        let place = match self.parts.iter().position(|one| is_then(one) && is_own(one)) {
            None if !self.parts.iter().any(is_own) => self.parts.iter().position(is_then),
            own => own,
        };
        self.parts.get_mut(place?).map(|one| &mut one.counters)
    }

    /// Number of CPUs.
    pub(super) fn processors(&self) -> u64 {
        self.processors.len().max(1) as u64
    }

    /// One for each step, ordered by time whatever the order of the inputs.
    pub(super) fn windows(mut self) -> Vec<Window> {
        let key = |one: &StepPart| (one.run.clone(), one.step, one.start, one.recording.clone());
        self.parts.sort_by_key(key);
        let mut groups: Vec<Vec<StepPart>> = Vec::new();
        for part in self.parts {
            let same = groups.last_mut().filter(|group| part.belongs_to(group));
            match same {
                Some(group) => group.push(part),
                None => groups.push(vec![part]),
            }
        }
        let mut windows: Vec<_> = groups.iter().filter_map(|group| joined(group)).collect();
        windows.sort_by_key(|one| one.start);
        windows
    }
}

impl StepPart {
    /// Whether it is another machine's part of the group's step.
    fn belongs_to(&self, group: &[StepPart]) -> bool {
        let is_same = |one: &StepPart| (&one.run, one.step) == (&self.run, self.step);
        !self.run.is_empty()
            && group.iter().all(|one| is_same(one) && one.recording != self.recording)
            && group.iter().any(|one| self.start < one.end && one.start < self.end)
    }

    /// Whether the server runs on the same machine.
    fn is_at_server(&self) -> bool {
        self.counters.used[0].n > 0.0 || self.counters.waiting[1].n > 0.0
    }

    /// Scenarios that ended per second, in proportion to the overlap with this interval.
    fn throughput_in(&self, start: i64, end: i64) -> f64 {
        let together = self.end.min(end).saturating_sub(self.start.max(start)).max(0) as f64;
        let own_s = self.end.saturating_sub(self.start) as f64 / 1e9;
        self.completed / own_s * (together / end.saturating_sub(start) as f64)
    }
}

/// The parts of a step as one; none where no part lasted any time.
fn joined(all: &[StepPart]) -> Option<Window> {
    let parts: Vec<_> = all.iter().filter(|one| one.end > one.start).collect();
    // The server's counters only once: from the part with most of them.
    let of = parts.iter().rev().max_by(|one, other| {
        let samples = |one: &StepPart| one.counters.busy.values().map(|all| all.n).sum::<f64>();
        let known = one.is_at_server().cmp(&other.is_at_server());
        known.then(samples(one).total_cmp(&samples(other)))
    })?;
    let users_seen = parts.iter().map(|one| one.users_here as f64).sum::<f64>();
    let users = parts.iter().map(|one| one.users as f64).fold(users_seen, f64::max);
    let others = if users_seen > 0.0 { users / users_seen } else { 1.0 };
    let at_server: Vec<_> = parts.iter().filter(|one| one.is_at_server()).collect();
    let clients = || at_server.iter().map(|one| &one.counters);
    let processes_waiting = of.counters.waiting[1].mean().map(|server| {
        server + clients().filter_map(|counters| counters.waiting[2].mean()).sum::<f64>()
    });
    let mut used = Vec::new();
    if of.counters.used[0].n > 0.0 {
        used.push(of.counters.used[0]);
        used.extend(clients().map(|counters| counters.used[1]));
    }
    Some(Window {
        start: parts.iter().map(|one| one.start).min()?,
        end: parts.iter().map(|one| one.end).max()?,
        users,
        users_seen,
        rate: others * parts.iter().map(|one| one.rate).sum::<f64>(),
        throughput: others
            * parts.iter().map(|one| one.throughput_in(of.start, of.end)).sum::<f64>(),
        completed: parts.iter().map(|one| one.completed).sum(),
        is_overloaded: parts.iter().any(|one| one.is_overloaded),
        busy: of.counters.busy.clone(),
        waiting: of.counters.waiting[0],
        processes_waiting,
        used,
        interrupts: of.counters.interrupts,
    })
}

impl Window {
    /// Whether clients ran on the server's machine.
    pub(super) fn has_clients_beside(&self) -> bool {
        self.used.iter().skip(1).any(|client| client.n > 0.0)
    }

    /// Mean number of tasks that waited for a CPU of the server; where other programs ran there, only the load's.
    pub(super) fn waiting(&self, among_others: bool) -> Option<f64> {
        let (machine, processes) = (self.waiting.mean(), self.processes_waiting);
        if among_others { processes.or(machine) } else { machine.or(processes) }
    }

    /// What kept the CPUs busy; none where the server's processes are not known, or did nothing because another
    /// program serves.
    pub(super) fn split(&self, servers: u64) -> Option<Split> {
        let busy = self.busy.get(PROCESSORS)?.mean()?;
        self.used.first()?.mean().filter(|server| *server > 0.0)?;
        let sum = |all: &[Samples], of: f64| {
            let mean = all.iter().filter_map(Samples::mean).sum::<f64>() / of;
            (mean, all.iter().map(|one| one.error().powi(2)).sum::<f64>().sqrt() / of)
        };
        let processes = sum(&self.used, servers as f64);
        let outside = (busy - processes.0).max(0.0);
        let interrupts = sum(&self.interrupts, 1.0);
        let interrupts = (interrupts.0.min(outside), interrupts.1);
        Some(Split { processes, interrupts, rest: outside - interrupts.0 })
    }
}
