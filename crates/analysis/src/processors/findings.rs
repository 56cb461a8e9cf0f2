//! What is wrong with the processors of a trace: causes with evidence, confidence and remedies.
//!
//! Owns the thresholds and their reasons. Everything is derived from the finished [`Report`].

mod trouble;

use super::data::{Device, InterruptGroup, PathPart, Processor, Report};
use super::receive::is_adapter;
use super::roles::Role;
use crate::evidence::{Confidence, Figure, Remedy};

pub use trouble::{Finding, ProcessorTrouble};

/// A processor with this share of its time in interrupts and deferred work has hardly time for threads.
pub const LOCKED_SHARE: f64 = 0.5;
/// A share from which on the receive work should be divided.
const BUSY_SHARE: f64 = 0.25;
/// Long runs count if they take this share of the time of one processor, and there are as many.
const LONG_SHARE: f64 = 0.01;
const LONG_LEAST: u64 = 10;
/// A part of the receive path counts from this share of its samples on, and from as many samples.
const PATH_SHARE: f64 = 0.05;
const PATH_SAMPLES: u64 = 50;
/// The work of a name is on few processors if this share of it is on less than a third of them.
const FEW_SHARE: f64 = 0.95;
const FEW_PART: usize = 3;
/// Work on another node counts from this share of a device's work on, and from this share of the time of one processor.
const REMOTE_SHARE: f64 = 0.2;
const REMOTE_LEAST: f64 = 0.01;
/// Tracing is a load from this share of all samples on.
const TRACING_SHARE: f64 = 0.1;
/// Work begins late on idle processors if 5 % of it begin after this time, this many times as late as on busy ones, and there
/// are as many delays of each.
const LATE_NS: i64 = 50_000;
const LATE_TIMES: i64 = 3;
const LATE_LEAST: u64 = 100;
/// From this number on an idle state is deep: 0 and 1 are a pause and a halt.
const DEEP_STATE: u64 = 2;
/// Names whose long runs are listed.
const LONG_NAMES: usize = 3;

/// All findings, the most costly first.
pub(super) fn findings(report: &Report) -> Vec<Finding> {
    let is_windows = report.traces.iter().any(|trace| trace.format.starts_with("Windows"));
    let mut found = Vec::new();
    found.extend(locked(report, is_windows));
    if let Some(samples) = &report.in_samples {
        let is_in = |part: &&PathPart| {
            part.samples >= PATH_SAMPLES && part.share >= PATH_SHARE && part.own_share >= PATH_SHARE
        };
        let deferred: i64 = report.processors.iter().map(|one| one.deferred_ns).sum();
        for part in samples.receive.iter().filter(is_in) {
            found.extend(in_path(part, deferred, samples.deferred, is_windows));
        }
    }
    found.extend(few(report, is_windows));
    found.extend(report.devices.iter().filter_map(|device| remote(report, device)));
    let long = report.interrupts.iter().filter(|group| {
        group.over_limit >= LONG_LEAST
            && group.over_limit_ns as f64 >= LONG_SHARE * report.length_ns as f64
    });
    found.extend(long.take(LONG_NAMES).map(|group| long_runs(group, is_windows)));
    found.extend(tracing(report, is_windows));
    found.extend(power_saving(report, is_windows));
    // What holds processors comes first, then causes by what they cost, then what is a symptom of these.
    found.sort_by_key(|one| {
        let rank = match one.trouble {
            ProcessorTrouble::LockedProcessors => 0,
            ProcessorTrouble::LongRuns => 2,
            _ => 1,
        };
        (rank, std::cmp::Reverse(one.cost_ns.unwrap_or(0)))
    });
    found
}

fn busy(one: &Processor) -> f64 {
    one.interrupt_share.unwrap_or(0.0) + one.deferred_share.unwrap_or(0.0)
}

