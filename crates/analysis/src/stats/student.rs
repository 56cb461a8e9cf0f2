//! Student's t distribution with any degrees of freedom: two-sided p-values and quantiles.
//!
//! By the regularised incomplete beta function (DLMF 8.17, its continued fraction 8.17.22) and
//! Lanczos' approximation of the gamma function. A crate for two functions is not worth its weight.

/// The probability that |t| is at least this large by chance.
pub(crate) fn two_sided(t: f64, degrees: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
}

/// The t that is exceeded in absolute value with this probability; it falls as the probability
/// grows.
pub(crate) fn quantile(two_sided_p: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, degrees) > two_sided_p && high < 1e9 {
        (low, high) = (high, high * 2.0);
    }
    // Halving 80 times leaves no bit of a double undecided.
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, degrees) > two_sided_p { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// I_x(a, b), from 0 to 1.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    let value = if x < (a + 1.0) / (a + b + 2.0) {
        front.exp() * fraction(a, b, x) / a
    } else {
        1.0 - front.exp() * fraction(b, a, 1.0 - x) / b
    };
    value.clamp(0.0, 1.0)
}

/// The continued fraction, evaluated by Lentz' method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let not_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for numerator in [even, odd] {
            d = 1.0 / not_zero(1.0 + numerator * d);
            c = not_zero(1.0 + numerator / c);
            value *= c * d;
        }
        if (value / before - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// ln Γ(x) of x > 0: Lanczos with g = 7 and nine terms, good to 15 digits.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let mut sum = 0.999_999_999_999_809_9;
    for (place, term) in (1..).zip(TERMS) {
        sum += term / (x + f64::from(place));
    }
    let t = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Any statistics book's table of t, two-sided 5 % and 1 %.
        for (degrees, five, one) in [
            (1.0, 12.706_205, 63.656_741),
            (2.0, 4.302_653, 9.924_843),
            (5.0, 2.570_582, 4.032_143),
            (10.0, 2.228_139, 3.169_273),
            (30.0, 2.042_272, 2.749_996),
            (120.0, 1.979_930, 2.617_421),
            (1e7, 1.959_964, 2.575_829),
        ] {
            assert!((quantile(0.05, degrees) - five).abs() < 2e-6, "{degrees}");
            assert!((quantile(0.01, degrees) - one).abs() < 2e-6, "{degrees}");
        }
    }

    #[test]
    fn p_values_have_closed_forms_for_one_and_two_degrees() {
        for t in [0.0, 0.3, 1.0, 2.5, 40.0, 1e6] {
            // One degree is Cauchy's distribution.
            let cauchy = 1.0 - 2.0 * f64::atan(t) / std::f64::consts::PI;
            assert!((two_sided(t, 1.0) - cauchy).abs() < 1e-12, "{t}");
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 2.0) - two).abs() < 1e-12, "{t}");
            assert_eq!(two_sided(t, 7.5), two_sided(-t, 7.5));
        }
        assert_eq!(two_sided(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn gamma_of_whole_numbers_is_the_factorial() {
        let mut factorial = 1.0f64;
        for n in 1..30 {
            assert!((ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-12 * f64::from(n), "{n}");
            factorial *= f64::from(n);
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-13);
    }
}
