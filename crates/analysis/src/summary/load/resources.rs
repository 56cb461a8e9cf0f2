//! What a step used of the server: CPUs and disks, from the counters of its measured window.
//!
//! Owns which counters say so and from when on a resource is the bottleneck. A server's counters
//! come from `/proc` of this machine (source `server`) or from a metrics endpoint.

use std::collections::BTreeMap;

use smbscope_tables::run::Counter;

use super::data::{Bottleneck, StepRow};
use crate::summary::rounded;

/// At this utilization or more a resource is called the bottleneck: requests to a resource that is busy 90 %
/// of the time take ten times as long as to an idle one (M/M/1).
const BOTTLENECK_PERCENT: f64 = 90.0;
/// CPUs or disks of a server that are counted separately.
const INSTANCES_MAX: usize = 4096;
/// The source of counters of the load generator.
const CLIENT: &str = "client";
const PROCESSORS: &str = "cpu_percent";
const DISK: &str = "disk_busy_percent";
/// The counter of the server's processes, in percent of one CPU.
const PROCESSES: &str = "process_cpu_percent";

/// The counter of other programs on the server's machine, in percent of one CPU.
const OTHERS: &str = "other_process_cpu_percent";
/// Programs that are named.
const NAMED_MAX: usize = 3;

/// A mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    n: u64,
    sum: f64,
}

impl Mean {
    fn value(self) -> f64 {
        self.sum / self.n.max(1) as f64
    }
}

/// What a step used, by source, counter and instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Resources {
    means: BTreeMap<(String, &'static str, Option<String>), Mean>,
}

impl Resources {
    /// Whether a sample is of use here.
    pub(super) fn has(row: &Counter) -> bool {
        row.source != CLIENT && name(row).is_some()
    }

    /// Adds a sample of the step's window.
    pub(super) fn add(&mut self, row: &Counter) {
        let Some(name) = name(row).filter(|_| row.value.is_finite()) else { return };
        let key = (row.source.clone(), name, row.instance.clone());
        if self.means.len() >= INSTANCES_MAX && !self.means.contains_key(&key) {
            return;
        }
        let mean = self.means.entry(key).or_default();
        mean.n += 1;
        mean.sum += row.value.max(0.0);
    }

