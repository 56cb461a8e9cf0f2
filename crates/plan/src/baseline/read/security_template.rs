//! Security templates (GptTmpl.inf, `secedit /export`): MS-GPSB 2.2.
//!
//! `[Registry Values]` has `PATH=TYPE,VALUE`; file, registry key and service sections have lines of fields with commas;
//! the other sections have `NAME = VALUE`.

use super::super::setting::{Place, Value};
use super::registry_data::{BINARY, DWORD, EXPAND_SZ, MULTI_SZ, QWORD, SZ, hive};
use super::sink::Sink;
use crate::input::lines::lines;

/// Sections that only security templates have.
pub(super) const SECTIONS: [&str; 17] = [
    "System Access",
    "Registry Values",
    "Privilege Rights",
    "Event Audit",
    "Kerberos Policy",
    "Service General Setting",
    "File Security",
    "Registry Keys",
    "Group Membership",
    "Application Log",
    "Security Log",
    "System Log",
    "Audit Log",
    "Profile Description",
    "Auditing",
    "User Rights",
    "DS Security",
];

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let mut section = String::new();
    for (number, line) in lines(text) {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(';') {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[') {
            match name.strip_suffix(']') {
                Some(name) => section = name.trim().to_owned(),
                None => sink.damage(number, "a section without `]`"),
            }
            continue;
        }
        match setting(&section, line.trim_start()) {
            Ok((place, value)) => sink.setting(number, place, value),
            Err(why) => sink.unknown(number, trimmed, why),
        }
    }
}

/// One line of a section.
pub(super) fn setting(section: &str, line: &str) -> Result<(Place, Value), &'static str> {
    let named = |name: &str, value: Value| {
        (Place::Template { section: section.to_owned(), name: name.to_owned() }, value)
    };
    match section.to_ascii_lowercase().as_str() {
        "registry values" => registry_value(line),
        "unicode" | "version" | "profile description" => Err("describes the file"),
        "" => Err("a line before the first section"),
        "service general setting" | "file security" | "registry keys" | "ds security" => {
            let (name, rest) = first_field(line).ok_or("a line without fields")?;
            Ok(named(&name, Value::Text(rest.trim().to_owned())))
        }
        _ => {
            let (name, value) = line.split_once('=').ok_or("a line without `=`")?;
            let (name, value) = (name.trim(), value.trim());
            if name.is_empty() {
                return Err("a value without a name");
            }
            let value = whole_quoted(value).unwrap_or_else(|| value.to_owned());
            Ok(named(name, Value::Text(value)))
        }
    }
}

fn registry_value(line: &str) -> Result<(Place, Value), &'static str> {
    let (path, rest) = match line.strip_prefix('"') {
        Some(quoted) => {
            let (path, rest) = quoted.split_once('"').ok_or("a quote without its end")?;
            (path, rest.trim_start().strip_prefix('=').ok_or("a line without `=`")?)
        }
        None => split_typed(line).ok_or("a line without `=TYPE,VALUE`")?,
    };
    let (kind, data) = rest.split_once(',').ok_or("a value without a type")?;
    let kind: u32 = kind.trim().parse().map_err(|_| "the type is not a number")?;
    let (scope, path) = hive(path).ok_or("a hive that is neither the computer's nor the user's")?;
    let (key, name) = path.rsplit_once('\\').ok_or("a path without the name of a value")?;
    let place = Place::Registry {
        scope,
        key: key.trim_end_matches('\\').to_owned(),
        name: name.to_owned(),
    };
    Ok((place, data_of(kind, data).ok_or("the value is not one of its type")?))
}

/// `PATH` and `TYPE,VALUE` at the first `=` that a number and a comma follow: paths may have a `=`.
fn split_typed(line: &str) -> Option<(&str, &str)> {
    line.match_indices('=').find_map(|(at, _)| {
        let (path, rest) = (line.get(..at)?, line.get(at + 1..)?);
        let (kind, _) = rest.split_once(',')?;
        let kind = kind.trim();
        let is_number = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some((path.trim_end(), rest))
    })
}

/// The value of a type; the last field may be empty.
fn data_of(kind: u32, data: &str) -> Option<Value> {
    Some(match kind {
        SZ => Value::Text(single(data)),
        EXPAND_SZ => Value::ExpandText(single(data)),
        BINARY => {
            let bytes = data.split(',').map(str::trim).filter(|byte| !byte.is_empty());
            let bytes: Option<Vec<u8>> = bytes.map(|byte| byte.parse().ok()).collect();
            Value::Binary(bytes?)
        }
        DWORD => Value::Dword(number(data)?),
        QWORD => Value::Qword(data.trim().parse().ok()?),
        MULTI_SZ => {
            Value::MultiText(fields(data).into_iter().filter(|text| !text.is_empty()).collect())
        }
        _ => Value::Other { kind, bytes: data.as_bytes().to_vec() },
    })
}

/// A number of 32 bits, decimal or with `0x`; a negative one as its bits.
pub(super) fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(hex, 16).ok();
    }
    text.parse().ok().or_else(|| text.parse::<i32>().ok().map(i32::cast_unsigned))
}

/// One text: quotes are removed where they enclose parts of it.
pub(super) fn single(data: &str) -> String {
    whole_quoted(data.trim()).unwrap_or_else(|| data.trim().to_owned())
}

/// The text in quotes, if they enclose all of it; `""` in it is one quote.
fn whole_quoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    // A single quote within: the first or the last one encloses something else.
    inner.split("\"\"").all(|part| !part.contains('"')).then(|| inner.replace("\"\"", "\""))
}

/// Fields between commas; a comma in quotes (`","`) is part of a field, and so is `""` in quotes as one quote.
fn fields(data: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = data.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                if let Some(field) = fields.last_mut() {
                    field.push('"');
                }
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            letter => {
                if let Some(field) = fields.last_mut() {
                    field.push(letter);
                }
            }
        }
    }
    fields
}

/// The first field of a line, without quotes, and the rest behind its comma.
fn first_field(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    if let Some(quoted) = line.strip_prefix('"') {
        let (name, rest) = quoted.split_once('"')?;
        return Some((name.to_owned(), rest.trim_start().strip_prefix(',')?));
    }
    let (name, rest) = line.split_once(',')?;
    (!name.trim().is_empty()).then(|| (name.trim().to_owned(), rest))
}
