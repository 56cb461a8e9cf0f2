//! What counters of client and server say about a transfer: CPU time, idle states, RDMA.
//!
//! A counter's value is the mean since the sample before, so its integral over a time is the sum of
//! value times time. Names of counters: docs/method/counters.md.

use std::collections::{BTreeMap, BTreeSet};

use smbscope_tables::tables::Counter;

use super::data::{CpuCost, PowerState};
use super::rounded;

/// Series that are kept.
const SERIES_MAX: usize = 1_024;
/// Samples of each series.
const SAMPLES_MAX: usize = 100_000;
/// Fewest samples of idle states that say something.
const SAMPLES_MIN: usize = 2;

const IDLE: &str = "cpu_idle_deep_percent";
const HERTZ: &str = "cpu_frequency_hertz";
const PROCESS: &str = "process_cpu_percent";
const PROCESS_SYSTEM: &str = "process_cpu_system_percent";
/// Counters of the whole machine, per cent of all CPUs.
const MACHINE: [&str; 4] =
    ["cpu_percent", "cpu_user_percent", "cpu_system_percent", "cpu_softirq_percent"];
const RDMA: [&str; 2] = ["rdma_receive_bytes_per_second", "rdma_transmit_bytes_per_second"];
/// Less than this is management of the fabric, not data, bytes/s.
const RDMA_MIN: f64 = 1e6;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SeriesKey {
    recording: String,
    source: String,
    name: &'static str,
    instance: Option<String>,
}

/// Counters of all recordings.
#[derive(Default)]
pub(super) struct Machines {
    series: BTreeMap<SeriesKey, Vec<(i64, f64)>>,
    /// CPUs of recording and source.
    cpus: BTreeMap<(String, String), u64>,
    /// Recordings with channels, and those with counters only of the same time: a capture, and a counter log.
    concurrent: BTreeMap<String, BTreeSet<String>>,
}

fn known(name: &str) -> Option<&'static str> {
    let names = [IDLE, HERTZ, PROCESS, PROCESS_SYSTEM];
    names.into_iter().chain(MACHINE).chain(RDMA).find(|known| *known == name)
}

impl Machines {
    pub(super) fn add(&mut self, row: &Counter) {
        let Some(name) = known(&row.name).filter(|_| row.value.is_finite()) else { return };
        if let Some(cpu) = row.instance.as_ref().filter(|_| MACHINE.contains(&name)) {
            let number = cpu.strip_prefix("cpu").and_then(|text| text.parse::<u64>().ok());
            if let Some(number) = number.filter(|_| self.cpus.len() < SERIES_MAX) {
                let most =
                    self.cpus.entry((row.recording.clone(), row.source.clone())).or_default();
                *most = (*most).max(number.saturating_add(1));
            }
            return;
        }
        let key = SeriesKey {
            recording: row.recording.clone(),
            source: row.source.clone(),
            name,
            instance: row.instance.clone(),
        };
        if self.series.len() >= SERIES_MAX && !self.series.contains_key(&key) {
            return;
        }
        let samples = self.series.entry(key).or_default();
        if samples.len() < SAMPLES_MAX {
            samples.push((row.time, row.value));
        }
    }

    /// Uses counters of recordings that have no channels for those of the same time that do, given with first and last
    /// time.
    pub(super) fn join(&mut self, spans: &BTreeMap<String, (i64, i64)>) {
        for (key, samples) in &self.series {
            let (Some((first, _)), Some((last, _))) = (samples.first(), samples.last()) else {
                continue;
            };
            if spans.contains_key(&key.recording) {
                continue;
            }
            for (recording, (begin, end)) in spans {
                if first <= end && begin <= last {
                    let concurrent = self.concurrent.entry(recording.clone()).or_default();
                    concurrent.insert(key.recording.clone());
                }
            }
        }
    }

