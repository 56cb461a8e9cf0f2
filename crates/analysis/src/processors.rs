//! Where the time of CPUs goes: interrupts, deferred work, threads and idling, from the tables
//! of a trace.
//!
//! Definitions are in docs/method/processors.md. Memory is bounded: a limit for each list, with a
//! counter of what did not fit ([`Report::discarded`]).

pub mod compare;
mod context;
mod data;
mod devices;
mod findings;
mod groups;
mod held;
pub mod now;
mod path;
mod per_cpu;
mod power;
mod receive;
mod roles;
mod sampled;
mod stacks;
mod symbols;
mod tasks;
mod timeline;
mod totals;
pub mod waiting;
mod work;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::compute::{max, min};
use arrow::datatypes::{Int64Type, UInt64Type};
use hashbrown::HashMap;
use smbscope_tables::tables::{self, Cpu, Image, InterruptTotal, Trace};

pub use context::Context;
pub use data::{
    CallNode, Device, DeviceCpu, InSamples, InterruptGroup, Limits, MissingSymbols, PathPart,
    Processor, Ranked, Recorded, Report, SampleCounts, SampledCrypto, SampledGroup, SampledShares,
    Section, Timeline, TimelineCpu,
};
use devices::{DEVICES_MAX, Devices};
pub use findings::{Finding, OnProcessors, ProcessorFindingKind};
use groups::Groups;
use per_cpu::{Place, Processors as PerCpu};
use power::Power;
pub use power::{IdleState, PowerReport};
pub use receive::Receive;
pub use roles::Role;
use stacks::{Hit, Sampled, StackFrame, Stacks};
use symbols::Symbols;
use tasks::Tasks;
pub use tasks::{SampledProcess, SampledSymbol, TaskSamples};
use timeline::OfCpus;
pub use totals::{TotalBucket, TotalCpu, TotalModule, Totals};

/// The value of an optional column in a row, if it is known.
macro_rules! at {
    ($column:expr, $row:expr) => {
        $column.filter(|column| column.is_valid($row)).map(|column| column.value($row))
    };
}

/// Which of a CPU's times an interrupt or deferred work belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Handlers of interrupts: they run first and must be short.
    Interrupt,
    /// Work that handlers leave for later: DPCs, softirqs.
    Deferred,
}

impl Class {
    fn from_kind(kind: &str) -> Class {
        match kind {
            "isr" | "isr_msi" | "irq" | "ipi" => Class::Interrupt,
            _ => Class::Deferred,
        }
    }
}

/// Adds up the tables of traces.
#[derive(Debug)]
pub struct Processors {
    limits: Limits,
    traces: Vec<Trace>,
    processors: PerCpu,
    groups: Groups,
    devices: Devices,
    bins: OfCpus,
    stacks: Stacks,
    tasks: Tasks,
    power: Power,
    symbols: Symbols,
    extent: Option<Extent>,
    totals: totals::Sums,
    /// The context of the rows.
    occurring: Context,
    /// The context of whole traces, if the rows are those of a period.
    context: Context,
    /// NUMA nodes of devices, by name.
    device_nodes: HashMap<String, u64>,
}

/// First and last time of interrupts and samples: what is known of a recording that was killed, which
/// has no row of the table `traces`.
#[derive(Debug)]
struct Extent {
    recording: String,
    first_ns: i64,
    last_ns: i64,
}

/// One row of the table `interrupts`, as the parts of this analysis read it.
#[derive(Clone, Copy, Debug)]
struct Row<'a> {
    cpu: u64,
    kind: &'a str,
    class: Class,
    name: Option<&'a str>,
    device: Option<&'a str>,
    queue: Option<u64>,
    thread: Option<u64>,
    start_ns: i64,
    duration_ns: Option<i64>,
    exclusive_ns: Option<i64>,
    delay_ns: Option<i64>,
    work: Option<u64>,
}

impl Processors {
    /// An empty analysis.
    pub fn new(limits: Limits) -> Processors {
        Processors {
            limits,
            traces: Vec::new(),
            processors: PerCpu::default(),
            groups: Groups::default(),
            devices: Devices::default(),
            bins: OfCpus::default(),
            stacks: Stacks::default(),
            tasks: Tasks::default(),
            power: Power::default(),
            symbols: Symbols::default(),
            extent: None,
            totals: totals::Sums::default(),
            occurring: Context::default(),
            context: Context::default(),
            device_nodes: HashMap::new(),
        }
    }

    /// Takes what is outside of the period that the rows are of.
    pub fn context(&mut self, context: Context) {
        self.context = context;
    }

