//! JSON: its text, and the JSON Schemas (2020-12) of the answers, made from their fields. Times stay integer nanoseconds;
//! units are part of the keys.

use serde_json::{Map, Value, json};

use crate::value::format::steers;
use crate::value::{Field, Fields, Format, Object, Presence};

/// A value as indented text that is harmless on a terminal and in a log (see [`escaped`]).
pub fn text(value: &Value) -> String {
    format!("{}\n", escaped(format!("{value:#}")))
}

/// JSON text with every character escaped that steers a terminal, ends a line of a script, or reorders what a person sees.
/// Only strings can contain them, so that the value stays the same.
pub fn escaped(json: String) -> String {
    let steers = |c: char| c != '\n' && steers(c);
    if !json.contains(steers) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if steers(c) {
            // None of them is beyond 16 bits.
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// The schema of an answer's JSON.
pub fn schema(fields: &Fields) -> Value {
    let (document, objects) = (fields.name, fields.objects());
    let mut definitions = Map::new();
    for object in objects {
        definitions.insert(object.name.to_owned(), object_schema(object, objects));
    }
    let root = objects.first().map_or("", |object| object.name);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("https://github.com/smbscope/smbscope/releases/latest/download/{document}.schema.json"),
        "title": format!("smbscope {document}"),
        "$ref": format!("#/$defs/{root}"),
        "$defs": definitions,
    });
    for (object, field, values) in (fields.closed)() {
        schema["$defs"][object]["properties"][field]["enum"] = json!(values);
    }
    schema
}

fn object_schema(object: &Object, objects: &[Object]) -> Value {
    // Its own fields come first and win over those that it includes.
    let included =
        object.includes.iter().filter_map(|name| objects.iter().find(|known| known.name == *name));
    let all = std::iter::once(object).chain(included);
    let fields: Vec<_> = all.flat_map(|object| object.fields.iter()).collect();
    let properties: Map<_, _> =
        fields.iter().map(|field| (field.name.to_owned(), field_schema(field))).collect();
    let required: Vec<_> = fields
        .iter()
        .filter(|field| field.presence != Presence::Optional)
        .map(|field| field.name)
        .collect();
    json!({
        "type": "object",
        "description": object.help,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn field_schema(field: &Field) -> Value {
    let kind = match field.format {
        Format::Text | Format::Code => "string",
        Format::Flag => "boolean",
        Format::Count | Format::Bytes | Format::Duration | Format::Time => "integer",
        Format::Number | Format::Share => "number",
        Format::Counts | Format::Values | Format::Texts | Format::List(_) => "array",
        Format::Object(_) => "object",
    };
    let mut schema = match field.format {
        Format::Object(of) => json!({ "$ref": format!("#/$defs/{of}") }),
        Format::List(of) => json!({ "type": kind, "items": { "$ref": format!("#/$defs/{of}") } }),
        Format::Counts => json!({ "type": kind, "items": { "type": "integer" } }),
        Format::Values => json!({ "type": kind, "items": { "type": ["number", "null"] } }),
        Format::Texts => json!({ "type": kind, "items": { "type": "string" } }),
        _ => json!({ "type": kind }),
    };
    if field.presence == Presence::Nullable {
        schema = match field.format {
            Format::Object(_) => json!({ "anyOf": [schema, { "type": "null" }] }),
            _ => {
                schema["type"] = json!([kind, "null"]);
                schema
            }
        };
    }
    schema["title"] = json!(field.title);
    schema["description"] = json!(field.help);
    if !field.format.unit().is_empty() {
        schema["x-unit"] = json!(field.format.unit());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_steer_are_escaped_and_the_value_is_the_same() {
        let hostile = "\u{1b}[31m \u{7f} \u{9b}31m \u{202e}gpj.exe \u{2028} \u{61c}\u{2066}\u{feff}\u{200f} ü中\n";
        let value = json!({ hostile: [hostile, "plain"] });
        let written = text(&value);
        let visible = |c: char| c == '\n' || !steers(c);
        assert!(written.chars().all(visible), "{written:?}");
        assert!(written.contains("ü中") && written.contains("\\u009b31m"));
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
    }
}
