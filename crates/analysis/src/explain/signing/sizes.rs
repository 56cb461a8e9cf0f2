//! A sample of durations by size, in bounded memory: as many of each size class as of every other, so that
//! the slope over the sizes does not depend on the size that is most frequent.

use crate::stats::slope::{Slope, slope};

/// Size classes, an octave each.
const CLASSES: usize = 32;
/// Most durations of a class.
const CLASS_MAX: usize = 32;
/// Fewest durations for a slope.
const POINTS_MIN: usize = 20;
/// The sizes must differ by this factor and this many bytes.
const FACTOR_MIN: f64 = 4.0;
const BYTES_MIN: f64 = 16_384.0;

/// Durations of one size class: every n-th.
#[derive(Clone, Default)]
struct Class {
    points: Vec<(f64, f64)>,
    offered: u64,
    /// Logarithm of n.
    stride: u32,
}

/// Durations by size.
#[derive(Default)]
pub(super) struct SizeSample(Vec<Class>);

impl SizeSample {
    pub(super) fn add(&mut self, bytes: u64, ns: i64) {
        if self.0.is_empty() {
            self.0.resize_with(CLASSES, Class::default);
        }
        let place = (u64::BITS - bytes.leading_zeros()) as usize;
        let Some(class) = self.0.get_mut(place.min(CLASSES - 1)) else { return };
        let number = class.offered;
        class.offered += 1;
        if number.trailing_zeros() < class.stride.min(u64::BITS - 1) {
            return;
        }
        if class.points.len() >= CLASS_MAX {
            let mut is_kept = false;
            class.points.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            class.stride += 1;
            if number.trailing_zeros() < class.stride {
                return;
            }
        }
        class.points.push((bytes as f64, ns as f64));
    }

    /// How the duration grows with the size; none if too few or too similar sizes show it.
    pub(super) fn slope(&self) -> Option<Slope> {
        let points: Vec<_> = self.0.iter().flat_map(|class| &class.points).copied().collect();
        let least = points.iter().map(|point| point.0).reduce(f64::min)?;
        let most = points.iter().map(|point| point.0).reduce(f64::max)?;
        let is_spread = most >= FACTOR_MIN * least && most - least >= BYTES_MIN;
        (is_spread && points.len() >= POINTS_MIN).then(|| slope(&points)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_all_sizes_count() {
        let mut sample = SizeSample::default();
        // Ten small ones among many large ones.
        for number in 0..10_000_i64 {
            let bytes = if number % 1000 == 0 { 4096 } else { 65_536 };
            sample.add(bytes, 100_000 + 30 * bytes as i64 + number % 7);
        }
        assert!(sample.0.iter().all(|class| class.points.len() <= CLASS_MAX));
        let slope = sample.slope().unwrap();
        assert!((slope.value - 30.0).abs() < 0.01, "{slope:?}");
        assert!(slope.n >= POINTS_MIN);
    }

    #[test]
    fn similar_sizes_have_no_slope() {
        let mut sample = SizeSample::default();
        (0..100).for_each(|number| sample.add(60_000 + number, 5));
        assert_eq!(sample.slope(), None);
        let mut few = SizeSample::default();
        (0..10).for_each(|number| few.add(1 << (8 + number), 5));
        assert_eq!(few.slope(), None);
    }
}
