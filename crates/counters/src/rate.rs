//! Converts the readings of a source (levels and totals that only grow) to the values of a row (levels,
//! rates, means since the previous sample).
//!
//! A total that became smaller was reset (a restarted service, a re-created interface): the interval
//! has no row, the reset is counted, and the next interval is right again. A total that was missing for
//! a while gives its mean over that time.

use std::borrow::Cow;
use std::collections::HashMap;

use smbscope_tables::run::Counter;

/// Most readings of one sample; further ones are left out and counted.
pub const READINGS_MAX: usize = 20_000;

/// How a reading becomes a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// The reading is the value.
    Level,
    /// A total: the value is its growth per second.
    Rate,
    /// A total relative to another one: the value is the growth of the former divided by that of the
    /// latter; no row if the latter did not grow.
    Mean {
        /// The other total.
        per: f64,
    },
}

/// One counter as a source reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Name of the row.
    pub name: Cow<'static, str>,
    /// The instance, if there are several.
    pub instance: Option<String>,
    /// Unit of the row.
    pub unit: &'static str,
    /// The reading.
    pub value: f64,
    /// How it becomes a value.
    pub kind: Kind,
    /// Whether it has no rows until it changes: for sources with thousands of counters that mostly stay
    /// constant.
    pub sparse: bool,
}

impl Reading {
    /// A level.
    pub fn level(name: &'static str, unit: &'static str, value: f64) -> Reading {
        Reading {
            name: Cow::Borrowed(name),
            instance: None,
            unit,
            value,
            kind: Kind::Level,
            sparse: false,
        }
    }

    /// A total; its growth per second counts.
    pub fn rate(name: &'static str, unit: &'static str, total: f64) -> Reading {
        Reading { kind: Kind::Rate, ..Reading::level(name, unit, total) }
    }

    /// A total; its growth divided by that of `per` counts.
    pub fn mean(name: &'static str, unit: &'static str, total: f64, per: f64) -> Reading {
        Reading { kind: Kind::Mean { per }, ..Reading::level(name, unit, total) }
    }

    /// Sets the instance.
    pub fn of_instance(self, instance: &str) -> Reading {
        Reading { instance: Some(instance.to_owned()), ..self }
    }
}

#[derive(Clone, Copy, Debug)]
struct Before {
    time_ns: i64,
    value: f64,
    per: f64,
    moved: bool,
}

/// The previous readings of a source.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    before: HashMap<(Cow<'static, str>, Option<String>), Before>,
    /// Totals that became smaller.
    pub resets: u64,
    /// Readings beyond the limit.
    pub dropped: u64,
}

impl Rates {
    /// Rows of one sample, taken at `time_ns` on the run's clock.
    pub fn rows(
        &mut self,
        recording: &str,
        source: &str,
        time_ns: i64,
        readings: Vec<Reading>,
    ) -> Vec<Counter> {
        self.dropped += readings.len().saturating_sub(READINGS_MAX) as u64;
        let mut rows = Vec::with_capacity(readings.len().min(READINGS_MAX));
        for reading in readings.into_iter().take(READINGS_MAX) {
            if !reading.value.is_finite() {
                continue;
            }
            let (name, instance, unit) =
                (reading.name.clone(), reading.instance.clone(), reading.unit);
            if let Some(value) = self.value(time_ns, reading) {
                rows.push(Counter {
                    recording: recording.to_owned(),
                    time: time_ns,
                    source: source.to_owned(),
                    name: name.into_owned(),
                    instance,
                    unit: unit.to_owned(),
                    value,
                });
            }
        }
        rows
    }

