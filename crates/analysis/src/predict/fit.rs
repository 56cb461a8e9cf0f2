//! Least squares without negative results, to fit times.
//!
//! Coordinate descent on the normal equations (Franc, Hlavac, Navara 2005, "Sequential
//! Coordinate-Wise Algorithm for the Non-negative Least Squares Problem"): a dozen unknowns need
//! nothing faster. An unknown in no equation stays 0.

/// Most rounds; it ends earlier when nothing changes any more.
const ROUNDS_MAX: usize = 100_000;
/// Relative change of the largest unknown that counts as no change.
const STILL: f64 = 1e-12;

/// One equation: the factors of the unknowns, their sum, and the unit of its error.
#[derive(Clone, Debug)]
pub struct Equation {
    /// One factor for each unknown.
    pub factors: Vec<f64>,
    /// The sum.
    pub sum: f64,
    /// By which the error is divided before it is squared; positive.
    pub scale: f64,
}

/// The unknowns, none negative, with the least squared errors.
pub fn least_squares(equations: &[Equation], unknowns: usize) -> Vec<f64> {
    let mut gram = vec![vec![0.0; unknowns]; unknowns];
    let mut target = vec![0.0; unknowns];
    for equation in equations {
        let weight = 1.0 / (equation.scale * equation.scale);
        let factors = equation.factors.iter().take(unknowns);
        for (row, &of_row) in factors.clone().enumerate() {
            for (column, &of_column) in factors.clone().enumerate() {
                gram[row][column] += weight * of_row * of_column;
            }
            target[row] += weight * of_row * equation.sum;
        }
    }
    let mut found = vec![0.0_f64; unknowns];
    for _ in 0..ROUNDS_MAX {
        let (mut moved, mut largest) = (0.0_f64, 0.0_f64);
        for place in 0..unknowns {
            let own = gram[place][place];
            if own <= 0.0 {
                continue;
            }
            let sum: f64 =
                gram[place].iter().zip(&found).map(|(factor, value)| factor * value).sum();
            let next = (found[place] + (target[place] - sum) / own).max(0.0);
            moved = moved.max((next - found[place]).abs());
            largest = largest.max(next);
            found[place] = next;
        }
        if moved <= STILL * largest {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_undetermined_unknown_is_zero_and_none_is_negative() {
        let equation =
            |factors: [f64; 3], sum| Equation { factors: factors.into(), sum, scale: 1.0 };
        let equations = [equation([1.0, 1.0, 0.0], 1.0), equation([1.0, 0.0, 0.0], 2.0)];
        let found = least_squares(&equations, 3);
        // Without the limit it would be 2 and -1.
        assert!((found[0] - 1.5).abs() < 1e-9, "{found:?}");
        assert_eq!(&found[1..], [0.0, 0.0]);
    }

    proptest! {
        #[test]
        fn a_solution_is_found(
            values in prop::collection::vec(0.0..10.0_f64, 4),
            factors in prop::collection::vec(prop::collection::vec(0.0..5.0_f64, 4), 12),
        ) {
            let equations: Vec<_> = factors
                .into_iter()
                .map(|factors| {
                    let sum = factors.iter().zip(&values).map(|(a, b)| a * b).sum();
                    Equation { factors, sum, scale: 1.0 }
                })
                .collect();
            let found = least_squares(&equations, 4);
            for equation in &equations {
                let sum: f64 = equation.factors.iter().zip(&found).map(|(a, b)| a * b).sum();
                prop_assert!((sum - equation.sum).abs() < 1e-3, "{sum} for {}", equation.sum);
            }
        }
    }
}
