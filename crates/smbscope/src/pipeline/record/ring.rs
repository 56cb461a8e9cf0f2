//! A recording that keeps its last part only, until a condition holds: a slow moment is recorded without an observer.
//!
//! Owns the segments and which of them are kept, and the condition that ends the recording ([`Condition`]). Each segment is a
//! dataset of its own, complete when the next one begins; sessions, trees and opens are known in all of them.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::Int64Type;
use smbscope_load::capacity::Limit;
use smbscope_load::stats::{Latencies, Summary};
use smbscope_report::format;
use smbscope_tables::named_columns::{Flags, Numbers};

use super::RecordMonitor;
use super::collector::Collector;

/// Segments of the time that is kept: a quarter more than that is on the disk.
const SEGMENTS: u32 = 4;
/// Seconds that a condition looks at.
const WINDOW: usize = 10;
/// Fewest operations in them for a condition to hold.
const OPERATIONS_MIN: u64 = 20;
/// How long a recording continues after its condition held, at most: what happens next belongs to it.
const AFTER_MAX: Duration = Duration::from_secs(30);

/// What must hold for the recording to be kept: `p95>200ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition(Limit);

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let wrong = || {
            format!(
                "`{text}`: expected a time of operations above a limit, such as p95>200ms (mean, p50, p95, p99, max)"
            )
        };
        let (left, right) = text.split_once('>').ok_or_else(wrong)?;
        let limit: Limit = format!("{left}<{right}").parse().map_err(|_| wrong())?;
        if limit.name.is_some() { Err(wrong()) } else { Ok(Condition(limit)) }
    }
}

impl Condition {
    /// The condition and the value, if it holds.
    fn holds(&self, summary: &Summary) -> Option<String> {
        let Condition(limit) = self;
        let value = limit.statistic.value(summary);
        (value > limit.below_ns).then(|| {
            format!(
                "{} of the last {WINDOW} s is {} ({} operations)",
                limit.statistic.name(),
                format::duration(value),
                format::count(summary.count)
            )
        })
    }
}

/// Times of the operations that ended in the last seconds.
#[derive(Default)]
struct Recent {
    /// A second each, the present one last.
    seconds: VecDeque<Latencies>,
    begun: Option<Instant>,
}

impl Recent {
    /// Adds operations that ended until `now`. Operations that wait by design do not count.
    fn add(&mut self, batch: &RecordBatch, now: Instant) -> anyhow::Result<()> {
        self.turn(now);
        let times = Numbers::<Int64Type>::from_batch(batch, "elapsed_ns")?;
        let waits = Flags::from_batch(batch, "waits")?;
        let Some(second) = self.seconds.back_mut() else { return Ok(()) };
        let rows = (0..batch.num_rows()).filter(|row| !waits.get(*row));
        rows.filter_map(|row| times.get(row)).for_each(|ns| second.record(ns));
        Ok(())
    }

    fn turn(&mut self, now: Instant) {
        let begun = *self.begun.get_or_insert(now);
        let passed = now.saturating_duration_since(begun);
        let seconds = usize::try_from(passed.as_secs()).unwrap_or(WINDOW);
        if seconds > 0 || self.seconds.is_empty() {
            self.begun = Some(now);
            // After a pause the seconds before it are over.
            (0..seconds.clamp(1, WINDOW)).for_each(|_| self.seconds.push_back(Latencies::new()));
        }
        while self.seconds.len() > WINDOW {
            self.seconds.pop_front();
        }
    }

    fn summary(&self) -> Option<Summary> {
        let mut all = Latencies::new();
        self.seconds.iter().for_each(|second| all.merge(second));
        all.summary().filter(|summary| summary.count >= OPERATIONS_MIN)
    }
}

/// What a ring keeps, and when it ends.
pub struct Ring {
    /// The time before its end that is kept.
    pub last: Duration,
    /// It ends after this holds; never without it.
    pub when: Option<Condition>,
    /// It ends after this time, whatever happens.
    pub duration: Option<Duration>,
}

