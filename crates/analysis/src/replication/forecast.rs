//! The forecast of a second server, as plain data: the JSON interface of `smbscope plan replication`. Names contain their
//! units.

use serde::Serialize;

use super::Link;
use super::load::{BusySecond, InitialCopy, LinkLoad, LogHold, Outage, Snapshots, WriteLoad};
use super::search::Found;
use crate::predict::replay::{Prediction, ReplicaTimes, Row};
use crate::stats::latency::Distribution;

/// Percentiles of a duration, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    pub n: u64,
    pub p50_ns: Option<i64>,
    pub p95_ns: Option<i64>,
    pub p99_ns: Option<i64>,
    pub max_ns: Option<i64>,
}

impl Percentiles {
    /// The percentiles of a distribution.
    pub fn from_bounds(from: &Distribution) -> Percentiles {
        Percentiles {
            n: from.n,
            p50_ns: from.p50_ns,
            p95_ns: from.p95_ns,
            p99_ns: from.p99_ns,
            max_ns: from.max_ns,
        }
    }
}

/// Writes and Flushes of one command, share or application; or the executions of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitRow {
    pub name: String,
    /// How many of them wait for the second server; null for scenarios.
    pub waiting: Option<u64>,
    /// How long they wait for it, those that do not wait included; null for scenarios.
    pub added: Option<Percentiles>,
    pub before: Percentiles,
    pub after: Percentiles,
}

impl WaitRow {
    fn of_times(times: &ReplicaTimes) -> WaitRow {
        WaitRow {
            name: times.name.clone(),
            waiting: Some(times.waiting),
            added: Some(Percentiles::from_bounds(&times.added)),
            before: Percentiles::from_bounds(&times.before),
            after: Percentiles::from_bounds(&times.after),
        }
    }

    fn of_row(row: &Row) -> WaitRow {
        WaitRow {
            name: row.name.clone(),
            waiting: None,
            added: None,
            before: Percentiles::from_bounds(&row.before.distribution),
            after: Percentiles::from_bounds(&row.after.distribution),
        }
    }
}

/// What waits for a second server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    pub commands: Vec<WaitRow>,
    pub shares: Vec<WaitRow>,
    pub applications: Vec<WaitRow>,
    /// Response times of a load run.
    pub scenarios: Vec<WaitRow>,
}

impl Waits {
    /// What a replay found.
    pub fn from_prediction(prediction: &Prediction) -> Waits {
        let rows = |times: &[ReplicaTimes]| times.iter().map(WaitRow::of_times).collect();
        let scenarios = prediction.scenarios.iter().map(WaitRow::of_row).collect();
        match &prediction.replicas {
            Some(all) => Waits {
                commands: rows(&all.commands),
                shares: rows(&all.shares),
                applications: rows(&all.applications),
                scenarios,
            },
            None => Waits { scenarios, ..Waits::default() },
        }
    }
}

/// Data that an asynchronous second server lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RiskRow {
    /// Bytes on average, during half of the time at most, during 99 % of it, and at the worst moment.
    pub mean_bytes: u64,
    pub p50_bytes: u64,
    pub p99_bytes: u64,
    pub max_bytes: u64,
    /// How old the oldest missing data is (the recovery point): likewise.
    pub p50_ns: i64,
    pub p99_ns: i64,
    pub max_ns: i64,
}

/// A link with all that follows from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkForecast {
    pub rtt_ns: i64,
    pub bandwidth_bits: Option<f64>,
    /// A reply waits until both logs have the data (Storage Replica synchronous, DRBD protocol C).
    pub sync: Waits,
    /// A reply waits until the second server has received the data (DRBD protocol B).
    pub received: Waits,
    /// No reply waits (Storage Replica asynchronous, DRBD protocol A); null without a write.
    pub at_risk: Option<RiskRow>,
    /// The writes against the link.
    pub load: LinkLoad,
    pub outage: Option<Outage>,
    pub initial_copy: Option<InitialCopy>,
    pub snapshots: Option<Snapshots>,
}

/// What a goal allows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GoalForecast {
    pub goal: String,
    /// Rate of the link that it holds for, bit/s; null without a limit.
    pub bandwidth_bits: Option<f64>,
    /// Today, ns.
    pub today_ns: i64,
    pub limit_ns: i64,
    /// Longest round trip that keeps it, with synchronous copies, ns; null if none does, or each that was tried.
    pub rtt_ns: Option<i64>,
    /// Whether no round trip that was tried misses it.
    pub is_always: bool,
    /// Fibre of the longest round trip, km, with nothing but light taking time.
    pub distance_km: Option<f64>,
    /// Round trips that were replayed.
    pub tried: Vec<GoalPoint>,
}