    fn value(&mut self, time_ns: i64, reading: Reading) -> Option<f64> {
        let per = match reading.kind {
            Kind::Level if !reading.sparse || reading.value != 0.0 => return Some(reading.value),
            Kind::Level | Kind::Rate => 0.0,
            Kind::Mean { per } => per,
        };
        let key = (reading.name, reading.instance);
        let known = self.before.get(&key).copied();
        if known.is_none() && self.before.len() >= 2 * READINGS_MAX {
            // Instances that come and go (names of processes, labels) must not fill the memory.
            self.dropped += 1;
            return None;
        }
        let mut now =
            Before { time_ns, value: reading.value, per, moved: known.is_some_and(|b| b.moved) };
        let Some(before) = known else {
            self.before.insert(key, now);
            return None;
        };
        if now.value < before.value || now.per < before.per {
            self.resets += 1;
            self.before.insert(key, now);
            return None;
        }
        let growth = now.value - before.value;
        now.moved |= growth > 0.0;
        self.before.insert(key, now);
        if reading.sparse && !now.moved {
            return None;
        }
        match reading.kind {
            Kind::Level => Some(reading.value),
            Kind::Rate => {
                let seconds = time_ns.saturating_sub(before.time_ns) as f64 / 1e9;
                (seconds > 0.0).then(|| growth / seconds)
            }
            Kind::Mean { per } => {
                let by = per - before.per;
                (by > 0.0).then(|| growth / by)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn values(rates: &mut Rates, second: i64, readings: Vec<Reading>) -> Vec<(String, f64)> {
        let rows = rates.rows("run", "server", second * SECOND, readings);
        rows.into_iter().map(|row| (row.name, row.value)).collect()
    }

    #[test]
    fn totals_become_rates_and_means() {
        let mut rates = Rates::default();
        let sample = |value: f64, per| {
            vec![
                Reading::level("open_files", "", value),
                Reading::rate("bytes", "bytes/s", value),
                Reading::mean("read_ns", "ns", value, per),
            ]
        };
        assert_eq!(values(&mut rates, 0, sample(10.0, 1.0)), [("open_files".to_owned(), 10.0)]);
        let expected = [("open_files", 40.0), ("bytes", 15.0), ("read_ns", 5.0)];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(values(&mut rates, 2, sample(40.0, 7.0)), expected);
        // Nothing was read: there is no mean.
        assert_eq!(values(&mut rates, 3, sample(40.0, 7.0)).len(), 2);
        // A gap: the mean since the previous sample.
        assert_eq!(values(&mut rates, 13, sample(140.0, 8.0))[1].1, 10.0);
        assert_eq!(rates.resets, 0);
    }

    #[test]
    fn a_reset_gives_no_row_and_is_counted() {
        let mut rates = Rates::default();
        let rate = |value| vec![Reading::rate("x", "1/s", value).of_instance("eth0")];
        for (second, total, row) in
            [(0, 100.0, None), (1, 110.0, Some(10.0)), (2, 3.0, None), (3, 5.0, Some(2.0))]
        {
            let found = values(&mut rates, second, rate(total)).first().map(|value| value.1);
            assert_eq!(found, row, "second {second}");
        }
        assert_eq!(rates.resets, 1);
        // If the clock does not advance, nothing is divided by zero.
        assert_eq!(values(&mut rates, 3, rate(9.0)), []);
    }

    #[test]
    fn sparse_ones_are_silent_until_they_move() {
        let mut rates = Rates::default();
        let sparse = |value| vec![Reading { sparse: true, ..Reading::rate("x", "1/s", value) }];
        assert_eq!(values(&mut rates, 0, sparse(0.0)).len(), 0);
        assert_eq!(values(&mut rates, 1, sparse(0.0)).len(), 0);
        assert_eq!(values(&mut rates, 2, sparse(1.0)).len(), 1);
        assert_eq!(values(&mut rates, 3, sparse(1.0))[0].1, 0.0);
    }

    #[test]
    fn there_are_limits() {
        let mut rates = Rates::default();
        for round in 0..4 {
            let readings = (0..READINGS_MAX + 5)
                .map(|i| Reading::rate("x", "1/s", 1.0).of_instance(&format!("{round} {i}")))
                .collect();
            rates.rows("run", "server", round, readings);
        }
        assert_eq!(rates.before.len(), 2 * READINGS_MAX);
        assert_eq!(rates.dropped, 4 * 5 + 2 * READINGS_MAX as u64);
        let nan = vec![Reading::level("x", "", f64::NAN), Reading::rate("y", "", f64::INFINITY)];
        assert_eq!(values(&mut rates, 9, nan), []);
    }
}
