//! audit.csv: advanced auditing of a group policy (MS-GPAC 2.2.1), also what `auditpol /backup` writes.

use super::super::setting::{Place, Value};
use super::sink::Sink;

/// Columns of the first line, in any order.
const TARGET: &str = "policy target";
const NAME: &str = "subcategory";
const GUID: &str = "subcategory guid";
const INCLUSION: &str = "inclusion setting";
const SETTING: &str = "setting value";

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let Ok(header) = reader.headers().cloned() else {
        return sink.damage(1, "the first line does not name the columns");
    };
    let column = |name: &str| header.iter().position(|word| word.trim().eq_ignore_ascii_case(name));
    let columns = [TARGET, NAME, GUID, INCLUSION, SETTING].map(column);
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                sink.damage(line, format!("not a line of CSV: {error}"));
                continue;
            }
        };
        let line = record.position().map_or(0, csv::Position::line);
        let [target, name, guid, inclusion, setting] =
            columns.map(|column| column.and_then(|column| record.get(column)).unwrap_or("").trim());
        let whole = || record.iter().collect::<Vec<_>>().join(",");
        if !target.is_empty() && !target.eq_ignore_ascii_case("system") && target.starts_with("S-")
        {
            sink.unknown(line, &whole(), "auditing of one user");
            continue;
        }
        let subcategory = if guid.is_empty() { name } else { guid };
        match (subcategory, value(setting, inclusion)) {
            ("", _) => sink.unknown(line, &whole(), "a line without a subcategory"),
            (_, None) => sink.unknown(line, &whole(), "a setting that is not known"),
            (subcategory, Some(value)) => {
                sink.setting(line, Place::Audit { subcategory: subcategory.to_owned() }, value);
            }
        }
    }
}

/// The number of the setting; older files only have its name. Options (`Option:CrashOnAuditFail`) have texts.
pub(super) fn value(setting: &str, inclusion: &str) -> Option<Value> {
    if let Ok(number) = setting.parse() {
        return Some(Value::Dword(number));
    }
    if let Some(number) = named(inclusion) {
        return Some(Value::Dword(number));
    }
    let text = [setting, inclusion].into_iter().find(|text| !text.is_empty())?;
    Some(Value::Text(text.to_owned()))
}

/// The number of a setting's English name.
pub(super) fn named(text: &str) -> Option<u32> {
    match text.trim().to_ascii_lowercase().as_str() {
        "no auditing" => Some(0),
        "success" => Some(1),
        "failure" => Some(2),
        "success and failure" => Some(3),
        _ => None,
    }
}
