//! `percentile(x, p)`: the nearest-rank percentile of integers, as in the report.
//!
//! DataFusion's sketch (`approx_percentile_cont`) interpolates between two neighbours: with few values,
//! or at the edge of a long tail, its result is not a value of the column and far from both. Here
//! the result is exact for up to [`EXACT`] distinct values; more are counted in buckets with a
//! relative width of a thousandth. It does not depend on how rows were partitioned, and lies between the
//! smallest and the largest value: `percentile(x, 0)` is the former, `percentile(x, 1)` the latter.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, UInt64Type};
use datafusion::common::{HashMap, Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

/// Distinct values that are counted exactly; more are counted in buckets.
const EXACT: usize = 1024;
/// A power of two has 2 to the power of this many buckets.
const BITS: u32 = 10;

/// The function.
pub(super) fn percentile() -> AggregateUDF {
    let arguments = vec![DataType::Int64, DataType::Float64];
    AggregateUDF::from(Percentile { signature: Signature::exact(arguments, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile {
    signature: Signature,
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &str {
        "percentile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Counted::default()))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        let field =
            |name, of| Arc::new(Field::new(format_state_name(arguments.name, name), of, true));
        Ok(vec![
            field("values", list(DataType::Int64)),
            field("counts", list(DataType::UInt64)),
            field("part", DataType::Float64),
            field("least", DataType::Int64),
            field("most", DataType::Int64),
        ])
    }
}

/// Values and their counts.
#[derive(Debug, Default)]
struct Counted {
    counts: HashMap<i64, u64>,
    is_rounded: bool,
    part: f64,
    /// The smallest and the largest value; buckets may reach beyond them.
    bounds: Option<(i64, i64)>,
}

impl Counted {
    fn widen(&mut self, least: i64, most: i64) {
        let (a, b) = self.bounds.unwrap_or((least, most));
        self.bounds = Some((a.min(least), b.max(most)));
    }

    fn add(&mut self, value: i64, n: u64) {
        let value = if self.is_rounded { middle(value) } else { value };
        let count = self.counts.entry(value).or_default();
        *count = count.saturating_add(n);
        if !self.is_rounded && self.counts.len() > EXACT {
            self.is_rounded = true;
            for (value, n) in std::mem::take(&mut self.counts) {
                self.add(value, n);
            }
        }
    }

    /// The smallest value that at least this share of all values do not exceed.
    fn value(&self) -> Option<i64> {
        let mut sorted: Vec<_> = self.counts.iter().map(|(value, n)| (*value, *n)).collect();
        sorted.sort_unstable();
        let all: u64 = sorted.iter().map(|(_, n)| *n).fold(0, u64::saturating_add);
        // 0.95 as a float is slightly less than 0.95: 19 of 20 are 95 %.
        let rank = (all as f64 * self.part.clamp(0.0, 1.0) - 1e-6).ceil().max(1.0) as u64;
        let mut seen = 0u64;
        let found = sorted.iter().find(|(_, n)| {
            seen = seen.saturating_add(*n);
            seen >= rank
        });
        let (least, most) = self.bounds?;
        if self.part <= 0.0 {
            return Some(least);
        }
        if self.part >= 1.0 {
            return Some(most);
        }
        found.or(sorted.last()).map(|(value, _)| (*value).clamp(least, most))
    }
}

impl Accumulator for Counted {
    fn update_batch(&mut self, arguments: &[ArrayRef]) -> Result<()> {
        let [values, parts] = arguments else { return Ok(()) };
        let parts = parts.as_primitive::<Float64Type>();
        if let Some(part) = parts.iter().flatten().next() {
            if !(0.0..=1.0).contains(&part) {
                return exec_err!(
                    "percentile(x, p): p is {part}, but a share lies between 0 and 1 (95 % is 0.95)"
                );
            }
            self.part = part;
        }
        values.as_primitive::<Int64Type>().iter().flatten().for_each(|value| {
            self.widen(value, value);
            self.add(value, 1);
        });
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(self.value()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i64, u64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts): (Vec<_>, Vec<_>) = self.counts.drain().unzip();
        let list = |of: ArrayRef| {
            let field = Arc::new(Field::new_list_field(of.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths([of.len()]);
            ScalarValue::List(Arc::new(ListArray::new(field, offsets, of, None)))
        };
        Ok(vec![
            list(Arc::new(Int64Array::from(values))),
            list(Arc::new(UInt64Array::from(counts))),
            ScalarValue::Float64(Some(self.part)),
            ScalarValue::Int64(self.bounds.map(|(least, _)| least)),
            ScalarValue::Int64(self.bounds.map(|(_, most)| most)),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, counts, parts, least, most] = states else { return Ok(()) };
        let bounds = least.as_primitive::<Int64Type>().iter().zip(most.as_primitive::<Int64Type>());
        for (least, most) in bounds {
            if let (Some(least), Some(most)) = (least, most) {
                self.widen(least, most);
            }
        }
        let lists = values.as_list::<i32>().iter().zip(counts.as_list::<i32>().iter());
        for ((values, counts), part) in lists.zip(parts.as_primitive::<Float64Type>()) {
            let (Some(values), Some(counts)) = (values, counts) else { continue };
            // A partition without rows has no percentile.
            self.part = part.filter(|_| !values.is_empty()).unwrap_or(self.part);
            let values = values.as_primitive::<Int64Type>().iter().flatten();
            let counts = counts.as_primitive::<UInt64Type>().iter().flatten();
            values.zip(counts).for_each(|(value, n)| self.add(value, n));
        }
        Ok(())
    }
}

/// The middle of a value's bucket, which is its own.
fn middle(value: i64) -> i64 {
    let size = value.unsigned_abs();
    let shift = (63 - (size | 1).leading_zeros()).saturating_sub(BITS);
    let middle = (size >> shift << shift) + ((1u64 << shift) - 1) / 2;
    let middle = i64::try_from(middle).unwrap_or(i64::MAX);
    if value < 0 { -middle } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = i64>, part: f64) -> Counted {
        let mut counted = Counted { part, ..Counted::default() };
        values.into_iter().for_each(|value| {
            counted.widen(value, value);
            counted.add(value, 1);
        });
        counted
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        assert_eq!(of([], 0.5).value(), None);
        assert_eq!(of([7], 0.99).value(), Some(7));
        assert_eq!(of([5_000_000_000, 4_000], 0.5).value(), Some(4_000));
        // 19 of 20 are quick.
        let quick = |n| (0..n).map(|n| if n == 0 { 1_000_000_000 } else { 1_000 });
        assert_eq!(of(quick(20), 0.95).value(), Some(1_000));
        assert_eq!(of(quick(19), 0.95).value(), Some(1_000_000_000));
        assert_eq!(of(quick(100), 0.99).value(), Some(1_000));
        assert_eq!(of([-3, -1, 2], 0.0).value(), Some(-3));
    }

    #[test]
    fn many_values_are_within_a_thousandth_however_they_are_divided() {
        let values = |step: usize| {
            (0..20_000i64).map(|n| (n * n % 99_991) * 1_777 - 9_000_000).step_by(step)
        };
        for part in [0.5, 0.95, 0.99] {
            let mut sorted: Vec<_> = values(1).collect();
            sorted.sort_unstable();
            let exact = sorted[(20_000.0 * part) as usize - 1];
            let whole = of(values(1), part).value().unwrap();
            assert!((whole - exact).abs() <= exact.abs() / 1_000, "{whole} {exact}");
            let mut merged = Counted::default();
            for first in 0..40 {
                let mut one = of(values(1).skip(first).step_by(40), part);
                let states: Vec<_> = one.state().unwrap();
                let states: Vec<_> = states.iter().map(|state| state.to_array().unwrap()).collect();
                merged.merge_batch(&states).unwrap();
            }
            assert_eq!(merged.value(), Some(whole));
        }
    }

    #[test]
    fn no_percentile_lies_outside_of_the_values() {
        // More than EXACT distinct values, the largest of which is not the middle of its bucket.
        let values = || (0..2_000i64).map(|n| 1_000_000 + n * 1_023);
        let (least, most) = (1_000_000, 1_000_000 + 1_999 * 1_023);
        assert_eq!(of(values(), 0.0).value(), Some(least));
        assert_eq!(of(values(), 1.0).value(), Some(most));
        let negative = || values().map(|value| -value);
        assert_eq!(of(negative(), 0.0).value(), Some(-most));
        assert_eq!(of(negative(), 1.0).value(), Some(-least));
    }

    #[test]
    fn the_middle_of_a_bucket_is_in_it() {
        for value in [0, 1, -1, 2_047, 2_048, 100_000, -100_000, i64::MAX, -i64::MAX] {
            assert_eq!(middle(middle(value)), middle(value), "{value}");
            let apart = middle(value).unsigned_abs().abs_diff(value.unsigned_abs());
            assert!(apart <= value.unsigned_abs() >> BITS, "{value}");
        }
    }
}
