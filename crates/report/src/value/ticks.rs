//! Round marks of axes: 1, 2 or 5 times a power of ten, powers of two for bytes, and what clocks show
//! for times (W. S. Cleveland, The Elements of Graphing Data, 1985).

use crate::value::{Clock, Format, show};

/// Marks of an axis that starts at 0; the last one is at or above the largest value.
pub(crate) fn values(most: f64, format: Format) -> Vec<f64> {
    let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
    let step = step(most / 5.0, format);
    let count = (most / step - 1e-9).ceil().clamp(1.0, 20.0) as usize;
    (0..=count).map(|number| number as f64 * step).collect()
}

/// The smallest round distance of at least this size.
fn step(least: f64, format: Format) -> f64 {
    if format == Format::Bytes {
        return 2f64.powf(least.log2().ceil()).max(1.0);
    }
    const MINUTE_NS: f64 = 60e9;
    let (unit, rounds): (f64, &[f64]) = match format {
        Format::Duration if least > 20e9 => {
            (MINUTE_NS, &[0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0])
        }
        _ => (10f64.powf(least.log10().floor()), &[1.0, 2.0, 5.0, 10.0]),
    };
    let found = rounds.iter().map(|round| round * unit).find(|step| *step >= least * (1.0 - 1e-9));
    let step = found.unwrap_or_else(|| (least / (60.0 * MINUTE_NS)).ceil() * 60.0 * MINUTE_NS);
    if format == Format::Count { step.max(1.0) } else { step }
}

/// A mark's label, without decimals that say nothing.
pub(crate) fn label(format: Format, value: f64, per: &str) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = show(format, value);
    let text = match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        None if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => text,
    };
    format!("{text}{per}")
}

/// Distances of times, ns.
const TIMES_NS: [i64; 30] = {
    const MS: i64 = 1_000_000;
    const S: i64 = 1000 * MS;
    const MIN: i64 = 60 * S;
    const H: i64 = 60 * MIN;
    [
        MS,
        2 * MS,
        5 * MS,
        10 * MS,
        20 * MS,
        50 * MS,
        100 * MS,
        200 * MS,
        500 * MS,
        S,
        2 * S,
        5 * S,
        10 * S,
        15 * S,
        30 * S,
        MIN,
        2 * MIN,
        5 * MIN,
        10 * MIN,
        15 * MIN,
        30 * MIN,
        H,
        2 * H,
        3 * H,
        6 * H,
        12 * H,
        24 * H,
        48 * H,
        168 * H,
        720 * H,
    ]
};

/// Marks of times between two, with their labels.
pub(crate) fn times(start_ns: i64, end_ns: i64, clock: &Clock) -> Vec<(i64, String)> {
    let whole = end_ns.saturating_sub(start_ns).max(1);
    // The more exact a label is, the longer it is.
    let most = |step: i64| match step {
        ..1_000_000_000 => 3,
        1_000_000_000..60_000_000_000 => 5,
        _ => 7,
    };
    let fits = |step: &&i64| whole / **step <= most(**step);
    let Some(&step) = TIMES_NS.iter().find(fits) else { return Vec::new() };
    let offset = clock.local_ns(start_ns).saturating_sub(start_ns);
    let first = clock.local_ns(start_ns).saturating_add(step - 1).div_euclid(step);
    (0..=most(step))
        .map(|number| (first + number).saturating_mul(step).saturating_sub(offset))
        .take_while(|ns| *ns <= end_ns)
        .map(|ns| (ns, clock.mark(ns, step)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        let of = |most, format| {
            let marks = values(most, format).into_iter();
            marks.map(|value| label(format, value, "")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(87.3, Format::Number), "0 20 40 60 80 100");
        assert_eq!(of(70.0, Format::Number), "0 20 40 60 80");
        assert_eq!(of(3e6, Format::Duration), "0 1 ms 2 ms 3 ms");
        assert_eq!(of(0.033, Format::Share), "0 1 % 2 % 3 % 4 %");
        assert_eq!(of(3.0 * 1024.0 * 1024.0, Format::Bytes), "0 1 MiB 2 MiB 3 MiB");
        assert_eq!(of(2.0, Format::Count), "0 1 2");
        assert_eq!(of(0.0, Format::Count), "0 1");
        assert_eq!(values(400e9, Format::Duration), [0.0, 120e9, 240e9, 360e9, 480e9]);
        for exponent in -12..18 {
            for format in [Format::Number, Format::Bytes, Format::Duration, Format::Share] {
                let most = 3.7 * 10f64.powi(exponent);
                let marks = values(most, format);
                assert!((2..=21).contains(&marks.len()), "{most} {format:?}: {marks:?}");
            }
        }
    }

    #[test]
    fn times_are_those_of_a_clock() {
        const S: i64 = 1_000_000_000;
        let words = |start, end, clock: &Clock| {
            let marks = times(start, end, clock).into_iter();
            marks.map(|(_, label)| label).collect::<Vec<_>>().join(" ")
        };
        let utc = Clock::default();
        assert_eq!(words(7 * S, 67 * S, &utc), "00:00:15 00:00:30 00:00:45 00:01:00");
        assert_eq!(
            words(0, 3600 * S, &Clock::ahead(1800)),
            "00:30 00:40 00:50 01:00 01:10 01:20 01:30"
        );
        assert_eq!(words(0, 2 * S, &utc), "00:00:00 00:00:01 00:00:02");
        assert!(words(i64::MIN, i64::MAX, &utc).is_empty());
    }
}
