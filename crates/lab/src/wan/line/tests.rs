//! Tests of the link model: rate, delay, order, loss, queue.

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn path() -> Path {
    Path {
        delay_ns: 0,
        jitter_ns: 0,
        rate_bits: None,
        queue_bytes: u64::MAX / 2,
        loss: 0.0,
        loss_burst: None,
        overhead_bytes: 0,
        memory_bytes: u64::MAX / 2,
    }
}

fn drain(line: &mut Line<u32>) -> Vec<(u64, u32)> {
    std::iter::from_fn(|| line.take(u64::MAX)).collect()
}

#[test]
fn a_frame_takes_its_time_at_the_rate_and_then_the_delay() {
    let path = Path { delay_ns: 10 * MS, rate_bits: Some(45_000_000), ..path() };
    let mut line = Line::new(path, 1, 0);
    // 1514 bytes at 45 Mb/s are 269,155.55 ns.
    assert_eq!(line.offer(5 * S, 1514, 0), Ok(5 * S + 10 * MS + 269_155));
    assert_eq!(line.offer(5 * S, 1514, 1), Ok(5 * S + 10 * MS + 538_311));
    assert_eq!(line.in_flight(), (2, 3028));
    assert_eq!(line.take(5 * S + 10 * MS), None);
    assert_eq!(line.next_ns(), Some(5 * S + 10 * MS + 269_155));
    assert_eq!(line.take(5 * S + 11 * MS), Some((5 * S + 10 * MS + 269_155, 0)));
    // After a pause the transmitter begins when the frame comes.
    assert_eq!(line.offer(6 * S, 1514, 2), Ok(6 * S + 10 * MS + 269_155));
}

#[test]
fn without_a_rate_there_is_delay_only() {
    let mut line = Line::new(Path { delay_ns: 10 * MS, queue_bytes: 0, ..path() }, 1, 0);
    for frame in 0..100 {
        assert_eq!(line.offer(7, 1514, frame), Ok(7 + 10 * MS));
    }
    assert_eq!(line.queue_bytes_max(), 0);
}

#[test]
fn the_overhead_counts_at_the_rate_only() {
    let on_wire = Path { rate_bits: Some(1_000_000_000), overhead_bytes: 24, ..path() };
    let mut line = Line::new(on_wire, 1, 0);
    assert_eq!(line.offer(0, 1514, 0), Ok((1514 + 24) * 8));
    assert_eq!(line.in_flight(), (1, 1514));
    let mut line = Line::new(Path { overhead_bytes: -2000, ..on_wire }, 1, 0);
    assert_eq!(line.offer(0, 1514, 0), Ok(8), "at least one byte");
}

#[test]
fn a_full_queue_drops_the_last_and_empties_as_frames_are_sent() {
    // 1000 bytes take 1 ms.
    let path = Path { rate_bits: Some(8_000_000), queue_bytes: 2_500, ..path() };
    let mut line = Line::new(path, 1, 0);
    assert!(line.offer(0, 1000, 0).is_ok(), "is being sent, waits for nothing");
    assert!(line.offer(0, 1000, 1).is_ok());
    assert!(line.offer(0, 1000, 2).is_ok());
    assert_eq!(line.offer(0, 1000, 3), Err((Drop::Queue, 3)));
    assert_eq!(line.offer(0, 500, 4), Ok(3_500_000), "what fits is taken");
    assert_eq!(line.offer(MS - 1, 1000, 5), Err((Drop::Queue, 5)));
    assert_eq!(line.offer(MS, 1000, 6), Ok(4_500_000), "the second is being sent now");
    assert_eq!(line.queue_bytes_max(), 2_500);
    // An idle transmitter can send even if the queue has no room.
    let mut line = Line::new(Path { queue_bytes: 0, ..path }, 1, 0);
    assert!(line.offer(0, 1000, 0).is_ok());
    assert_eq!(line.offer(MS - 1, 1000, 1), Err((Drop::Queue, 1)));
    assert!(line.offer(MS, 1000, 2).is_ok());
}

#[test]
fn memory_is_bounded_whatever_the_delay() {
    let mut line = Line::new(Path { delay_ns: S, memory_bytes: 3_500, ..path() }, 1, 0);
    assert!(line.offer(0, 1500, 0).is_ok() && line.offer(0, 1500, 1).is_ok());
    // Each frame counts with its memory overhead.
    assert_eq!(line.offer(0, 1500, 2), Err((Drop::Memory, 2)));
    assert!(line.take(S).is_some());
    assert!(line.offer(S, 1500, 3).is_ok());
}

#[test]
fn lost_frames_have_their_share_and_take_their_time() {
    let path = Path { loss: 0.01, rate_bits: Some(1_000_000_000), ..path() };
    let mut line = Line::new(path, 7, 0);
    let frames = 200_000;
    let lost = (0..frames).filter(|&n| line.offer(0, 1250, n).is_err()).count();
    // Binomial: 2000 +- 45; five times that never happens by chance.
    assert!((1_780..2_220).contains(&lost), "{lost}");
    assert_eq!(drain(&mut line).last().map(|(at, _)| *at), Some(u64::from(frames) * 10_000));
}

