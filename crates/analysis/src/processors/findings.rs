//! What is wrong with the CPUs of a trace: causes with evidence, confidence and remedies.
//!
//! Owns the thresholds and their reasons. Everything is derived from the finished [`Report`].

mod drivers;
mod locked;
mod remedies;
mod words;

use serde::Serialize;
use smbscope_findings::{Confidence, Figure, KindInfo, Weight, kinds};

use super::data::{Device, InterruptGroup, PathPart, Processor, Report};
use super::receive::is_adapter;
use super::roles::Role;
use super::totals::TotalModule;
use super::work::{self, Work};
use words::{duration, grouped};

kinds! {
    /// What can be wrong with CPUs. A closed list. Remedies are for Windows or for Linux.
    pub enum ProcessorFindingKind {
        /// CPUs spend most of their time in interrupts and deferred work.
        LockedProcessors = locked::KIND,
        /// Deferred work or handlers of one name run longer than the limit.
        LongRuns = LONG_RUNS,
        /// It filters or inspects packets.
        FilterInReceivePath = FILTER,
        /// A team or bond of adapters.
        TeamInReceivePath = TEAM,
        /// A module that is in no list has much of the deferred work.
        DriverInDeferredWork = drivers::DRIVER,
        /// Code that signs or encrypts takes CPU time.
        SigningOrEncryption = drivers::CRYPTO,
        /// The receive work of the network runs on few CPUs.
        ReceiveOnFewProcessors = FEW,
        /// The work for a network adapter runs on another NUMA node than the adapter is on.
        RemoteNode = REMOTE,
        /// Recording the trace takes a large part of the time.
        TracingIsTheLoad = TRACING,
        /// Deep idle states or low frequencies, and work that begins late on CPUs that were idle.
        PowerSaving = POWER_SAVING,
    }
}

/// One thing that takes CPUs' time. Its period is on the clock of the trace; an end of it is null if the
/// finding was there from the start, or to the end, or if that is not known.
pub type Finding = smbscope_findings::Finding<ProcessorFindingKind, OnProcessors>;

/// Where it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OnProcessors {
    /// The CPUs concerned, in the order of their numbers.
    pub cpus: Vec<u64>,
}

/// The receive work should be divided if one of its CPUs is busy for at least this share; if one CPU does all of it, already from
/// the second share on.
const BUSY_SHARE: f64 = 0.25;
const BUSY_ALONE_SHARE: f64 = 0.05;
/// Long runs count if they take this share of the time of one CPU, and there are as many.
const LONG_SHARE: f64 = 0.01;
const LONG_MIN: u64 = 10;
/// A part of the receive path counts if it has at least this share of the samples, and this many samples.
const PATH_SHARE: f64 = 0.05;
const PATH_SAMPLES: u64 = 50;
/// The work of a name is on few CPUs if this share of it is on less than a third of them.
const FEW_SHARE: f64 = 0.95;
const FEW_PART: usize = 3;
/// Work on another node counts if it is at least this share of a device's work, and takes at least this share of the
/// time of one CPU.
const REMOTE_SHARE: f64 = 0.2;
const REMOTE_MIN: f64 = 0.01;
/// Tracing is a load if it has at least this share of all samples.
const TRACING_SHARE: f64 = 0.1;
/// Work begins late on idle CPUs if 5 % of it begin after this time, this many times as late as on busy ones, and there
/// are as many delays of each.
const LATE_NS: i64 = 50_000;
const LATE_TIMES: i64 = 3;
const LATE_MIN: u64 = 100;
/// An idle state with at least this number is deep: 0 and 1 are a pause and a halt.
const DEEP_STATE: u64 = 2;
/// Names whose long runs are listed.
const LONG_NAMES: usize = 3;

