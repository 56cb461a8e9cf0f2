//! The threads that sample counters: one for each source, so that a slow endpoint does not delay the others.
//!
//! Owns their interval and their end, and the final report about each source: failures are counted, and
//! reported once. It does not own the readings of the sources.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::thread;
use std::time::{Duration, Instant};

use smbscope_tables::run::Counter;

use super::rate::{Rates, Reading};

/// Default interval between samples.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Time that [`Sampler::stop`] waits for sources that are being read.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// The run's clock: nanoseconds, as in its tables.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A source of counters.
pub trait Source: Send {
    /// The value of `source` in the rows: `client`, `server` or `metrics`.
    fn source(&self) -> &'static str;
    /// Its location, for messages: a folder, an endpoint's host and port.
    fn place(&self) -> String;
    /// Reads all counters once. An error includes a remedy.
    fn read(&mut self) -> Result<Vec<Reading>, String>;
    /// What was left out of that sample and why, if anything was that should not have been.
    fn left_out(&self) -> Option<&str> {
        None
    }
}

/// The result of a source, for the run's report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceReport {
    /// The value of `source` in its rows.
    pub source: String,
    /// Its location.
    pub place: String,
    /// Samples with readings.
    pub samples: u64,
    /// Samples that failed: gaps in the series.
    pub failures: u64,
    /// Samples that became due while the previous one was still being read.
    pub skipped: u64,
    /// Totals that became smaller: one interval without a row each.
    pub resets: u64,
    /// Readings beyond the limit, and rows that the receiver had no room for.
    pub dropped: u64,
    /// The reason of the first failure.
    pub first_error: Option<String>,
    /// Samples from which something was left out.
    pub incomplete: u64,
    /// What was left out of the first of them.
    pub first_left_out: Option<String>,
}

impl SourceReport {
    /// A warning for the user; `None` if there was no problem.
    pub fn warning(&self) -> Option<String> {
        let SourceReport { source, place, samples, failures, incomplete, dropped, .. } = self;
        let all = samples + failures;
        let mut troubles = Vec::new();
        if *failures > 0 {
            let why = self.first_error.as_deref().unwrap_or("unknown");
            troubles.push(format!("{failures} of {all} samples failed: {why}"));
        }
        if *incomplete > 0 {
            let what = self.first_left_out.as_deref().unwrap_or("unknown");
            troubles.push(format!("{incomplete} of {all} samples are incomplete: {what}"));
        }
        if *dropped > 0 {
            troubles.push(format!("{dropped} values were dropped"));
        }
        let troubles = (!troubles.is_empty()).then(|| troubles.join("; "))?;
        Some(format!("{source} counters at {place}: {troubles}"))
    }
}

/// Running threads.
pub struct Sampler {
    stops: Vec<Sender<()>>,
    reports: Receiver<SourceReport>,
    places: Vec<(&'static str, String)>,
}

impl Sampler {
    /// Starts a thread for each source, which sends its rows batch by batch. When `rows` has no room a
    /// batch is dropped and counted: sampling never waits for a writer. Dropping the sampler also stops
    /// it.
    pub fn start(
        recording: &str,
        interval: Duration,
        clock: Clock,
        sources: Vec<Box<dyn Source>>,
        rows: &SyncSender<Vec<Counter>>,
    ) -> std::io::Result<Sampler> {
        let (report, reports) = channel();
        let mut sampler = Sampler { stops: Vec::new(), reports, places: Vec::new() };
        for source in sources {
            let (stop, stopped) = channel();
            sampler.stops.push(stop);
            sampler.places.push((source.source(), source.place()));
            let thread = Thread {
                recording: recording.to_owned(),
                interval: interval.max(Duration::from_millis(1)),
                clock: clock.clone(),
                rows: rows.clone(),
                stopped,
            };
            let report = report.clone();
            thread::Builder::new().name(format!("counters-{}", source.source())).spawn(
                move || {
                    // The receiver is gone if the run ended in the meantime.
                    let _ = report.send(thread.run(source));
                },
            )?;
        }
        Ok(sampler)
    }

    /// Ends all threads within half a second and reports on the sources. A source that is being read at
    /// that time ends later by itself; its report says so.
    pub fn stop(self) -> Vec<SourceReport> {
        self.stop_within(STOP_TIMEOUT)
    }

    fn stop_within(mut self, timeout: Duration) -> Vec<SourceReport> {
        self.stops.clear();
        let deadline = Instant::now() + timeout;
        let mut found = Vec::new();
        while found.len() < self.places.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.reports.recv_timeout(left) {
                Ok(report) => found.push(report),
                Err(_) => break,
            }
        }
        for (source, place) in self.places {
            if !found.iter().any(|report| report.source == source && report.place == place) {
                found.push(SourceReport {
                    source: source.to_owned(),
                    place,
                    failures: 1,
                    first_error: Some("it did not answer when the run ended".to_owned()),
                    ..SourceReport::default()
                });
            }
        }
        found
    }
}