#[test]
fn bursts_have_their_share_and_their_length() {
    let path = Path { loss: 0.02, loss_burst: Some(5.0), ..path() };
    let mut line = Line::new(path, 7, 0);
    let lost: Vec<bool> = (0..400_000).map(|n| line.offer(0, 1, n).is_err()).collect();
    let share = lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64;
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    assert!((0.018..0.022).contains(&share), "{share}");
    let mean = share * lost.len() as f64 / bursts;
    assert!((4.6..5.4).contains(&mean), "{mean}");
}

#[test]
fn losses_follow_from_the_seed_and_the_direction() {
    let lost = |seed, stream, jitter_ns| -> Vec<bool> {
        let path = Path { loss: 0.2, delay_ns: MS, jitter_ns, ..path() };
        let mut line = Line::new(path, seed, stream);
        (0..500u32).map(|n| line.offer(u64::from(n), 1, n).is_err()).collect()
    };
    assert_eq!(lost(1, 0, 0), lost(1, 0, 1000), "jitter is a stream of its own");
    assert_ne!(lost(1, 0, 0), lost(1, 1, 0));
    assert_ne!(lost(1, 0, 0), lost(2, 0, 0));
}

#[test]
fn jitter_stays_within_its_bounds() {
    let path = Path { delay_ns: 10 * MS, jitter_ns: 2 * MS, ..path() };
    let mut line = Line::new(path, 3, 0);
    // So far apart that no frame catches up with another.
    let delays: Vec<u64> = (0..10_000u32)
        .map(|n| line.offer(u64::from(n) * S, 100, n).unwrap() - u64::from(n) * S)
        .collect();
    assert!(delays.iter().all(|delay| (8 * MS..=12 * MS).contains(delay)));
    let mean = delays.iter().sum::<u64>() / 10_000;
    assert!(mean.abs_diff(10 * MS) < MS / 10, "{mean}");
    assert!(
        *delays.iter().min().unwrap() < 81 * MS / 10
            && *delays.iter().max().unwrap() > 119 * MS / 10
    );
}

#[derive(Clone, Debug)]
struct Offered {
    after_ns: u64,
    bytes: u32,
}

fn traffic() -> impl Strategy<Value = Vec<Offered>> {
    let one =
        (0u64..400_000, 40u32..2000).prop_map(|(after_ns, bytes)| Offered { after_ns, bytes });
    proptest::collection::vec(one, 1..300)
}

proptest! {
    #[test]
    fn order_delay_rate_and_queue_hold(
        traffic in traffic(),
        rate in prop_oneof![Just(None), (100_000u64..10_000_000_000).prop_map(Some)],
        (delay_ns, jitter_ns) in (0u64..50_000_000, 0u64..5_000_000),
        queue_bytes in 0u64..100_000,
        loss in prop_oneof![Just(0.0), 0.0..1.0f64],
    ) {
        let path = Path { delay_ns, jitter_ns, rate_bits: rate, queue_bytes, loss, ..path() };
        let mut line = Line::new(path, 9, 1);
        let (mut now, mut accepted, mut sent_bytes) = (0, Vec::new(), 0u64);
        let begin = traffic[0].after_ns;
        for (number, offered) in traffic.iter().enumerate() {
            now += offered.after_ns;
            let least = u128::from(offered.bytes) * 8 * 1_000_000_000 / u128::from(rate.unwrap_or(u64::MAX));
            match line.offer(now, offered.bytes, number as u32) {
                Ok(at) => {
                    prop_assert!(u128::from(at) + u128::from(jitter_ns) >= u128::from(now) + least + u128::from(delay_ns));
                    accepted.push((at, number as u32));
                    sent_bytes += u64::from(offered.bytes);
                }
                Err((Drop::Queue, frame)) => prop_assert!(frame == number as u32 && rate.is_some()),
                Err((Drop::Loss, _)) => { prop_assert!(loss > 0.0); sent_bytes += u64::from(offered.bytes); }
                Err((Drop::Memory, _)) => prop_assert!(false),
            }
        }
        prop_assert!(line.queue_bytes_max() <= queue_bytes);
        prop_assert!(accepted.is_sorted_by_key(|(at, _)| *at), "order is kept");
        // Never more than the rate.
        if let (Some(rate), 0, 0.0, Some((last, _))) = (rate, jitter_ns, loss, accepted.last()) {
            let busy_ns = u128::from(last - delay_ns - begin + 1);
            prop_assert!(u128::from(sent_bytes) * 8 * 1_000_000_000 <= busy_ns * u128::from(rate));
        }
        prop_assert_eq!(drain(&mut line), accepted);
        prop_assert_eq!(line.in_flight(), (0, 0));
    }

    #[test]
    fn a_line_that_is_never_idle_carries_exactly_its_rate(
        sizes in proptest::collection::vec(40u32..2000, 1..300),
        rate in 1_000u64..100_000_000_000,
    ) {
        let mut line = Line::new(Path { rate_bits: Some(rate), ..path() }, 1, 0);
        let mut last = 0;
        for &bytes in &sizes {
            last = line.offer(0, bytes, 0).unwrap();
        }
        let bits: u128 = sizes.iter().map(|&bytes| u128::from(bytes) * 8).sum();
        // Exact to the nanosecond, for any number of frames.
        prop_assert_eq!(u128::from(last), bits * 1_000_000_000 / u128::from(rate));
    }
}
