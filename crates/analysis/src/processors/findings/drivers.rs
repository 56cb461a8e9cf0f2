//! What single modules take: a driver that holds much of the deferred work, independent of its caller, and code that signs or
//! encrypts.

use std::collections::BTreeMap;

use smbscope_findings::{Confidence, KindInfo};

use super::words::grouped;
use super::{Finding, ProcessorFindingKind, figure, finding};
use crate::processors::data::{CallNode, InSamples, Report};
use crate::processors::roles::{Role, is_unknown};

pub(super) const DRIVER: KindInfo = KindInfo::new(
    "driver-in-deferred-work",
    "One driver takes a large part of deferred work",
).with_remedies(&[
        ("Windows", "see what the driver belongs to (driverquery /v, the properties of its file), update it, and record again without it if that is possible: fltmc, Get-NetAdapterBinding -AllBindings, netsh wfp show filters"),
        ("Windows before 2012", "see what the driver belongs to (driverquery /v, the properties of its file), update it, and record again without it if that is possible: fltmc, the bindings of each connection (ncpa.cpl), netsh wfp show filters"),
        ("Linux", "see what the module belongs to (modinfo), update it, and record again without it if that is possible"),
]);

pub(super) const CRYPTO: KindInfo = KindInfo::new(
    "signing-or-encryption",
    "Signing or encryption takes CPU time",
).with_remedies(&[
        ("Windows", "see which setting asks for it (Get-SmbServerConfiguration: RequireSecuritySignature, EncryptData; Get-SmbShare: EncryptData) and what it costs: `smbscope plan baseline` compares settings; AES-128-GMAC and AES-128-GCM cost least"),
        ("Windows before 2012", "see whether signing is required (HKLM\\SYSTEM\\CurrentControlSet\\Services\\LanmanServer\\Parameters, RequireSecuritySignature) and what it costs: `smbscope plan baseline` compares settings"),
        ("Linux", "see which setting asks for it (testparm -sv: server signing, server smb encrypt; mount options seal and sign) and what it costs: `smbscope plan baseline` compares settings; AES-128-GMAC and AES-128-GCM cost least"),
]);

/// A module counts if it has this share of the samples in deferred work, or this one as the driver of the adapter, whose work
/// that is.
const DRIVER_SHARE: f64 = 0.25;
const ADAPTER_SHARE: f64 = 0.5;
/// Fewest samples, and the least share of the time of one CPU.
const SAMPLES_MIN: u64 = 50;
const CPU_MIN: f64 = 0.02;
/// Code that signs or encrypts counts from this share of all samples that did not hit idle CPUs.
const CRYPTO_SHARE: f64 = 0.05;

/// Modules that are in no list and hold deferred work. Those in `named` have a finding already.
pub(super) fn drivers(report: &Report, named: &[String]) -> Vec<Finding> {
    let Some(samples) = &report.in_samples else { return Vec::new() };
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for group in &samples.groups {
        let Some(module) = group.module.as_deref() else { continue };
        if is_unknown(module, group.function.as_deref()) && !named.iter().any(|name| name == module)
        {
            *sums.entry(module).or_default() += group.deferred;
        }
    }
    let found =
        sums.into_iter().filter_map(|(module, count)| driver(report, samples, module, count));
    found.collect()
}

