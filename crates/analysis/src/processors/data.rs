//! The result: plain numbers, nothing derived while rendering.

use serde::Serialize;
use smbscope_tables::tables::Trace;

use super::findings::Finding;
use super::power::PowerReport;
use super::roles::Role;
use super::tasks::TaskSamples;
use super::totals::Totals;
use crate::stats::latency::Distribution;

/// Durations that interrupts should not exceed: Microsoft's guideline for drivers is 100 µs for a DPC
/// and 25 µs for an ISR ("Measuring DPC/ISR time", learn.microsoft.com/windows-hardware/drivers/devtest).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    pub deferred_ns: i64,
    pub interrupt_ns: i64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { deferred_ns: 100_000, interrupt_ns: 25_000 }
    }
}

/// Where the time of CPUs went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// First event.
    pub start_ns: Option<i64>,
    /// Time that the traces cover.
    pub length_ns: i64,
    /// The same for all CPUs together.
    pub possible_ns: i64,
    pub limits: Limits,
    /// What the traces say about interrupts and deferred work.
    pub recorded: Recorded,
    pub processors: Vec<Processor>,
    /// By kind and name, the most time first.
    pub interrupts: Vec<InterruptGroup>,
    /// What is wrong, the most costly first.
    pub findings: Vec<Finding>,
    /// Network and other devices, the most work first.
    pub devices: Vec<Device>,
    /// What each CPU did over time; null without durations.
    pub timeline: Option<Timeline>,
    /// What samples hit in interrupts and deferred work; null without samples.
    pub in_samples: Option<InSamples>,
    /// What samples hit, by process and by symbol; null without samples.
    pub tasks: Option<TaskSamples>,
    /// Idle states and frequencies; null without such events.
    pub power: Option<PowerReport>,
    /// Sums instead of single interrupts; null for traces, which have those.
    pub totals: Option<Totals>,
    /// Files that would name functions, those of the modules with the most time first.
    pub symbols_missing: Vec<MissingSymbols>,
    pub traces: Vec<Trace>,
    /// Rows left out because a list was full.
    pub discarded: u64,
}

/// What traces say about interrupts and deferred work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// Handlers of interrupts were recorded, as single runs or as sums.
    pub interrupts: bool,
    /// Deferred work was recorded.
    pub deferred: bool,
    /// Events that were recorded, by what a tracer can switch on alone: softirq, irq, napi_poll, dpc, isr, and each
    /// vector of the local APIC by its name. In the order of their names.
    pub families: Vec<String>,
    /// Runs of the whole traces; more than the report has if it covers a period.
    pub runs: u64,
}

impl Recorded {
    /// Whether anything is known about interrupts and deferred work but what samples hit.
    pub fn any(&self) -> bool {
        self.interrupts || self.deferred || self.runs > 0
    }
}

/// Exclusive time of interrupts and deferred work in bins of equal width.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// Beginning of the first bin.
    pub start_ns: i64,
    pub bin_ns: i64,
    pub bins: u64,
    /// In the order of their numbers.
    pub cpus: Vec<TimelineCpu>,
}

/// The bins of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimelineCpu {
    pub cpu: u64,
    pub deferred_ns: Vec<i64>,
    pub interrupt_ns: Vec<i64>,
}

/// What samples hit in interrupts and deferred work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InSamples {
    /// Samples in handlers of interrupts, and in deferred work.
    pub interrupt: u64,
    pub deferred: u64,
    /// By module and function of the innermost frame, most samples first.
    pub groups: Vec<SampledGroup>,
    /// The tree of calls; empty without stacks.
    pub calls: Vec<CallNode>,
    /// Drivers and layers in the stacks of received packets, from the adapter to TCP.
    pub receive: Vec<PathPart>,
    /// Share of all samples in functions that record the trace; null without names of functions.
    pub tracing_share: Option<f64>,
    /// All samples, and those in code that signs or encrypts by its name, the most first.
    pub all: u64,
    pub crypto: Vec<SampledCrypto>,
}

/// Samples in code that signs or encrypts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SampledCrypto {
    /// The module, or the code of the kernel.
    pub module: String,
    pub samples: u64,
}

/// Samples of one module and function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SampledGroup {
    pub module: Option<String>,
    pub function: Option<String>,
    pub interrupt: u64,
    pub deferred: u64,
}

/// A function or module in the tree of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallNode {
    pub name: String,
    /// Samples in it and in what it calls, and in itself.
    pub samples: u64,
    pub own_samples: u64,
    /// What it calls, most samples first.
    pub calls: Vec<CallNode>,
}

/// A driver or layer in the receive path of the network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathPart {
    pub name: String,
    pub role: Role,
    /// Samples of received packets with it in their stacks.
    pub samples: u64,
    /// Their share of all samples of received packets.
    pub share: f64,
    /// The share of samples that hit it itself.
    pub own_share: f64,
}

