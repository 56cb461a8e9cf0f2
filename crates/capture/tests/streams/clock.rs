//! Clocks that step back, and packets that a file has in another order than that of their times.

use smbscope_capture::Options;

use crate::support::decode::{Decoded, Row, assert_same, decode, single};
use crate::support::packets::{Packet, Sending, mixed, pcap};
use crate::support::smb2::{data, read};
use crate::support::talk::Talk;
use crate::{ALL, FRAMES};

const MS: i64 = 1_000_000;
const READS: u64 = 60;
/// From a Read to its reply, and from there to the next Read.
const SERVER_NS: i64 = 2 * MS;
const PAUSE_NS: i64 = 3 * MS;

/// What a step does not change.
const DURATIONS: [&str; 7] = [
    "message_id",
    "status",
    "request_transfer_ns",
    "turnaround_ns",
    "response_transfer_ns",
    "elapsed_ns",
    "busy_ns",
];

/// Reads one after another.
fn reads(client_port: u16, late_ns: i64) -> Vec<Packet> {
    some_reads(READS, client_port, late_ns)
}

fn some_reads(count: u64, client_port: u16, late_ns: i64) -> Vec<Packet> {
    let mut talk = Talk::new();
    talk.pass(late_ns);
    talk.connect();
    for id in 4..4 + count {
        talk.ask(read(id, 1, id << 12, 4_096).framed());
        talk.pass(SERVER_NS);
        talk.answer(data(id, &[0x20; 4_096]).framed());
        talk.pass(PAUSE_NS);
    }
    Sending { client_port, ..Sending::default() }.aligned(&talk)
}

fn decoded(packets: &[Packet]) -> Decoded {
    decode(&pcap(packets, ALL, false), &single())
}

fn durations(decoded: &Decoded) -> Vec<Row> {
    let mut rows = decoded.rows();
    rows.iter_mut().for_each(|row| row.retain(|name, _| DURATIONS.contains(&name.as_str())));
    rows
}

/// The packets, with all times from a place on moved by that.
fn stepped(packets: &[Packet], place: usize, step_ns: i64) -> Vec<Packet> {
    let mut out = packets.to_vec();
    out.iter_mut().skip(place).for_each(|packet| packet.time += step_ns);
    out
}

/// The place of the first packet of a direction from another place on.
fn next_of(packets: &[Packet], to_server: bool, from: usize) -> usize {
    from + packets[from..].iter().position(|packet| packet.to_server == to_server).unwrap()
}

#[test]
fn a_step_of_the_clock_keeps_durations() {
    let packets = reads(50_000, 0);
    let expected = decoded(&packets);
    let place = next_of(&packets, true, packets.len() / 2);
    for step_ns in [3_600_000 * MS, 1_000 * MS, 20 * MS] {
        let seen = decoded(&stepped(&packets, place, -step_ns));
        assert_same(&durations(&expected), &durations(&seen), "step");
        let coverage = &seen.coverage[0];
        assert_eq!((coverage.clock_steps, coverage.frames_time_backwards), (1, 1));
        // The pause in which it happened has no length.
        assert_eq!(coverage.clock_step_ns, Some((step_ns - PAUSE_NS) as u64));
        assert_eq!(coverage.clock_step_frame, Some(place as u64 + 1));
        assert_eq!(coverage.start, expected.coverage[0].start);
        assert_eq!(coverage.end, expected.coverage[0].end.map(|end| end - PAUSE_NS));
    }
}

#[test]
fn a_step_moves_all_connections_and_any_number_of_threads_sees_it() {
    let connections = (0..5).map(|index| reads(50_000 + index, i64::from(index) * 900_000));
    let mut packets = mixed(connections.collect());
    // One begins behind the step.
    let late = reads(51_000, 150 * MS);
    let place = next_of(&packets, true, packets.len() / 2);
    packets.extend(late);
    packets.sort_by_key(|packet| packet.time);
    let expected = decoded(&packets);
    let capture = pcap(&stepped(&packets, place, -60_000 * MS), ALL, false);
    let one = decode(&capture, &single());
    let three = decode(&capture, &Options { threads: 3, ..Options::default() });
    assert_same(&one.rows(), &three.rows(), "threads");
    assert_eq!(one.coverage, three.coverage);
    assert_eq!(one.coverage[0].clock_steps, 1);
    let elapsed = |decoded: &Decoded| -> Vec<_> {
        let rows = decoded.rows();
        rows.iter().map(|row| (row["connection"].clone(), row["elapsed_ns"].clone())).collect()
    };
    let differ = elapsed(&expected).into_iter().zip(elapsed(&one)).filter(|(one, two)| one != two);
    // Those in flight at the step are shorter by the time between two packets.
    assert!(differ.count() <= 6);
}

