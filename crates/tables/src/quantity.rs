//! Times, rates, sizes, shares and distances as written on command lines and in files: `20ms`, `45mbit`, `256KiB`,
//! `0.1%`, `2795km`.
//!
//! Owns: parsing, writing, and error messages. Values are integers (nanoseconds, bits per second, bytes, metres) read without
//! rounding by floating point. Where usage differs on what a unit means (`mbps`, `64k`) the unit is
//! refused with both readings; a bare number is taken for zero only. Prefixes are those of SI
//! (k = 1000) and IEC 80000-13 (Ki = 1024).

use thiserror::Error;

/// The error of a quantity that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a {kind}: {why}")]
pub struct UnitError {
    /// The text.
    pub text: String,
    /// `time`, `rate`, `size`, `share` or `distance`.
    pub kind: &'static str,
    /// The reason, and what to write instead.
    pub why: String,
}

/// A time in nanoseconds: `20ms`, `1.5s`, `250us`, `10m`, `1h30m`.
pub fn parse_duration(text: &str) -> Result<u64, UnitError> {
    const KIND: Kind = Kind {
        name: "time",
        units: &[
            ("ns", 1),
            ("us", 1_000),
            ("µs", 1_000),
            ("μs", 1_000),
            ("ms", 1_000_000),
            ("s", NS_PER_S),
            ("m", 60 * NS_PER_S),
            ("min", 60 * NS_PER_S),
            ("h", 3_600 * NS_PER_S),
            ("d", 86_400 * NS_PER_S),
        ],
        refused: &[("M", "write `m` for minutes or `ms` for milliseconds")],
        examples: "20ms, 1.5s, 10m",
        exact_case: true,
    };
    let mut total: u64 = 0;
    let mut rest = text.trim();
    loop {
        let (ns, left) = KIND.part(text, rest)?;
        total = total.checked_add(ns).ok_or_else(|| KIND.error(text, TOO_LARGE))?;
        // `1h30m`: another number follows.
        if left.is_empty() {
            return Ok(total);
        }
        rest = left;
    }
}

/// A rate in bits per second: `45mbit`, `1gbit`, `56kbit/s`, `10MB/s`. Never zero.
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    const KIND: Kind = Kind {
        name: "rate",
        units: &[
            ("bit", 1),
            ("kbit", 1_000),
            ("mbit", 1_000_000),
            ("gbit", 1_000_000_000),
            ("kibit", 1 << 10),
            ("mibit", 1 << 20),
            ("gibit", 1 << 30),
            ("b/s", 8),
            ("kb/s", 8_000),
            ("mb/s", 8_000_000),
            ("gb/s", 8_000_000_000),
            ("kib/s", 8 << 10),
            ("mib/s", 8 << 20),
            ("gib/s", 8 << 30),
        ],
        refused: &[
            ("bps", BIT_OR_BYTE),
            ("kbps", BIT_OR_BYTE),
            ("mbps", BIT_OR_BYTE),
            ("gbps", BIT_OR_BYTE),
            ("k", BIT_OR_BYTE),
            ("m", BIT_OR_BYTE),
            ("g", BIT_OR_BYTE),
        ],
        examples: "45mbit, 1gbit, 10MB/s",
        exact_case: false,
    };
    let bare = text.trim();
    // `45mbit/s` is `45mbit`; `Mb/s` would be read as bytes, so a small b is refused.
    if bare.ends_with("b/s") {
        return Err(KIND.error(text, BIT_OR_BYTE));
    }
    let bare = bare.strip_suffix("bit/s").map(|front| format!("{front}bit"));
    let rate = KIND.whole(text, bare.as_deref().unwrap_or(text.trim()))?;
    match rate {
        0 => Err(KIND.error(text, "the rate must be above zero; omit it for no limit")),
        rate => Ok(rate),
    }
}

/// A size in bytes: `256KiB`, `64kB`, `1500B`, `2GiB`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    const KIND: Kind = Kind {
        name: "size",
        units: &[
            ("b", 1),
            ("kb", 1_000),
            ("mb", 1_000_000),
            ("gb", 1_000_000_000),
            ("tb", 1_000_000_000_000),
            ("kib", 1 << 10),
            ("mib", 1 << 20),
            ("gib", 1 << 30),
            ("tib", 1 << 40),
        ],
        refused: &[("k", K_OR_KI), ("m", K_OR_KI), ("g", K_OR_KI), ("t", K_OR_KI)],
        examples: "256KiB, 64kB, 1500B",
        exact_case: false,
    };
    KIND.whole(text, text.trim())
}

/// A share from 0 to 1: `0.1%`, `250ppm`.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    // In billionths, so that the value is that of the decimal that was written.
    const KIND: Kind = Kind {
        name: "share",
        units: &[("%", 10_000_000), ("ppm", 1_000)],
        refused: &[],
        examples: "0.1%, 250ppm",
        exact_case: false,
    };
    let billionths = KIND.whole(text, text.trim())?;
    if billionths > BILLION {
        return Err(KIND.error(text, "it is more than 100%"));
    }
    Ok(billionths as f64 / BILLION as f64)
}