    /// Takes what traces contain.
    pub fn traces(&mut self, rows: &[Trace]) {
        self.traces.extend_from_slice(rows);
    }

    /// Takes where CPUs are in the machine.
    pub fn cpus(&mut self, rows: &[Cpu]) {
        rows.iter().for_each(|row| self.processors.place(row));
    }

    /// Takes what is known of devices.
    pub fn devices(&mut self, rows: &[tables::Device]) {
        let with_nodes = rows.iter().filter_map(|row| Some((row.name.clone()?, row.node?)));
        let left = DEVICES_MAX.saturating_sub(self.device_nodes.len());
        self.device_nodes.extend(with_nodes.take(left));
    }

    /// Takes rows of the table `interrupt_totals`.
    pub fn totals(&mut self, rows: &[InterruptTotal]) {
        self.totals.add(rows);
    }

    /// Takes rows of the table `images`.
    pub fn images(&mut self, rows: &[Image]) {
        self.symbols.images(rows);
        self.tasks.images(rows);
    }

    /// Takes rows of the table `interrupts`.
    pub fn interrupts(&mut self, batch: &RecordBatch) {
        self.symbols.interrupts(batch);
        let number =
            |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<UInt64Type>());
        let signed =
            |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<Int64Type>());
        let text = |name| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
        let times = batch.column_by_name("start").and_then(|c| c.as_primitive_opt::<Int64Type>());
        let (Some(cpus), Some(kinds), Some(starts)) = (number("cpu"), text("kind"), times) else {
            return;
        };
        let [queues, threads, works] = ["queue", "thread", "work"].map(number);
        let [durations, exclusives, delays] =
            ["duration_ns", "exclusive_ns", "delay_ns"].map(signed);
        let [names, devices] = ["name", "device"].map(text);
        self.extend(batch, starts);
        for row in 0..batch.num_rows() {
            let kind = kinds.value(row);
            let one = Row {
                cpu: cpus.value(row),
                kind,
                class: Class::from_kind(kind),
                name: at!(names, row),
                device: at!(devices, row),
                queue: at!(queues, row),
                thread: at!(threads, row),
                start_ns: starts.value(row),
                duration_ns: at!(durations, row),
                exclusive_ns: at!(exclusives, row),
                delay_ns: at!(delays, row),
                work: at!(works, row),
            };
            self.occurring.interrupt(kind, one.name, one.exclusive_ns.is_some());
            self.processors.interrupt(&one);
            self.groups.add(&one, self.limits);
            self.devices.add(&one);
            self.bins.interrupt(&one);
            self.power.interrupt(&one);
        }
    }

    /// Takes rows of the table `switches`, in the order of time on each CPU.
    pub fn switches(&mut self, batch: &RecordBatch) {
        each_switch(batch, |place, time, old, new| self.processors.switch(place, time, old, new));
    }

    /// Takes rows of the table `power`.
    pub fn power(&mut self, batch: &RecordBatch) {
        self.power.rows(batch);
    }

    /// Takes rows of the table `samples`.
    pub fn samples(&mut self, batch: &RecordBatch) {
        self.symbols.samples(batch);
        let number =
            |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<UInt64Type>());
        let text = |name| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
        let (Some(cpus), Some(recordings)) = (number("cpu"), text("recording")) else { return };
        if let Some(times) =
            batch.column_by_name("time").and_then(|c| c.as_primitive_opt::<Int64Type>())
        {
            self.extend(batch, times);
        }
        let [processes, threads, addresses, stacks] =
            ["process", "thread", "address", "stack"].map(number);
        let [during, modules, functions, modes, names] =
            ["during", "module", "function", "mode", "task"].map(text);
        let weights =
            batch.column_by_name("weight_ns").and_then(|c| c.as_primitive_opt::<Int64Type>());
        for row in 0..batch.num_rows() {
            let module = at!(modules, row);
            let section = match at!(during, row) {
                Some(kind) if Class::from_kind(kind) == Class::Interrupt => Section::Interrupt,
                Some(_) => Section::Deferred,
                None if at!(threads, row) == Some(0) => Section::Idle,
                None => match (at!(modes, row), at!(addresses, row)) {
                    (Some("user" | "guest_user"), _) => Section::User,
                    (Some(_), _) => Section::Kernel,
                    (None, Some(address)) if is_kernel(address, module) => Section::Kernel,
                    (None, Some(_)) => Section::User,
                    (None, None) => Section::Unknown,
                },
            };
            let weight_ns = at!(weights, row);
            if let Some(cpu) = at!(Some(cpus), row) {
                self.processors.sample(cpu, section, weight_ns);
            }
            self.tasks.sample(&tasks::Sampled {
                recording: recordings.value(row),
                has_cpu: cpus.is_valid(row),
                process: at!(processes, row),
                thread: at!(threads, row),
                task: at!(names, row),
                module,
                function: at!(functions, row),
                section,
                weight_ns,
            });
            self.stacks.sample(Sampled {
                recording: recordings.value(row),
                hit: match section {
                    Section::Interrupt => Hit::Interrupt,
                    Section::Deferred => Hit::Deferred,
                    _ => Hit::Other,
                },
                stack: at!(stacks, row),
                module,
                function: at!(functions, row),
            });
        }
    }

    /// Takes rows of the table `stacks`: frames of each stack from the innermost outwards.
    pub fn stacks(&mut self, batch: &RecordBatch) {
        self.symbols.stacks(batch);
        let text = |name| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
        let stacks = batch.column_by_name("stack").and_then(|c| c.as_primitive_opt::<UInt64Type>());
        let (Some(stacks), Some(recordings)) = (stacks, text("recording")) else { return };
        let [modules, functions] = ["module", "function"].map(text);
        for row in 0..batch.num_rows() {
            self.stacks.frame(StackFrame {
                recording: recordings.value(row),
                stack: stacks.value(row),
                module: at!(modules, row),
                function: at!(functions, row),
            });
        }
    }

    fn extend(&mut self, batch: &RecordBatch, times: &Int64Array) {
        let (Some(first), Some(last)) = (min(times), max(times)) else { return };
        let recordings = batch.column_by_name("recording").and_then(|c| c.as_string_opt::<i32>());
        let extent = self.extent.get_or_insert_with(|| Extent {
            recording: recordings.map_or_else(String::new, |names| names.value(0).to_owned()),
            first_ns: first,
            last_ns: last,
        });
        extent.first_ns = extent.first_ns.min(first);
        extent.last_ns = extent.last_ns.max(last);
    }

    /// The result.
    pub fn finish(mut self) -> Report {
        if self.traces.is_empty()
            && let Some(extent) = self.extent.take()
        {
            self.traces.push(Trace {
                recording: extent.recording,
                started_at: Some(extent.first_ns),
                ended_at: Some(extent.last_ns),
                notes: Some("the recorder was killed: its counters are missing".to_owned()),
                ..Trace::default()
            });
        }
        let length_ns = self
            .traces
            .iter()
            .filter_map(|trace| trace.ended_at?.checked_sub(trace.started_at?))
            .sum();
        let starts = self.traces.iter().filter_map(|trace| trace.started_at);
        let ends = self.traces.iter().filter_map(|trace| trace.ended_at);
        let start_ns = starts.min();
        let extent = start_ns.zip(ends.max());
        let (totals, totals_discarded) = self.totals.finish(length_ns, self.limits);
        for one in totals.iter().flat_map(|totals| &totals.cpus) {
            self.processors.sums(one.cpu, one.interrupt_ns, one.deferred_ns);
        }
        let recorded = recorded(&self.traces, &[&self.occurring, &self.context], totals.as_ref());
        let has_runs = recorded.runs > 0 || self.occurring.families().next().is_some();
        if let Some((start, end)) = extent.filter(|_| has_runs) {
            self.bins.cover(start, end);
            self.groups.cover(start, end);
        }
        let covered_ns = match &totals {
            Some(totals) if totals.of_intervals && !has_runs => totals.covered_ns,
            _ => length_ns,
        };
        let processors =
            self.processors.finish(&self.traces, covered_ns, &recorded, has_runs, &self.context);
        let possible_ns =
            i64::try_from(processors.rows.len()).unwrap_or(i64::MAX).saturating_mul(length_ns);
        let (groups, groups_discarded) = self.groups.finish(possible_ns, self.limits);
        let (mut devices, devices_discarded) = self.devices.finish();
        let node = |cpu: u64| processors.rows.iter().find(|one| one.cpu == cpu)?.node;
        for device in &mut devices {
            device.nodes = device.cpus.iter().filter_map(|one| node(one.cpu)).collect();
            device.nodes.sort_unstable();
            device.nodes.dedup();
            device.own_node = self.device_nodes.get(&device.device).copied();
            let remote = device.cpus.iter().filter(|one| match (node(one.cpu), device.own_node) {
                (Some(node), Some(own)) => node != own,
                _ => false,
            });
            device.remote_ns = remote.fold(0, |sum, one| sum.saturating_add(one.exclusive_ns));
        }
        let (in_samples, stacks_discarded) = self.stacks.finish();
        let (tasks, tasks_discarded) = self.tasks.finish();
        let (symbols_missing, modules_discarded) = self.symbols.finish();
        let mut report = Report {
            findings: Vec::new(),
            start_ns,
            recorded,
            length_ns,
            possible_ns,
            discarded: processors.discarded
                + groups_discarded
                + devices_discarded
                + stacks_discarded
                + tasks_discarded
                + modules_discarded
                + totals_discarded,
            processors: processors.rows,
            interrupts: groups,
            devices,
            symbols_missing,
            totals,
            limits: self.limits,
            timeline: self.bins.timeline().filter(|_| has_runs),
            in_samples,
            tasks,
            power: self.power.finish(),
            traces: self.traces,
        };
        report.findings = findings::findings(&report);
        report
    }
}

