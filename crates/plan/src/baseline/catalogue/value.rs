//! Values of different places in one spelling, so that they can be compared: `True`, `yes` and 1 are the same flag,
//! `SMB3_11` and 785 the same dialect, `AES_128_GCM` and `aes-128-gcm` the same cipher.

use super::place::PlacePattern;
use super::{Kind, Row};
use crate::baseline::hardened::Demands;
use crate::baseline::setting::Value;

/// Longest text that is kept.
const TEXT_MAX: usize = 1024;

/// The value in the row's spelling; none for one that is removed.
pub fn canonical(row: &Row, pattern: &PlacePattern, value: &Value) -> Option<String> {
    let text = text(value)?;
    let lower = text.to_lowercase();
    if let Some((_, value)) =
        pattern.words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text))
    {
        return Some(value.clone());
    }
    let canonical = match row.kind {
        Kind::Flag => flag(&lower, pattern.is_inverted).unwrap_or(lower),
        Kind::Number | Kind::Choice => number(&lower).unwrap_or(lower),
        Kind::List => list(&lower),
        Kind::Dialect => dialect(&lower).map(|one| one.to_string()).unwrap_or(lower),
        Kind::Audit => audit(&lower),
        Kind::Hardened => Demands::parse(&text).to_string(),
        Kind::Text => text,
    };
    Some(canonical)
}

/// A value as text; none for one that is removed.
pub fn text(value: &Value) -> Option<String> {
    let all = match value {
        Value::Dword(number) => number.to_string(),
        Value::Qword(number) => number.to_string(),
        Value::Text(text) | Value::ExpandText(text) => text.trim().to_owned(),
        Value::MultiText(lines) => {
            let lines = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
            lines.collect::<Vec<_>>().join(",")
        }
        Value::Binary(bytes) | Value::Other { bytes, .. } => {
            bytes.iter().take(TEXT_MAX / 2).map(|byte| format!("{byte:02x}")).collect()
        }
        Value::None => String::new(),
        Value::Delete | Value::DeleteValues | Value::DeleteNamed(_) | Value::CreateKey => {
            return None;
        }
    };
    Some(all.chars().take(TEXT_MAX).collect())
}

fn flag(lower: &str, is_inverted: bool) -> Option<String> {
    let is_set = match lower {
        "true" | "$true" | "yes" | "on" | "enabled" => true,
        "false" | "$false" | "no" | "off" | "disabled" => false,
        other => number(other)? != "0",
    };
    Some(if is_set != is_inverted { "1" } else { "0" }.to_owned())
}

fn number(lower: &str) -> Option<String> {
    let parsed = match lower.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => lower.parse::<u64>(),
    };
    parsed.ok().map(|number| number.to_string())
}

fn list(lower: &str) -> String {
    let words = lower.split([',', ' ', ';', '\t']).filter(|word| !word.is_empty());
    words.map(|word| word.replace('_', "-")).collect::<Vec<_>>().join(",")
}

/// The number of a dialect.
pub fn dialect(lower: &str) -> Option<u16> {
    let digits: String = lower.chars().filter(|c| c.is_ascii_digit()).collect();
    if let Some(number) = number(lower).and_then(|number| number.parse::<u16>().ok())
        && matches!(number, 514 | 528 | 768 | 770 | 785)
    {
        return Some(number);
    }
    match (lower, digits.as_str()) {
        // What Samba takes as the newest of each.
        ("smb3" | "default", _) => Some(785),
        ("smb2", _) => Some(528),
        (_, "202") => Some(514),
        (_, "21" | "210") => Some(528),
        (_, "30" | "300") => Some(768),
        (_, "302") => Some(770),
        (_, "311") => Some(785),
        _ => None,
    }
}

fn audit(lower: &str) -> String {
    let both = lower.contains("success") && lower.contains("failure");
    match lower {
        _ if both => "success and failure",
        "3" => "success and failure",
        "1" | "success" => "success",
        "2" | "failure" => "failure",
        "0" | "" | "none" | "no auditing" => "none",
        other => other,
    }
    .to_owned()
}