fn driver(report: &Report, samples: &InSamples, module: &str, count: u64) -> Option<Finding> {
    let share = count as f64 / samples.deferred.max(1) as f64;
    let part = samples.receive.iter().find(|part| part.name == module);
    let least = match part.map(|part| part.role) {
        Some(Role::Adapter) => ADAPTER_SHARE,
        _ => DRIVER_SHARE,
    };
    let deferred = report.processors.iter().filter_map(|one| one.deferred_ns).sum::<i64>();
    let cost = report.recorded.deferred.then_some((share * deferred as f64) as i64);
    let is_small = cost.is_some_and(|cost| (cost as f64) < CPU_MIN * report.length_ns as f64);
    if share < least || count < SAMPLES_MIN || is_small {
        return None;
    }
    let called = caller(&samples.calls, module)
        .map_or_else(String::new, |caller| format!("; most often {caller} calls it"));
    let what = format!(
        "{module} has {:.0} % of the samples in deferred work ({} of {}){called}",
        100.0 * share,
        grouped(count),
        grouped(samples.deferred),
    );
    let because = match cost {
        Some(_) => "samples hit it itself; its cost is estimated from them",
        None => "samples hit it itself; how long deferred work took is not known",
    };
    let kind = ProcessorFindingKind::DriverInDeferredWork;
    let found = finding(kind, what, (cost, Vec::new()), (Confidence::Likely, because.to_owned()));
    Some(found.with_figures([figure("samples", count as f64, ""), figure("share", share, "share")]))
}

/// The module or function that calls a module in most samples.
fn caller(calls: &[CallNode], module: &str) -> Option<String> {
    let of = |name: &str| name.split('!').next().unwrap_or(name) == module;
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    let mut left: Vec<&CallNode> = calls.iter().collect();
    while let Some(node) = left.pop() {
        for called in &node.calls {
            if of(&called.name) && !of(&node.name) {
                *sums.entry(&node.name).or_default() += called.samples;
            }
            left.push(called);
        }
    }
    sums.into_iter().max_by_key(|(_, samples)| *samples).map(|(name, _)| name.to_owned())
}

/// CPU time of code that signs or encrypts.
pub(super) fn crypto(report: &Report) -> Option<Finding> {
    let samples = report.in_samples.as_ref()?;
    let idle: u64 = report.processors.iter().map(|one| one.samples.idle).sum();
    let busy = samples.all.saturating_sub(idle).max(1);
    let count: u64 = samples.crypto.iter().map(|one| one.samples).sum();
    let share = count as f64 / busy as f64;
    if share < CRYPTO_SHARE || count < SAMPLES_MIN {
        return None;
    }
    let names = samples.crypto.iter().take(3);
    let names: Vec<_> =
        names.map(|one| format!("{} {}", one.module, grouped(one.samples))).collect();
    let what = format!(
        "{:.0} % of the samples of busy CPUs hit code that signs or encrypts ({} of {}: {})",
        100.0 * share,
        grouped(count),
        grouped(busy),
        names.join(", ")
    );
    let because =
        "names of modules and functions; other programs than the file server can have called them"
            .to_owned();
    let kind = ProcessorFindingKind::SigningOrEncryption;
    let found = finding(kind, what, (None, Vec::new()), (Confidence::Likely, because));
    Some(found.with_figures([figure("samples", count as f64, ""), figure("share", share, "share")]))
}

#[cfg(test)]
mod tests {
    use smbscope_tables::tables::Trace;

    use super::super::findings;
    use super::*;
    use crate::processors::data::{
        PathPart, Processor, Recorded, SampleCounts, SampledCrypto, SampledGroup,
    };

    /// A second of a flooded CPU, with these samples in deferred work by module.
    fn report(build: u32, groups: &[(&str, u64)]) -> Report {
        let group = |&(module, deferred): &(&str, u64)| SampledGroup {
            module: Some(module.to_owned()),
            function: None,
            interrupt: 0,
            deferred,
        };
        let node = |name: &str, calls| CallNode {
            name: name.to_owned(),
            samples: 500,
            own_samples: 0,
            calls,
        };
        let samples = InSamples {
            deferred: groups.iter().map(|(_, count)| count).sum(),
            groups: groups.iter().map(group).collect(),
            calls: vec![node("tcpip.sys", vec![node("inspect64.sys", Vec::new())])],
            all: 2_000,
            ..InSamples::default()
        };
        let flooded = Processor {
            deferred_ns: Some(900_000_000),
            deferred_share: Some(0.9),
            samples: SampleCounts { all: 2_000, idle: 1_000, ..SampleCounts::default() },
            ..Processor::default()
        };
        Report {
            length_ns: 1_000_000_000,
            processors: vec![flooded],
            recorded: Recorded { deferred: true, ..Recorded::default() },
            in_samples: Some(samples),
            traces: vec![Trace {
                format: format!("Windows event trace log, build {build}"),
                ..Trace::default()
            }],
            ..Report::default()
        }
    }

