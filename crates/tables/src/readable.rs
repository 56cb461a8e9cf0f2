//! Quantities as people read them: three significant digits with a unit, commas between thousands.
//!
//! Owns the words for durations, bytes and numbers in sentences of every crate. Text that a program
//! reads back without loss is in [`quantity`](crate::quantity).

use crate::date::civil;

/// Three significant digits with a unit: 850 ns, 45.3 µs, 1.23 ms, 3 min 20 s.
pub fn duration(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "" };
    let ns = ns.unsigned_abs();
    let text = match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => format!("{} µs", three(ns as f64 / 1e3)),
        999_500..999_500_000 => format!("{} ms", three(ns as f64 / 1e6)),
        999_500_000..99_950_000_000 => format!("{} s", three(ns as f64 / 1e9)),
        _ => {
            let seconds = (ns + 500_000_000) / 1_000_000_000;
            let (minutes, hours) = (seconds / 60, seconds / 3600);
            match hours {
                0 => format!("{minutes} min {:02} s", seconds % 60),
                1..48 => format!("{hours} h {:02} min", minutes % 60),
                _ => format!("{} d {:02} h", hours / 24, hours % 24),
            }
        }
    };
    format!("{sign}{text}")
}

/// Three significant digits with a binary unit: 512 B, 1.25 MiB.
pub fn bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].into_iter();
    let mut unit = units.next().unwrap_or("");
    while value >= 999.5 {
        let Some(next) = units.next() else { break };
        value /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", three(value))
}

/// A number with this many decimals, and commas between thousands.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    let point = if rest.is_empty() { "" } else { "." };
    // What is shown as 0 has no sign.
    let is_zero = text.chars().all(|c| matches!(c, '0' | '.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    format!("{sign}{whole}{point}{rest}")
}

/// A number with at most six decimals, as people write it: 2,795, 0.1.
pub fn decimal(value: f64) -> String {
    let text = fixed(value, 6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// With a comma between thousands.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn three(value: f64) -> String {
    match value {
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A time, ns since 1970, as `2026-11-20T18:22:27Z`, or as `2026-11-20T20:22:27+02:00` where the zone is `ahead_s`
/// seconds ahead of UTC; with a fraction of a second if there is one.
pub fn zoned(ns: i64, ahead_s: i32) -> String {
    let (seconds, below) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let seconds = seconds + i64::from(ahead_s);
    let minutes = ahead_s.unsigned_abs() / 60;
    let zone = match ahead_s {
        0 => "Z".to_owned(),
        _ => {
            let sign = if ahead_s < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    };
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let fraction = match below {
        0 => String::new(),
        below => format!(".{below:09}").trim_end_matches('0').to_owned(),
    };
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}{fraction}{zone}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}
