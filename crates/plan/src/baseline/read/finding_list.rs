//! HardeningKitty's finding lists (scipag/HardeningKitty, `lists/*.csv`).
//!
//! The value is the recommended one. Methods that look at something that no policy sets (Defender's state, BitLocker,
//! firewall rules, Windows features) are not settings here.

use super::super::roles::of_policy;
use super::super::setting::{Place, Value};
use super::audit;
use super::registry_data::hive;
use super::sink::Sink;

/// Names of the columns that are read.
const COLUMNS: [&str; 8] = [
    "ID",
    "Name",
    "Method",
    "MethodArgument",
    "RegistryPath",
    "RegistryItem",
    "RecommendedValue",
    "Operator",
];

/// Findings of `net accounts` by their names, and the lines of a security template that set them.
const ACCOUNTS: [(&str, &str); 7] = [
    ("account lockout duration", "LockoutDuration"),
    ("account lockout threshold", "LockoutBadCount"),
    ("reset account lockout counter", "ResetLockoutCount"),
    ("length of password history maintained", "PasswordHistorySize"),
    ("minimum password length", "MinimumPasswordLength"),
    ("maximum password age", "MaximumPasswordAge"),
    ("minimum password age", "MinimumPasswordAge"),
];

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let Ok(header) = reader.headers().cloned() else {
        return sink.damage(1, "the first line does not name the columns");
    };
    let columns =
        COLUMNS.map(|name| header.iter().position(|word| word.trim().eq_ignore_ascii_case(name)));
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
        let row =
            columns.map(|column| column.and_then(|column| record.get(column)).unwrap_or("").trim());
        match setting(&row) {
            // Lists of CIS have some settings twice, for domain controllers and for members.
            Ok((place, value)) => {
                let role = Some(row[1]).filter(|name| of_policy(name).is_some());
                sink.setting_of(role.map(str::to_owned), line, place, value);
            }
            Err(why) => {
                let [id, name, method, argument, .., recommended, operator] = row;
                let text = format!("{id} {name} ({method} {argument}) {operator} {recommended}");
                sink.unknown(line, &text, why);
            }
        }
    }
}

fn setting(row: &[&str; 8]) -> Result<(Place, Value), &'static str> {
    let [_, name, method, argument, path, item, recommended, operator] = *row;
    if operator.starts_with('!') {
        return Err("names a value that must not be there, and none that should");
    }
    let template = |section: &str, name: &str, value: &str| {
        let place = Place::Template { section: section.to_owned(), name: name.to_owned() };
        (place, if value.is_empty() { Value::None } else { Value::Text(value.to_owned()) })
    };
    match method.to_ascii_lowercase().as_str() {
        "registry" => {
            let (scope, key) =
                hive(path).ok_or("a hive that is neither the computer's nor the user's")?;
            let place = Place::Registry { scope, key, name: item.to_owned() };
            Ok((place, registry_value(recommended)))
        }
        "registrylist" => Err("an entry of a list, under a name that is not given"),
        "auditpol" if !argument.is_empty() => {
            let value =
                audit::named(recommended).ok_or("a setting of auditing that is not known")?;
            Ok((Place::Audit { subcategory: argument.to_owned() }, Value::Dword(value)))
        }
        "accesschk" if !argument.is_empty() => {
            Ok(template("Privilege Rights", argument, &recommended.replace(';', ",")))
        }
        "secedit" => {
            let (section, name) =
                argument.split_once('\\').ok_or("a line of a template without its section")?;
            Ok(template(section, name, recommended))
        }
        "accountpolicy" => {
            let name = name.to_ascii_lowercase();
            let known = ACCOUNTS.iter().find(|(title, _)| *title == name);
            let (_, line) = known.ok_or("a rule for accounts that is not known")?;
            Ok(template("System Access", line, recommended))
        }
        "service" if !argument.is_empty() => {
            let start = match recommended.to_ascii_lowercase().as_str() {
                "automatic" => "2",
                "manual" => "3",
                "disabled" => "4",
                _ => return Err("a start type that is not known"),
            };
            Ok(template("Service General Setting", argument, start))
        }
        _ => Err("looks at something that is not a setting of a policy"),
    }
}

/// Lists do not name the type: a decimal number is taken for one of 32 bits.
fn registry_value(text: &str) -> Value {
    if text.is_empty() {
        return Value::None;
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if is_number => Value::Dword(number),
        _ => Value::Text(text.to_owned()),
    }
}