#[test]
fn one_packet_with_a_wrong_time_is_no_step() {
    let packets = reads(50_000, 0);
    let expected = durations(&decoded(&packets));
    let place = next_of(&packets, true, packets.len() / 2);
    let mut wrong = packets.clone();
    wrong[place].time -= 3_600_000 * MS;
    let seen = decoded(&wrong);
    assert_eq!(seen.coverage[0].clock_steps, 0);
    let differ = expected.iter().zip(&durations(&seen)).filter(|(one, two)| one != two).count();
    assert_eq!(differ, 1);
}

#[test]
fn an_earlier_recording_behind_a_later_one_is_no_step() {
    let mut packets = reads(50_000, 3_600_000 * MS);
    packets.extend(reads(50_001, 0));
    let seen = decoded(&packets);
    assert_eq!(seen.coverage[0].clock_steps, 0);
    let left_out: Vec<_> = FRAMES.iter().chain(&["connection"]).copied().collect();
    let alone = decoded(&reads(50_001, 0)).rows_without(&left_out);
    let rows = seen.rows_without(&left_out);
    let start = &alone[0]["request_start"];
    assert!(rows.iter().any(|row| row.get("request_start") == Some(start)));
    assert_same(&durations(&decoded(&packets)), &durations(&seen), "appended");
    assert!(durations(&seen).iter().skip(4).all(|row| row["elapsed_ns"] != "0"));
}

/// A recorder with one queue per direction: of each `block` packets of one queue, then of the
/// other.
fn two_queues(packets: &[Packet], block: usize) -> Vec<Packet> {
    let (to_server, to_client): (Vec<_>, Vec<_>) =
        packets.iter().cloned().partition(|packet| packet.to_server);
    let mut queues = [to_server.into_iter().peekable(), to_client.into_iter().peekable()];
    let mut out = Vec::new();
    while queues.iter_mut().any(|queue| queue.peek().is_some()) {
        for queue in &mut queues {
            out.extend(queue.by_ref().take(block));
        }
    }
    out
}

/// In what is read at once, the order of the file does not matter.
#[test]
fn queues_that_are_written_one_after_another_do_not_matter() {
    let connections =
        (0..3).map(|index| some_reads(12, 50_000 + index, i64::from(index) * 400_000));
    let packets = mixed(connections.collect());
    let expected = decoded(&packets).rows_without(FRAMES);
    for block in [1, 2, 7, 20, 64] {
        let seen = decoded(&two_queues(&packets, block));
        assert_same(&expected, &seen.rows_without(FRAMES), &format!("queues in blocks of {block}"));
        assert_eq!(seen.coverage[0].clock_steps, 0);
        assert_eq!(seen.coverage[0].gaps, 0);
    }
}

/// Longer than what is read at once, so that times are not put in order everywhere.
#[test]
fn each_packet_keeps_its_time_across_pieces_of_the_file() {
    let talk = |client_port| {
        let mut talk = Talk::new();
        talk.connect();
        for id in 4..300 {
            talk.ask(read(id, 1, id << 12, 4_096).framed());
            talk.pass(SERVER_NS);
            talk.answer(data(id, &[0x20; 4_096]).framed());
            talk.pass(PAUSE_NS);
        }
        Sending { client_port, ..Sending::default() }.aligned(&talk)
    };
    let seen = decoded(&two_queues(&talk(50_000), 50));
    let elapsed = seen.numbers("elapsed_ns");
    assert_eq!(elapsed.len(), 300);
    assert!(elapsed.iter().skip(4).all(|&elapsed| elapsed == Some(SERVER_NS)), "{elapsed:?}");
}
