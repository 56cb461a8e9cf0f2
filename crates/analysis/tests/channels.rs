//! The timeline of channels: the published runs of a live migration, and what looks only like a
//! trouble.

#![allow(clippy::unwrap_used, missing_docs)]

use smbscope_analysis::channels::{Brake, ChannelFindingKind, Channels, SessionTimeline, Timeline};
use smbscope_tables::tables::{Counter, Interface};
use smbscope_testing::channel_runs::{START_NS, Transfer, published};

const S: i64 = 1_000_000_000;

fn transfer(first_bytes_ns: &[i64]) -> Transfer {
    Transfer {
        recording: "run",
        first_bytes_ns: first_bytes_ns.to_vec(),
        weights: vec![1; first_bytes_ns.len()],
        lasts_ns: 30 * S,
        ramp_ns: 0,
        bytes: 10_000_000_000,
        deep_idle: None,
    }
}

fn timeline(runs: &[Transfer]) -> Channels {
    let mut timeline = Timeline::default();
    for run in runs {
        timeline.counters(&run.counters());
        timeline.channels(&run.rows());
    }
    timeline.finish().unwrap()
}

fn session<'a>(all: &'a Channels, recording: &str) -> &'a SessionTimeline {
    all.sessions.iter().find(|one| one.recording == recording).unwrap()
}

fn of(all: &Channels, trouble: ChannelFindingKind) -> Vec<(&str, &str)> {
    let found = all.findings.iter().filter(|one| one.kind == trouble);
    found.map(|one| (one.details.recording.as_str(), one.what.as_str())).collect()
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 0.01 * expected.abs()
}

#[test]
fn published_runs_say_what_their_author_concluded() {
    let all = timeline(&published());
    // Ramp-up: 19 of 74 and 20 of 53 seconds until the first byte, 3.5 afterwards.
    let after = |name| session(&all, name).first_byte_after_ns.unwrap() / 100_000_000;
    assert_eq!([after("one"), after("two")], [190, 200]);
    assert_eq!([after("one-tuned"), after("two-tuned")], [35, 35]);
    let two = session(&all, "two");
    assert_eq!((two.bytes(), two.lasted_ns, two.paths), (55_000_000_000, 53 * S, 2));
    assert!(two.plateau_after_ns.unwrap() > 20 * S && two.plateau_after_ns.unwrap() < 21 * S);
    assert!(near(two.plateau_bytes_per_second.unwrap(), 55e9 / 32.55), "{two:?}");
    assert_eq!(two.fairness, Some(1.0));
    // The second adapter: 1.4 of 2.0, 70 % of its promise; 1.67 without the ramp-up.
    let versus = two.versus.as_ref().unwrap();
    assert_eq!((versus.recording.as_str(), versus.promised), ("one", 2.0));
    assert!(near(versus.factor, 74.0 / 53.0) && near(versus.transfer_factor, 55.0 / 33.0));
    let little = of(&all, ChannelFindingKind::SecondPathBringsLittle);
    assert_eq!(little.len(), 1, "{little:?}");
    assert!(little[0].1.contains("1.4 times as fast") && little[0].1.contains("70 %"));
    // After the change it is 1.8 of 2.0, which is enough.
    assert!(near(session(&all, "two-tuned").versus.as_ref().unwrap().factor, 54.0 / 30.0));
    let slow: Vec<_> = of(&all, ChannelFindingKind::SlowRampUp);
    let names: Vec<_> = slow.iter().map(|one| one.0).collect();
    assert_eq!(names, ["one", "one-tuned", "two", "two-tuned"]);
    assert!(slow[2].1.contains("20.0 s pass until the first byte"), "{}", slow[2].1);
    // Power settings: 53 to 30 s.
    let power = of(&all, ChannelFindingKind::PowerSaving);
    assert_eq!(power.iter().map(|one| one.0).collect::<Vec<_>>(), ["one", "two"]);
    assert!(power[1].1.contains("84 % of the time until the plateau"), "{}", power[1].1);
    assert!(power[1].1.contains("took 30.0 s instead of 53.0 s: 43 % less"), "{}", power[1].1);
}

#[test]
fn a_quick_start_is_not_a_ramp_up() {
    let run = Transfer { deep_idle: Some((90.0, 90.0)), ..transfer(&[S / 10, S / 5]) };
    let all = timeline(&[run]);
    assert_eq!(all.findings, []);
    let one = session(&all, "run");
    assert_eq!(one.start_ns, START_NS);
    // The sum has its plateau once both carry bytes.
    assert_eq!(one.plateau_after_ns, Some(S / 5));
    let marks = |at: usize| {
        let channel = &one.channels[at];
        [channel.opened_ns, channel.bound_ns, channel.first_byte_ns, channel.plateau_ns]
            .map(|at| (at.unwrap() - START_NS) / 1_000_000)
    };
    assert_eq!(marks(0), [0, 5, 100, 100]);
    assert_eq!(marks(1), [0, 5, 200, 200]);
}