/// A distance in metres: `2795km`, `800m`, `100mi`.
pub fn parse_distance(text: &str) -> Result<u64, UnitError> {
    // In millimetres, because a mile is 1609.344 m.
    const KIND: Kind = Kind {
        name: "distance",
        units: &[("m", 1_000), ("km", 1_000_000), ("mi", 1_609_344)],
        refused: &[],
        examples: "2795km, 800m",
        exact_case: false,
    };
    Ok(KIND.whole(text, text.trim())? / 1_000)
}

/// A time as [`parse_duration`] reads it, without loss: `20ms`, `1.5s`.
pub fn duration_text(ns: u64) -> String {
    scaled(ns, &[("s", NS_PER_S), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)], "0s")
}

/// A rate as [`parse_rate`] reads it, without loss: `45mbit`.
pub fn rate_text(bits_per_s: u64) -> String {
    let units = [("gbit", BILLION), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];
    scaled(bits_per_s, &units, "0bit")
}

/// A size as [`parse_size`] reads it, without loss: `256KiB`, `1500B`.
pub fn size_text(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let exact = units.iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size));
    exact.map_or_else(|| format!("{bytes}B"), |(unit, size)| format!("{}{unit}", bytes / size))
}

const NS_PER_S: u64 = 1_000_000_000;
const BILLION: u64 = 1_000_000_000;
const TOO_LARGE: &str = "it is too large";
const BIT_OR_BYTE: &str = "this unit is read as bits by some and as bytes by others; write mbit for bits or MB/s for bytes";
const K_OR_KI: &str = "this unit is read as 1000 by some and as 1024 by others; write kB or KiB";

/// A kind of quantity and its units.
struct Kind {
    name: &'static str,
    units: &'static [(&'static str, u64)],
    /// Ambiguous units, with the message that rejects them.
    refused: &'static [(&'static str, &'static str)],
    examples: &'static str,
    exact_case: bool,
}

impl Kind {
    fn error(&self, text: &str, why: &str) -> UnitError {
        // An argument may be long or hold control characters; the message shows its beginning.
        let text = text.chars().take(40).flat_map(char::escape_debug).collect();
        UnitError { text, kind: self.name, why: why.to_owned() }
    }

    /// One number with its unit and nothing after it.
    fn whole(&self, text: &str, rest: &str) -> Result<u64, UnitError> {
        match self.part(text, rest)? {
            (value, "") => Ok(value),
            (_, left) => Err(self.error(text, &format!("unexpected `{left}` after its unit"))),
        }
    }

    /// The number and unit at the beginning of `rest`, and the remaining text.
    fn part<'a>(&self, text: &str, rest: &'a str) -> Result<(u64, &'a str), UnitError> {
        let digits_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, rest) = rest.split_at(digits_end);
        let rest = rest.trim_start();
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, left) = rest.split_at(unit_end);
        let unit = unit.trim_end();
        if number.is_empty() {
            let why = if rest.starts_with('-') {
                "it is negative".to_owned()
            } else {
                format!("it does not begin with a number; for example {}", self.examples)
            };
            return Err(self.error(text, &why));
        }
        if unit.is_empty() && number.chars().all(|c| c == '0') && left.is_empty() {
            return Ok((0, left));
        }
        let scale = self.scale(unit).map_err(|why| self.error(text, &why))?;
        let value = decimal(number, scale).map_err(|why| self.error(text, why))?;
        Ok((value, left))
    }

    fn scale(&self, unit: &str) -> Result<u64, String> {
        let same = |known: &str| {
            if self.exact_case { known == unit } else { known.eq_ignore_ascii_case(unit) }
        };
        if let Some((_, scale)) = self.units.iter().find(|(known, _)| same(known)) {
            return Ok(*scale);
        }
        if let Some((_, why)) = self.refused.iter().find(|(known, _)| same(known)) {
            return Err((*why).to_owned());
        }
        let names: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
        let shown: String = unit.chars().take(20).flat_map(char::escape_debug).collect();
        Err(if unit.is_empty() {
            format!("its unit is missing; for example {}", self.examples)
        } else {
            format!("unknown unit `{shown}`; expected one of {}", names.join(", "))
        })
    }
}

/// A decimal number times `scale`, cut to an integer.
fn decimal(number: &str, scale: u64) -> Result<u64, &'static str> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err("its number is not a decimal number");
    }
    let whole: u128 = whole.parse().map_err(|_| TOO_LARGE)?;
    // Digits beyond the eighteenth are below every unit.
    let fraction = &fraction[..fraction.len().min(18)];
    let below: u128 =
        if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| TOO_LARGE)? };
    let tens = 10u128.pow(fraction.len() as u32);
    let value = whole
        .checked_mul(u128::from(scale))
        .and_then(|value| value.checked_add(below * u128::from(scale) / tens))
        .ok_or(TOO_LARGE)?;
    u64::try_from(value).map_err(|_| TOO_LARGE)
}

