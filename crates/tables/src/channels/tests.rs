//! Rows of the table `channels` from operations and events.

use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;

fn write(bytes: u64, from: i64, to: i64) -> Transfer {
    Transfer {
        direction: Direction::Write,
        bytes,
        request: (from, to),
        response: (to, to),
        outstanding: Some(3),
    }
}

fn rows(channels: &mut Channels) -> Vec<Channel> {
    channels.finish();
    channels.take_rows(&"monday".into())
}

fn opened(at: i64) -> Opened {
    Opened {
        at: Some(at),
        client: "10.0.0.1".into(),
        server: "10.0.0.2".into(),
        ..Opened::default()
    }
}

#[test]
fn payload_is_spread_over_the_time_on_the_wire() {
    let mut channels = Channels::default();
    channels.open(1, 0, opened(20 * MS));
    channels.bind(1, 77, 0, Some(30 * MS));
    // 250 ms, starting at 50 ms: 50, 100 and 100 ms.
    channels.transfer(1, Some(77), &write(1_000, 50 * MS, 300 * MS));
    let rows = rows(&mut channels);
    let parts: Vec<_> =
        rows.iter().map(|row| (row.interval_start / MS, row.bytes_written)).collect();
    // It ends where the fourth interval begins, so the operation counts there.
    assert_eq!(parts, [(0, 200), (100, 400), (200, 400), (300, 0)]);
    assert_eq!(rows.iter().map(|row| row.operations).collect::<Vec<_>>(), [0, 0, 0, 1]);
    let means: Vec<_> = rows.iter().map(|row| row.outstanding_mean).collect();
    assert_eq!(means, [0.5, 1.0, 1.0, 0.0]);
    let means: Vec<_> = rows.iter().map(|row| row.transferring_mean).collect();
    assert_eq!(means, [0.5, 1.0, 1.0, 0.0]);
    let row = &rows[0];
    assert_eq!((&*row.recording, row.session_id, row.channel), ("monday", Some(77), Some(0)));
    assert_eq!((row.opened_at, row.bound_at), (Some(20 * MS), Some(30 * MS)));
    assert_eq!((row.first_byte_at, row.outstanding_max), (Some(50 * MS), Some(4)));
    assert_eq!((row.round_trip_ns, row.retransmissions), (None, None));
}

#[test]
fn a_channel_that_is_refused_or_never_used_has_a_row() {
    let mut channels = Channels::default();
    channels.open(1, 0, opened(0));
    channels.open(2, 0, opened(5 * MS));
    channels.refuse(2, 77, 8 * MS, "STATUS_REQUEST_NOT_ACCEPTED");
    let rows = rows(&mut channels);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].session_id, rows[0].bind_status.as_deref()), (None, None));
    assert_eq!(rows[1].session_id, Some(77));
    assert_eq!(rows[1].bind_status.as_deref(), Some("STATUS_REQUEST_NOT_ACCEPTED"));
    assert_eq!((rows[1].channel, rows[1].bytes_written), (None, 0));
}

#[test]
fn sessions_of_one_connection_are_separate() {
    let mut channels = Channels::default();
    channels.open(1, 0, opened(0));
    channels.bind(1, 7, 0, Some(1));
    channels.bind(1, 8, 0, Some(2));
    channels.transfer(1, Some(7), &write(10, 3, 4));
    channels.transfer(1, Some(8), &write(20, 3, 4));
    let sample =
        Network { bytes_in_flight: Some(9), round_trip_ns: Some(5), retransmissions: Some(2) };
    channels.network(1, 5, &sample);
    channels.network(1, 6, &Network { round_trip_ns: Some(4), ..sample });
    let rows = rows(&mut channels);
    let sums: Vec<_> = rows.iter().map(|row| (row.session_id, row.bytes_written)).collect();
    assert_eq!(sums, [(Some(7), 10), (Some(8), 20)]);
    assert_eq!((rows[0].bytes_in_flight_max, rows[0].round_trip_ns), (Some(9), Some(4)));
    assert_eq!((rows[0].retransmissions, rows[1].retransmissions), (Some(4), None));
}