#[test]
fn times_count_from_the_opening_and_not_from_its_interval() {
    let mut rows = transfer(&[S / 10, S / 5]).rows();
    rows.iter_mut().for_each(|row| row.opened_at = Some(START_NS + 30_000_000));
    rows.iter_mut().for_each(|row| row.bound_at = Some(START_NS + 40_000_000));
    let mut timeline = Timeline::default();
    timeline.channels(&rows);
    let one = &timeline.finish().unwrap().sessions[0];
    assert_eq!((one.start_ns, one.first_byte_after_ns), (START_NS + 30_000_000, Some(70_000_000)));
}

#[test]
fn a_session_that_was_open_for_long_was_not_about_to_transfer() {
    let run = Transfer { lasts_ns: 160 * S, ..transfer(&[130 * S, 130 * S]) };
    assert_eq!(of(&timeline(&[run]), ChannelFindingKind::SlowRampUp), []);
}

#[test]
fn a_path_that_joins_late_shows_what_it_brings() {
    // The rates of both are constant, so that the second one doubles the sum.
    let all = timeline(&[transfer(&[0, 10 * S])]);
    let one = session(&all, "run");
    let gain = one.gain.unwrap();
    assert!(near(gain.factor, 2.0) && gain.promised == 2.0, "{gain:?}");
    assert_eq!(of(&all, ChannelFindingKind::SecondPathBringsLittle), []);
    let slow = of(&all, ChannelFindingKind::SlowRampUp);
    assert!(slow[0].1.contains("the channel to 10.0.1.2 carries its first byte 10.0 s after"));
    let run = Transfer { weights: vec![10, 2], ..transfer(&[0, 10 * S]) };
    let all = timeline(&[run]);
    let little = of(&all, ChannelFindingKind::SecondPathBringsLittle);
    assert!(little[0].1.contains("1.2 times what one carried before: 2.0 are promised"));
    let slowest = session(&all, "run").slowest.as_ref().unwrap();
    assert_eq!((slowest.connection, slowest.brake), (2, Brake::Unknown));
    assert!(!slowest.brakes_others);
    // Bytes 10 to 2 while both carry: (12^2) / (2 * 104).
    assert!(near(session(&all, "run").fairness.unwrap(), 144.0 / 208.0));
}

#[test]
fn what_limits_the_slowest_path_is_named() {
    let brake = |change: &dyn Fn(&mut smbscope_tables::tables::Channel)| {
        let run = Transfer { weights: vec![10, 1], ..transfer(&[0, 0]) };
        let mut rows = run.rows();
        rows.iter_mut().filter(|row| row.connection == 2).for_each(change);
        let mut timeline = Timeline::default();
        timeline.channels(&rows);
        timeline.finish().unwrap().sessions[0].slowest.as_ref().unwrap().brake
    };
    assert_eq!(brake(&|_| {}), Brake::Unknown);
    assert_eq!(brake(&|row| row.retransmissions = Some(100)), Brake::Loss);
    let one_by_one = |transferring_mean| {
        brake(&|row| (row.outstanding_mean, row.transferring_mean) = (1.0, transferring_mean))
    };
    assert_eq!(one_by_one(0.3), Brake::Requests);
    assert_eq!(one_by_one(0.9), Brake::Path);
    // 30 MB/s are 300 kB in flight in 10 ms.
    let window = |row: &mut smbscope_tables::tables::Channel| {
        (row.bytes_in_flight_max, row.round_trip_ns) = (Some(300_000), Some(10_000_000));
    };
    assert_eq!(brake(&window), Brake::Window);
}