/// All findings, the most costly first.
pub(super) fn findings(report: &Report) -> Vec<Finding> {
    let mut found = locked::locked(report);
    if let Some(samples) = &report.in_samples {
        let is_in = |part: &&PathPart| {
            part.samples >= PATH_SAMPLES && part.share >= PATH_SHARE && part.own_share >= PATH_SHARE
        };
        let deferred =
            Some(report.processors.iter().filter_map(|one| one.deferred_ns).sum::<i64>())
                .filter(|_| report.recorded.deferred);
        for part in samples.receive.iter().filter(is_in) {
            found.extend(in_path(part, deferred, samples.deferred));
        }
    }
    let named: Vec<_> =
        found.iter().flat_map(|one| one.about.iter().map(|it| it.name.clone())).collect();
    found.extend(drivers::drivers(report, &named));
    found.extend(drivers::crypto(report));
    found.extend(few(report));
    found.extend(report.devices.iter().filter_map(|device| remote(report, device)));
    let long = report.interrupts.iter().filter(|group| {
        group.over_limit >= LONG_MIN
            && group.over_limit_ns as f64 >= LONG_SHARE * report.length_ns as f64
    });
    found.extend(long.take(LONG_NAMES).map(long_runs));
    if let Some(totals) = &report.totals {
        let long = totals
            .modules
            .iter()
            .filter(|module| module.over_limit_least.is_some_and(|least| least >= LONG_MIN));
        let least_ns = LONG_SHARE * totals.covered_ns as f64;
        let long =
            long.filter_map(long_sums).filter(|one| one.cost_ns().unwrap_or(0) as f64 >= least_ns);
        found.extend(long.take(LONG_NAMES));
    }
    found.extend(tracing(report));
    found.extend(power_saving(report));
    found.iter_mut().for_each(|one| remedies::fit(one, report));
    // What holds CPUs comes first, then causes by what they cost, then what is a symptom of these.
    found.sort_by_key(|one| {
        let rank = match one.kind {
            ProcessorFindingKind::LockedProcessors => 0,
            ProcessorFindingKind::LongRuns => 2,
            _ => 1,
        };
        (rank, std::cmp::Reverse(one.cost_ns().unwrap_or(0)))
    });
    found
}

/// A finding that costs `cost_ns` of the CPUs' time, if that is known.
fn finding(
    kind: ProcessorFindingKind,
    what: String,
    (cost_ns, cpus): (Option<i64>, Vec<u64>),
    (confidence, because): (Confidence, String),
) -> Finding {
    smbscope_findings::Finding::new(kind, what)
        .with_weight(Weight::CpuTime { cost_ns })
        .with_confidence(confidence, because)
        .with_details(OnProcessors { cpus })
}

fn busy(one: &Processor) -> f64 {
    one.busy_share().unwrap_or(0.0)
}

