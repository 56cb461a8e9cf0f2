//! Clusters against answers that can be worked out by hand.

use super::*;

fn estimates(values: &[(u16, i64)]) -> Estimates {
    let mut clusters = Clusters::default();
    values.iter().for_each(|&(cluster, ns)| clusters.add(cluster, None, &Clock::default(), ns));
    Estimates { member: clusters.by_member(), block: None, member_unit: Unit::Connection }
}

/// One value for each cluster: nothing but the classical tests.
fn singles(values: &[i64]) -> Estimates {
    estimates(&(0..).zip(values.iter().copied()).collect::<Vec<_>>())
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9 * wanted.abs().max(1.0), "{found} is not {wanted}");
}

#[test]
fn clusters_of_one_value_give_welchs_test_of_the_logarithm() {
    let a = [100, 120, 90, 110, 80];
    let b = [210, 190, 200, 240, 160, 200];
    let found = contrast(&singles(&a), &singles(&b), false).unwrap();
    close(found.log_ratio, 2f64.ln());
    // Means 100 and 200; squares of deviations 1000 and 3400; variances of the means over their
    // squares 1000/(5*4)/100² and 3400/(6*5)/200².
    let (va, vb): (f64, f64) = (0.005, 3400.0 / 30.0 / 40_000.0);
    let degrees = (va + vb).powi(2) / (va * va / 4.0 + vb * vb / 5.0);
    close(found.degrees.unwrap(), degrees);
    let error = (va + vb).sqrt();
    let (low, high) = found.interval.unwrap();
    close(high - found.log_ratio, student::quantile(0.05, degrees) * error);
    close(found.log_ratio - low, high - found.log_ratio);
    close(found.p.unwrap(), student::two_sided(2f64.ln() / error, degrees));
}

#[test]
fn pairs_take_away_what_makes_users_differ() {
    // Users that differ by a factor of ten, each by about a tenth slower in B.
    let a = [100, 1000, 300, 500, 200, 800, 400, 600, 700];
    let b = [112, 1098, 331, 549, 221, 880, 441, 658, 770];
    let (a, b) = (singles(&a), singles(&b));
    let (alone, paired) = (contrast(&a, &b, false).unwrap(), contrast(&a, &b, true).unwrap());
    assert_eq!(paired.used.units, [Some(Unit::UserPair); 2]);
    close(alone.log_ratio, paired.log_ratio);
    assert!(alone.p.unwrap() > 0.3 && paired.p.unwrap() < 1e-6, "{alone:?} {paired:?}");
    let width = |it: &Contrast| it.interval.map(|(low, high)| high - low).unwrap();
    assert!(width(&paired) < width(&alone) / 20.0);
}

#[test]
fn an_operation_more_of_the_same_connection_makes_nothing_more_certain() {
    let once = [(0, 100), (1, 120), (2, 90), (3, 130), (4, 80)];
    let often: Vec<_> = once.iter().flat_map(|&it| vec![it; 50]).collect();
    let other = singles(&[150, 140, 160, 170, 130]);
    let few = contrast(&estimates(&once), &other, false).unwrap();
    let many = contrast(&estimates(&often), &other, false).unwrap();
    close(few.p.unwrap(), many.p.unwrap());
}

#[test]
fn too_few_clusters_give_no_p_and_no_interval() {
    let enough = singles(&[1, 2, 3, 4]);
    for few in [&[5i64, 6][..], &[5]] {
        let found = contrast(&singles(few), &enough, false).unwrap();
        assert_eq!((found.p, found.interval, found.degrees), (None, None, None));
    }
    // Three connections, one of which has nearly everything.
    let mut lopsided = vec![(0, 100); 1000];
    lopsided.extend([(1, 90), (2, 120)]);
    assert_eq!(contrast(&estimates(&lopsided), &enough, false).unwrap().p, None);
    assert!(contrast(&singles(&[]), &enough, false).is_none());
    assert!(contrast(&singles(&[0, 0]), &enough, false).is_none());
}

#[test]
fn equal_without_spread_is_equal_and_unequal_is_not_judged() {
    let (five, six) = (singles(&[5, 5, 5]), singles(&[6, 6, 6]));
    let same = contrast(&five, &five, false).unwrap();
    assert_eq!((same.p, same.interval), (Some(1.0), Some((0.0, 0.0))));
    assert_eq!(contrast(&five, &six, false).unwrap().p, None);
}