fn name(group: &InterruptGroup) -> &str {
    group.name.as_deref().unwrap_or("a routine without a name")
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Numbers of processors in a sentence.
fn numbers(cpus: &[u64]) -> String {
    let words: Vec<_> = cpus.iter().take(16).map(u64::to_string).collect();
    let more = if cpus.len() > 16 { " ..." } else { "" };
    format!("{}{more}", words.join(", "))
}

fn locked(report: &Report, is_windows: bool) -> Option<Finding> {
    let held: Vec<_> = report.processors.iter().filter(|one| busy(one) >= LOCKED_SHARE).collect();
    let cpus: Vec<u64> = held.iter().map(|one| one.cpu).collect();
    if cpus.is_empty() {
        return None;
    }
    let cost: i64 = held.iter().map(|one| one.interrupt_ns + one.deferred_ns).sum();
    let possible = report.length_ns.saturating_mul(cpus.len() as i64);
    let on_held = |group: &InterruptGroup| -> i64 {
        let on = group.cpus.iter().filter(|one| cpus.contains(&one.cpu));
        on.map(|one| one.exclusive_ns).sum()
    };
    let most = report.interrupts.iter().max_by_key(|group| on_held(group))?;
    let most_ns = on_held(most);
    let what = format!(
        "CPU {} of {}: {:.0} % of the time goes to interrupts and deferred work, most of it to {} ({}): {:.1} of {:.1} possible CPU seconds",
        numbers(&cpus),
        report.processors.len(),
        100.0 * cost as f64 / possible.max(1) as f64,
        name(most),
        most.kind,
        seconds(most_ns),
        seconds(possible),
    );
    Some(Finding {
        trouble: ProcessorTrouble::LockedProcessors,
        what,
        cost_ns: Some(cost),
        since_ns: since(report, &cpus),
        confidence: Confidence::High,
        because: format!("each run was recorded with its beginning and end ({} runs)", most.count),
        figures: vec![
            figure("processors", cpus.len() as f64, ""),
            figure("held_share", cost as f64 / possible.max(1) as f64, "share"),
            figure("most_ns", most_ns as f64, "ns"),
        ],
        cpus,
        remedies: match is_windows {
            true => vec![
                Remedy {
                    at: "Windows",
                    action: "see which drivers are in the receive path (other findings), and update or remove those that are not needed: Get-NetAdapterBinding -AllBindings",
                },
                Remedy {
                    at: "Windows",
                    action: "spread the receive work: Get-NetAdapterRss, then Set-NetAdapterRss -BaseProcessorNumber ... -NumberOfReceiveQueues ...",
                },
            ],
            false => vec![
                Remedy {
                    at: "Linux",
                    action: "spread the receive work over queues and CPUs: ethtool -l DEV, ethtool -L DEV combined N, /proc/irq/N/smp_affinity_list",
                },
                Remedy {
                    at: "Linux",
                    action: "see what runs in the softirq: perf record -a -g -e cpu-clock -F 99 -- sleep 10, and read it with smbscope",
                },
            ],
        },
    })
}

/// The beginning of the last period in which all these processors are held to the end, if that is not the start.
fn since(report: &Report, cpus: &[u64]) -> Option<i64> {
    let timeline = report.timeline.as_ref()?;
    let lanes: Vec<_> = timeline.cpus.iter().filter(|one| cpus.contains(&one.cpu)).collect();
    let is_held = |bin: usize| {
        lanes.iter().all(|lane| {
            let at = |bins: &[i64]| bins.get(bin).copied().unwrap_or(0);
            let busy = at(&lane.deferred_ns) + at(&lane.interrupt_ns);
            busy as f64 >= LOCKED_SHARE * timeline.bin_ns as f64
        })
    };
    // The last bin may not be full.
    let last = (timeline.bins as usize).checked_sub(2)?;
    let first = (0..=last).rev().take_while(|&bin| is_held(bin)).last()?;
    (first > 0).then(|| timeline.start_ns + timeline.bin_ns * first as i64)
}

fn in_path(part: &PathPart, deferred_ns: i64, samples: u64, is_windows: bool) -> Option<Finding> {
    let trouble = match part.role {
        Role::Team => ProcessorTrouble::TeamInReceivePath,
        Role::Filter => ProcessorTrouble::FilterInReceivePath,
        _ => return None,
    };
    let cost = part.own_share * deferred_ns as f64 * part.samples as f64
        / (samples.max(1) as f64 * part.share.max(1e-9));
    let what = format!(
        "{} is between the network adapter and TCP: it is in the stacks of {:.0} % of the samples of received packets, and {:.0} % hit it itself",
        part.name,
        100.0 * part.share,
        100.0 * part.own_share
    );
    let remedies = match (trouble, is_windows) {
        (ProcessorTrouble::TeamInReceivePath, true) => vec![
            Remedy {
                at: "Windows",
                action: "remove the team and let SMB Multichannel use the adapters, each with an address of its own: Remove-NetLbfoTeam, Get-SmbMultichannelConnection",
            },
            Remedy {
                at: "Windows",
                action: "where a team is needed, use Switch Embedded Teaming, and record again to compare",
            },
        ],
        (ProcessorTrouble::TeamInReceivePath, false) => vec![Remedy {
            at: "Linux",
            action: "give each adapter an address of its own and let SMB Multichannel use them (Samba: server multi channel support = yes)",
        }],
        (_, true) => vec![
            Remedy {
                at: "Windows",
                action: "see what the driver belongs to: Get-NetAdapterBinding -AllBindings, fltmc, netsh wfp show filters; update it, or exclude the backup network from its inspection",
            },
            Remedy {
                at: "Windows",
                action: "unbind it from one adapter for a trial, record again, and compare: Disable-NetAdapterBinding -Name ... -ComponentID ...",
            },
        ],
        (_, false) => vec![Remedy {
            at: "Linux",
            action: "look at the rules that every packet passes: nft list ruleset, iptables-save, tc filter show dev DEV; accept established connections first, or exempt the storage network (notrack)",
        }],
    };
    Some(Finding {
        trouble,
        what,
        cost_ns: Some(cost as i64),
        cpus: Vec::new(),
        confidence: match part.samples {
            1_000.. => Confidence::High,
            _ => Confidence::Medium,
        },
        because: format!(
            "{} samples have it in their stacks; its cost is estimated from them",
            part.samples
        ),
        since_ns: None,
        figures: vec![
            figure("samples", part.samples as f64, ""),
            figure("share", part.share, "share"),
            figure("own_share", part.own_share, "share"),
        ],
        remedies,
    })
}

/// The receive work of the network: NET_RX on Linux, the DPCs of NDIS and of adapters on Windows.
fn few(report: &Report, is_windows: bool) -> Option<Finding> {
    let adapters = report.adapters();
    let is_receive = |group: &&InterruptGroup| {
        let name = group.name.as_deref().unwrap_or_default();
        match group.kind.as_str() {
            "softirq" => name == "NET_RX",
            "dpc" | "threaded_dpc" => is_adapter(name, &adapters),
            _ => false,
        }
    };
    let group = report.interrupts.iter().find(is_receive)?;
    let all: i64 = group.cpus.iter().map(|one| one.exclusive_ns).sum();
    let mut sum = 0;
    let mut cpus: Vec<u64> = Vec::new();
    for one in &group.cpus {
        if sum as f64 >= FEW_SHARE * all as f64 {
            break;
        }
        sum += one.exclusive_ns;
        cpus.push(one.cpu);
    }
    let of = |cpu: &u64| report.processors.iter().find(|one| one.cpu == *cpu);
    let most = cpus.iter().filter_map(of).map(busy).fold(0.0, f64::max);
    if cpus.len() * FEW_PART > report.processors.len() || most < BUSY_SHARE {
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
        name(group),
        100.0 * most,
    );
    Some(Finding {
        trouble: ProcessorTrouble::ReceiveOnFewProcessors,
        what,
        cost_ns: Some(sum),
        confidence: Confidence::High,
        because: format!("the CPU of each of {} runs was recorded", group.count),
        since_ns: None,
        figures: vec![
            figure("processors", cpus.len() as f64, ""),
            figure("busiest_share", most, "share"),
        ],
        cpus,
        remedies: match is_windows {
            true => vec![Remedy {
                at: "Windows",
                action: "enable RSS and give each adapter cores of its own on its NUMA node: Get-NetAdapterRss, Enable-NetAdapterRss, Set-NetAdapterRss; `smbscope plan cores` writes the commands; a single connection cannot be spread, SMB Multichannel opens several",
            }],
            false => vec![Remedy {
                at: "Linux",
                action: "use one queue for each core of the adapter's NUMA node (ethtool -l, ethtool -L), spread their interrupts (smp_affinity_list), or RPS where there are too few queues: `smbscope plan cores` writes the commands; a single connection cannot be spread",
            }],
        },
    })
}

fn long_runs(group: &InterruptGroup, is_windows: bool) -> Finding {
    let mut cpus: Vec<u64> = group.cpus.iter().map(|one| one.cpu).collect();
    cpus.sort_unstable();
    Finding {
        trouble: ProcessorTrouble::LongRuns,
        what: format!(
            "{} ({}): {} of {} runs take longer than {} µs, {:.2} CPU seconds in all; the longest takes {:.0} µs",
            name(group),
            group.kind,
            group.over_limit,
            group.count,
            group.limit_ns / 1_000,
            seconds(group.over_limit_ns),
            group.duration.max_ns.unwrap_or(0) as f64 / 1e3,
        ),
        cost_ns: Some(group.over_limit_ns),
        cpus,
        confidence: Confidence::High,
        because: "each run was recorded with its beginning and end".to_owned(),
        since_ns: None,
        figures: vec![
            figure("over_limit", group.over_limit as f64, ""),
            figure("runs", group.count as f64, ""),
            figure("limit_ns", group.limit_ns as f64, "ns"),
        ],
        remedies: match is_windows {
            true => vec![Remedy {
                at: "Windows",
                action: "update the driver; record with stacks (-stackwalk profile) to see what it calls",
            }],
            false => vec![Remedy {
                at: "Linux",
                action: "record samples with call chains (perf record -a -g) to see what runs in it; for NET_RX, net.core.netdev_budget_usecs bounds one run",
            }],
        },
    }
}

fn tracing(report: &Report, is_windows: bool) -> Option<Finding> {
    let samples = report.in_samples.as_ref()?;
    let share = samples.tracing_share.filter(|share| *share >= TRACING_SHARE)?;
    Some(Finding {
        trouble: ProcessorTrouble::TracingIsTheLoad,
        what: format!("{:.0} % of all samples hit functions that record the trace", 100.0 * share),
        cost_ns: None,
        cpus: Vec::new(),
        confidence: Confidence::Medium,
        because: "names of functions in the stacks of samples".to_owned(),
        since_ns: None,
        figures: vec![figure("share", share, "share")],
        remedies: vec![Remedy {
            at: if is_windows { "Windows" } else { "Linux" },
            action: "record fewer events: without context switches or timer interrupts, or for a shorter time",
        }],
    })
}

/// Work for a device on other nodes than its own: each access to its memory crosses the link between the sockets.
fn remote(report: &Report, device: &Device) -> Option<Finding> {
    let own = device.own_node?;
    let share = device.remote_ns as f64 / device.exclusive_ns.max(1) as f64;
    if share < REMOTE_SHARE || (device.remote_ns as f64) < REMOTE_LEAST * report.length_ns as f64 {
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
    Some(Finding {
        trouble: ProcessorTrouble::RemoteNode,
        what,
        cost_ns: Some(device.remote_ns),
        confidence: Confidence::Medium,
        because: "where the work ran was recorded; what the distance costs was not measured"
            .to_owned(),
        since_ns: None,
        figures: vec![figure("remote_share", share, "share"), figure("own_node", own as f64, "")],
        cpus,
        remedies: vec![Remedy {
            at: "Linux",
            action: "let the interrupts of the interface be served on its own node: `smbscope plan cores` writes the commands (/proc/irq/*/smp_affinity_list, and irqbalance, which would change them back)",
        }],
    })
}

fn power_saving(report: &Report, is_windows: bool) -> Option<Finding> {
    let power = report.power.as_ref()?;
    let (idle, busy) = (&power.delay_when_idle, &power.delay_when_busy);
    let (idle_p95, busy_p95) = (idle.p95_ns?, busy.p95_ns?);
    let is_late = idle.n >= LATE_LEAST
        && busy.n >= LATE_LEAST
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
    Some(Finding {
        trouble: ProcessorTrouble::PowerSaving,
        what: format!(
            "{how}, and work on idle CPUs begins late: 5 % of it more than {:.0} µs after the request, {:.0} µs on busy ones",
            idle_p95 as f64 / 1e3,
            busy_p95 as f64 / 1e3
        ),
        cost_ns: None,
        cpus: Vec::new(),
        confidence: Confidence::Medium,
        because: format!(
            "delays of {} runs on idle and {} on busy CPUs; other causes of late work on idle CPUs, such as a virtual machine that has to be scheduled, look the same",
            idle.n, busy.n
        ),
        since_ns: None,
        figures: vec![
            figure("idle_delay_p95", idle_p95 as f64, "ns"),
            figure("busy_delay_p95", busy_p95 as f64, "ns"),
            figure("deep_idle", deep_ns as f64, "ns"),
        ],
        remedies: match is_windows {
            true => vec![Remedy {
                at: "Windows",
                action: "try the power plan High performance, and in the firmware no C-states below C1: powercfg /setactive SCHEME_MIN; record again and compare",
            }],
            false => vec![Remedy {
                at: "Linux",
                action: "try without deep idle states for one run: cpupower idle-set -D 10 (undo: cpupower idle-set -E), or tuned-adm profile network-latency; record again and compare",
            }],
        },
    })
}

fn figure(name: &'static str, value: f64, unit: &'static str) -> Figure {
    Figure { name, value, error: None, unit }
}