/// What a ring kept.
#[derive(Debug, Default)]
pub struct KeptSegments {
    /// The folders of the segments, the oldest first.
    pub paths: Vec<PathBuf>,
    /// The condition that held, with its value.
    pub found: Option<String>,
}

impl Ring {
    /// Records segment after segment until the condition holds, the time is over or the monitor stops it.
    pub fn record(
        &self,
        collector: &mut Collector,
        monitor: &dyn RecordMonitor,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<KeptSegments> {
        let begin = Instant::now();
        let length = (self.last / SEGMENTS).max(Duration::from_secs(1));
        let (mut kept, mut recent) = (VecDeque::new(), Recent::default());
        let mut found: Option<(String, Instant)> = None;
        let is_over = |found: &Option<(String, Instant)>| {
            let after = AFTER_MAX.min(length);
            found.as_ref().is_some_and(|(_, at)| at.elapsed() >= after)
                || self.duration.is_some_and(|duration| begin.elapsed() >= duration)
                || monitor.is_stopping()
        };
        loop {
            let (_, path) = collector.start()?;
            kept.push_back(path);
            let segment = Instant::now();
            while segment.elapsed() < length && !is_over(&found) {
                let (batches, written) = collector.collect()?;
                written?;
                for batch in &batches {
                    recent.add(batch, Instant::now())?;
                }
                if let (None, Some(when)) = (&found, &self.when)
                    && let Some(words) = recent.summary().and_then(|all| when.holds(&all))
                {
                    say(&words);
                    found = Some((words, Instant::now()));
                }
                monitor.progress(&collector.received());
            }
            let (_, finished) = collector.stop()?;
            finished?;
            while kept.len() > SEGMENTS as usize + 1 {
                if let Some(oldest) = kept.pop_front() {
                    fs::remove_dir_all(&oldest)?;
                }
            }
            if is_over(&found) {
                let found = found.map(|(words, _)| words);
                return Ok(KeptSegments { paths: kept.into(), found });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use smbscope_tables::builder::OperationBuilder;
    use smbscope_tables::operation::Operation;

    use super::*;

    fn batch(times: &[i64], waits: bool) -> RecordBatch {
        let mut builder = OperationBuilder::new(None).unwrap();
        for ns in times {
            let mut row = Operation::default();
            row.set_elapsed_ns(*ns);
            row.set_waits(waits);
            builder.append(&[row]);
        }
        builder.finish().unwrap()
    }

    #[test]
    fn a_condition_is_a_statistic_above_a_time() {
        let condition: Condition = "p95>200ms".parse().unwrap();
        let summary = |p95_ns| Summary {
            count: 30,
            mean_ns: 1,
            p50_ns: 1,
            p95_ns,
            p99_ns: i64::MAX,
            max_ns: i64::MAX,
        };
        assert_eq!(condition.holds(&summary(200_000_000)), None);
        let words = condition.holds(&summary(312_000_000)).unwrap();
        assert_eq!(words, "p95 of the last 10 s is 312 ms (30 operations)");
        for wrong in ["", "p95", "p95<200ms", "p95>soon", "p42>1s", "Read:p95>1s", "p95>0s"] {
            let error = wrong.parse::<Condition>().unwrap_err();
            assert!(error.contains("p95>200ms"), "{wrong}: {error}");
        }
    }

    #[test]
    fn only_the_last_seconds_count() {
        let mut recent = Recent::default();
        let begin = Instant::now();
        let at = |second| begin + Duration::from_secs(second);
        recent.add(&batch(&[5_000_000; 30], false), at(0)).unwrap();
        recent.add(&batch(&[900_000_000; 30], true), at(1)).unwrap();
        let summary = recent.summary().unwrap();
        assert_eq!(summary.count, 30);
        assert!(summary.max_ns < 6_000_000, "{summary:?}");
        // Few operations are not judged, and old ones are over.
        recent.add(&batch(&[900_000_000; 3], false), at(30)).unwrap();
        assert_eq!(recent.summary(), None);
        for second in 31..36 {
            recent.add(&batch(&[900_000_000; 10], false), at(second)).unwrap();
        }
        assert_eq!(recent.summary().unwrap().count, 53);
    }
}