    fn of(report: &Report, kind: ProcessorFindingKind) -> Option<Finding> {
        findings(report).into_iter().find(|one| one.kind == kind)
    }

    #[test]
    fn a_driver_with_half_of_the_deferred_work_is_found_under_any_caller() {
        let report = report(20_348, &[("inspect64.sys", 500), ("ndis.sys", 500)]);
        let found = of(&report, ProcessorFindingKind::DriverInDeferredWork).unwrap();
        assert!(found.what.starts_with("inspect64.sys has 50 %"), "{}", found.what);
        assert!(found.what.ends_with("most often tcpip.sys calls it"), "{}", found.what);
        assert_eq!(found.cost_ns(), Some(450_000_000));
        assert!(found.remedies[0].action.contains("Get-NetAdapterBinding"));
    }

    #[test]
    fn what_is_known_or_small_is_not_a_driver_to_name() {
        let kind = ProcessorFindingKind::DriverInDeferredWork;
        assert_eq!(of(&report(0, &[("tcpip.sys", 900), ("x.sys", 100)]), kind), None);
        assert_eq!(of(&report(0, &[("x.sys", 40)]), kind), None);
        // The driver of the adapter has the work of the adapter.
        let mut adapter = report(0, &[("nic.sys", 400), ("ndis.sys", 600)]);
        assert!(of(&adapter, kind).is_some());
        if let Some(samples) = &mut adapter.in_samples {
            samples.receive.push(PathPart {
                name: "nic.sys".to_owned(),
                role: Role::Adapter,
                samples: 1_000,
                share: 1.0,
                own_share: 0.4,
            });
        }
        assert_eq!(of(&adapter, kind), None);
    }

    #[test]
    fn remedies_fit_the_version_of_windows_and_the_team() {
        let kind = ProcessorFindingKind::TeamInReceivePath;
        for (build, has_cmdlets) in [(7_601, false), (9_200, true), (20_348, true)] {
            for (team, own) in [("iansw60e.sys", true), ("other.sys", false)] {
                let mut report = report(build, &[("ndis.sys", 500)]);
                if let Some(samples) = &mut report.in_samples {
                    samples.receive.push(PathPart {
                        name: team.to_owned(),
                        role: Role::Team,
                        samples: 1_000,
                        share: 1.0,
                        own_share: 0.2,
                    });
                }
                let found = of(&report, kind).unwrap();
                let says = |words: &str| found.remedies.iter().any(|it| it.action.contains(words));
                assert_eq!(says("Remove-IntelNetTeam"), own, "{build} {team}");
                assert_eq!(says("Switch Embedded Teaming"), has_cmdlets, "{build} {team}");
                assert_eq!(says("no SMB Multichannel"), !has_cmdlets, "{build} {team}");
            }
        }
    }

    #[test]
    fn code_that_signs_counts_of_busy_cpus() {
        let kind = ProcessorFindingKind::SigningOrEncryption;
        let mut report = report(20_348, &[("ndis.sys", 500)]);
        assert_eq!(of(&report, kind), None);
        let signs = |samples| vec![SampledCrypto { module: "cng.sys".to_owned(), samples }];
        let mut with = |count| {
            report.in_samples.iter_mut().for_each(|samples| samples.crypto = signs(count));
            of(&report, kind).map(|found| found.what)
        };
        assert_eq!(with(49), None);
        let what = with(200).unwrap();
        assert!(what.starts_with("20 % of the samples of busy CPUs"), "{what}");
        assert!(what.contains("(200 of 1,000: cng.sys 200)"), "{what}");
    }
}
