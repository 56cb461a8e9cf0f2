//! Rows of the table `channels` as a bulk transfer makes them, and the published runs of a live
//! migration.
//!
//! The runs: a virtual machine of 55 GB moves over one and over two adapters of 10 Gb/s; until the
//! first byte 19 and 20 seconds pass, after a change of the power settings in the BIOS 3 to 4. What
//! was published are the sums; the rows in between are made here.

use smbscope_tables::tables::{Channel, Counter};

/// When the runs begin, ns since 1970.
pub const START_NS: i64 = 1_700_000_000_000_000_000;
const INTERVAL_NS: i64 = 100_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// A transfer over some paths with one channel each.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The recording.
    pub recording: &'static str,
    /// When each path carries its first byte, ns after the beginning.
    pub first_bytes_ns: Vec<i64>,
    /// Weight of each path's rate.
    pub weights: Vec<u64>,
    /// How long the transfer takes, ns.
    pub lasts_ns: i64,
    /// How long the rate grows from 0.
    pub ramp_ns: i64,
    /// Payload of all paths.
    pub bytes: u64,
    /// Per cent of the time in deep idle states: before the first byte, and afterwards.
    pub deep_idle: Option<(f64, f64)>,
}

/// The published runs: one and two adapters, before and after.
pub fn published() -> [Transfer; 4] {
    let run = |recording, paths: usize, lasts_s: f64, first_s: f64, deep_idle| Transfer {
        recording,
        first_bytes_ns: vec![(first_s * 1e9) as i64; paths],
        weights: vec![1; paths],
        lasts_ns: (lasts_s * 1e9) as i64,
        ramp_ns: SECOND_NS,
        bytes: 55_000_000_000,
        deep_idle: Some(deep_idle),
    };
    [
        run("one", 1, 74.0, 19.0, (85.0, 60.0)),
        run("two", 2, 53.0, 20.0, (85.0, 60.0)),
        run("one-tuned", 1, 54.0, 3.5, (1.0, 0.5)),
        run("two-tuned", 2, 30.0, 3.5, (1.0, 0.5)),
    ]
}

impl Transfer {
    /// Rows of all paths, in the order of time. The bytes of the rows are those of the transfer.
    pub fn rows(&self) -> Vec<Channel> {
        let intervals = self.lasts_ns / INTERVAL_NS;
        let weight = |path: usize, number: i64| {
            let passed = (number * INTERVAL_NS - self.first_bytes_ns[path]).max(-INTERVAL_NS);
            let grown = (passed + INTERVAL_NS).min(self.ramp_ns.max(INTERVAL_NS));
            self.weights[path] as u128 * grown.max(0) as u128
        };
        let paths = self.first_bytes_ns.len();
        let cells: Vec<_> =
            (0..intervals).flat_map(|number| (0..paths).map(move |path| (number, path))).collect();
        let all: u128 = cells.iter().map(|&(number, path)| weight(path, number)).sum();
        let (mut passed, mut given) = (0, 0);
        let mut rows = Vec::new();
        for (number, path) in cells {
            passed += weight(path, number);
            let until = u128::from(self.bytes) * passed / all.max(1);
            let bytes = (until - given) as u64;
            given = until;
            let first = self.first_bytes_ns[path];
            let begins = first / INTERVAL_NS == number;
            // A row for the moment of opening, then those with bytes.
            if bytes > 0 || number == 0 || begins {
                rows.push(self.row(path, number, bytes, first <= number * INTERVAL_NS));
            }
        }
        rows
    }

    fn row(&self, path: usize, number: i64, bytes: u64, has_begun: bool) -> Channel {
        Channel {
            recording: self.recording.into(),
            session_id: Some(0x77),
            connection: path as u64 + 1,
            channel: Some(path as u64),
            client: format!("10.0.{path}.1").into(),
            client_port: 50_000 + path as u64,
            server: format!("10.0.{path}.2").into(),
            server_port: 445,
            transport: Some("tcp".into()),
            opened_at: Some(START_NS),
            bound_at: Some(START_NS + 5_000_000),
            first_byte_at: has_begun.then(|| START_NS + self.first_bytes_ns[path]),
            interval_start: START_NS + number * INTERVAL_NS,
            interval_ns: INTERVAL_NS as u64,
            bytes_written: bytes,
            operations: bytes / 1_048_576,
            outstanding_mean: if bytes > 0 { 8.0 } else { 0.0 },
            transferring_mean: if bytes > 0 { 8.0 } else { 0.0 },
            outstanding_max: Some(8),
            retransmissions: Some(0),
            ..Channel::default()
        }
    }

    /// Samples of the client's idle states, each second.
    pub fn counters(&self) -> Vec<Counter> {
        let Some((before, after)) = self.deep_idle else { return Vec::new() };
        let first = self.first_bytes_ns.iter().copied().min().unwrap_or(0);
        let sample = |second: i64| Counter {
            recording: self.recording.into(),
            time: START_NS + second * SECOND_NS,
            source: "client".into(),
            name: "cpu_idle_deep_percent".into(),
            unit: "percent".into(),
            value: if second * SECOND_NS <= first { before } else { after },
            ..Counter::default()
        };
        (1..=self.lasts_ns / SECOND_NS).map(sample).collect()
    }
}
