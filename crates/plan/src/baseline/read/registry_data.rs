//! Data of registry values: type and bytes to [`Value`] and back (MS-RRP 2.2.5 and 3.1.1.5).

use super::super::setting::{Place, Scope, Value};

pub(super) const SZ: u32 = 1;
pub(super) const EXPAND_SZ: u32 = 2;
pub(super) const BINARY: u32 = 3;
pub(super) const DWORD: u32 = 4;
pub(super) const MULTI_SZ: u32 = 7;
pub(super) const QWORD: u32 = 11;

/// The value of a type and its bytes. Bytes that the type does not allow stay as they are.
pub fn decode_registry(kind: u32, bytes: &[u8]) -> Value {
    let value = match kind {
        SZ => single(bytes).map(Value::Text),
        EXPAND_SZ => single(bytes).map(Value::ExpandText),
        BINARY => Some(Value::Binary(bytes.to_vec())),
        DWORD => bytes.try_into().ok().map(|bytes| Value::Dword(u32::from_le_bytes(bytes))),
        MULTI_SZ => several(bytes).map(Value::MultiText),
        QWORD => bytes.try_into().ok().map(|bytes| Value::Qword(u64::from_le_bytes(bytes))),
        _ => None,
    };
    value.unwrap_or_else(|| Value::Other { kind, bytes: bytes.to_vec() })
}

/// Type and bytes of a value; `None` for one that is not data, and for a text that the registry cannot hold.
pub fn encode_registry(value: &Value) -> Option<(u32, Vec<u8>)> {
    let no_zero = |text: &String| !text.contains('\0');
    Some(match value {
        Value::Dword(number) => (DWORD, number.to_le_bytes().to_vec()),
        Value::Qword(number) => (QWORD, number.to_le_bytes().to_vec()),
        Value::Text(text) if no_zero(text) => (SZ, wide(text, 1)),
        Value::ExpandText(text) if no_zero(text) => (EXPAND_SZ, wide(text, 1)),
        Value::MultiText(texts) if texts.iter().all(|text| no_zero(text) && !text.is_empty()) => {
            let joined: String = texts.iter().flat_map(|text| [text.as_str(), "\0"]).collect();
            (MULTI_SZ, wide(&joined, 1))
        }
        Value::Binary(bytes) => (BINARY, bytes.clone()),
        Value::Other { kind, bytes } => (*kind, bytes.clone()),
        _ => return None,
    })
}

fn wide(text: &str, zeros: usize) -> Vec<u8> {
    text.encode_utf16().chain(std::iter::repeat_n(0, zeros)).flat_map(u16::to_le_bytes).collect()
}

/// UTF-16 without the zeros at its end.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    let length = units.iter().rposition(|unit| *unit != 0).map_or(0, |last| last + 1);
    String::from_utf16(units.get(..length)?).ok()
}

fn single(bytes: &[u8]) -> Option<String> {
    utf16(bytes).filter(|text| !text.contains('\0'))
}

fn several(bytes: &[u8]) -> Option<Vec<String>> {
    let text = utf16(bytes)?;
    if text.is_empty() {
        return Some(Vec::new());
    }
    let texts: Vec<String> = text.split('\0').map(str::to_owned).collect();
    texts.iter().all(|text| !text.is_empty()).then_some(texts)
}

/// The place of a registry value, and what an instruction in its name makes of the value (MS-GPREG 3.2.5.1).
///
/// `**del.NAME` and `**delvals.` become [`Value::Delete`] and [`Value::DeleteValues`]; `**DeleteKeys` and
/// `**DeleteValues` keep their names, with [`Value::DeleteNamed`]. `**soft.NAME` (only where the value does not exist)
/// and `**SecureKey` keep their names and values. `None` is an instruction that is not known.
pub(super) fn instruction(
    scope: Scope,
    key: &str,
    name: &str,
    value: Value,
) -> Option<(Place, Value)> {
    let key = key.trim_matches('\\').to_owned();
    let place = |name: &str| Place::Registry { scope, key: key.clone(), name: name.to_owned() };
    let Some(word) = name.strip_prefix("**") else {
        let is_key = name.is_empty() && value == Value::Other { kind: 0, bytes: Vec::new() };
        return Some((place(name), if is_key { Value::CreateKey } else { value }));
    };
    let lower = word.trim_end().to_ascii_lowercase();
    if lower == "delvals." || lower == "delvals" {
        return Some((place(""), Value::DeleteValues));
    }
    if lower.starts_with("del.") {
        return Some((place(word.get(4..)?), Value::Delete));
    }
    if let Some(plain) = [("deletekeys", "**DeleteKeys"), ("deletevalues", "**DeleteValues")]
        .into_iter()
        .find_map(|(known, plain)| (lower == known).then_some(plain))
    {
        let Value::Text(list) = value else { return None };
        let names = list.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        return Some((place(plain), Value::DeleteNamed(names)));
    }
    (lower.starts_with("soft.") || lower == "securekey").then(|| (place(name), value))
}

/// The part of the registry that a path with its hive names: `HKLM\...`, `HKEY_LOCAL_MACHINE\...`, `MACHINE\...` or
/// with PowerShell's colon. `None` for a hive that is neither the computer's nor the user's.
pub(super) fn hive(path: &str) -> Option<(Scope, String)> {
    let path = path.trim().trim_start_matches("Registry::");
    let (hive, rest) = path.split_once('\\').unwrap_or((path, ""));
    let rest = rest.trim_matches('\\');
    match hive.trim_end_matches(':').to_ascii_uppercase().as_str() {
        "HKLM" | "HKEY_LOCAL_MACHINE" | "MACHINE" => Some((Scope::Computer, rest.to_owned())),
        "HKCU" | "HKEY_CURRENT_USER" => Some((Scope::User, rest.to_owned())),
        "HKCR" | "HKEY_CLASSES_ROOT" | "CLASSES_ROOT" => {
            let rest = format!("SOFTWARE\\Classes\\{rest}");
            Some((Scope::Computer, rest.trim_end_matches('\\').to_owned()))
        }
        _ => None,
    }
}
