//! LGPO text (`LGPO.exe /parse`, `/t`): blocks of four lines.
//!
//! `Computer` or `User`, the key, the name of the value, and an action (`DWORD:1`, `SZ:text`, `DELETE` ...). Comments
//! begin with `;` (LGPO.exe) or `#`. The description that comes with LGPO.exe has the actions.

use super::super::setting::{Place, Scope, Value};
use super::security_template::number;
use super::sink::Sink;
use crate::input::lines::lines;

/// Names of the actions with data, as `LGPO.exe` writes them.
const TYPES: [&str; 6] = ["DWORD", "QWORD", "SZ", "EXSZ", "MULTISZ", "BINARY"];

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let mut block: Vec<(u64, &str)> = Vec::new();
    for (number, line) in lines(text).chain([(0, "")]) {
        let trimmed = line.trim();
        if trimmed.starts_with([';', '#']) {
            continue;
        }
        if !trimmed.is_empty() {
            block.push((number, line));
        }
        // A block ends after four lines, or where an empty line cuts it short.
        if block.len() == 4 || (trimmed.is_empty() && !block.is_empty()) {
            setting(&block, sink);
            block.clear();
        }
    }
}

fn setting(block: &[(u64, &str)], sink: &mut Sink<'_>) {
    let &[(first, scope_line), (_, key), (_, name), (at, action_line)] = block else {
        for (number, line) in block {
            sink.unknown(*number, line, "not part of a block of four lines");
        }
        return;
    };
    let Some(scope) = scope(scope_line) else {
        sink.unknown(first, scope_line, "neither `Computer` nor `User`");
        return;
    };
    if scope_line.contains(':') {
        sink.note("settings of single users are read as those of all users");
    }
    let key = key.trim().trim_matches('\\').to_owned();
    let name = name.trim();
    match action(action_line) {
        Some(value) => {
            let is_of_key = matches!(value, Value::DeleteValues | Value::CreateKey);
            let name = if is_of_key { String::new() } else { name.to_owned() };
            sink.setting(first, Place::Registry { scope, key, name }, value);
        }
        None => sink.unknown(
            at,
            action_line,
            "an action that is not known, or data that it does not allow",
        ),
    }
}

pub(super) fn scope(line: &str) -> Option<Scope> {
    let word = line.trim().split(':').next().unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "computer" => Some(Scope::Computer),
        "user" => Some(Scope::User),
        _ => None,
    }
}

/// Whether the line has the form of an action.
pub(super) fn is_action(line: &str) -> bool {
    let word = line.trim().split(':').next().unwrap_or_default();
    TYPES.contains(&word) || ["DELETE", "DELETEALLVALUES", "CREATEKEY"].contains(&word)
}

fn action(line: &str) -> Option<Value> {
    let line = line.trim_start();
    let Some((kind, data)) = line.split_once(':') else {
        return match line.trim_end().to_ascii_uppercase().as_str() {
            "DELETE" => Some(Value::Delete),
            "DELETEALLVALUES" => Some(Value::DeleteValues),
            "CREATEKEY" => Some(Value::CreateKey),
            _ => None,
        };
    };
    Some(match kind.to_ascii_uppercase().as_str() {
        "DWORD" => Value::Dword(number(data)?),
        "QWORD" => Value::Qword(data.trim().parse().ok()?),
        "SZ" => Value::Text(data.to_owned()),
        "EXSZ" => Value::ExpandText(data.to_owned()),
        "MULTISZ" => {
            let texts = data.split("\\0").filter(|text| !text.is_empty());
            Value::MultiText(texts.map(str::to_owned).collect())
        }
        "BINARY" => {
            let digits =
                data.chars().filter(|letter| !matches!(letter, ' ' | ',')).collect::<String>();
            let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
            let bytes: Option<Vec<u8>> = pairs.iter().map(|pair| hex(pair)).collect();
            Value::Binary(bytes?)
        }
        _ => return None,
    })
}

/// A byte of hexadecimal digits.
pub(super) fn hex(pair: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(pair).ok()?;
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digits { u8::from_str_radix(text, 16).ok() } else { None }
}