#[test]
fn refused_and_unused_interfaces_are_named() {
    let mut rows = transfer(&[0]).rows();
    let mut refused = rows[0].clone();
    (refused.connection, refused.server, refused.channel) = (9, "127.0.0.1".into(), None);
    (refused.first_byte_at, refused.bytes_written) = (None, 0);
    refused.bind_status = Some("STATUS_USER_SESSION_DELETED".into());
    rows.push(refused.clone());
    let offer = |address: &str, reason: &str| Interface {
        recording: "run".into(),
        session_id: Some(0x77),
        client: "10.0.0.1".into(),
        address: address.into(),
        rss_capable: true,
        link_bits_per_second: 10_000_000_000,
        used: reason == "used",
        reason: reason.into(),
        ..Interface::default()
    };
    let mut timeline = Timeline::default();
    timeline.channels(&rows);
    timeline.interfaces(&[
        offer("10.0.0.2", "used"),
        offer("10.0.1.2", "subnet"),
        offer("10.0.2.2", "speed_class"),
        offer("127.0.0.1", "refused"),
    ]);
    let all = timeline.finish().unwrap();
    let unused = of(&all, ChannelFindingKind::InterfaceUnused);
    assert!(
        unused[0].1.contains("10.0.1.2 (10.0 Gbit/s): the client has no address in its subnet")
    );
    assert!(!unused[0].1.contains("10.0.2.2"));
    let found = of(&all, ChannelFindingKind::BindRefused);
    assert!(found[0].1.contains("1 of 2 connections to 127.0.0.1"));
    assert!(found[0].1.contains("loopback address"), "{}", found[0].1);
    assert_eq!(all.sessions[0].channels[0].link_bits_per_second, Some(10_000_000_000));
    // Encryption for everything.
    refused.bind_status = Some("STATUS_ACCESS_DENIED".into());
    refused.server = "10.0.1.2".into();
    let mut timeline = Timeline::default();
    timeline.channels(&transfer(&[0]).rows());
    timeline.channels(&[refused]);
    let all = timeline.finish().unwrap();
    assert!(
        of(&all, ChannelFindingKind::BindRefused)[0]
            .1
            .contains("require encryption for everything")
    );
}

#[test]
fn channels_on_one_interface_that_claims_rss_without_need() {
    let mut rows = Transfer { weights: vec![50, 1], ..transfer(&[0, 0]) }.rows();
    rows.iter_mut().for_each(|row| row.server = "10.0.0.2".into());
    let interface = Interface {
        recording: "run".into(),
        session_id: Some(0x77),
        address: "10.0.0.2".into(),
        rss_capable: true,
        used: true,
        reason: "used".into(),
        ..Interface::default()
    };
    let found = |interface: Interface| {
        let mut timeline = Timeline::default();
        timeline.channels(&rows);
        timeline.interfaces(&[interface]);
        of(&timeline.finish().unwrap(), ChannelFindingKind::RssWithoutNeed).len()
    };
    assert_eq!(found(interface.clone()), 1);
    assert_eq!(found(Interface { rss_capable: false, ..interface }), 0);
}

#[test]
fn one_connection_without_interfaces_has_no_timeline() {
    let mut timeline = Timeline::default();
    timeline.channels(&transfer(&[0]).rows());
    assert_eq!(timeline.finish(), None);
    assert_eq!(Timeline::default().finish(), None);
}

#[test]
fn processor_time_and_rdma_come_from_counters() {
    let run = transfer(&[0, 0]);
    let counter =
        |source: &'static str, name: &'static str, instance: Option<&'static str>, value: f64| {
            (1..=30).map(move |second| Counter {
                recording: "run".into(),
                time: START_NS + second * S,
                source: source.into(),
                name: name.into(),
                instance: instance.map(str::to_owned),
                value,
                ..Counter::default()
            })
        };
    let (smbd, all) = (Some("smbd"), None);
    let mut rows: Vec<Counter> = Vec::new();
    rows.extend(counter("server", "process_cpu_percent", smbd, 50.0));
    rows.extend(counter("server", "process_cpu_system_percent", smbd, 40.0));
    rows.extend(counter("server", "cpu_percent", all, 25.0));
    rows.extend(counter("server", "cpu_percent", Some("cpu3"), 25.0));
    rows.extend(counter("server", "cpu_softirq_percent", all, 5.0));
    rows.extend(counter("client", "rdma_transmit_bytes_per_second", Some("mlx5_0/1"), 1e8));
    rows.extend(counter("server", "rdma_receive_bytes_per_second", Some("mlx5_0/1"), 0.9e8));
    let mut timeline = Timeline::default();
    timeline.counters(&rows);
    timeline.channels(&run.rows());
    let all = timeline.finish().unwrap();
    let one = session(&all, "run");
    // 15 s of a CPU for 10 GB; the machine has four.
    let costs: Vec<_> = (one.cpu.iter())
        .map(|cost| (cost.process.as_deref(), cost.seconds_per_gb, cost.softirq_seconds_per_gb))
        .collect();
    assert_eq!(costs, [(Some("smbd"), 1.5, None), (None, 3.0, Some(0.6))]);
    assert_eq!(one.cpu[0].user_seconds_per_gb, Some(0.3));
    assert!(near(one.rdma_bytes.unwrap(), 3e9));
    assert!(near(one.rdma_bytes_per_second[150], 1e8));
    // TCP carries more than that until it ends.
    assert_eq!(one.rdma_after_ns, None);
}

