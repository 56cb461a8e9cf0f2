//! Bytes written in each second, and what follows from them alone: the busiest seconds, the log while the link is down, the
//! initial copy, and copies at intervals. The log and the copies at intervals use finer bins ([`Bins`]). Memory: 8 bytes
//! for each second between the first and the last write, and 16 MiB.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use serde::Serialize;
use smbscope_tables::command_class::CommandClass;

use super::bins::{Bins, windows};
use crate::rows::has_pipes;

crate::rows::columns::columns! {
    command: text,
    share: text,
    status: u32,
    transferred_bytes: u64,
    request_start: i64,
    response_end: i64,
}

const SECOND_NS: i64 = 1_000_000_000;
/// Most seconds between the first and the last write: 90 days, 62 MB.
const SECONDS_MAX: i64 = 90 * 86_400;
/// A simulation ends after this many seconds.
const SIMULATED_MAX: usize = 2 * SECONDS_MAX as usize;

/// The bytes of each second.
#[derive(Clone, Debug, Default)]
pub struct WriteLoad {
    first: i64,
    seconds: Vec<u64>,
    bins: Bins,
    /// Acknowledged writes.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Writes that are more than [`SECONDS_MAX`] away from the others, and are not in it.
    pub left_out: u64,
    now: i64,
}

/// Bytes in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BusySecond {
    /// Its begin, ns since 1970.
    pub at_ns: i64,
    pub written_bytes: u64,
}

/// A load on a link without any delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LinkLoad {
    /// Mean rate of writes, bit/s.
    pub mean_bits: f64,
    /// Rate that is not exceeded in half of the seconds, in 95 and in 99 of 100, and in any, bit/s.
    pub p50_bits: f64,
    pub p95_bits: f64,
    pub p99_bits: f64,
    pub max_bits: f64,
    /// Rate of the busiest minute, bit/s; null for a shorter recording.
    pub minute_bits: Option<f64>,
    /// Share of seconds with more data than the link carries; null without a limit.
    pub saturated_share: Option<f64>,
    /// Longest time that data waits for the link, s; null without a limit.
    pub queue_s: Option<f64>,
    /// Most data that waits for it, bytes; null without a limit.
    pub queue_bytes: Option<u64>,
    /// How many times this load the link carries on average, and in its busiest minute or second.
    pub times_mean: Option<f64>,
    pub times_busiest: Option<f64>,
}

/// The link is down for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outage {
    pub outage_ns: i64,
    /// Log that it needs if it begins at the worst moment, bytes.
    pub log_bytes: u64,
    /// The worst moment, ns since 1970.
    pub worst_at_ns: i64,
    /// Log for half of all moments, bytes.
    pub log_bytes_p50: u64,
    /// How long the second server then needs to catch up, with the load continuing, ns; null if it never does, or without
    /// a limit on the rate.
    pub catch_up_ns: Option<i64>,
    /// Whether the recording is shorter than the outage, and was taken to repeat.
    pub is_repeated: bool,
}

/// A log of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LogHold {
    pub log_bytes: u64,
    /// How long it takes all writes while the link is down, if that begins at the worst moment, ns.
    pub worst_ns: i64,
    /// The same for half of all moments, ns.
    pub p50_ns: i64,
    /// Whether the recording is shorter, and was taken to repeat.
    pub is_repeated: bool,
}

/// All data is copied for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct InitialCopy {
    pub data_bytes: u64,
    /// On an idle link, ns.
    pub idle_ns: i64,
    /// With the recorded load, which goes first, ns; null if it leaves no room.
    pub loaded_ns: Option<i64>,
}

/// A file system that sends a snapshot at each interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Snapshots {
    pub interval_ns: i64,
    /// Most data of one snapshot, bytes.
    pub snapshot_bytes: u64,
    /// How old the last complete copy is at most, ns: an interval and the transfer of a snapshot; null if snapshots
    /// take longer than the interval.
    pub recovery_ns: Option<i64>,
    /// Most data at risk, bytes.
    pub at_risk_bytes: u64,
}