struct Thread {
    recording: String,
    interval: Duration,
    clock: Clock,
    rows: SyncSender<Vec<Counter>>,
    stopped: Receiver<()>,
}

impl Thread {
    fn run(self, mut source: Box<dyn Source>) -> SourceReport {
        let name = source.source();
        let mut rates = Rates::default();
        let mut report = SourceReport {
            source: name.to_owned(),
            place: source.place(),
            ..SourceReport::default()
        };
        let mut due = Instant::now();
        loop {
            match source.read() {
                Ok(readings) => {
                    report.samples += 1;
                    if let Some(what) = source.left_out() {
                        report.incomplete += 1;
                        report.first_left_out.get_or_insert_with(|| what.to_owned());
                    }
                    let rows = rates.rows(&self.recording, name, (self.clock)(), readings);
                    let count = rows.len() as u64;
                    if !rows.is_empty() && self.rows.try_send(rows).is_err() {
                        report.dropped += count;
                    }
                }
                Err(error) => {
                    report.failures += 1;
                    report.first_error.get_or_insert(error);
                }
            }
            due += self.interval;
            let now = Instant::now();
            while due < now {
                due += self.interval;
                report.skipped += 1;
            }
            match self.stopped.recv_timeout(due.saturating_duration_since(now)) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => break,
            }
        }
        report.resets = rates.resets;
        report.dropped += rates.dropped;
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::sync::mpsc::sync_channel;

    /// Longer than any thread of a busy machine takes to end; no test waits that long.
    const LONG: Duration = Duration::from_secs(60);

    /// Has a level and a total; every third sample fails.
    struct Fake(u32);

    impl Source for Fake {
        fn source(&self) -> &'static str {
            "server"
        }
        fn place(&self) -> String {
            "fake".to_owned()
        }
        fn read(&mut self) -> Result<Vec<Reading>, String> {
            self.0 += 1;
            if self.0.is_multiple_of(3) {
                return Err(format!("sample {} failed", self.0));
            }
            let value = f64::from(self.0);
            Ok(vec![Reading::level("level", "", value), Reading::rate("total", "1/s", value)])
        }
    }

    /// Answers only when the other end is gone.
    struct Stuck(Receiver<()>);

    impl Source for Stuck {
        fn source(&self) -> &'static str {
            "metrics"
        }
        fn place(&self) -> String {
            "stuck".to_owned()
        }
        fn read(&mut self) -> Result<Vec<Reading>, String> {
            let _ = self.0.recv();
            Err("gone".to_owned())
        }
    }

    fn clock() -> Clock {
        let time = AtomicI64::new(0);
        Arc::new(move || time.fetch_add(1_000_000_000, Ordering::Relaxed))
    }

    #[test]
    fn rows_come_in_batches_and_failures_are_reported_once() {
        let (sender, rows) = sync_channel(64);
        let sources: Vec<Box<dyn Source>> = vec![Box::new(Fake(0))];
        let sampler =
            Sampler::start("run", Duration::from_millis(1), clock(), sources, &sender).unwrap();
        // Samples 1, 2, 4 and 5; the third fails.
        let batches: Vec<Vec<Counter>> = (0..4).map(|_| rows.recv().unwrap()).collect();
        let reports = sampler.stop_within(LONG);
        assert_eq!(batches[0].len(), 1);
        assert_eq!((batches[1][1].name.as_str(), batches[1][1].value), ("total", 1.0));
        // The clock knows only samples that succeeded: two more within a second.
        assert_eq!(batches[2][1].value, 2.0);
        assert_eq!(
            (batches[2][0].recording.as_str(), batches[2][0].source.as_str()),
            ("run", "server")
        );
        let report = &reports[0];
        assert!(report.failures >= 1 && report.samples >= 4, "{report:?}");
        assert_eq!(report.first_error.as_deref(), Some("sample 3 failed"));
        assert!(report.warning().unwrap().ends_with("samples failed: sample 3 failed"));
    }

    #[test]
    fn nobody_waits_for_a_source_that_hangs() {
        let (sender, rows) = sync_channel(1);
        let (_hold, held) = channel();
        let sources: Vec<Box<dyn Source>> = vec![Box::new(Stuck(held))];
        let sampler =
            Sampler::start("run", Duration::from_millis(1), clock(), sources, &sender).unwrap();
        let reports = sampler.stop_within(Duration::ZERO);
        assert_eq!((reports.len(), reports[0].place.as_str()), (1, "stuck"));
        assert!(reports[0].warning().unwrap().contains("did not answer"));
        assert!(rows.try_recv().is_err());
    }

    #[test]
    fn rows_that_nobody_takes_are_counted() {
        let (sender, rows) = sync_channel(0);
        let sources: Vec<Box<dyn Source>> = vec![Box::new(Fake(0))];
        let sampler =
            Sampler::start("run", Duration::from_millis(1), clock(), sources, &sender).unwrap();
        let reports = sampler.stop_within(LONG);
        assert!(reports[0].dropped >= 1 && reports[0].warning().is_some(), "{reports:?}");
        drop(rows);
    }
}
