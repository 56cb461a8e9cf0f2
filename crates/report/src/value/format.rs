//! Numbers and text for people: durations, bytes, counts, times, and text from outside made
//! harmless for a terminal.

use smbscope_tables::date::civil;
pub use smbscope_tables::readable::{bytes, count, decimal, duration, fixed};

/// Milliseconds to the microsecond, however long: 0.567 ms, 21,642.100 ms.
pub fn ms(ns: i64) -> String {
    format!("{} ms", fixed(ns as f64 / 1e6, 3))
}

/// Milliseconds with the decimals that they need: 0 ms, 2.5 ms, 200 ms.
pub fn milli(ns: i64) -> String {
    format!("{} ms", decimal(ns as f64 / 1e6))
}

/// Likewise for a difference, with its sign.
pub fn signed_ms(ns: i64) -> String {
    format!("{} ms", signed(ns as f64 / 1e6, 3))
}

/// A change in per cent, with its sign.
pub fn signed_percent(percent: f64) -> String {
    if percent >= 1000.0 {
        return change(percent);
    }
    format!("{} %", signed(percent, 1))
}

/// A change in per cent with its unit; one of ten times and more as a number of times, which is easier
/// to read: `-80.7 %`, `143 times` (as much).
pub fn change(percent: f64) -> String {
    match percent {
        1000.0.. => format!("{} times", fixed(1.0 + percent / 100.0, 0)),
        _ => format!("{percent:+.1} %"),
    }
}

/// The same for a column whose title has the unit: `-80.7`, `143 times`.
pub fn change_cell(percent: f64) -> String {
    match percent {
        1000.0.. => format!("{} times", fixed(1.0 + percent / 100.0, 0)),
        _ => format!("{percent:+.1}"),
    }
}

fn signed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    if value > 0.0 && text.contains(|c| matches!(c, '1'..='9')) { format!("+{text}") } else { text }
}

/// A part of a whole in per cent.
pub fn share(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent.abs() < 0.05 => "<0.1 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

/// A rate in bits per second, with three digits.
pub fn bits(per_second: f64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
    let unit = UNITS.iter().find(|(size, _)| per_second.abs() >= *size);
    let (size, unit) = unit.copied().unwrap_or((1.0, "bit/s"));
    let value = per_second / size;
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{} {unit}", fixed(value, decimals))
}

/// A plain number with at most two decimals.
pub fn number(value: f64) -> String {
    match value.abs() {
        size @ 1_000.0..1e15 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", count(size.round() as u64))
        }
        size if size > 0.0 && size < 0.005 => "<0.01".to_owned(),
        size if size < 100.0 && value.fract() != 0.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// A file or directory with its share; a share's root is one backslash.
pub fn path(share: Option<&str>, path: Option<&str>) -> String {
    match (share, path.unwrap_or_default()) {
        (Some(share), "") => share.to_owned(),
        (Some(share), path) => format!("{share}\\{}", path.strip_prefix('\\').unwrap_or(path)),
        (None, path) => path.to_owned(),
    }
}

/// A point in time, to the millisecond: 2026-11-20 18:01:08.123 UTC.
pub fn time(ns: i64) -> String {
    let seconds = ns.div_euclid(1_000_000_000);
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let in_day = seconds.rem_euclid(86_400);
    let millis = ns.rem_euclid(1_000_000_000) / 1_000_000;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{millis:03} UTC",
        in_day / 3600,
        in_day / 60 % 60,
        in_day % 60
    )
}

/// Whether a character moves the cursor of a terminal, ends a line, is invisible, or reorders what follows.
pub(crate) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Text from outside without what steers a terminal or turns the reading direction.
pub fn sanitized(text: &str) -> String {
    if !text.contains(steers) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if steers(c) { clean.extend(c.escape_unicode()) } else { clean.push(c) }
    }
    clean
}

