//! What the counters of the recording say about a slow server: whether its CPUs or disks were
//! busy while it was slow (utilization law: a resource that is busy all the time is the bottleneck).

use std::collections::{BTreeMap, BTreeSet};

use smbscope_findings::{Figure, Remedy};
use smbscope_tables::run::Counter;

use super::data::Finding;
use super::worth::OF_UNKNOWN_CAUSE;

/// Most samples that are kept.
const SAMPLES_MAX: usize = 500_000;
/// CPUs that are counted.
const CPUS_MAX: usize = 4_096;
/// Other programs that are named.
const NAMED_MAX: usize = 3;
/// At this utilization or more a resource is full, percent: requests to a resource that is busy 90 % of the
/// time take ten times as long as to an idle one (M/M/1).
const FULL_PERCENT: f64 = 90.0;
/// Below this utilization it is not the bottleneck, percent.
const IDLE_PERCENT: f64 = 50.0;
/// Fewest samples within a finding's time.
const SAMPLES_MIN: usize = 3;
/// The share of the samples that are below the value that counts: busy times count, and pauses do not.
const QUANTILE: f64 = 0.9;

const PROCESSORS_FULL: Remedy = Remedy::fixed(
    "server",
    "its CPUs are full: give it more or faster ones, or move users to another server; perf top (Linux) or \
             Task Manager shows what uses them",
);
const DISKS_FULL: Remedy = Remedy::fixed(
    "server",
    "a disk is busy all the time: faster storage, or more memory for its cache; iostat -x 1 or Performance \
             Monitor (PhysicalDisk) shows which",
);
const OTHERS_FULL: Remedy = Remedy::fixed(
    "server",
    "other programs use its CPUs: stop them or move them to another machine, then record again; until then neither \
             faster storage nor other settings of the server help",
);
const NOTHING_FULL: Remedy = Remedy::fixed(
    "server",
    "neither its CPUs nor its disks are busy: look for what it waits for (locks, a remote backend, a name \
             service); smbscope record shows in which call",
);

/// What a sample is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resource {
    Processors,
    /// The busiest of single CPUs or disks.
    Processor,
    Disk,
    /// The server's own processes, percent of one CPU.
    Served,
}

/// Samples of the server's CPUs and disks, and of the programs on it.
#[derive(Default)]
pub(super) struct Counters {
    samples: Vec<(i64, Resource, f64)>,
    /// By CPU.
    cpus: BTreeSet<String>,
    /// Of programs other than the server, percent of one CPU.
    others: Vec<(i64, String, f64)>,
}

impl Counters {
    pub(super) fn add(&mut self, row: &Counter) {
        let resource = match (row.name.as_str(), &row.instance) {
            ("cpu_percent", None) => Resource::Processors,
            ("cpu_percent", Some(cpu)) => {
                if row.source != "client" && self.cpus.len() < CPUS_MAX {
                    self.cpus.insert(cpu.clone());
                }
                Resource::Processor
            }
            ("process_cpu_percent", Some(_)) => Resource::Served,
            ("other_process_cpu_percent", Some(name)) => {
                if row.value.is_finite() && self.others.len() < SAMPLES_MAX {
                    self.others.push((row.time, name.clone(), row.value));
                }
                return;
            }
            ("disk_busy_percent", _) => Resource::Disk,
            _ => return,
        };
        if row.source != "client" && row.value.is_finite() && self.samples.len() < SAMPLES_MAX {
            let most = if resource == Resource::Served { f64::MAX } else { 100.0 };
            self.samples.push((row.time, resource, row.value.clamp(0.0, most)));
        }
    }