/// Whether smbscope recorded a trace: its clocks of samples tick on all CPUs but idle ones, and it records all
/// interrupts and deferred work.
fn is_own(trace: &Trace) -> bool {
    trace.format == "smbscope record --cpu"
}

/// What traces say about interrupts and deferred work, by what occurs in them.
fn recorded(traces: &[Trace], occurring: &[&Context], totals: Option<&Totals>) -> Recorded {
    let is_own = traces.iter().any(is_own);
    let sums = totals.iter().flat_map(|totals| &totals.cpus);
    let has_sums = |of: fn(&TotalCpu) -> Option<i64>| sums.clone().any(|one| of(one).is_some());
    let mut families: Vec<_> = occurring.iter().flat_map(|one| one.families().cloned()).collect();
    let (interrupt_sums, deferred_sums) =
        (has_sums(|one| one.interrupt_ns), has_sums(|one| one.deferred_ns));
    families.extend(interrupt_sums.then(|| "isr".to_owned()));
    families.extend(deferred_sums.then(|| "dpc".to_owned()));
    if is_own {
        families.extend(["irq", "softirq"].map(str::to_owned));
    }
    families.sort_unstable();
    families.dedup();
    Recorded {
        interrupts: is_own || interrupt_sums || occurring.iter().any(|one| one.classes().0),
        deferred: is_own || deferred_sums || occurring.iter().any(|one| one.classes().1),
        families,
        runs: traces.iter().fold(0, |sum, trace| sum.saturating_add(trace.interrupts)),
    }
}