const UNITS: &[&str] = &[
    "%", "ns", "µs", "ms", "s", "min", "h", "d", "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB",
    "kB", "MB", "GB", "TB", "B/s", "KiB/s", "MiB/s", "GiB/s", "kB/s", "MB/s", "GB/s", "bit/s",
    "kbit/s", "Mbit/s", "Gbit/s", "Hz", "MHz", "GHz", "times",
];

/// The words of a text between which a line may end: a number with its unit and its interval is one
/// (`1.99 s ± 9.09 µs`).
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\n']);
        let mut end = 0;
        let mut last = "";
        while let Some((start, word)) = next_word(rest, end) {
            if end > 0 && !stays(last, word) {
                break;
            }
            (end, last) = (start + word.len(), word);
        }
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

fn next_word(text: &str, from: usize) -> Option<(usize, &str)> {
    let tail = text.get(from..)?;
    let word = tail.trim_start_matches([' ', '\n']);
    let start = text.len() - word.len();
    let word = word.split([' ', '\n']).next().filter(|word| !word.is_empty())?;
    Some((start, word))
}

/// Whether a line must not end between these two words.
fn stays(word: &str, next: &str) -> bool {
    let is_number = |word: &str| {
        let digits = word.trim_start_matches(['(', '+', '-', '−', '±', '<', '>', '~']);
        digits.starts_with(|c: char| c.is_ascii_digit())
            && !word.ends_with([',', '.', ';', ':', ')'])
    };
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
    match next {
        "±" => is_number(word) || is_unit(word) && !word.ends_with([',', '.', ';', ':']),
        _ if word == "±" => next.starts_with(|c: char| c.is_ascii_digit()),
        _ => is_number(word) && is_unit(next),
    }
}

/// The same text with spaces that do not break inside of its [words](words()).
pub(crate) fn unbroken(text: &str) -> String {
    let mut kept = String::with_capacity(text.len() + 8);
    for word in words(text) {
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.extend(word.chars().map(|c| if c == ' ' { '\u{a0}' } else { c }));
    }
    kept
}

/// The text with its middle left out where it is longer than `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let end = kept * 2 / 3;
    let start: String = text.chars().take(kept - end).collect();
    let end: String = text.chars().skip(length - end).collect();
    format!("{start}…{end}")
}

/// Counts as a row of blocks, the highest one full.
pub fn sparkline(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(0.0, f64::max);
    let block = |&value: &f64| {
        if value.is_nan() || value <= 0.0 || most <= 0.0 {
            return if value.is_nan() { ' ' } else { '·' };
        }
        let place = (value / most * 8.0).ceil().clamp(1.0, 8.0) as usize - 1;
        BLOCKS.get(place).copied().unwrap_or('█')
    };
    values.iter().map(block).collect()
}

/// With a capital letter.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A sentence as a part of another: without its capital letter, unless it begins with a name such as TCP.
pub(crate) fn lowered(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let is_name =
        sentence.split(' ').next().is_some_and(|word| word.chars().skip(1).any(char::is_uppercase));
    match letters.next() {
        Some(first) if !is_name => first.to_lowercase().chain(letters).collect(),
        _ => sentence.to_owned(),
    }
}

/// A duration, or a dash.
pub(crate) fn known_duration(ns: Option<i64>) -> String {
    ns.map_or_else(|| "–".to_owned(), duration)
}

