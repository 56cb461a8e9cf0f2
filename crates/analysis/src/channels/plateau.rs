//! The rate that a channel keeps, and since when.
//!
//! The plateau is the median of the upper half of a sliding mean over half a second, from the first
//! byte to the last: pauses and the ramp are in the lower half, single bursts do not reach the
//! median. It is reached with the first interval whose mean is at least 90 % of it.

/// Time of the sliding mean, ns.
const WINDOW_NS: i64 = 500_000_000;
/// Fewest intervals of a plateau.
const MIN: usize = 10;
/// Share of the plateau at which it counts as reached.
const REACHED: f64 = 0.9;

/// The plateau, in the unit of the values, and the place where it is reached.
pub(super) fn plateau(values: &[f64], interval_ns: i64) -> Option<(f64, usize)> {
    let first = values.iter().position(|&value| value > 0.0)?;
    let last = values.iter().rposition(|&value| value > 0.0)?;
    let run = values.get(first..=last)?;
    if run.len() < MIN {
        return None;
    }
    let width = (WINDOW_NS / interval_ns.max(1)).clamp(1, MIN as i64) as usize;
    let means: Vec<f64> =
        run.windows(width).map(|window| window.iter().sum::<f64>() / width as f64).collect();
    let mut sorted = means.clone();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2..)?;
    let level = *upper.get(upper.len() / 2)?;
    let place = means.iter().position(|&mean| mean >= REACHED * level)?;
    Some((level, first + place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plateau_is_robust() {
        let mut values = vec![0.0; 20];
        values.extend([10.0; 20]);
        values.extend([100.0; 60]);
        values[60] = 0.0;
        values[25] = 900.0;
        let (level, place) = plateau(&values, 100_000_000).unwrap();
        assert_eq!(level, 100.0);
        // The burst is a mean of 188 over half a second.
        assert_eq!(place, 21);
        values[25] = 10.0;
        assert_eq!(plateau(&values, 100_000_000).unwrap(), (100.0, 40));
        assert_eq!(plateau(&values[35..44], 100_000_000), None);
        assert_eq!(plateau(&[0.0; 50], 100_000_000), None);
    }
}
