//! JSON Schemas (2020-12) of the answers, made from their fields. Times stay integer nanoseconds; units are part of the
//! keys.

use serde_json::{Map, Value, json};

use crate::value::{Field, Fields, Format, Object, Presence};

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