/// `1 core`, `2 cores`.
pub(crate) fn counted(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_with_their_units() {
        let text = "they would save 1.99 s ± 9.09 µs of 2.18 s; 95 of 100 take at most 21.1 ms. In 5 shares";
        let words: Vec<_> = words(text).collect();
        for whole in ["1.99 s ± 9.09 µs", "2.18 s;", "95", "100", "21.1 ms.", "5"] {
            assert!(words.contains(&whole), "{whole}: {words:?}");
        }
        assert_eq!(words.join(" "), text);
        assert_eq!(unbroken("at  most 21.1 ms"), "at most 21.1\u{a0}ms");
        assert_eq!(unbroken(""), "");
    }

    #[test]
    fn durations() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_234, "1.23 µs"),
            (45_300, "45.3 µs"),
            (999_499, "999 µs"),
            (999_600, "1.00 ms"),
            (1_500_000_000, "1.50 s"),
            (-2_000_000, "−2.00 ms"),
            (200_000_000_000, "3 min 20 s"),
            (7_500_000_000_000, "2 h 05 min"),
            (i64::MIN, "106751 d 23 h"),
        ] {
            assert_eq!(duration(ns).replace('−', if ns == i64::MIN { "" } else { "−" }), text);
        }
    }

    #[test]
    fn bytes_counts_and_shares() {
        assert_eq!((bytes(0), bytes(1023)), ("0 B".into(), "1023 B".into()));
        assert_eq!((bytes(65_536), bytes(1_048_575)), ("64.0 KiB".into(), "1.00 MiB".into()));
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!((count(999), count(1_234_567)), ("999".into(), "1,234,567".into()));
        assert_eq!(
            (share(0.1234), share(0.0001), share(0.0)),
            ("12.3 %".into(), "<0.1 %".into(), "0 %".into())
        );
        assert_eq!((number(3.0), number(1.23456)), ("3".into(), "1.23".into()));
        assert_eq!((number(5562.3), number(-1e4)), ("5,562".into(), "-10,000".into()));
        assert_eq!((number(0.004), number(0.006)), ("<0.01".into(), "0.01".into()));
        let root = Some("\\");
        assert_eq!(path(Some(r"\\nas\home"), root), r"\\nas\home\");
        assert_eq!(path(Some(r"\\nas\home"), Some("a")), r"\\nas\home\a");
        assert_eq!((path(Some("s"), None), path(None, None)), ("s".into(), String::new()));
    }

    #[test]
    fn a_large_change_is_a_number_of_times() {
        assert_eq!(change(14_205.1), "143 times");
        assert_eq!((change(-80.7), change(999.9)), ("-80.7 %".into(), "+999.9 %".into()));
        assert_eq!((change_cell(14_205.1), change_cell(2.5)), ("143 times".into(), "+2.5".into()));
        assert_eq!(signed_percent(14_205.1), "143 times");
    }

    #[test]
    fn differences_have_a_sign_and_one_unit() {
        assert_eq!((ms(567_400), ms(21_642_100_000)), ("0.567 ms".into(), "21,642.100 ms".into()));
        assert_eq!(ms(-1_500_000), "−1.500 ms");
        for (ns, text) in [(19_739_000, "+19.739 ms"), (-600, "−0.001 ms"), (0, "0.000 ms")] {
            assert_eq!(signed_ms(ns), text);
        }
        assert_eq!((signed_ms(400), signed_ms(-400)), ("0.000 ms".into(), "0.000 ms".into()));
        assert_eq!(
            (signed_percent(371.82), signed_percent(-0.5)),
            ("+371.8 %".into(), "−0.5 %".into())
        );
        assert_eq!(
            (decimal(2795.0), decimal(0.1), decimal(100.0)),
            ("2,795".into(), "0.1".into(), "100".into())
        );
        assert_eq!((decimal(0.0), fixed(f64::INFINITY, 1)), ("0".into(), "inf".into()));
    }

    #[test]
    fn times() {
        assert_eq!(time(0), "1970-01-01 00:00:00.000 UTC");
        assert_eq!(time(1_709_164_800_123_456_789), "2024-02-29 00:00:00.123 UTC");
        assert_eq!(time(-1), "1969-12-31 23:59:59.999 UTC");
        assert_eq!(time(i64::MAX), "2262-04-11 23:47:16.854 UTC");
    }

    #[test]
    fn text_from_outside_cannot_steer_the_terminal() {
        assert_eq!(sanitized("a\u{1b}[2Jb\u{202e}c\n"), "a\\u{1b}[2Jb\\u{202e}c\\u{a}");
        assert_eq!(sanitized("Übung\\x.txt"), "Übung\\x.txt");
        assert_eq!(shortened("abcdefghij", 7), "ab…ghij");
        assert_eq!(sparkline(&[0.0, 1.0, 8.0, f64::NAN]), "·▁█ ");
    }
}
