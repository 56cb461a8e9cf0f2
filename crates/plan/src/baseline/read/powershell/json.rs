//! Objects of `ConvertTo-Json`, one by one, in arrays, or under names.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value as Json};

use super::super::sink::Sink;
use super::{CLIENT, PROPERTIES_MAX, Property, SERVER, SHARE, command_of, emit};

/// Depth of arrays and objects around an object.
const DEPTH_MAX: u32 = 4;
const OBJECTS_MAX: usize = 100_000;

/// Names of the numbers that `ConvertTo-Json` writes for enumerations (MSFT_SmbShare).
const ENUMS: [(&str, &[&str]); 5] = [
    ("FolderEnumerationMode", &["AccessBased", "Unrestricted"]),
    ("CachingMode", &["None", "Manual", "Documents", "Programs", "BranchCache", "Unknown"]),
    ("AvailabilityType", &["NonClustered", "Clustered", "ScaleOut", "CSV", "DFS"]),
    ("ShareType", &["FileSystemDirectory", "PrintQueue", "Device", "IPC", "ClusterServer"]),
    ("LeasingMode", &["Full", "Shared", "None"]),
];

pub(in super::super) fn read(text: &str, sink: &mut Sink<'_>) {
    let text = text.trim_start_matches('\u{feff}');
    let json: Json = match serde_json::from_str(text) {
        Ok(json) => json,
        Err(error) => return sink.damage(error.line() as u64, format!("not JSON: {error}")),
    };
    let mut lines = lines_of_keys(text);
    let mut waiting = VecDeque::from([(&json, None, 0)]);
    let mut objects = 0;
    while let Some((json, command, depth)) = waiting.pop_front() {
        objects += 1;
        if objects > OBJECTS_MAX {
            return sink
                .damage(0, format!("more than {OBJECTS_MAX} objects: the rest is not read"));
        }
        match json {
            Json::Object(members)
                if is_known(members) || (command.is_some() && !has_objects(members)) =>
            {
                emit(&object(members, &mut lines), command, sink);
            }
            Json::Object(members) if depth < DEPTH_MAX => {
                for (name, value) in members {
                    waiting.push_back((value, command_of(name).or(command), depth + 1));
                }
            }
            Json::Array(members) if depth < DEPTH_MAX => {
                waiting.extend(members.iter().map(|member| (member, command, depth + 1)));
            }
            other => sink.unknown(0, &other.to_string(), "not an object of Get-Smb*"),
        }
    }
}

fn is_known(members: &Map<String, Json>) -> bool {
    let known = SERVER.iter().chain(&CLIENT).chain(&SHARE);
    known.into_iter().any(|name| members.keys().any(|key| key.eq_ignore_ascii_case(name)))
}

fn has_objects(members: &Map<String, Json>) -> bool {
    members.values().any(|value| value.is_object())
}

fn object(members: &Map<String, Json>, lines: &mut Lines) -> Vec<Property> {
    let properties = members.iter().take(PROPERTIES_MAX).map(|(name, value)| Property {
        name: name.clone(),
        text: shown(name, value),
        line: lines.get_mut(name).and_then(VecDeque::pop_front).unwrap_or(0),
    });
    properties.collect()
}

/// As `Format-List` prints it.
fn shown(name: &str, value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        Json::String(text) => text.clone(),
        Json::Number(number) => {
            let names = ENUMS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let named =
                names.and_then(|(_, names)| names.get(usize::try_from(number.as_u64()?).ok()?));
            named.map_or_else(|| number.to_string(), |name| (*name).to_owned())
        }
        Json::Array(members) => {
            members.iter().map(|member| shown(name, member)).collect::<Vec<_>>().join(", ")
        }
        Json::Object(_) => "an object".to_owned(),
    }
}

type Lines = BTreeMap<String, VecDeque<u64>>;

/// Lines of the keys in the order of the text: the parser does not keep positions.
fn lines_of_keys(text: &str) -> Lines {
    let mut found = Lines::new();
    for (number, line) in super::super::text::lines(text) {
        let mut parts = line.split('"');
        parts.next();
        while let (Some(key), Some(rest)) = (parts.next(), parts.next()) {
            if rest.trim_start().starts_with(':') {
                found.entry(key.to_owned()).or_default().push_back(number);
            }
        }
    }
    found
}