    /// The utilization that a resource reaches in a tenth of the samples of that time, percent. Of single
    /// CPUs and disks, it is that of the busiest at each moment.
    fn utilization(&self, resource: Resource, (first, last): (i64, i64)) -> Option<f64> {
        let samples = self
            .samples
            .iter()
            .filter(|(time, of, _)| *of == resource && (first..=last).contains(time));
        let mut samples: Vec<_> = samples.map(|(time, _, value)| (*time, *value)).collect();
        samples.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)));
        samples.dedup_by_key(|(time, _)| *time);
        let mut values: Vec<_> = samples.into_iter().map(|(_, value)| value).collect();
        values.sort_by(f64::total_cmp);
        (values.len() >= SAMPLES_MIN)
            .then(|| values.get((QUANTILE * values.len() as f64) as usize).copied())?
    }

    /// Mean of samples, percent of one CPU.
    fn mean(samples: impl Iterator<Item = f64>) -> Option<f64> {
        let (n, sum) =
            samples.fold((0_u32, 0.0), |(n, sum), value| (n.saturating_add(1), sum + value));
        (n as usize >= SAMPLES_MIN).then(|| sum / f64::from(n))
    }

    /// Programs that used most of the busy CPUs in that time, if that was not the server.
    fn others(&self, processors_percent: f64, (first, last): (i64, i64)) -> Option<Vec<String>> {
        let within = |time: &i64| (first..=last).contains(time);
        let served =
            self.samples.iter().filter(|(time, of, _)| *of == Resource::Served && within(time));
        let served = Self::mean(served.map(|(.., value)| *value))?;
        if served * 2.0 > processors_percent * self.cpus.len().max(1) as f64 {
            return None;
        }
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (_, name, percent) in self.others.iter().filter(|(time, ..)| within(time)) {
            *sums.entry(name).or_default() += percent;
        }
        let mut names: Vec<_> = sums.into_iter().collect();
        names.sort_by(|one, other| other.1.total_cmp(&one.1));
        Some(names.into_iter().take(NAMED_MAX).map(|(name, _)| name.to_owned()).collect())
    }

    /// Adds what they say to a finding about the server.
    pub(super) fn judge(&self, finding: &mut Finding) {
        let is_of_server = OF_UNKNOWN_CAUSE.contains(&finding.kind);
        let (true, Some(first), Some(last)) = (is_of_server, finding.first_ns, finding.last_ns)
        else {
            return;
        };
        let of = |resource| self.utilization(resource, (first, last));
        let processors = of(Resource::Processors).or(of(Resource::Processor));
        let single = of(Resource::Processor);
        let disk = of(Resource::Disk);
        let Some(processors) = processors else { return };
        for (name, percent, phrase) in [
            ("processors_busy", Some(processors), "CPUs {} busy"),
            ("busiest_processor", single, "the busiest CPU {} busy"),
            ("busiest_disk", disk, "the busiest disk {} busy"),
        ] {
            let figure = percent.map(|one| Figure::new(name, one / 100.0, "share", phrase));
            finding.figures.extend(figure);
        }
        let is_full = |percent: Option<f64>| percent.is_some_and(|percent| percent >= FULL_PERCENT);
        let others = self.others(processors, (first, last)).filter(|_| processors >= FULL_PERCENT);
        if let Some(names) = others {
            let names =
                if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
            finding.because = format!(
                "its CPUs were {processors:.0} % busy at that time, mostly with other programs{names}; {}",
                finding.because
            );
            // What else could be changed would not help while they run.
            finding.remedies = vec![OTHERS_FULL];
            return;
        }
        let (words, remedy) = if processors >= FULL_PERCENT {
            (format!("its CPUs were {processors:.0} % busy"), PROCESSORS_FULL)
        } else if is_full(disk) {
            (format!("a disk was {:.0} % busy", disk.unwrap_or(0.0)), DISKS_FULL)
        } else if is_full(single) {
            let words = format!(
                "one CPU was {:.0} % busy, all together {processors:.0} %",
                single.unwrap_or(0.0)
            );
            (words, PROCESSORS_FULL)
        } else if processors < IDLE_PERCENT && disk.is_some_and(|percent| percent < IDLE_PERCENT) {
            let words = format!(
                "its CPUs were {processors:.0} % and its disks {:.0} % busy",
                disk.unwrap_or(0.0)
            );
            (words, NOTHING_FULL)
        } else {
            return;
        };
        finding.because = format!("{words} at that time; {}", finding.because);
        finding.remedies.insert(0, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time: i64, name: &str, value: f64) -> Counter {
        Counter {
            time,
            source: "server".into(),
            name: name.into(),
            unit: "percent".into(),
            value,
            ..Counter::default()
        }
    }

    #[test]
    fn only_samples_of_the_time_count() {
        let mut counters = Counters::default();
        for time in 0..10 {
            counters.add(&sample(time, "cpu_percent", 99.0));
            counters.add(&sample(100 + time, "cpu_percent", 5.0));
        }
        assert_eq!(counters.utilization(Resource::Processors, (0, 50)), Some(99.0));
        assert_eq!(counters.utilization(Resource::Processors, (100, 150)), Some(5.0));
        assert_eq!(counters.utilization(Resource::Processors, (0, 1)), None, "two samples");
        assert_eq!(counters.utilization(Resource::Disk, (0, 200)), None);
    }

    #[test]
    fn programs_that_take_the_cpus_from_the_server_are_named() {
        let of = |time, name: &str, instance: &str, value| Counter {
            instance: Some(instance.into()),
            ..sample(time, name, value)
        };
        let mut counters = Counters::default();
        for time in 0..10 {
            for cpu in ["cpu0", "cpu1"] {
                counters.add(&of(time, "cpu_percent", cpu, 98.0));
            }
            counters.add(&of(time, "process_cpu_percent", "smbd", 40.0));
            counters.add(&of(time, "other_process_cpu_percent", "sh", 5.0));
            counters.add(&of(time, "other_process_cpu_percent", "rustc", 140.0));
        }
        let names = counters.others(98.0, (0, 9)).unwrap();
        assert_eq!(names, ["rustc", "sh"]);
        // The server uses more than half of what is busy, or nothing is known of it.
        assert_eq!(counters.others(35.0, (0, 9)), None);
        assert_eq!(counters.others(98.0, (100, 109)), None);
    }
}