#[test]
fn rows_come_when_their_interval_is_over_and_late_bytes_make_another() {
    let mut channels = Channels::default();
    channels.open(1, 0, opened(0));
    channels.transfer(1, None, &write(10, 0, MS));
    channels.advance(SETTLE_NS);
    assert_eq!(channels.rows_waiting(), 0);
    channels.advance(2 * SETTLE_NS);
    assert_eq!(channels.take_rows(&"r".into()).len(), 1);
    channels.transfer(1, None, &write(1_000, 0, 10_000 * MS));
    let late = rows(&mut channels);
    assert_eq!(late.iter().map(|row| row.bytes_written).sum::<u64>(), 1_000);
    assert_eq!(late[0].interval_start, 0);
}

#[test]
fn connections_beyond_the_limit_are_counted() {
    let mut channels = Channels::new(Limits { connections: 1, interval_ns: 0 });
    channels.open(1, 0, opened(0));
    channels.open(2, 0, opened(0));
    channels.transfer(2, None, &write(10, 0, MS));
    assert_eq!(channels.not_followed(), 1);
    assert_eq!(rows(&mut channels).len(), 1);
}

#[test]
fn phases_have_rows_and_first_bytes_of_their_own() {
    let mut channels = Channels::default();
    channels.open(1, 0, opened(0));
    channels.bind(1, 7, 0, Some(MS));
    channels.begin_phase("preparing", 2 * MS);
    channels.transfer(1, Some(7), &write(1_000, 3 * MS, 20 * MS));
    channels.begin_phase("measured", 30 * MS);
    channels.transfer(1, Some(7), &write(50, 31 * MS, 40 * MS));
    channels.lose(1, 130 * MS, "no reply within 2s", Some(3));
    channels.begin_phase("verifying", 400 * MS);
    let rows = rows(&mut channels);
    let of = |row: &Channel| {
        (row.phase.clone(), row.phase_at, row.bytes_written, row.first_byte_at, row.lost_at)
    };
    let named = |name: &'static str| Some(std::borrow::Cow::Borrowed(name));
    let lost = Some(130 * MS);
    assert_eq!(
        rows.iter().map(of).collect::<Vec<_>>(),
        [
            (None, None, 0, None, None),
            (named("preparing"), Some(2 * MS), 1_000, Some(3 * MS), None),
            (named("measured"), Some(30 * MS), 50, Some(31 * MS), lost),
            (named("measured"), Some(30 * MS), 0, Some(31 * MS), lost),
        ]
    );
    let last = rows.last().unwrap();
    assert_eq!(last.lost_reason.as_deref(), Some("no reply within 2s"));
    assert_eq!(last.repeated, Some(3));
}

proptest! {
    #[test]
    fn no_byte_is_lost(
        transfers in prop::collection::vec(
            (1_u64..5, any::<bool>(), 0_u64..1 << 40, 0_i64..1 << 40, 0_i64..1 << 40), 0..40),
        advance in 0_i64..1 << 41,
    ) {
        let mut channels = Channels::default();
        (1..4).for_each(|connection| channels.open(connection, 0, opened(0)));
        let mut sums = [0_u64; 4];
        for (place, &(connection, writes, bytes, from, to)) in transfers.iter().enumerate() {
            let (direction, slot) =
                if writes { (Direction::Write, 0) } else { (Direction::Read, 2) };
            let transfer = Transfer {
                direction, bytes, request: (from, to), response: (from, to), outstanding: None,
            };
            channels.transfer(connection, Some(place as u64 % 2), &transfer);
            if connection < 4 {
                sums[slot] += bytes;
                sums[slot + 1] += 1;
            }
            if place == transfers.len() / 2 {
                channels.advance(advance);
            }
        }
        let rows = rows(&mut channels);
        prop_assert_eq!(rows.iter().map(|row| row.bytes_written).sum::<u64>(), sums[0]);
        prop_assert_eq!(rows.iter().map(|row| row.bytes_read).sum::<u64>(), sums[2]);
        prop_assert_eq!(rows.iter().map(|row| row.operations).sum::<u64>(), sums[1] + sums[3]);
    }
}
