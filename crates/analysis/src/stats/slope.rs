//! The slope of one quantity over another, which outliers do not move: the median of the slopes of all
//! pairs of points (H. Theil 1950), with its 95 % interval (P. K. Sen 1968).

/// Quantile of the normal distribution for a two-sided 95 % interval.
const Z_95: f64 = 1.96;

/// A slope and the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slope {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Points.
    pub(crate) n: usize,
}

/// The slope of the second numbers over the first ones; none if fewer than two of these differ. Its cost is
/// the square of the number of points.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    let mut points = points.to_vec();
    points.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let mut slopes = Vec::new();
    for (place, (x, y)) in points.iter().enumerate() {
        let later = points.iter().skip(place + 1).filter(|later| later.0 > *x);
        slopes.extend(later.map(|(later_x, later_y)| (later_y - y) / (later_x - x)));
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let of_groups = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let tied: f64 = points
        .chunk_by(|one, other| one.0 == other.0)
        .map(|group| of_groups(group.len() as f64))
        .sum();
    let spread = Z_95 * ((of_groups(points.len() as f64) - tied) / 18.0).max(0.0).sqrt();
    let all = slopes.len() as f64;
    let at = |place: f64| slopes.get(place.clamp(0.0, (all - 1.0).max(0.0)) as usize).copied();
    Some(Slope {
        value: at(all / 2.0)?,
        low: at(((all - spread) / 2.0).floor() - 1.0)?,
        high: at(((all + spread) / 2.0).ceil())?,
        n: points.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_move_it() {
        let mut points: Vec<_> = (0..50)
            .map(|n| (f64::from(n), 7.0 + 2.0 * f64::from(n) + f64::from(n * 7 % 5)))
            .collect();
        points[3].1 = 1e9;
        points[44].1 = -1e9;
        let found = slope(&points).unwrap();
        assert!((found.value - 2.0).abs() < 0.1, "{found:?}");
        assert!(found.low > 1.8 && found.high < 2.2 && found.low < found.value, "{found:?}");
        assert_eq!(found.n, 50);
    }

    #[test]
    fn scatter_without_growth_includes_zero() {
        let points: Vec<_> = (0..60).map(|n| (f64::from(n % 4), f64::from(n * 37 % 61))).collect();
        let found = slope(&points).unwrap();
        assert!(found.low < 0.0 && found.high > 0.0, "{found:?}");
    }

    #[test]
    fn one_size_has_no_slope() {
        assert_eq!(slope(&[(5.0, 1.0), (5.0, 2.0)]), None);
        assert_eq!(slope(&[]), None);
    }
}