    /// Series of a recording with one of these names.
    fn of<'a>(
        &'a self,
        recording: &'a str,
        names: &'a [&str],
    ) -> impl Iterator<Item = (&'a SeriesKey, &'a [(i64, f64)])> {
        let concurrent = self.concurrent.get(recording);
        let is_its = move |other: &str| {
            other == recording || concurrent.is_some_and(|concurrent| concurrent.contains(other))
        };
        let is_of = move |key: &&SeriesKey| names.contains(&key.name) && is_its(&key.recording);
        let all = self.series.iter().map(|(key, samples)| (key, samples.as_slice()));
        all.filter(move |(key, _)| is_of(key))
    }

    /// Idle states before and at the plateau, of the machine that was idle deepest; `ends` are
    /// beginning, plateau, and last byte.
    pub(super) fn power(
        &self,
        recording: &str,
        ends: (i64, Option<i64>, Option<i64>),
    ) -> Option<PowerState> {
        let (start, reached, last) = ends;
        let (reached, last) = (reached?, last?);
        let of = |(key, samples): (&SeriesKey, &[(i64, f64)])| {
            let before = mean(samples, start, reached)?;
            let hertz = |from: i64, to: i64| {
                let mut all = self.of(recording, &[HERTZ]);
                let found = all.find(|(other, _)| other.source == key.source);
                found.and_then(|(_, samples)| mean(samples, from, to)).map(|(mean, _)| mean)
            };
            (before.1 >= SAMPLES_MIN).then(|| PowerState {
                source: key.source.clone(),
                deep_idle_before: rounded(before.0 / 100.0),
                deep_idle_plateau: mean(samples, reached, last).map(|(at, _)| rounded(at / 100.0)),
                hertz_before: hertz(start, reached),
                hertz_plateau: hertz(reached, last),
                samples: before.1 as u64,
            })
        };
        let states = self.of(recording, &[IDLE]).filter_map(of);
        states.max_by(|a, b| a.deep_idle_before.total_cmp(&b.deep_idle_before))
    }

    /// CPU time for each GB that was moved between two times.
    pub(super) fn cost(
        &self,
        recording: &str,
        (from, to): (i64, Option<i64>),
        bytes: u64,
    ) -> Vec<CpuCost> {
        let (Some(to), true) = (to, bytes > 0) else { return Vec::new() };
        let gb = bytes as f64 / 1e9;
        let seconds = |samples: &[(i64, f64)]| integral(samples, from, to).0 / 100.0;
        let mut costs = Vec::new();
        for (key, samples) in self.of(recording, &[PROCESS]) {
            let system = self.series.get(&SeriesKey { name: PROCESS_SYSTEM, ..key.clone() });
            let all = seconds(samples) / gb;
            let system = system.map(|samples| seconds(samples) / gb);
            costs.push(CpuCost {
                source: key.source.clone(),
                process: key.instance.clone(),
                user_seconds_per_gb: system.map(|system| rounded((all - system).max(0.0))),
                system_seconds_per_gb: system.map(rounded),
                softirq_seconds_per_gb: None,
                seconds_per_gb: rounded(all),
            });
        }
        for (key, samples) in self.of(recording, &[MACHINE[0]]) {
            let cpus = self.cpus.get(&(key.recording.clone(), key.source.clone()));
            let Some(&cpus) = cpus else { continue };
            let part = |name: &'static str| {
                let samples = self.series.get(&SeriesKey { name, ..key.clone() })?;
                Some(rounded(seconds(samples) * cpus as f64 / gb))
            };
            costs.push(CpuCost {
                source: key.source.clone(),
                process: None,
                user_seconds_per_gb: part(MACHINE[1]),
                system_seconds_per_gb: part(MACHINE[2]),
                softirq_seconds_per_gb: part(MACHINE[3]),
                seconds_per_gb: rounded(seconds(samples) * cpus as f64 / gb),
            });
        }
        costs
    }

    /// Bytes that RDMA moved. Of client and server those of the one with more, because both count
    /// the same bytes.
    pub(super) fn rdma_bytes(
        &self,
        recording: &str,
        (start, last): (i64, Option<i64>),
    ) -> Option<f64> {
        let last = last?;
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (key, samples) in self.of(recording, &RDMA) {
            *sums.entry(&key.source).or_default() += integral(samples, start, last).0;
        }
        sums.into_values().reduce(f64::max).map(rounded)
    }

    /// When RDMA moved something for the last time.
    pub(super) fn rdma_end(&self, recording: &str) -> Option<i64> {
        let last = |samples: &[(i64, f64)]| {
            samples.iter().rev().find(|(_, rate)| *rate >= RDMA_MIN).map(|(at, _)| *at)
        };
        self.of(recording, &RDMA).filter_map(|(_, samples)| last(samples)).max()
    }

    /// Since when RDMA moved more than TCP, whose rate at a time is `tcp`, in one direction of one port.
    pub(super) fn rdma_took_over(&self, recording: &str, tcp: impl Fn(i64) -> f64) -> Option<i64> {
        let first = |samples: &[(i64, f64)]| {
            let place = samples
                .iter()
                .position(|(at, rate)| *rate >= RDMA_MIN && *rate > tcp(at.saturating_sub(1)))?;
            // A sample is the mean since the one before.
            let from = place.checked_sub(1).and_then(|place| samples.get(place));
            from.or_else(|| samples.get(place)).map(|(at, _)| *at)
        };
        self.of(recording, &RDMA).filter_map(|(_, samples)| first(samples)).min()
    }

    /// The same as a rate in bins; empty if there is none.
    pub(super) fn rdma_rates(
        &self,
        recording: &str,
        start: i64,
        bin_ns: i64,
        places: usize,
    ) -> Vec<f64> {
        let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (key, samples) in self.of(recording, &RDMA) {
            let sums = rates.entry(&key.source).or_insert_with(|| vec![0.0; places]);
            let mut before = None;
            for (at, value) in samples {
                let place = |time: i64| (time.saturating_sub(start) / bin_ns).max(0) as usize;
                // Without a sample before, it counts for a second.
                let from = before.unwrap_or(at.saturating_sub(1_000_000_000));
                let (first, last) = (place(from.max(start)), place(*at));
                let range = first.min(places)..last.min(places);
                sums.get_mut(range).unwrap_or_default().iter_mut().for_each(|sum| *sum += value);
                before = Some(*at);
            }
        }
        let whole = |rates: &Vec<f64>| rates.iter().sum::<f64>();
        let most = rates.into_values().max_by(|a, b| whole(a).total_cmp(&whole(b)));
        most.filter(|rates| whole(rates) > 0.0).unwrap_or_default()
    }
}

/// Sum of value times seconds between two times, the seconds, and the samples.
fn integral(samples: &[(i64, f64)], from: i64, to: i64) -> (f64, f64, usize) {
    let mut sum = (0.0, 0.0, 0);
    let mut before = None;
    for &(at, value) in samples {
        // Without a sample before, it counts for a second, the usual distance.
        let begin = before.unwrap_or(at.saturating_sub(1_000_000_000)).max(from);
        before = Some(at);
        let seconds = at.min(to).saturating_sub(begin) as f64 / 1e9;
        if seconds > 0.0 {
            sum = (sum.0 + value * seconds, sum.1 + seconds, sum.2 + 1);
        }
    }
    sum
}

/// The mean between two times, and its samples.
fn mean(samples: &[(i64, f64)], from: i64, to: i64) -> Option<(f64, usize)> {
    let (sum, seconds, n) = integral(samples, from, to);
    (seconds > 0.0).then(|| (sum / seconds, n))
}