/// The time of one CPU. The times are disjoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Processor {
    pub cpu: u64,
    pub node: Option<u64>,
    pub socket: Option<u64>,
    pub core: Option<u64>,
    pub thread: Option<u64>,
    /// Handlers of interrupts; null if they were not recorded.
    pub interrupt_ns: Option<i64>,
    /// Deferred work: DPCs, softirqs; null if it was not recorded.
    pub deferred_ns: Option<i64>,
    /// Threads, without what interrupted them; null without context switches.
    pub thread_ns: Option<i64>,
    pub idle_ns: Option<i64>,
    /// Both as parts of the length of the trace.
    pub interrupt_share: Option<f64>,
    pub deferred_share: Option<f64>,
    pub thread_share: Option<f64>,
    pub idle_share: Option<f64>,
    /// Runs; null if there are sums only, or nothing was recorded.
    pub interrupts: Option<u64>,
    pub samples: SampleCounts,
    /// Shares by samples; null without samples.
    pub sampled: Option<SampledShares>,
}

impl Processor {
    /// Share of the time in interrupts and deferred work; `None` if neither was recorded.
    pub fn busy_share(&self) -> Option<f64> {
        match (self.interrupt_share, self.deferred_share) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        }
    }

    /// Time in interrupts and deferred work; `None` if neither was recorded.
    pub fn busy_ns(&self) -> Option<i64> {
        match (self.interrupt_ns, self.deferred_ns) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        }
    }
}

/// What a CPU did, by samples. The shares add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampledShares {
    /// Whether these are parts of the time. Otherwise they are parts of the samples: a CPU that is not sampled
    /// while it is idle looks busier than it is.
    pub of_time: bool,
    /// Null if the trace does not say which samples hit handlers of interrupts and deferred work.
    pub interrupt: Option<f64>,
    pub deferred: Option<f64>,
    pub kernel: f64,
    pub user: f64,
    pub idle: f64,
    /// Samples of which it is not known what they hit.
    pub unknown: f64,
}

impl SampledShares {
    /// Interrupts and deferred work; zero if they are not known.
    pub fn busy(&self) -> f64 {
        self.interrupt.unwrap_or(0.0) + self.deferred.unwrap_or(0.0)
    }
}

/// What samples hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Interrupt,
    Deferred,
    Kernel,
    User,
    Idle,
    Unknown,
}

/// Samples by what they hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SampleCounts {
    pub all: u64,
    pub interrupt: u64,
    pub deferred: u64,
    pub kernel: u64,
    pub user: u64,
    pub idle: u64,
}

impl SampleCounts {
    pub(super) fn add(&mut self, section: Section) {
        self.all += 1;
        match section {
            Section::Interrupt => self.interrupt += 1,
            Section::Deferred => self.deferred += 1,
            Section::Kernel => self.kernel += 1,
            Section::User => self.user += 1,
            Section::Idle => self.idle += 1,
            Section::Unknown => {}
        }
    }
}

/// Interrupts or deferred work of one kind and name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterruptGroup {
    pub kind: String,
    /// Null where only the address of the routine is known.
    pub name: Option<String>,
    pub count: u64,
    /// Exclusive time, and its part of the time of all CPUs.
    pub exclusive_ns: i64,
    pub share: Option<f64>,
    /// Durations with what was nested; of those that have one.
    pub duration: Distribution,
    pub limit_ns: i64,
    pub over_limit: u64,
    /// Their durations together.
    pub over_limit_ns: i64,
    /// Durations in order of size: how many are at least as long as this.
    pub longest: Vec<Ranked>,
    /// From the request to the beginning.
    pub delay: Distribution,
    /// Packets of polls.
    pub work: Option<u64>,
    /// The CPUs on which it ran, the most time (polls: the most runs) first.
    pub cpus: Vec<DeviceCpu>,
    /// Exclusive time in intervals of equal length, to judge how much it varies.
    pub interval_ns: i64,
    pub intervals: Vec<i64>,
}

/// A place in the order of durations, the longest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ranked {
    /// Number of durations that are at least as long.
    pub count: u64,
    pub duration_ns: i64,
}

/// The work for one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device {
    pub device: String,
    pub count: u64,
    pub exclusive_ns: i64,
    /// Packets of its polls.
    pub work: Option<u64>,
    /// Queues that its handlers name.
    pub queues: u64,
    /// Part of the runs that is on the busiest CPU.
    pub busiest_share: f64,
    /// NUMA nodes of its CPUs, where they are known.
    pub nodes: Vec<u64>,
    /// NUMA node of its bus; null where the trace does not say it.
    pub own_node: Option<u64>,
    /// Time of its work on CPUs of other nodes than its own, ns.
    pub remote_ns: i64,
    /// By CPU, the most runs first.
    pub cpus: Vec<DeviceCpu>,
}

/// The work for one device, or of one name, on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceCpu {
    pub cpu: u64,
    pub count: u64,
    pub exclusive_ns: i64,
}

/// A PDB file that is missing: no function of its module has a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MissingSymbols {
    pub module: String,
    /// Where a symbol server has it: `NAME/GUIDAGE/NAME`.
    pub file: String,
    /// Time of its interrupts and deferred work.
    pub exclusive_ns: i64,
    /// Time that the samples in it represent.
    pub sampled_ns: i64,
    /// Frames of stacks in it.
    pub frames: u64,
}
