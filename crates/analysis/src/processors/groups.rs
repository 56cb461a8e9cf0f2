//! Durations by kind and name.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::data::{DeviceCpu, InterruptGroup, Limits, Ranked};
use super::timeline::Bins;
use super::{Class, Row};
use crate::stats::latency::{Grain, Latency, Sample};

/// Most different kinds and names.
const GROUPS_MAX: usize = 4096;
/// Most intervals of the trace whose times are compared.
const INTERVALS_MAX: usize = 40;

#[derive(Debug)]
struct Group {
    number: u32,
    class: Class,
    count: u64,
    exclusive_ns: i64,
    duration: Latency,
    over_limit: u64,
    over_limit_ns: i64,
    delay: Latency,
    work: Option<u64>,
    cpus: HashMap<u64, (i64, u64)>,
}

/// All groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    by_name: HashMap<(String, Option<String>), Group>,
    bins: Bins<u32>,
    discarded: u64,
}

impl Groups {
    pub(super) fn add(&mut self, row: &Row<'_>, limits: Limits) {
        let key = (row.kind.to_owned(), row.name.map(str::to_owned));
        if self.by_name.len() >= GROUPS_MAX && !self.by_name.contains_key(&key) {
            self.discarded += 1;
            return;
        }
        let number = self.by_name.len() as u32;
        let group = self.by_name.entry(key).or_insert_with(|| Group {
            number,
            class: row.class,
            count: 0,
            exclusive_ns: 0,
            duration: Latency::new(Grain::Coarse),
            over_limit: 0,
            over_limit_ns: 0,
            delay: Latency::new(Grain::Coarse),
            work: None,
            cpus: HashMap::new(),
        });
        let exclusive = row.exclusive_ns.unwrap_or(0);
        group.count += 1;
        self.bins.add(group.number, row);
        group.exclusive_ns = group.exclusive_ns.saturating_add(exclusive);
        let cpu = group.cpus.entry(row.cpu).or_default();
        *cpu = (cpu.0.saturating_add(exclusive), cpu.1 + 1);
        if let Some(duration) = row.duration_ns {
            group.duration.record(&Sample::new(duration));
            if duration > limit(row.class, limits) {
                group.over_limit += 1;
                group.over_limit_ns = group.over_limit_ns.saturating_add(duration);
            }
        }
        if let Some(delay) = row.delay_ns {
            group.delay.record(&Sample::new(delay));
        }
        if let Some(work) = row.work {
            group.work = Some(group.work.unwrap_or(0).saturating_add(work));
        }
    }

    /// The trace is from one time to another: a name that begins late has intervals without it before.
    pub(super) fn cover(&mut self, from: i64, to: i64) {
        self.bins.cover(from, to);
    }

    /// The groups, the most time first, and how many rows are in none.
    pub(super) fn finish(self, possible_ns: i64, limits: Limits) -> (Vec<InterruptGroup>, u64) {
        let (bin_ns, mut lanes) = self
            .bins
            .finish(INTERVALS_MAX)
            .map_or((0, BTreeMap::new()), |bins| (bins.bin_ns, bins.lanes));
        let mut groups: Vec<_> = self
            .by_name
            .into_iter()
            .map(|((kind, name), group)| {
                let mut cpus: Vec<_> = group
                    .cpus
                    .into_iter()
                    .map(|(cpu, (exclusive_ns, count))| DeviceCpu { cpu, count, exclusive_ns })
                    .collect();
                cpus.sort_unstable_by_key(|one| {
                    (std::cmp::Reverse((one.exclusive_ns, one.count)), one.cpu)
                });
                InterruptGroup {
                    kind,
                    name,
                    count: group.count,
                    exclusive_ns: group.exclusive_ns,
                    share: share(group.exclusive_ns, possible_ns),
                    duration: group.duration.distribution(true),
                    limit_ns: limit(group.class, limits),
                    over_limit: group.over_limit,
                    over_limit_ns: group.over_limit_ns,
                    longest: longest(&group.duration),
                    delay: group.delay.distribution(false),
                    work: group.work,
                    interval_ns: bin_ns,
                    intervals: lanes.remove(&group.number).unwrap_or_default(),
                    cpus,
                }
            })
            .collect();
        groups.sort_by(|a, b| {
            let key = |group: &InterruptGroup| (group.exclusive_ns, group.count);
            key(b).cmp(&key(a)).then_with(|| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)))
        });
        (groups, self.discarded)
    }
}

/// Places in the order of durations, at equal distances on a logarithmic scale of their number.
fn longest(durations: &Latency) -> Vec<Ranked> {
    /// Places for each factor of ten.
    const PLACES: f64 = 8.0;
    let mut ranked = Vec::new();
    let (mut count, mut next) = (0_u64, 1.0_f64);
    let values = durations.values();
    for (place, &(duration_ns, n)) in values.iter().rev().enumerate() {
        // Several of one duration are a line, which begins at the first of them.
        if n > 1 && (ranked.is_empty() || (count + u64::from(n)) as f64 >= next) {
            ranked.push(Ranked { count: count + 1, duration_ns });
        }
        count += u64::from(n);
        if count as f64 >= next || place + 1 == values.len() {
            ranked.push(Ranked { count, duration_ns });
            while next <= count as f64 {
                next *= f64::powf(10.0, 1.0 / PLACES);
            }
        }
    }
    ranked
}

fn limit(class: Class, limits: Limits) -> i64 {
    match class {
        Class::Interrupt => limits.interrupt_ns,
        Class::Deferred => limits.deferred_ns,
    }
}

/// A part of a whole; `None` if that is nothing.
pub(super) fn share(part_ns: i64, whole_ns: i64) -> Option<f64> {
    (whole_ns > 0).then(|| part_ns as f64 / whole_ns as f64)
}