#[test]
fn blocks_are_20_to_40_of_equal_length_in_whatever_order_times_come() {
    for (first, length) in [(0, 977), (-5_000_000, 10_000_000), (1 << 60, 86_400_000_000_000)] {
        let mut clock = Clock::default();
        let mut clusters = Clusters::default();
        for step in 0..2000i64 {
            let at = first + length / 2000 * ((step * 7) % 2000);
            clock.see(at);
            clusters.add(0, Some(at), &clock, 5);
        }
        clusters.finish(&clock);
        let blocks = clusters.by_block().unwrap().parts;
        assert!((20..=41).contains(&blocks.len()) || length < 2000, "{}", blocks.len());
        close(blocks.iter().map(|part| part.weight).sum(), 1.0);
    }
    let mut clock = Clock::default();
    [i64::MIN, i64::MAX, 0].into_iter().for_each(|at| clock.see(at));
}

#[test]
fn time_is_used_where_connections_are_few_or_hide_a_slow_minute() {
    let mut clock = Clock::default();
    let of = |connections: u16, clock: &mut Clock, slow: i64| {
        let mut clusters = Clusters::default();
        for step in 0..4000i64 {
            let at = step * 1000;
            clock.see(at);
            let ns = if (1000..1400).contains(&step) { slow } else { 100 };
            clusters.add((step % i64::from(connections)) as u16, Some(at), clock, ns + step % 7);
        }
        clusters.finish(clock);
        Estimates {
            member: clusters.by_member(),
            block: clusters.by_block(),
            member_unit: Unit::Connection,
        }
    };
    let unit = |estimates: &Estimates| estimates.best().unwrap().1;
    assert_eq!(unit(&of(2, &mut clock, 100)), Unit::TimeBlock);
    assert_eq!(unit(&of(20, &mut clock, 10_000)), Unit::TimeBlock);
    let mut uneven = of(20, &mut clock, 100);
    let parts = &mut uneven.member.as_mut().unwrap().parts;
    parts.iter_mut().for_each(|part| part.influence *= 100.0);
    assert_eq!(unit(&uneven), Unit::Connection);
}

/// Numbers between 0 and 1, always the same (SplitMix64).
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[test]
fn five_in_a_hundred_comparisons_of_the_same_find_a_difference() {
    let mut state = 1;
    for (connections, pairs) in [(10u16, false), (30, false), (12, true)] {
        let mut significant = 0;
        for _ in 0..1000 {
            let users: Vec<f64> = (0..connections).map(|_| random(&mut state)).collect();
            let mut side = || {
                let mut values = Vec::new();
                for (number, user) in (0u16..).zip(&users) {
                    // Each connection has its own pace, number of operations and long tail.
                    let own = if pairs { *user } else { random(&mut state) };
                    let pace = 1e6 * (1.0 + own) * (1.0 + 0.2 * random(&mut state));
                    for _ in 0..10 + (random(&mut state) * 20.0) as u32 {
                        values
                            .push((number, (pace * (1.0 - random(&mut state)).ln().abs()) as i64));
                    }
                }
                estimates(&values)
            };
            let (a, b) = (side(), side());
            let p = contrast(&a, &b, pairs).unwrap().p.unwrap();
            significant += u32::from(p < 0.05);
        }
        // 1000 trials of 5 % are within 3.2 and 7.2 % in all but two of a thousand cases; few
        // clusters may be a little off.
        assert!((25..=75).contains(&significant), "{connections} {pairs}: {significant} in 1000");
    }
}

#[test]
fn a_slow_part_of_the_schedule_falls_out_of_pairs_and_one_that_only_b_has_does_not() {
    let of = |origin: i64, slow: std::ops::Range<i64>| {
        let mut clock = Clock { origin, ..Clock::default() };
        let mut clusters = Clusters::default();
        for step in 0..4000i64 {
            let at = origin + step * 1000;
            clock.see(at);
            let ns = if slow.contains(&step) { 5_000 } else { 100 };
            clusters.add((step % 20) as u16, Some(at), &clock, ns + (step * 31) % 17);
        }
        Estimates {
            member: clusters.by_member(),
            block: clusters.by_block(),
            member_unit: Unit::User,
        }
    };
    // The run begins at another time, which would be in the middle of an absolute block.
    let (a, b, c) = (of(0, 1000..1400), of(777_777, 1000..1400), of(0, 2000..2500));
    let same = contrast(&a, &b, true).unwrap();
    assert_eq!((same.p, same.interval), (Some(1.0), Some((0.0, 0.0))));
    let other = contrast(&a, &c, true).unwrap();
    assert_eq!(other.used.units[0], Some(Unit::TimeBlockPair));
    assert!(other.p.unwrap() > 0.1, "{other:?}");
}