impl Report {
    /// First and last time of the traces, or of the period.
    pub fn extent_ns(&self) -> Option<(i64, i64)> {
        let end = self.traces.iter().filter_map(|trace| trace.ended_at).max();
        let start = self.start_ns?;
        Some((start, end.unwrap_or(start.saturating_add(self.length_ns))))
    }

    /// Whether the traces are of Windows.
    pub fn is_windows(&self) -> bool {
        let of_windows = |trace: &Trace| {
            trace.format.starts_with("Windows") || trace.format.starts_with("xperf")
        };
        self.traces.iter().any(of_windows)
    }

    /// Whether a trace has sums instead of single runs.
    pub fn is_of_sums(&self) -> bool {
        self.traces.iter().any(|trace| trace.format.starts_with("xperf"))
    }
}

/// Whether an address is one of the kernel: the upper half of a 64-bit address space (x86-64 and
/// arm64 of Linux and Windows), or a module that `perf` names as the kernel's.
fn is_kernel(address: u64, module: Option<&str>) -> bool {
    let by_name = |name: &str| {
        name.starts_with("[kernel") || name.contains("vmlinux") || name.ends_with(".ko")
    };
    address >= 0xffff_0000_0000_0000 || module.is_some_and(by_name)
}

/// Calls `f` with each row of the table `switches`: its CPU, time in ns, and the threads before and after it.
fn each_switch(batch: &RecordBatch, mut f: impl FnMut(Place<'_>, i64, u64, u64)) {
    let number = |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<UInt64Type>());
    let recording = batch.column_by_name("recording").and_then(|c| c.as_string_opt::<i32>());
    let times = batch.column_by_name("time").and_then(|c| c.as_primitive_opt::<Int64Type>());
    let (Some(cpus), Some(old), Some(new), Some(times), Some(recording)) =
        (number("cpu"), number("old_thread"), number("new_thread"), times, recording)
    else {
        return;
    };
    for row in 0..batch.num_rows() {
        let place = Place { recording: recording.value(row), cpu: cpus.value(row) };
        f(place, times.value(row), old.value(row), new.value(row));
    }
}

#[cfg(test)]
mod tests;
