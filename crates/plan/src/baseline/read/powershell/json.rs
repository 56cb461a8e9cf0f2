//! Objects of `ConvertTo-Json` and `Export-Clixml`, one by one, in arrays, or under names.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

use serde_json::Value as Json;

use super::super::sink::Sink;
use super::{command_of, emit, is_known};
use crate::input::lines::{self, Lines};
use crate::input::powershell::{Object, clixml, read_json, walk};

pub(crate) fn read(text: &str, sink: &mut Sink<'_>) {
    let mut keys = lines_of_keys(text);
    let mut lines = Lines::new(text);
    while let Some(line) = lines.peek() {
        if line.trim().is_empty() {
            lines.skip(1);
            continue;
        }
        match read_json(&mut lines) {
            Ok(values) => values.iter().for_each(|value| objects(value, &mut keys, sink)),
            Err(damage) => return sink.damage(damage.line as u64, damage.message),
        }
    }
}

pub(super) fn read_clixml(text: &str, sink: &mut Sink<'_>) {
    match clixml(text) {
        Ok(value) => objects(&value, &mut KeyLines::new(), sink),
        Err(damage) => sink.damage(damage.line as u64, damage.message),
    }
}

/// Lines of each key, in the order of the text.
type KeyLines = BTreeMap<String, VecDeque<usize>>;

fn objects(value: &Json, keys: &mut KeyLines, sink: &mut Sink<'_>) {
    let Ok(()) = walk(value, &mut |names, value| {
        let command = names.iter().rev().find_map(|name| command_of(name));
        match value {
            Json::Object(members)
                if members.keys().any(|name| is_known(name))
                    || (command.is_some() && !members.values().any(Json::is_object)) =>
            {
                let mut object = Object::from_json(value).unwrap_or_default();
                for property in &mut object.properties {
                    let line = keys.get_mut(&property.name).and_then(VecDeque::pop_front);
                    property.line = line.unwrap_or(0);
                }
                emit(&object, command, sink);
                return Ok::<_, Infallible>(true);
            }
            Json::Object(_) => {}
            other => sink.unknown(0, &other.to_string(), "not an object of Get-Smb*"),
        }
        Ok(false)
    });
}

/// The parser does not keep positions.
fn lines_of_keys(text: &str) -> KeyLines {
    let mut found = KeyLines::new();
    for (number, line) in lines::lines(text) {
        let mut parts = line.split('"');
        parts.next();
        while let (Some(key), Some(rest)) = (parts.next(), parts.next()) {
            if rest.trim_start().starts_with(':') {
                found.entry(key.to_owned()).or_default().push_back(number as usize);
            }
        }
    }
    found
}