/// `value` in the largest unit that leaves at most three digits after the point.
fn scaled(value: u64, units: &[(&str, u64)], zero: &str) -> String {
    let fits = |scale: u64| value >= scale && (value % scale).is_multiple_of((scale / 1000).max(1));
    let Some((unit, scale)) = units.iter().find(|(_, scale)| fits(*scale)) else {
        return zero.to_owned();
    };
    let (whole, below) = (value / scale, value % scale);
    if below == 0 {
        return format!("{whole}{unit}");
    }
    let thousandths = format!("{:03}", below / (scale / 1000));
    format!("{whole}.{}{unit}", thousandths.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn why<T: std::fmt::Debug>(result: Result<T, UnitError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn quantities_have_a_known_answer() {
        for (text, ns) in [
            ("20ms", 20_000_000),
            ("1.5s", 1_500_000_000),
            ("0.000000001s", 1),
            ("250 us", 250_000),
            ("250µs", 250_000),
            ("10.88s", 10_880_000_000),
            ("10m", 600_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1m 30s", 90_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
        for (text, bits) in [
            ("45mbit", 45_000_000),
            ("45Mbit/s", 45_000_000),
            ("1gbit", 1_000_000_000),
            ("2.5Gbit", 2_500_000_000),
            ("56kbit", 56_000),
            ("10MB/s", 80_000_000),
            ("1MiB/s", 8_388_608),
            ("300bit", 300),
        ] {
            assert_eq!(parse_rate(text), Ok(bits), "{text}");
        }
        for (text, bytes) in
            [("256KiB", 262_144), ("64kB", 64_000), ("1500B", 1500), ("0.5GiB", 1 << 29), ("0", 0)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for (text, share) in
            [("0.1%", 0.001), ("100%", 1.0), ("250ppm", 0.000_25), ("0%", 0.0), ("0", 0.0)]
        {
            assert_eq!(parse_share(text), Ok(share), "{text}");
        }
        assert_eq!(parse_distance("2795km"), Ok(2_795_000));
        assert_eq!(parse_distance("100mi"), Ok(160_934));
    }

    #[test]
    fn errors_explain_the_format() {
        assert_eq!(
            why(parse_duration("20")),
            "`20` is not a time: its unit is missing; for example 20ms, 1.5s, 10m"
        );
        assert!(
            why(parse_duration("20 parsecs"))
                .contains("unknown unit `parsecs`; expected one of ns")
        );
        assert!(why(parse_duration("20M")).contains("`m` for minutes"));
        assert!(why(parse_duration("-1s")).contains("negative"));
        assert!(why(parse_duration("")).contains("does not begin with a number"));
        assert!(why(parse_duration("1..2s")).contains("decimal"));
        assert!(why(parse_duration("999999999999h")).contains("too large"));
        assert!(why(parse_rate("45mbps")).contains("as bits by some and as bytes by others"));
        assert!(why(parse_rate("45Mb/s")).contains("as bits by some"));
        assert!(why(parse_rate("0mbit")).contains("above zero"));
        assert!(why(parse_rate("10mbit20")).contains("after its unit"));
        assert!(why(parse_size("64k")).contains("kB or KiB"));
        assert!(why(parse_share("0.5")).contains("unit is missing"));
        assert!(why(parse_share("101%")).contains("more than 100%"));
        let long = "x\u{1b}".repeat(1000);
        assert!(why(parse_size(&long)).len() < 400 && !why(parse_size(&long)).contains('\u{1b}'));
    }

    #[test]
    fn texts_are_as_people_write() {
        assert_eq!(duration_text(20_000_000), "20ms");
        assert_eq!(duration_text(1_500_000_000), "1.5s");
        assert_eq!(duration_text(0), "0s");
        assert_eq!(duration_text(13_975_000), "13.975ms");
        assert_eq!(rate_text(45_000_000), "45mbit");
        assert_eq!(rate_text(2_500_000_000), "2.5gbit");
        assert_eq!(size_text(262_144), "256KiB");
        assert_eq!(size_text(1_500), "1500B");
    }

    proptest! {
        #[test]
        fn a_displayed_quantity_is_read_back(value in any::<u64>()) {
            prop_assert_eq!(parse_duration(&duration_text(value)), Ok(value));
            prop_assert_eq!(parse_size(&size_text(value)), Ok(value));
            if value > 0 {
                prop_assert_eq!(parse_rate(&rate_text(value)), Ok(value));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}|[0-9.]{0,40}[a-zµ%/ ]{0,6}[0-9]{0,3}") {
            let _ = (parse_duration(&text), parse_rate(&text), parse_size(&text));
            let _ = (parse_share(&text), parse_distance(&text));
        }
    }
}
