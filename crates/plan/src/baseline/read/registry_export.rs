//! `reg export` and regedit's files: `REGEDIT4` and version 5.00.
//!
//! `[KEY]`, `[-KEY]`, then `"name"=data` or `@=data`: text, `dword:`, `hex:` and `hex(TYPE):` over several lines, `-`.
//! In version 4 the bytes of texts in `hex(...)` are of the code page, in version 5.00 UTF-16.

use encoding_rs::WINDOWS_1252;

use super::super::setting::{Place, Scope, Value};
use super::lgpo::hex;
use super::registry_data::{BINARY, EXPAND_SZ, MULTI_SZ, SZ, decode_registry, hive};
use super::sink::Sink;
use crate::input::lines::lines;

/// Bytes of one value in hexadecimal form.
const LINE_MAX: usize = 16 << 20;

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let mut lines = lines(text).peekable();
    let mut is_version_4 = false;
    let mut key: Option<(Scope, String)> = None;
    while let Some((number, line)) = lines.next() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(';') {
            continue;
        }
        if trimmed == "REGEDIT4" || trimmed.starts_with("Windows Registry Editor") {
            is_version_4 = trimmed == "REGEDIT4";
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            key = section(name, number, sink);
            continue;
        }
        let mut whole = trimmed.to_owned();
        let is_hex = whole.split_once("=hex").is_some();
        while is_hex && whole.ends_with('\\') && whole.len() < LINE_MAX {
            whole.pop();
            match lines.next() {
                Some((_, next)) => whole.push_str(next.trim()),
                None => sink.damage(number, "the file ends within a value"),
            }
        }
        // A text continues over lines until its quote.
        let mut is_open = !is_hex && is_open_text(&whole);
        while is_open && whole.len() < LINE_MAX {
            let Some((_, next)) = lines.next() else { break };
            is_open = quoted(next).is_none();
            whole.push('\n');
            whole.push_str(next);
        }
        let Some((scope, key)) = &key else {
            sink.unknown(number, &whole, "a value of a key that is not read");
            continue;
        };
        match value(&whole, is_version_4) {
            Ok((name, value)) => {
                let place = Place::Registry { scope: *scope, key: key.clone(), name };
                sink.setting(number, place, value);
            }
            Err(why) => sink.unknown(number, &whole, why),
        }
    }
}

/// The key of the values that follow.
fn section(name: &str, number: u64, sink: &mut Sink<'_>) -> Option<(Scope, String)> {
    let (name, is_removed) = name.strip_prefix('-').map_or((name, false), |name| (name, true));
    let Some((scope, key)) = hive(name) else {
        sink.unknown(number, name, "a hive that is neither the computer's nor the user's");
        return None;
    };
    if !is_removed {
        return Some((scope, key));
    }
    match key.rsplit_once('\\') {
        Some((parent, child)) => {
            let place =
                Place::Registry { scope, key: parent.to_owned(), name: "**DeleteKeys".to_owned() };
            sink.setting(number, place, Value::DeleteNamed(vec![child.to_owned()]));
        }
        None => sink.unknown(number, name, "the removal of a hive"),
    }
    None
}

/// Whether a text value has no quote at its end yet.
fn is_open_text(line: &str) -> bool {
    let Some((_, data)) = split(line) else { return false };
    data.strip_prefix('"').is_some_and(|rest| quoted(rest).is_none())
}

/// The name, and the data behind `=`.
fn split(line: &str) -> Option<(String, &str)> {
    if let Some(rest) = line.strip_prefix('@') {
        return Some((String::new(), rest.trim_start().strip_prefix('=')?.trim_start()));
    }
    let (name, rest) = quoted(line.strip_prefix('"')?)?;
    Some((name, rest.trim_start().strip_prefix('=')?.trim_start()))
}

/// The text up to its quote, without escapes, and the rest behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut read = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((read, text.get(at + 1..)?)),
            '\\' => read.push(letters.next()?.1),
            letter => read.push(letter),
        }
    }
    None
}

fn value(line: &str, is_version_4: bool) -> Result<(String, Value), &'static str> {
    let (name, data) = split(line).ok_or("neither a key nor a value")?;
    if data.trim() == "-" {
        return Ok((name, Value::Delete));
    }
    if let Some(text) = data.strip_prefix('"') {
        let (text, _) = quoted(text).ok_or("a text without its end")?;
        return Ok((name, Value::Text(text)));
    }
    let lower = data.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("dword:") {
        let number = u32::from_str_radix(digits.trim(), 16);
        return Ok((name, Value::Dword(number.map_err(|_| "not a number of 32 bits")?)));
    }
    let rest = lower.strip_prefix("hex").ok_or("a type that is not known")?;
    let (kind, bytes) = match rest.strip_prefix('(') {
        None => (BINARY, rest.strip_prefix(':').ok_or("a type that is not known")?),
        Some(rest) => {
            let (kind, bytes) = rest.split_once("):").ok_or("a type that is not known")?;
            let kind = u32::from_str_radix(kind.trim(), 16);
            (kind.map_err(|_| "a type that is not known")?, bytes)
        }
    };
    let bytes: Option<Vec<u8>> = bytes
        .split(',')
        .map(str::trim)
        .filter(|byte| !byte.is_empty())
        .map(|byte| hex(byte.as_bytes()))
        .collect();
    let bytes = bytes.ok_or("bytes that are not hexadecimal")?;
    let is_text = matches!(kind, SZ | EXPAND_SZ | MULTI_SZ);
    if is_version_4 && is_text {
        let wide: Vec<u8> =
            WINDOWS_1252.decode(&bytes).0.encode_utf16().flat_map(u16::to_le_bytes).collect();
        return Ok((name, decode_registry(kind, &wide)));
    }
    Ok((name, decode_registry(kind, &bytes)))
}
