//! Numbers in the sentences of findings.

/// A number with its digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut words = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            words.push(',');
        }
        words.push(digit);
    }
    words
}

/// A duration in a unit that fits.
pub(super) fn duration(ns: i64) -> String {
    match ns {
        ..10_000 => format!("{:.1} µs", ns as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_sentences_are_readable() {
        let words = [0, 999, 49_591, 127_000, 1_234_567].map(grouped);
        assert_eq!(words, ["0", "999", "49,591", "127,000", "1,234,567"]);
        let words = [3_400, 100_000, 121_092_000, 2_500_000_000].map(duration);
        assert_eq!(words, ["3.4 µs", "100 µs", "121.1 ms", "2.50 s"]);
    }
}
