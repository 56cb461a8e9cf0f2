//! What the counters of the recording say about a slow server: whether its CPUs or disks were
//! busy while it was slow (utilization law: a resource that is busy all the time is the bottleneck).

use smbscope_findings::{Figure, Remedy};
use smbscope_tables::run::Counter;

use super::data::Finding;
use super::worth::OF_UNKNOWN_CAUSE;

/// Most samples that are kept.
const SAMPLES_MAX: usize = 500_000;
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
}

/// Samples of the server's CPUs and disks.
#[derive(Default)]
pub(super) struct Counters(Vec<(i64, Resource, f64)>);

impl Counters {
    pub(super) fn add(&mut self, row: &Counter) {
        let resource = match (row.name.as_str(), &row.instance) {
            ("cpu_percent", None) => Resource::Processors,
            ("cpu_percent", Some(_)) => Resource::Processor,
            ("disk_busy_percent", _) => Resource::Disk,
            _ => return,
        };
        if row.source != "client" && row.value.is_finite() && self.0.len() < SAMPLES_MAX {
            self.0.push((row.time, resource, row.value.clamp(0.0, 100.0)));
        }
    }

    /// The utilization that a resource reaches in a tenth of the samples of that time, percent. Of single
    /// CPUs and disks, it is that of the busiest at each moment.
    fn utilization(&self, resource: Resource, (first, last): (i64, i64)) -> Option<f64> {
        let samples =
            self.0.iter().filter(|(time, of, _)| *of == resource && (first..=last).contains(time));
        let mut samples: Vec<_> = samples.map(|(time, _, value)| (*time, *value)).collect();
        samples.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)));
        samples.dedup_by_key(|(time, _)| *time);
        let mut values: Vec<_> = samples.into_iter().map(|(_, value)| value).collect();
        values.sort_by(f64::total_cmp);
        (values.len() >= SAMPLES_MIN)
            .then(|| values.get((QUANTILE * values.len() as f64) as usize).copied())?
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
}
