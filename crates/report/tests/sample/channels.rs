//! A report with the published runs of a live migration, and everything that a timeline can have.

use smbscope_analysis::channels::{Channels, Timeline};
use smbscope_analysis::summary::Report;
use smbscope_tables::tables::{Counter, Interface};
use smbscope_testing::channel_runs::{START_NS, Transfer, published};

use super::HOSTILE;

const SECOND_NS: i64 = 1_000_000_000;

/// The timeline.
pub fn channels() -> Channels {
    let mut timeline = Timeline::default();
    for run in published() {
        timeline.counters(&run.counters());
        timeline.channels(&run.rows());
    }
    // Many channels on paths that join one after the other, one of them refused.
    let many = Transfer {
        recording: "<b>many",
        first_bytes_ns: (0..7).map(|path| path * 3 * SECOND_NS).collect(),
        weights: vec![4, 3, 2, 2, 1, 1, 1],
        lasts_ns: 40 * SECOND_NS,
        ramp_ns: 2 * SECOND_NS,
        bytes: 9_000_000_000,
        deep_idle: Some((70.0, 20.0)),
    };
    let mut rows = many.rows();
    for row in &mut rows {
        row.bytes_in_flight_max = Some(1_000_000);
        row.round_trip_ns = Some(2_000_000 * row.connection as i64);
        if row.connection == 7 {
            (row.channel, row.first_byte_at, row.bytes_written) = (None, None, 0);
            row.bind_status = Some("STATUS_ACCESS_DENIED".into());
        }
    }
    timeline.channels(&rows);
    let counter =
        |source: &str, name: &str, instance: Option<&str>, second: i64, value: f64| Counter {
            recording: "<b>many".into(),
            time: START_NS + second * SECOND_NS,
            source: source.into(),
            name: name.into(),
            instance: instance.map(str::to_owned),
            value,
            ..Counter::default()
        };
    for second in 1..=40 {
        timeline.counters(&[
            counter("server", "process_cpu_percent", Some(HOSTILE), second, 70.0),
            counter("server", "process_cpu_system_percent", Some(HOSTILE), second, 60.0),
            counter("server", "cpu_percent", None, second, 25.0),
            counter("server", "cpu_percent", Some("cpu3"), second, 25.0),
            counter("server", "cpu_softirq_percent", None, second, 5.0),
            counter("client", "cpu_frequency_hertz", None, second, 2.1e9),
        ]);
        if second > 20 {
            let rate = ("client", "rdma_transmit_bytes_per_second", Some("mlx5_0/1"));
            timeline.counters(&[counter(rate.0, rate.1, rate.2, second, 2e8)]);
        }
    }
    let offer = |address: &str, reason: &str, status: Option<&str>| Interface {
        recording: "<b>many".into(),
        session_id: Some(0x77),
        client: "10.0.0.1".into(),
        server: "10.0.0.2".into(),
        index: 4,
        address: address.into(),
        rss_capable: true,
        rdma_capable: true,
        link_bits_per_second: 10_000_000_000,
        used: reason == "used",
        reason: reason.into(),
        status: status.map(str::to_owned),
        ..Interface::default()
    };
    timeline.interfaces(&[
        offer("10.0.0.2", "used", None),
        offer("10.0.6.2", "refused", Some("STATUS_ACCESS_DENIED")),
        offer("10.9.0.2", "subnet", None),
    ]);
    timeline.finish().unwrap()
}

/// A report with it.
pub fn report() -> Report {
    Report { channels: Some(channels()), ..super::report(200) }
}