    /// The highest mean of a counter, with its instance; of all CPUs together or of single ones.
    fn most(&self, name: &str, single: bool) -> Option<(Option<&str>, f64)> {
        let of = self
            .means
            .iter()
            .filter(|((_, known, instance), _)| *known == name && instance.is_some() == single);
        of.map(|((_, _, instance), mean)| (instance.as_deref(), mean.value()))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Other programs that used at least a tenth of a CPU, those that used most first.
    fn others(&self) -> Vec<String> {
        let of = self.means.iter().filter(|((_, name, _), _)| *name == OTHERS);
        let mut found: Vec<_> = of
            .filter_map(|((.., instance), mean)| Some((mean.value(), instance.as_deref()?)))
            .filter(|(percent, _)| *percent >= 10.0)
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.into_iter().take(NAMED_MAX).map(|(_, name)| name.to_owned()).collect()
    }

    /// How many CPUs the server has.
    fn processors(&self) -> usize {
        let one = |(_, name, instance): &&(String, &str, Option<String>)| {
            *name == PROCESSORS && instance.is_some()
        };
        self.means.keys().filter(one).count().max(1)
    }

    /// Fills in the step's use of the server, and its bottleneck.
    pub(super) fn describe(&self, row: &mut StepRow) {
        let cpu = self.most(PROCESSORS, false);
        let one_cpu = self.most(PROCESSORS, true);
        let disk = self.most(DISK, true);
        let share = |(_, percent): (Option<&str>, f64)| rounded(percent / 100.0);
        row.server_cpu_share = cpu.map(share);
        row.server_disk_share = disk.map(share);
        let full = |found: Option<(Option<&str>, f64)>| {
            let (instance, percent) = found?;
            (percent >= BOTTLENECK_PERCENT).then(|| instance.unwrap_or_default().to_owned())
        };
        let others = match (cpu, self.most(PROCESSES, true)) {
            (Some((_, percent)), Some((_, of_server))) => {
                of_server * 2.0 < percent * self.processors() as f64
            }
            _ => false,
        };
        // A CPU that another program keeps busy is not the server's.
        let idle_server = self.most(PROCESSES, true).is_some_and(|(_, percent)| percent < 50.0);
        row.server_cpu_others = self.others();
        let (bottleneck, instance) = if row.limited_by_client {
            (Some(Bottleneck::LoadGenerator), None)
        } else if full(cpu).is_some() && others {
            let names = row.server_cpu_others.join(", ");
            (Some(Bottleneck::OtherProcesses), Some(names).filter(|names| !names.is_empty()))
        } else if full(cpu).is_some() {
            (Some(Bottleneck::Processors), None)
        } else if let Some(disk) = full(disk) {
            (Some(Bottleneck::Disk), Some(disk))
        } else if let Some(processor) = full(one_cpu).filter(|_| !idle_server) {
            (Some(Bottleneck::OneProcessor), Some(processor))
        } else if row.overloaded && cpu.is_some() {
            (Some(Bottleneck::None), None)
        } else {
            (None, None)
        };
        row.bottleneck = bottleneck;
        row.bottleneck_instance = instance;
    }
}

/// The counter's name, if it is of use here.
fn name(row: &Counter) -> Option<&'static str> {
    [PROCESSORS, DISK, PROCESSES, OTHERS].into_iter().find(|name| row.name == *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(source: &str, name: &str, instance: Option<&str>, value: f64) -> Counter {
        Counter {
            source: source.into(),
            name: name.into(),
            instance: instance.map(Into::into),
            value,
            ..Counter::default()
        }
    }

    fn described(samples: &[Counter], overloaded: bool) -> StepRow {
        let mut resources = Resources::default();
        samples.iter().filter(|row| Resources::has(row)).for_each(|row| resources.add(row));
        let mut row = StepRow { overloaded, ..StepRow::default() };
        resources.describe(&mut row);
        row
    }

    #[test]
    fn the_busiest_resource_is_the_bottleneck() {
        let cpu = |value| sample("server", PROCESSORS, None, value);
        let row =
            described(&[cpu(99.0), cpu(97.0), sample("client", PROCESSORS, None, 10.0)], true);
        assert_eq!(row.server_cpu_share, Some(0.98));
        assert_eq!(row.bottleneck, Some(Bottleneck::Processors));
        let disks =
            [cpu(20.0), sample("m", DISK, Some("sda"), 5.0), sample("m", DISK, Some("sdb"), 95.0)];
        let row = described(&disks, false);
        assert_eq!((row.server_disk_share, row.bottleneck), (Some(0.95), Some(Bottleneck::Disk)));
        assert_eq!(row.bottleneck_instance.as_deref(), Some("sdb"));
        let one = [cpu(25.0), sample("server", PROCESSORS, Some("cpu3"), 100.0)];
        let row = described(&one, true);
        assert_eq!(row.bottleneck, Some(Bottleneck::OneProcessor));
        assert_eq!(row.bottleneck_instance.as_deref(), Some("cpu3"));
        let shared = [
            cpu(100.0),
            sample("server", PROCESSORS, Some("cpu0"), 100.0),
            sample("server", PROCESSORS, Some("cpu1"), 100.0),
            sample("server", PROCESSES, Some("smbd"), 90.0),
            sample("server", OTHERS, Some("sh"), 3.0),
            sample("server", OTHERS, Some("cc"), 20.0),
            sample("server", OTHERS, Some("rustc"), 80.0),
        ];
        let row = described(&shared, true);
        assert_eq!(row.bottleneck, Some(Bottleneck::OtherProcesses));
        assert_eq!(row.bottleneck_instance.as_deref(), Some("rustc, cc"));
        let other =
            [one[0].clone(), one[1].clone(), sample("server", PROCESSES, Some("smbd"), 9.0)];
        assert_eq!(described(&other, false).bottleneck, None);
        let idle = [cpu(25.0)];
        assert_eq!(described(&idle, true).bottleneck, Some(Bottleneck::None));
        assert_eq!(described(&idle, false).bottleneck, None);
        // Nothing is known of a server without counters.
        assert_eq!(described(&[], true).bottleneck, None);
        assert_eq!(described(&[cpu(f64::NAN)], true).server_cpu_share, None);
    }
}
