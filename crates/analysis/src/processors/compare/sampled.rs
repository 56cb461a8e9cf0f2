//! What samples in interrupts and deferred work hit in each trace: which drivers and functions came, and which went.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::processors::data::Report;
use crate::processors::roles::short;

/// A name is compared if it has at least this many samples, and this share of them, in one trace.
const SAMPLES_MIN: u64 = 20;
const SHARE_MIN: f64 = 0.005;
/// A trace without a name shows that it is gone, or new elsewhere, if it has at least this many samples in total.
const TRACE_MIN: u64 = 200;
/// Most names that are listed.
const NAMES_MAX: usize = 200;

/// A driver, or one of its functions, in all traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedSamples {
    pub module: String,
    /// Null for the module as a whole.
    pub function: Option<String>,
    /// One for each trace; null where the trace has too few samples to say that the name is not there.
    pub sides: Vec<Option<SampledSide>>,
}

/// A driver or function in one trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampledSide {
    pub samples: u64,
    /// Part of the samples in interrupts and deferred work.
    pub share: f64,
    /// CPU seconds per second, estimated from the share and the time of interrupts and deferred work; null if that time was not
    /// recorded.
    pub load: Option<f64>,
}

impl ComparedSamples {
    /// How much the share changed from the first trace to another one, if both are known.
    pub fn change(&self, place: usize) -> Option<f64> {
        let side = |place: usize| self.sides.get(place).copied().flatten();
        Some(side(place)?.share - side(0)?.share)
    }

    fn largest_change(&self) -> f64 {
        (1..self.sides.len())
            .filter_map(|place| self.change(place))
            .map(f64::abs)
            .fold(0.0, f64::max)
    }
}

/// Modules, and functions where the traces have names of them; the largest change first.
pub(super) fn sampled(reports: &[Report]) -> Vec<ComparedSamples> {
    type Name<'a> = (&'a str, Option<&'a str>);
    let mut counts: BTreeMap<Name<'_>, Vec<u64>> = BTreeMap::new();
    for (place, report) in reports.iter().enumerate() {
        for group in report.in_samples.iter().flat_map(|samples| &samples.groups) {
            let Some(module) = group.module.as_deref().map(short) else { continue };
            let names =
                [Some((module, None)), group.function.as_deref().map(|it| (module, Some(it)))];
            for name in names.into_iter().flatten() {
                let sums = counts.entry(name).or_insert_with(|| vec![0; reports.len()]);
                if let Some(sum) = sums.get_mut(place) {
                    *sum += group.deferred + group.interrupt;
                }
            }
        }
    }
    let side = |place: usize, samples: u64| {
        let report = reports.get(place)?;
        let all = report.in_samples.as_ref().map_or(0, |it| it.deferred + it.interrupt);
        if samples == 0 && all < TRACE_MIN {
            return None;
        }
        let share = samples as f64 / all.max(1) as f64;
        let busy: i64 = report.processors.iter().filter_map(|one| one.busy_ns()).sum();
        let load = report.recorded.deferred && report.length_ns > 0;
        let load = load.then(|| share * busy as f64 / report.length_ns as f64);
        Some(SampledSide { samples, share, load })
    };
    let rows = counts.into_iter().map(|((module, function), counts)| ComparedSamples {
        module: module.to_owned(),
        function: function.map(str::to_owned),
        sides: counts
            .into_iter()
            .enumerate()
            .map(|(place, samples)| side(place, samples))
            .collect(),
    });
    let is_large = |row: &ComparedSamples| {
        let mut sides = row.sides.iter().flatten();
        sides.any(|side| side.samples >= SAMPLES_MIN && side.share >= SHARE_MIN)
    };
    let mut rows: Vec<_> = rows.filter(is_large).collect();
    rows.sort_by(|a, b| b.largest_change().total_cmp(&a.largest_change()));
    rows.truncate(NAMES_MAX);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processors::data::{InSamples, SampledGroup};

    fn report(deferred: u64, groups: &[(&str, u64)]) -> Report {
        let groups = groups.iter().map(|&(module, deferred)| SampledGroup {
            module: Some(module.to_owned()),
            function: None,
            interrupt: 0,
            deferred,
        });
        let in_samples =
            Some(InSamples { deferred, groups: groups.collect(), ..InSamples::default() });
        Report { in_samples, ..Report::default() }
    }

    #[test]
    fn a_driver_that_is_gone_is_named() {
        let before = report(1_000, &[("inspect.sys", 500), ("ndis.sys", 500)]);
        let after = report(400, &[("ndis.sys", 400)]);
        let few = report(10, &[("ndis.sys", 10)]);
        let found = sampled(&[before, after, few]);
        let shares: Vec<_> = found
            .iter()
            .map(|row| {
                (
                    row.module.as_str(),
                    row.sides.iter().map(|side| side.map(|it| it.share)).collect::<Vec<_>>(),
                )
            })
            .collect();
        let expected = [
            ("inspect.sys", vec![Some(0.5), Some(0.0), None]),
            ("ndis.sys", vec![Some(0.5), Some(1.0), Some(1.0)]),
        ];
        assert_eq!(shares, expected);
        assert_eq!((found[0].change(1), found[0].change(2)), (Some(-0.5), None));
    }
}