impl WriteLoad {
    /// Adds operations.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns::from_batch(batch)?;
        let classes = columns.command.command_classes();
        for row in 0..batch.num_rows() {
            let at = columns.response_end.get(row).or_else(|| columns.request_start.get(row));
            self.now = at.unwrap_or(self.now);
            let class = columns.command.key(row).and_then(|key| classes.get(key));
            let bytes = columns.transferred_bytes.get(row).unwrap_or(0);
            let is_done = columns.status.get(row).is_none_or(|status| status == 0);
            if class != Some(&CommandClass::Write) || bytes == 0 || !is_done {
                continue;
            }
            let is_pipe = columns.share.get(row).is_some_and(has_pipes);
            if !is_pipe {
                self.add(self.now, bytes);
            }
        }
        Ok(())
    }

    /// Adds a write.
    pub fn add(&mut self, at_ns: i64, bytes: u64) {
        let second = at_ns.div_euclid(SECOND_NS);
        if self.seconds.is_empty() {
            self.first = second;
        }
        let end = self.first + self.seconds.len() as i64;
        let span = end.max(second.saturating_add(1)).saturating_sub(self.first.min(second));
        if span > SECONDS_MAX {
            self.left_out += 1;
            return;
        }
        if second < self.first {
            let more = (self.first - second) as usize;
            self.seconds.splice(0..0, std::iter::repeat_n(0, more));
            self.first = second;
        }
        let place = (second - self.first) as usize;
        if self.seconds.len() <= place {
            self.seconds.resize(place + 1, 0);
        }
        self.seconds[place] = self.seconds[place].saturating_add(bytes);
        self.bins.add(at_ns, bytes);
        self.writes += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Seconds between the first and the last write.
    pub fn seconds(&self) -> usize {
        self.seconds.len()
    }

    /// Begin of the first second, ns since 1970.
    pub fn start_ns(&self) -> i64 {
        self.first.saturating_mul(SECOND_NS)
    }

    fn at_ns(&self, place: usize) -> i64 {
        (self.first + place as i64).saturating_mul(SECOND_NS)
    }

    /// The seconds with the most data.
    pub fn busiest(&self, count: usize) -> Vec<BusySecond> {
        let mut places: Vec<_> = (0..self.seconds.len()).collect();
        places.sort_by(|a, b| self.seconds[*b].cmp(&self.seconds[*a]).then(a.cmp(b)));
        places.truncate(count);
        let row = |place: usize| BusySecond {
            at_ns: self.at_ns(place),
            written_bytes: self.seconds[place],
        };
        places.into_iter().filter(|place| self.seconds[*place] > 0).map(row).collect()
    }

    /// Bytes per second in at most this many bins: their width in seconds, and the largest second of each.
    pub fn series(&self, bins: usize) -> (usize, Vec<u64>) {
        let width = self.seconds.len().div_ceil(bins.max(1)).max(1);
        let most = |seconds: &[u64]| seconds.iter().copied().max().unwrap_or(0);
        (width, self.seconds.chunks(width).map(most).collect())
    }

    /// The load against a rate in bytes per second.
    pub fn against(&self, rate: Option<f64>) -> LinkLoad {
        let n = self.seconds.len();
        if n == 0 {
            return LinkLoad::default();
        }
        let mut sorted = self.seconds.clone();
        sorted.sort_unstable();
        let rank = |percent: usize| 8.0 * sorted[(n * percent).div_ceil(100).max(1) - 1] as f64;
        let mean = self.bytes as f64 / n as f64;
        let most = |length| windows(&self.seconds, length).into_iter().max().unwrap_or(0);
        let minute = (n >= 60).then(|| most(60) as f64 / 60.0);
        let busiest = minute.unwrap_or(rank(100) / 8.0);
        let queue = rate.map(|rate| self.queue(rate));
        LinkLoad {
            mean_bits: 8.0 * mean,
            p50_bits: rank(50),
            p95_bits: rank(95),
            p99_bits: rank(99),
            max_bits: rank(100),
            minute_bits: minute.map(|bytes| 8.0 * bytes),
            saturated_share: rate.map(|rate| {
                let over = self.seconds.iter().filter(|bytes| **bytes as f64 > rate).count();
                over as f64 / n as f64
            }),
            queue_s: queue.zip(rate).map(|(bytes, rate)| bytes / rate),
            queue_bytes: queue.map(|bytes| bytes as u64),
            times_mean: rate.filter(|_| mean > 0.0).map(|rate| rate / mean),
            times_busiest: rate.filter(|_| busiest > 0.0).map(|rate| rate / busiest),
        }
    }

    /// Most data that waits for the link at the end of a second, bytes.
    fn queue(&self, rate: f64) -> f64 {
        let mut waits = 0.0f64;
        let queue = self.seconds.iter().map(|bytes| {
            waits = (waits + *bytes as f64 - rate).max(0.0);
            waits
        });
        queue.fold(0.0, f64::max)
    }

    /// The bytes of the recording in the finest bins that there are, from the first to the last of its seconds.
    fn finest(&self) -> Bins {
        if self.bins.width_ns() < SECOND_NS {
            self.bins.spread(self.first, self.seconds.len())
        } else {
            Bins::of_seconds(self.first, self.seconds.clone())
        }
    }

    /// The link is down for this long; `rate` is that of the link in bytes per second.
    pub fn outage(&self, outage_ns: i64, rate: Option<f64>) -> Outage {
        let lasted = self.seconds.len() as i64 * SECOND_NS;
        let mut found = Outage { outage_ns, is_repeated: outage_ns > lasted, ..Outage::default() };
        if self.seconds.is_empty() || outage_ns <= 0 {
            return found;
        }
        let bins = self.finest();
        let length = bins.count(outage_ns);
        // What the link has not carried yet when the outage begins is in the log, too.
        let per_bin = rate.map_or(f64::INFINITY, |rate| rate * bins.width_ns() as f64 / 1e9);
        let mut waits = 0.0f64;
        let written = windows(bins.bytes(), length);
        let mut logs: Vec<u64> = written
            .into_iter()
            .zip(bins.bytes())
            .map(|(written, bytes)| {
                let log = written.saturating_add(waits as u64);
                waits = (waits + *bytes as f64 - per_bin).max(0.0);
                log
            })
            .collect();
        let mut place = 0;
        for (at, log) in logs.iter().enumerate() {
            if *log > found.log_bytes {
                (found.log_bytes, place) = (*log, at);
            }
        }
        found.worst_at_ns = bins.at_ns(place);
        found.catch_up_ns = rate.and_then(|rate| {
            let end = bins.at_ns(place.saturating_add(length)).div_euclid(SECOND_NS);
            self.drain((end - self.first).max(0) as usize, found.log_bytes as f64, rate)
        });
        logs.sort_unstable();
        found.log_bytes_p50 = logs.get((logs.len().max(1) - 1) / 2).copied().unwrap_or(0);
        found
    }

    /// Time until this many bytes are sent, with the load of the seconds from `begin` on, which go first; none if that takes
    /// too long.
    fn drain(&self, begin: usize, bytes: f64, rate: f64) -> Option<i64> {
        let n = self.seconds.len();
        let mean = self.bytes as f64 / n.max(1) as f64;
        if n == 0 || rate <= mean || bytes <= 0.0 {
            return (bytes <= 0.0).then_some(0);
        }
        let mut left = bytes;
        // Whole repetitions of the recording at once.
        let spare = (rate - mean) * n as f64;
        let repeats = (left / spare).floor() - 1.0;
        let mut seconds = 0.0;
        if repeats > 0.0 {
            left -= repeats * spare;
            seconds += repeats * n as f64;
        }
        for step in 0..SIMULATED_MAX {
            let load = self.seconds[(begin % n + step) % n] as f64;
            let next = left + load - rate;
            if next <= 0.0 {
                // What is left and what comes in this second, both at the link's rate.
                seconds += (left / (rate - load).max(1.0)).clamp(0.0, 1.0);
                return Some((seconds * 1e9) as i64);
            }
            left = next;
            seconds += 1.0;
        }
        None
    }

    /// How long a log of this size takes all writes.
    pub fn hold(&self, log_bytes: u64) -> LogHold {
        let mut found = LogHold { log_bytes, ..LogHold::default() };
        if self.bytes == 0 {
            (found.worst_ns, found.p50_ns) = (i64::MAX, i64::MAX);
            return found;
        }
        let bins = self.finest();
        let n = bins.bytes().len();
        let repeats = log_bytes / self.bytes;
        let left = log_bytes % self.bytes;
        found.is_repeated = repeats > 0;
        // Two pointers: how many bins from each one on fit.
        let at = |place: usize| bins.bytes().get(place % n).copied().unwrap_or(0);
        let (mut end, mut sum) = (0usize, 0u64);
        let mut least = n;
        let mut holds = Vec::with_capacity(n);
        for start in 0..n {
            end = end.max(start);
            while end < start + n && sum.saturating_add(at(end)) <= left {
                sum += at(end);
                end += 1;
            }
            least = least.min(end - start);
            // The part of the next bin that still fits.
            let part = left.saturating_sub(sum) as f64 / at(end).max(1) as f64;
            holds.push((end - start) as f64 + part.min(1.0));
            if end > start {
                sum = sum.saturating_sub(at(start));
            }
        }
        holds.sort_by(f64::total_cmp);
        let repeated = repeats as f64 * n as f64;
        let ns = |count: f64| (count * bins.width_ns() as f64) as i64;
        // The outage may begin at the end of a bin: at least what fits after that.
        found.worst_ns = ns((repeated + least as f64 - 1.0).max(0.0));
        found.p50_ns = ns(repeated + holds.get((n.max(1) - 1) / 2).copied().unwrap_or(0.0));
        found
    }

    /// The first copy of this much data at a rate in bytes per second.
    pub fn initial_copy(&self, data_bytes: u64, rate: f64) -> InitialCopy {
        InitialCopy {
            data_bytes,
            idle_ns: (data_bytes as f64 / rate * 1e9) as i64,
            loaded_ns: if self.seconds.is_empty() {
                Some((data_bytes as f64 / rate * 1e9) as i64)
            } else {
                self.drain(0, data_bytes as f64, rate)
            },
        }
    }

    /// A snapshot at each interval, over a link of this rate in bytes per second.
    pub fn snapshots(&self, interval_ns: i64, rate: Option<f64>) -> Snapshots {
        let bins = self.finest();
        let most_in =
            |ns: i64| windows(bins.bytes(), bins.count(ns)).into_iter().max().unwrap_or(0);
        let most = most_in(interval_ns);
        let transfer_ns = rate.map_or(0.0, |rate| most as f64 / rate * 1e9) as i64;
        let age_ns = interval_ns.saturating_add(transfer_ns);
        Snapshots {
            interval_ns,
            snapshot_bytes: most,
            recovery_ns: (transfer_ns <= interval_ns).then_some(age_ns),
            at_risk_bytes: most_in(age_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = SECOND_NS;
    const MB: u64 = 1_000_000;

    fn load(megabytes: &[u64]) -> WriteLoad {
        let mut load = WriteLoad::default();
        for (second, count) in megabytes.iter().enumerate() {
            for at in 0..1_000 {
                load.add(100 * S + second as i64 * S + at * S / 1_000, count * MB / 1_000);
            }
        }
        load
    }

    #[test]
    fn the_busiest_seconds_against_a_link() {
        let load = load(&[1, 9, 2, 0, 8]);
        let busiest = load.busiest(2);
        assert_eq!(busiest[0], BusySecond { at_ns: 101 * S, written_bytes: 9 * MB });
        assert_eq!(busiest[1].at_ns, 104 * S);
        let link = load.against(Some(5e6));
        assert_eq!((link.mean_bits, link.p50_bits, link.max_bits), (32e6, 16e6, 72e6));
        assert_eq!((link.saturated_share, link.queue_bytes), (Some(0.4), Some(4 * MB)));
        assert_eq!((link.times_mean, link.minute_bits), (Some(1.25), None));
        assert_eq!(load.against(None).saturated_share, None);
        assert_eq!(WriteLoad::default().against(Some(1e6)), LinkLoad::default());
    }

    #[test]
    fn an_outage_needs_a_log_for_its_worst_moment() {
        let load = load(&[1, 9, 2, 0, 8]);
        let outage = load.outage(2 * S, Some(5e6));
        // Seconds 101 and 102.
        assert_eq!(
            (outage.log_bytes, outage.worst_at_ns, outage.log_bytes_p50),
            (11 * MB, 101 * S, outage.log_bytes_p50)
        );
        assert!(outage.log_bytes_p50.abs_diff(8_812_500) < 20_000, "{outage:?}");
        // 11, then 0, 8, 1, 9, 2, 0, 8 and 1 more while 5 leave each second.
        assert_eq!(outage.catch_up_ns, Some(8 * S));
        assert_eq!(load.outage(2 * S, Some(3e6)).catch_up_ns, None);
        // Longer than the recording: as if it repeated.
        let long = load.outage(12 * S, None);
        assert_eq!((long.log_bytes, long.is_repeated), (2 * 20 * MB + 11 * MB, true));
        // What the link had not carried before is in the log: 10 MB in second 104.
        assert_eq!(load.outage(S, Some(0.5e6)).log_bytes, 18 * MB);
    }

    /// The largest backlog is not where most is written.
    #[test]
    fn an_outage_that_begins_with_a_backlog_needs_a_log_for_it() {
        let load = load(&[1, 1, 40, 30, 20, 1, 41, 0]);
        let outage = load.outage(S, Some(1e6));
        // 87 MB wait when second 105 has ended, and 41 MB come; they are 39, 68, 87 and 87 before.
        assert_eq!((outage.log_bytes, outage.worst_at_ns), (87 * MB + 41 * MB, 106 * S));
        // Half of all moments have a backlog, too.
        assert!(outage.log_bytes_p50 > 68 * MB, "{outage:?}");
        let idle = load.outage(S, Some(1e9));
        assert_eq!((idle.log_bytes, idle.worst_at_ns), (41 * MB, 106 * S));
    }

    /// 16 MB that are written within 100 ms fill a log of 16 MB within these.
    #[test]
    fn parts_of_a_second_count() {
        let mut load = WriteLoad::default();
        for at in 0..100 {
            load.add(100 * S + at * S / 1_000, MB / 5);
        }
        load.add(103 * S, MB);
        let hold = load.hold(16 * MB);
        assert!((79 * S / 1_000..=80 * S / 1_000).contains(&hold.worst_ns), "{hold:?}");
        let found = load.snapshots(2_900_000_000, Some(1e8));
        assert_eq!((found.snapshot_bytes, found.at_risk_bytes), (20 * MB, 21 * MB));
        let found = load.snapshots(2_000_000_000, Some(1e9));
        assert_eq!((found.recovery_ns, found.at_risk_bytes), (Some(2_020_000_000), 20 * MB));
    }

    #[test]
    fn a_log_holds_as_long_as_the_writes_fit() {
        let load = load(&[1, 9, 2, 0, 8]);
        let hold = load.hold(10 * MB);
        // From second 101 on: 9, half of 2.
        let least = 3 * S / 2 - S / 1_000;
        assert_eq!(hold.worst_ns, least);
        assert!(!hold.is_repeated && hold.p50_ns > hold.worst_ns);
        let long = load.hold(50 * MB);
        assert_eq!((long.worst_ns, long.is_repeated), (10 * S + least, true));
        assert_eq!(WriteLoad::default().hold(5).worst_ns, i64::MAX);
        assert_eq!(load.hold(0).worst_ns, 0);
    }

    /// The log that an outage needs holds for the outage, and a smaller one does not.
    #[test]
    fn both_questions_have_the_same_answer() {
        let load = load(&[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]);
        for seconds in 1..=8 {
            let needed = load.outage(seconds * S, None).log_bytes;
            // To the width of a bin.
            let bin = S / 1_000;
            assert!(load.hold(needed).worst_ns >= seconds * S - bin, "{seconds}");
            assert!(load.hold(needed - MB).worst_ns < seconds * S, "{seconds}");
        }
    }

    #[test]
    fn the_first_copy_takes_what_the_load_leaves() {
        let load = load(&[2; 10]);
        let copy = load.initial_copy(300 * MB, 5e6);
        assert_eq!((copy.idle_ns, copy.loaded_ns), (60 * S, Some(100 * S)));
        assert_eq!(load.initial_copy(300 * MB, 2e6).loaded_ns, None);
        assert_eq!(WriteLoad::default().initial_copy(5 * MB, 5e6).loaded_ns, Some(S));
    }

    #[test]
    fn a_snapshot_is_as_old_as_the_interval_and_its_transfer() {
        let load = load(&[2; 600]);
        let found = load.snapshots(60 * S, Some(4e6));
        assert_eq!((found.snapshot_bytes, found.recovery_ns), (120 * MB, Some(90 * S)));
        assert_eq!(found.at_risk_bytes, 180 * MB);
        assert_eq!(load.snapshots(60 * S, Some(1e6)).recovery_ns, None);
    }

    #[test]
    fn times_far_away_take_no_memory() {
        let mut load = load(&[1]);
        load.add(i64::MAX, 5);
        load.add(i64::MIN, 5);
        assert_eq!((load.left_out, load.seconds()), (2, 1));
        load.add(90 * S, 5);
        assert_eq!((load.seconds(), load.start_ns()), (11, 90 * S));
    }
}