#[test]
fn rdma_takes_over_from_tcp() {
    let session = |rows: &[Counter]| {
        let mut timeline = Timeline::default();
        timeline.counters(rows);
        timeline.channels(&transfer(&[0, 0]).rows());
        timeline.interfaces(&[Interface {
            recording: "run".into(),
            session_id: Some(0x77),
            address: "10.0.0.2".into(),
            rdma_capable: true,
            ..Interface::default()
        }]);
        timeline.finish().unwrap().sessions.remove(0)
    };
    let tcp = session(&[]);
    // Starting at 60 s, which is after TCP's last byte, the adapter moves 10 GB/s for 20 s.
    let rows: Vec<Counter> = (1..=100)
        .map(|second| Counter {
            recording: "run".into(),
            time: START_NS + second * S,
            source: "client".into(),
            name: "rdma_transmit_bytes_per_second".into(),
            instance: Some("mlx5_0/1".into()),
            value: if (61..=80).contains(&second) { 1e10 } else { 2e3 },
            ..Counter::default()
        })
        .collect();
    let one = session(&rows);
    assert_eq!((tcp.rdma_after_ns, one.rdma_after_ns), (None, Some(60 * S)));
    assert!(near(one.rdma_bytes.unwrap(), 2e11), "{:?}", one.rdma_bytes);
    let width = one.bin_ns;
    assert_eq!(one.rdma_bytes_per_second.len(), one.channels[0].bytes_per_second.len());
    assert!(near(one.rdma_bytes_per_second[(70 * S / width) as usize], 1e10));
    assert_eq!(one.plateau_bytes_per_second, tcp.plateau_bytes_per_second);
    // A counter log of the same time is a recording of its own; one of another day says nothing.
    let other = |day: i64| {
        let day_ns = day * 86_400 * S;
        let of = |row: &Counter| Counter {
            recording: format!("counters {day}.csv"),
            time: row.time + day_ns,
            ..row.clone()
        };
        session(&rows.iter().map(of).collect::<Vec<_>>())
    };
    assert_eq!(other(0), one);
    assert_eq!(other(1), tcp);
}

#[test]
fn times_that_jump_do_no_harm() {
    let mut rows = transfer(&[0, 0]).rows();
    for (place, row) in rows.iter_mut().enumerate() {
        let wild = (place as i64).wrapping_mul(0x1234_5678_9abc_def1);
        (row.interval_start, row.interval_ns) = (wild, place as u64 % 3);
        row.bytes_written = u64::MAX / 2;
        row.outstanding_mean = f64::NAN;
    }
    let mut timeline = Timeline::default();
    timeline.channels(&rows);
    assert_eq!(timeline.finish().unwrap().sessions[0].channels.len(), 2);
}

/// What is prepared and verified is not part of the transfer.
#[test]
fn only_the_measured_part_of_a_run_counts() {
    let run = transfer(&[0, S / 10]);
    let mut rows = run.rows();
    rows.iter_mut().for_each(|row| {
        (row.phase, row.phase_at) = (Some("measured".into()), Some(START_NS));
    });
    let plain = {
        let mut timeline = Timeline::default();
        timeline.channels(&rows);
        session(&timeline.finish().unwrap(), "run").clone()
    };
    // Five seconds of writing by the first channel alone before, and of reading after.
    let mut all = rows.clone();
    let other = |phase: &'static str, from: i64| {
        let first = rows.iter().filter(|row| row.connection == 1 && row.bytes_written > 0);
        first.take(50).cloned().map(move |mut row| {
            (row.phase, row.phase_at) = (Some(phase.into()), Some(from));
            row.interval_start = row.interval_start - START_NS + from;
            row.first_byte_at = Some(from);
            row
        })
    };
    all.extend(other("preparing", START_NS - 5 * S));
    all.extend(other("verifying", START_NS + 40 * S));
    let mut timeline = Timeline::default();
    all.iter_mut().for_each(|row| row.opened_at = row.opened_at.map(|at| at - 6 * S));
    timeline.channels(&all);
    let found = timeline.finish().unwrap();
    let one = session(&found, "run");
    assert_eq!((one.bytes(), plain.bytes()), (10_000_000_000, 10_000_000_000));
    assert_eq!((one.start_ns, one.first_byte_after_ns), (START_NS, Some(0)));
    assert_eq!((one.lasted_ns, one.fairness), (plain.lasted_ns, plain.fairness));
    assert_eq!(one.plateau_bytes_per_second, plain.plateau_bytes_per_second);
    assert_eq!(of(&found, ChannelFindingKind::SlowRampUp), []);
}