/// A replay with a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GoalPoint {
    pub rtt_ns: i64,
    /// The time that the goal is about, ns.
    pub time_ns: i64,
}

/// Light in fibre travels 200 km in a millisecond, there and back 100.
const KM_PER_MS: f64 = 100.0;

impl GoalForecast {
    /// What a search found.
    pub fn answer(mut self, found: Found) -> GoalForecast {
        (self.rtt_ns, self.is_always) = match found {
            Found::UpTo(ns) => (Some(ns), false),
            // The end of the search is not an answer.
            Found::Always(_) => (None, true),
            Found::Never => (None, false),
        };
        self.distance_km = self.rtt_ns.map(|ns| ns as f64 / 1e6 * KM_PER_MS);
        self.tried.sort_unstable();
        self.tried.dedup();
        self
    }
}

/// What a second server would cost and need.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReplicationForecast {
    /// Begin of the first second with a write, ns since 1970; null without a write.
    pub start_ns: Option<i64>,
    /// From the first to the last second with a write, ns.
    pub lasted_ns: i64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Flushes and write-through writes: what waits for a synchronous second server.
    pub stable_operations: u64,
    /// Writes that were not counted because they are too far away from the others in time.
    pub left_out: u64,
    pub busiest: Vec<BusySecond>,
    /// Width of the bins over time, ns, and the bytes of the busiest second in each.
    pub series_bin_ns: i64,
    pub series_bytes: Vec<u64>,
    pub hold: Option<LogHold>,
    pub lines: Vec<LinkForecast>,
    /// One answer for each rate of the links; none without a write, since nothing would wait.
    pub goals: Vec<GoalForecast>,
}

/// Questions about each link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Questions {
    pub outage_ns: Option<i64>,
    pub log_bytes: Option<u64>,
    pub data_bytes: Option<u64>,
    pub interval_ns: Option<i64>,
}

/// Bins over time.
const BINS: usize = 600;
/// Seconds that are listed.
const BUSIEST: usize = 10;

impl ReplicationForecast {
    /// What follows from the writes alone.
    pub fn of_load(load: &WriteLoad, questions: &Questions) -> ReplicationForecast {
        let (width, series_bytes) = load.series(BINS);
        ReplicationForecast {
            start_ns: (load.writes > 0).then(|| load.start_ns()),
            lasted_ns: load.seconds() as i64 * 1_000_000_000,
            writes: load.writes,
            written_bytes: load.bytes,
            left_out: load.left_out,
            busiest: load.busiest(BUSIEST),
            series_bin_ns: width as i64 * 1_000_000_000,
            series_bytes,
            hold: questions.log_bytes.map(|bytes| load.hold(bytes)),
            ..ReplicationForecast::default()
        }
    }
}

impl LinkForecast {
    /// What follows for a link from the writes, and from replays with a second server that is synchronous, that answers on
    /// receipt, and that is asynchronous.
    pub fn new(
        line: Link,
        load: &WriteLoad,
        questions: &Questions,
        [sync, received, later]: [&Prediction; 3],
    ) -> LinkForecast {
        let rate = line.bytes_per_s();
        let seconds = load.seconds() > 0;
        LinkForecast {
            rtt_ns: line.rtt_ns,
            bandwidth_bits: line.bandwidth_bits,
            sync: Waits::from_prediction(sync),
            received: Waits::from_prediction(received),
            // The replay also knows writes to pipes, which reach no file.
            at_risk: later.at_risk.filter(|_| load.writes > 0).map(|risk| RiskRow {
                mean_bytes: risk.mean as u64,
                p50_bytes: risk.bytes_p50,
                p99_bytes: risk.bytes_p99,
                max_bytes: risk.most,
                p50_ns: risk.recovery_ns_p50,
                p99_ns: risk.recovery_ns_p99,
                max_ns: risk.longest_ns,
            }),
            load: load.against(rate),
            outage: questions.outage_ns.filter(|_| seconds).map(|ns| load.outage(ns, rate)),
            initial_copy: (questions.data_bytes)
                .zip(rate)
                .map(|(bytes, rate)| load.initial_copy(bytes, rate)),
            snapshots: questions.interval_ns.filter(|_| seconds).map(|ns| load.snapshots(ns, rate)),
        }
    }
}
