//! Counters of client and server over time, in bins that follow the operations'.

use hashbrown::HashMap;
use smbscope_tables::run::Counter;

use super::data::CounterRow;
use crate::rows::bins::{Bin, Bins};
use crate::summary::data::Series;
use crate::summary::rounded;

/// Most counters.
const COUNTERS_MAX: usize = 256;

/// Greater values are nonsense.
const VALUE_MAX: f64 = 1e290;

type Key = (String, String, String, Option<String>, String);

/// The counters so far.
#[derive(Clone)]
pub(crate) struct CounterTally {
    series: Vec<(Key, One)>,
    index: HashMap<Key, usize, foldhash::fast::RandomState>,
    bins_max: usize,
    pub(crate) others: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    n: u64,
    sum: f64,
}

#[derive(Clone)]
struct One {
    bins: Bins<Mean>,
    all: Mean,
    measured: Mean,
    min: f64,
    max: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.n += 1;
        self.sum += value;
    }

    fn value(self) -> Option<f64> {
        (self.n > 0).then(|| rounded(self.sum / self.n as f64))
    }
}

impl Bin for Mean {
    fn empty() -> Mean {
        Mean::default()
    }
    fn absorb(&mut self, other: &Mean) {
        self.n += other.n;
        self.sum += other.sum;
    }
}

impl CounterTally {
    pub(crate) fn new(bins_max: usize) -> CounterTally {
        CounterTally { series: Vec::new(), index: HashMap::default(), bins_max, others: 0 }
    }

    /// Adds a sample; `measured` when it was taken in a measured window.
    pub(crate) fn add(&mut self, row: &Counter, measured: bool) {
        // Sums of many stay finite.
        if !row.value.is_finite() || row.value.abs() > VALUE_MAX {
            return;
        }
        let key = (
            row.recording.clone(),
            row.source.clone(),
            row.name.clone(),
            row.instance.clone(),
            row.unit.clone(),
        );
        let place = match self.index.get(&key) {
            Some(&place) => place,
            None if self.series.len() >= COUNTERS_MAX => {
                self.others += 1;
                return;
            }
            None => {
                let one = One {
                    bins: Bins::new(self.bins_max),
                    all: Mean::default(),
                    measured: Mean::default(),
                    min: f64::INFINITY,
                    max: f64::NEG_INFINITY,
                };
                self.index.insert(key.clone(), self.series.len());
                self.series.push((key, one));
                self.series.len() - 1
            }
        };
        if let Some((_, one)) = self.series.get_mut(place) {
            one.bins.at(row.time).add(row.value);
            one.all.add(row.value);
            if measured {
                one.measured.add(row.value);
            }
            (one.min, one.max) = (one.min.min(row.value), one.max.max(row.value));
        }
    }

    /// The counters by source, name and instance.
    pub(crate) fn finish(self, series: &Series) -> Vec<CounterRow> {
        let start = series.bins.first().map_or(0, |bin| bin.start_ns);
        let mut rows: Vec<_> = self
            .series
            .into_iter()
            .map(|((recording, source, name, instance, unit), one)| {
                let bins = one.bins.onto(start, series.bin_ns, series.bins.len());
                CounterRow {
                    recording,
                    source,
                    name,
                    instance,
                    unit,
                    n: one.all.n,
                    mean: one.all.value().unwrap_or(0.0),
                    min: one.min,
                    max: one.max,
                    measured_n: one.measured.n,
                    measured_mean: one.measured.value(),
                    values: bins.into_iter().map(Mean::value).collect(),
                }
            })
            .collect();
        rows.sort_by(|a, b| {
            let order = |row: &CounterRow| {
                (row.source.clone(), row.name.clone(), row.instance.clone(), row.recording.clone())
            };
            order(a).cmp(&order(b))
        });
        rows
    }
}