/// A run that moves bulk data is shown with one channel, too: it is what others are compared with.
#[test]
fn a_run_over_one_channel_has_a_timeline() {
    let mut rows = Transfer { bytes: 1_000_000, ..transfer(&[0]) }.rows();
    rows.iter_mut().for_each(|row| row.phase = Some("measured".into()));
    let mut timeline = Timeline::default();
    timeline.channels(&rows);
    assert_eq!(timeline.finish().unwrap().sessions.len(), 1);
}

/// A path is cut after 5 s; a new channel to it carries data starting at 15 s.
fn cut(repeated: Option<u64>) -> Channels {
    let mut rows = transfer(&[0, 0]).rows();
    for row in &mut rows {
        let second = (row.interval_start - START_NS) / S;
        if row.connection == 2 {
            if second >= 15 {
                (row.connection, row.channel) = (3, Some(2));
                row.opened_at = Some(START_NS + 15 * S - S / 10);
                row.bound_at = row.opened_at;
                row.first_byte_at = Some(START_NS + 15 * S);
            } else {
                if second >= 5 {
                    row.bytes_written = 0;
                }
                row.lost_at = Some(START_NS + 5 * S);
                row.lost_reason = Some("no reply within 5s".into());
                row.repeated = repeated;
            }
        }
    }
    let mut timeline = Timeline::default();
    timeline.channels(&rows);
    timeline.finish().unwrap()
}

#[test]
fn a_lost_channel_is_named_and_its_successor_is_not_late() {
    let all = cut(Some(8));
    let lost = of(&all, ChannelFindingKind::ChannelLost);
    assert_eq!(
        lost[0].1,
        "the channel to 10.0.1.2 was lost 5.0 s after the start (no reply within 5s); 8 requests were repeated on \
         others; a new channel to it carries data starting at 15.0 s"
    );
    assert_eq!(of(&all, ChannelFindingKind::SlowRampUp), []);
    let one = session(&all, "run");
    let channel = &one.channels[1];
    assert_eq!((channel.lost_ns, channel.repeated), (Some(START_NS + 5 * S), Some(8)));
    // One path was alone for ten seconds in between.
    let gain = one.gain.unwrap();
    assert!(near(gain.factor, 2.0) && gain.promised == 2.0, "{gain:?}");
    // A capture does not know what was repeated.
    let all = cut(None);
    assert!(!of(&all, ChannelFindingKind::ChannelLost)[0].1.contains("repeated"));
    assert!(cut(Some(1)).findings[0].what.contains("; 1 request was repeated on others"));
}

/// A client that opens a channel late decided to: idle states of CPUs are not the reason.
#[test]
fn a_channel_that_is_opened_late_is_not_blamed_on_power() {
    let remedies = |opened: i64| {
        let mut rows = transfer(&[0, 10 * S]).rows();
        for row in rows.iter_mut().filter(|row| row.connection == 2) {
            row.opened_at = Some(START_NS + opened);
            row.bound_at = row.opened_at;
        }
        let mut timeline = Timeline::default();
        timeline.channels(&rows);
        let all = timeline.finish().unwrap();
        let mut found = all.findings.into_iter();
        let found = found.find(|one| one.kind == ChannelFindingKind::SlowRampUp).unwrap();
        (found.what, found.remedies.iter().any(|one| one.action.contains("idle")))
    };
    assert!(remedies(0).1);
    let (what, has_power) = remedies(9 * S);
    assert!(!has_power && what.contains("the client opened it 9.0 s after that byte"), "{what}");
}

/// A capture sees the requests of a full path one at a time, because the others wait in the client.
#[test]
fn a_full_path_is_not_a_lack_of_requests() {
    let brake = |trip: i64| {
        let run = Transfer { weights: vec![10, 1], ..transfer(&[0, 0]) };
        let mut rows = run.rows();
        for (place, row) in rows.iter_mut().filter(|row| row.connection == 2).enumerate() {
            (row.outstanding_mean, row.transferring_mean) = (1.0, 0.3);
            // 30 MB/s: 3 MB in 100 ms.
            row.bytes_in_flight_max = Some(3_500_000);
            row.round_trip_ns = Some(if place == 0 { 1_000_000 } else { trip });
        }
        let mut timeline = Timeline::default();
        timeline.channels(&rows);
        timeline.finish().unwrap().sessions[0].slowest.as_ref().unwrap().brake
    };
    assert_eq!(brake(100_000_000), Brake::Path);
    // Without a queue it is what it was.
    assert_eq!(brake(1_000_000), Brake::Requests);
}