fn name(name: Option<&str>) -> &str {
    name.unwrap_or("a routine without a name")
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Numbers of CPUs in a sentence.
fn numbers(cpus: &[u64]) -> String {
    let words: Vec<_> = cpus.iter().take(16).map(u64::to_string).collect();
    let more = if cpus.len() > 16 { " ..." } else { "" };
    format!("{}{more}", words.join(", "))
}

const TEAM: KindInfo = KindInfo::new(
    "team-in-receive-path",
    "A team of network adapters is in the receive path",
).with_remedies(&[
        ("Windows", "remove the team and let SMB Multichannel use the adapters, each with an address of its own: Remove-NetLbfoTeam, Get-SmbMultichannelConnection"),
        ("Windows", "where a team is needed, use Switch Embedded Teaming, and record again to compare"),
        ("Windows before 2012", "remove the team with the program of its maker (Intel PROSet, Broadcom BACS, HP NCU) and give each adapter an address of its own; this version has no SMB Multichannel, so one adapter serves each client"),
        ("Linux", "give each adapter an address of its own and let SMB Multichannel use them (Samba: server multi channel support = yes)"),
]);

const FILTER: KindInfo = KindInfo::new(
    "filter-in-receive-path",
    "A filter or inspection driver is in the receive path",
).with_remedies(&[
        ("Windows", "see what the driver belongs to: Get-NetAdapterBinding -AllBindings, fltmc, netsh wfp show filters; update it, or exclude the backup network from its inspection"),
        ("Windows", "unbind it from one adapter for a trial, record again, and compare: Disable-NetAdapterBinding -Name ... -ComponentID ..."),
        ("Windows before 2012", "see what the driver belongs to: driverquery /v, the bindings of each connection (ncpa.cpl), netsh wfp show filters; update it, or exclude the backup network from its inspection; unbind it from one adapter for a trial, record again, and compare"),
        ("Linux", "look at the rules that every packet passes: nft list ruleset, iptables-save, tc filter show dev DEV; accept established connections first, or exempt the storage network (notrack)"),
]);

fn in_path(part: &PathPart, deferred_ns: Option<i64>, samples: u64) -> Option<Finding> {
    let kind = match part.role {
        Role::Team => ProcessorFindingKind::TeamInReceivePath,
        Role::Filter => ProcessorFindingKind::FilterInReceivePath,
        _ => return None,
    };
    let of_deferred =
        part.own_share * part.samples as f64 / (samples.max(1) as f64 * part.share.max(1e-9));
    let cost = deferred_ns.map(|deferred| (of_deferred * deferred as f64) as i64);
    let what = format!(
        "{} is between the network adapter and TCP: it is in the stacks of {:.0} % of the samples of received packets, and {:.0} % hit it itself",
        part.name,
        100.0 * part.share,
        100.0 * part.own_share
    );
    let confidence = if part.samples >= 1_000 { Confidence::Measured } else { Confidence::Likely };
    let because = format!(
        "{} samples have it in their stacks; its cost is {} them",
        grouped(part.samples),
        match cost {
            Some(_) => "estimated from",
            None => "not known without the time of deferred work, only",
        }
    );
    let figures = [
        figure("samples", part.samples as f64, ""),
        figure("share", part.share, "share"),
        figure("own_share", part.own_share, "share"),
    ];
    let found = finding(kind, what, (cost, Vec::new()), (confidence, because));
    Some(found.with_figures(figures).about("driver", &part.name))
}

const FEW: KindInfo = KindInfo::new(
    "receive-on-few-processors",
    "Few CPUs do the receive work of the network",
).with_remedies(&[
        ("Windows", "enable RSS and give each adapter cores of its own on its NUMA node: Get-NetAdapterRss, Enable-NetAdapterRss, Set-NetAdapterRss; `smbscope plan cores` writes the commands; a single connection cannot be spread, SMB Multichannel opens several"),
        ("Windows before 2012", "enable RSS (netsh int tcp show global, netsh int tcp set global rss=enabled) and give each adapter base and number of CPUs in the Advanced tab of its driver (*RssBaseProcNumber, *MaxRssProcessors in its registry key); a single connection cannot be spread"),
        ("Linux", "use one queue for each core of the adapter's NUMA node (ethtool -l, ethtool -L), spread their interrupts (smp_affinity_list), or RPS where there are too few queues: `smbscope plan cores` writes the commands; a single connection cannot be spread"),
]);

/// The receive work of the network: NET_RX on Linux, the DPCs of NDIS and of adapters on Windows.
fn few(report: &Report) -> Option<Finding> {
    let adapters = report.adapters();
    let is_receive = |work: &&Work| {
        let name = work.name.as_deref().unwrap_or_default();
        match work.kind.as_str() {
            "softirq" => name == "NET_RX",
            "dpc" | "threaded_dpc" => is_adapter(name, &adapters),
            _ => false,
        }
    };
    let works = work::all(report);
    let group = works.iter().find(is_receive)?;
    let all: i64 = group.cpus.iter().map(|(_, ns)| *ns).sum();
    let mut sum = 0;
    let mut cpus: Vec<u64> = Vec::new();
    for (cpu, ns) in &group.cpus {
        if sum as f64 >= FEW_SHARE * all as f64 {
            break;
        }
        sum += ns;
        cpus.push(*cpu);
    }
    let of = |cpu: &u64| report.processors.iter().find(|one| one.cpu == *cpu);
    let most = cpus.iter().filter_map(of).map(busy).fold(0.0, f64::max);
    let least = if cpus.len() == 1 { BUSY_ALONE_SHARE } else { BUSY_SHARE };
    if cpus.len() * FEW_PART > report.processors.len() || most < least {
        return None;
    }
    cpus.sort_unstable();
    let mut nodes: Vec<u64> = cpus.iter().filter_map(of).filter_map(|one| one.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let machine: std::collections::BTreeSet<_> =
        report.processors.iter().filter_map(|one| one.node).collect();
    let place = match (nodes.as_slice(), machine.len()) {
        ([node], 2..) => format!(", all on NUMA node {node} of {}", machine.len()),
        _ => String::new(),
    };
    let what = format!(
        "{} of {} CPUs ({}) do {:.0} % of the receive work of the network ({}){place}; the busiest spends {:.0} % of its time in interrupt work",
        cpus.len(),
        report.processors.len(),
        numbers(&cpus),
        100.0 * sum as f64 / all.max(1) as f64,
        name(group.name.as_deref()),
        100.0 * most,
    );
    let because = match group.count {
        Some(count) if report.totals.is_none() => {
            format!("the CPU of each of {} runs was recorded", grouped(count))
        }
        _ => "the input has sums of the time on each CPU".to_owned(),
    };
    let figures =
        [figure("processors", cpus.len() as f64, ""), figure("busiest_share", most, "share")];
    let kind = ProcessorFindingKind::ReceiveOnFewProcessors;
    let found = finding(kind, what, (Some(sum), cpus), (Confidence::Measured, because));
    Some(found.with_figures(figures))
}

const LONG_RUNS: KindInfo = KindInfo::new(
    "long-runs",
    "Deferred work or handlers run too long",
).with_remedies(&[
        ("Windows", "update the driver; record with stacks (-stackwalk profile) to see what it calls"),
        ("Linux", "record samples with call chains (perf record -a -g) to see what runs in it; for NET_RX, net.core.netdev_budget_usecs bounds one run"),
]);

fn long_runs(group: &InterruptGroup) -> Finding {
    let mut cpus: Vec<u64> = group.cpus.iter().map(|one| one.cpu).collect();
    cpus.sort_unstable();
    let what = format!(
        "{} ({}): {} of {} runs take longer than {}, {:.2} CPU seconds in total; the longest takes {}",
        name(group.name.as_deref()),
        group.kind,
        grouped(group.over_limit),
        grouped(group.count),
        duration(group.limit_ns),
        seconds(group.over_limit_ns),
        duration(group.duration.max_ns.unwrap_or(0)),
    );
    let because = "each run was recorded with its beginning and end".to_owned();
    let cost = (Some(group.over_limit_ns), cpus);
    finding(ProcessorFindingKind::LongRuns, what, cost, (Confidence::Measured, because))
        .with_figures(long_figures(group.over_limit, group.count, group.limit_ns))
}

/// Runs above the limit in sums: at least as many as the histogram says, which took at least the lower bounds of its parts.
fn long_sums(module: &TotalModule) -> Option<Finding> {
    let (least, count) = (module.over_limit_least?, module.count?);
    let above = module.histogram.iter().filter(|one| one.above_ns >= module.limit_ns);
    let time_ns = above.fold(0_i64, |sum, one| {
        let runs = i64::try_from(one.count).unwrap_or(i64::MAX);
        sum.saturating_add(one.above_ns.saturating_mul(runs))
    });
    let mut cpus = module.cpus.clone();
    cpus.sort_unstable();
    let what = format!(
        "{} ({}): at least {} of {} runs take longer than {}, {:.2} CPU seconds or more in total; \
         the longest takes more than {}",
        module.name,
        module.kind,
        grouped(least),
        grouped(count),
        duration(module.limit_ns),
        seconds(time_ns),
        duration(module.longest_above_ns?),
    );
    let because = "the input counts runs between bounds of their durations".to_owned();
    let cost = (Some(time_ns), cpus);
    let found =
        finding(ProcessorFindingKind::LongRuns, what, cost, (Confidence::Measured, because));
    Some(found.with_figures(long_figures(least, count, module.limit_ns)))
}

fn long_figures(over_limit: u64, runs: u64, limit_ns: i64) -> [Figure; 3] {
    [
        figure("over_limit", over_limit as f64, ""),
        figure("runs", runs as f64, ""),
        figure("limit_ns", limit_ns as f64, "ns"),
    ]
}

const TRACING: KindInfo = KindInfo::new(
    "tracing-is-the-load",
    "Recording the trace is part of the load",
)
.with_remedies(&[
    (
        "Windows",
        "record fewer events: without context switches or timer interrupts, or for a shorter time",
    ),
    (
        "Linux",
        "record fewer events: without context switches or timer interrupts, or for a shorter time",
    ),
]);

fn tracing(report: &Report) -> Option<Finding> {
    let samples = report.in_samples.as_ref()?;
    let share = samples.tracing_share.filter(|share| *share >= TRACING_SHARE)?;
    let what = format!("{:.0} % of all samples hit functions that record the trace", 100.0 * share);
    let because = "names of functions in the stacks of samples".to_owned();
    let kind = ProcessorFindingKind::TracingIsTheLoad;
    let found = finding(kind, what, (None, Vec::new()), (Confidence::Likely, because));
    Some(found.with_figures([figure("share", share, "share")]))
}

const REMOTE: KindInfo = KindInfo::new(
    "remote-node",
    "The work for an adapter runs on another NUMA node",
).with_remedies(&[
        ("Linux", "let the interrupts of the interface be served on its own node: `smbscope plan cores` writes the commands (/proc/irq/*/smp_affinity_list, and irqbalance, which would change them back)"),
]);

/// Work for a device on other nodes than its own: each access to its memory crosses the link between the sockets.
fn remote(report: &Report, device: &Device) -> Option<Finding> {
    let own = device.own_node?;
    let share = device.remote_ns as f64 / device.exclusive_ns.max(1) as f64;
    if share < REMOTE_SHARE || (device.remote_ns as f64) < REMOTE_MIN * report.length_ns as f64 {
        return None;
    }
    let node = |cpu: u64| report.processors.iter().find(|one| one.cpu == cpu)?.node;
    let remote = device.cpus.iter().filter(|one| node(one.cpu).is_some_and(|node| node != own));
    let mut cpus: Vec<u64> = remote.map(|one| one.cpu).collect();
    cpus.sort_unstable();
    let what = format!(
        "{} is on NUMA node {own}, but {:.0} % of its interrupts and polls ({:.2} of {:.2} CPU seconds) run on CPU {} of other nodes",
        device.device,
        100.0 * share,
        seconds(device.remote_ns),
        seconds(device.exclusive_ns),
        numbers(&cpus),
    );
    let because =
        "where the work ran was recorded; what the distance costs was not measured".to_owned();
    let cost = (Some(device.remote_ns), cpus);
    let found =
        finding(ProcessorFindingKind::RemoteNode, what, cost, (Confidence::Likely, because));
    Some(
        found.with_figures([
            figure("remote_share", share, "share"),
            figure("own_node", own as f64, ""),
        ]),
    )
}

const POWER_SAVING: KindInfo = KindInfo::new(
    "power-saving",
    "Power saving delays work on idle CPUs",
).with_remedies(&[
        ("Windows", "try the power plan High performance, and in the firmware no C-states below C1: powercfg /setactive SCHEME_MIN; record again and compare"),
        ("Linux", "try without deep idle states for one run: cpupower idle-set -D 10 (undo: cpupower idle-set -E), or tuned-adm profile network-latency; record again and compare"),
]);

fn power_saving(report: &Report) -> Option<Finding> {
    let power = report.power.as_ref()?;
    let (idle, busy) = (&power.delay_when_idle, &power.delay_when_busy);
    let (idle_p95, busy_p95) = (idle.p95_ns?, busy.p95_ns?);
    let is_late = idle.n >= LATE_MIN
        && busy.n >= LATE_MIN
        && idle_p95 >= LATE_NS
        && idle_p95 >= LATE_TIMES.saturating_mul(busy_p95);
    let deep: Vec<_> = power.states.iter().filter(|state| state.state >= DEEP_STATE).collect();
    let deep_ns: i64 = deep.iter().map(|state| state.duration_ns).sum();
    let is_slow = power
        .lowest_khz
        .zip(power.highest_khz)
        .is_some_and(|(low, high)| low.saturating_mul(2) <= high);
    if !is_late || deep.is_empty() && !is_slow {
        return None;
    }
    let how = match deep.last() {
        Some(deepest) => {
            format!(
                "CPUs enter idle states up to {} ({:.1} s in deep ones)",
                deepest.state,
                seconds(deep_ns)
            )
        }
        None => format!(
            "frequencies vary from {} to {} MHz",
            power.lowest_khz.unwrap_or(0) / 1_000,
            power.highest_khz.unwrap_or(0) / 1_000
        ),
    };
    let what = format!(
        "{how}, and work on idle CPUs begins late: 5 % of it more than {} after the request, {} on busy ones",
        duration(idle_p95),
        duration(busy_p95)
    );
    let because = format!(
        "delays of {} runs on idle and {} on busy CPUs; other causes of late work on idle CPUs, such as a virtual machine that has to be scheduled, look the same",
        grouped(idle.n),
        grouped(busy.n)
    );
    let kind = ProcessorFindingKind::PowerSaving;
    let found = finding(kind, what, (None, Vec::new()), (Confidence::Likely, because));
    Some(found.with_figures([
        figure("idle_delay_p95", idle_p95 as f64, "ns"),
        figure("busy_delay_p95", busy_p95 as f64, "ns"),
        figure("deep_idle", deep_ns as f64, "ns"),
    ]))
}

/// A figure that the sentence has, too.
fn figure(name: &'static str, value: f64, unit: &'static str) -> Figure {
    Figure::new(name, value, unit, "")
}
