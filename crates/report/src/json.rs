//! The report as JSON, and its schema (JSON Schema 2020-12), which is made from
//! [`fields`](crate::fields) and printed by `smbscope schema report`. Times stay integer
//! nanoseconds; units are part of the keys.

use serde_json::{Map, Value, json};
use smbscope_analysis::explain::why::{Blocking, Reason, StepKind};
use smbscope_analysis::explain::{About, Confidence, Trouble};
use smbscope_analysis::processors::ProcessorTrouble;
use smbscope_analysis::summary::Bottleneck;
use smbscope_plan::baseline::judgement::findings::FindingKind;
use smbscope_plan::namespace::stages::StageId;

use crate::fields::{
    Field, Format, Object, Presence, baseline_objects, cores_objects, explain_objects,
    namespace_objects, objects, processors_explain_objects, processors_objects,
    replication_objects, why_objects,
};
use crate::{Meta, Report};

/// The report as a JSON value: the summary with version, inputs and what changes would bring.
pub fn json(report: &Report, meta: &Meta) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(report)?;
    if let Some(object) = value.as_object_mut() {
        let inputs = meta.inputs.iter().map(|name| json!({ "name": name }));
        object.insert("version".to_owned(), json!(meta.version));
        object.insert("inputs".to_owned(), inputs.collect());
        if let Some(selection) = &meta.selection {
            object.insert("selection".to_owned(), selection.json());
        }
        if let Some(recorded) = &meta.recorded {
            object.insert("recorded".to_owned(), recorded.json());
        }
        if let Some(forecast) = &meta.forecast {
            object.insert("forecast".to_owned(), serde_json::to_value(forecast)?);
        }
    }
    Ok(value)
}

/// The schema of that value.
pub fn schema() -> Value {
    let mut schema = schema_of("report", objects());
    let bottlenecks = Bottleneck::ALL.iter().map(|one| json!(one)).chain([Value::Null]);
    schema["$defs"]["load_step"]["properties"]["bottleneck"]["enum"] = bottlenecks.collect();
    schema
}

/// The schema of what `smbscope explain --format json` gives.
pub fn explain_schema() -> Value {
    let mut schema = schema_of("explain", explain_objects());
    // The lists are closed.
    let names = |values: &[Value]| json!(values);
    let troubles: Vec<_> = Trouble::ALL.iter().map(|one| json!(one)).collect();
    let abouts: Vec<_> = About::ALL.iter().map(|one| json!(one)).collect();
    let sure = [Confidence::Low, Confidence::Medium, Confidence::High].map(|one| json!(one));
    for (object, field, values) in [
        ("finding", "trouble", names(&troubles)),
        ("finding", "confidence", names(&sure)),
        ("note", "about", names(&abouts)),
    ] {
        schema["$defs"][object]["properties"][field]["enum"] = values;
    }
    with_troubles(schema)
}

/// The schema of what `smbscope explain --why WHICH --format json` gives.
pub fn why_schema() -> Value {
    let mut schema = schema_of("why", why_objects());
    let reasons: Vec<_> = Reason::ALL.iter().map(|one| json!(one)).collect();
    let steps: Vec<_> = StepKind::ALL.iter().map(|one| json!(one)).collect();
    let blocking: Vec<_> = Blocking::ALL.iter().map(|one| json!(one)).collect();
    for (object, field, values) in [
        ("explanation", "reason", reasons),
        ("step", "kind", steps),
        ("neighbours", "blocking", blocking),
    ] {
        schema["$defs"][object]["properties"][field]["enum"] = json!(values);
    }
    schema
}

/// The schema of what `smbscope report` gives of a trace of processors.
pub fn processors_schema() -> Value {
    with_troubles(schema_of("processors", processors_objects()))
}

/// The schema of what `smbscope explain --format json` gives of a trace of processors.
pub fn processors_explain_schema() -> Value {
    with_troubles(schema_of("explain-processors", processors_explain_objects()))
}

/// The lists of findings about processors are closed.
fn with_troubles(mut schema: Value) -> Value {
    let troubles: Vec<_> = ProcessorTrouble::ALL.iter().map(|one| json!(one)).collect();
    let sure = [Confidence::Low, Confidence::Medium, Confidence::High].map(|one| json!(one));
    let finding = &mut schema["$defs"]["processor_finding"]["properties"];
    finding["trouble"]["enum"] = json!(troubles);
    finding["confidence"]["enum"] = json!(sure);
    schema
}

/// The schema of what `smbscope plan cores --format json` gives.
pub fn cores_schema() -> Value {
    let mut schema = schema_of("cores", cores_objects());
    for (object, field, values) in [
        ("machine", "system", &["linux", "windows"][..]),
        ("card", "kind", &["physical", "virtual-function", "virtual"]),
        ("finding", "severity", &["high", "medium", "low"]),
        ("command_step", "interrupts", &["none", "adapter-restart", "queue-restart", "service"]),
        ("card_prediction", "verdict", &["one-connection", "one-dominates", "spreads"]),
        ("card_prediction", "key", &["read", "mellanox-default", "microsoft"]),
    ] {
        schema["$defs"][object]["properties"][field]["enum"] = json!(values);
    }
    schema
}

/// The schema of what `smbscope plan replication --format json` gives.
pub fn replication_schema() -> Value {
    schema_of("replication", replication_objects())
}

/// The schema of what `smbscope plan baseline --format json` gives.
pub fn baseline_schema() -> Value {
    let mut schema = schema_of("baseline", baseline_objects());
    let kinds: Vec<_> = FindingKind::ALL.iter().map(|one| json!(one)).collect();
    let words = |values: &[&str]| values.iter().map(|one| json!(one)).collect::<Vec<_>>();
    for (object, field, values) in [
        ("baseline_finding", "kind", kinds),
        ("baseline_cost", "outcome", words(&["predicted", "nothing", "unknown"])),
        ("baseline_change", "security", words(&["stricter", "weaker", "neutral"])),
    ] {
        schema["$defs"][object]["properties"][field]["enum"] = json!(values);
    }
    schema
}

/// The schema of what `smbscope plan namespace --format json` gives.
pub fn namespace_schema() -> Value {
    let mut schema = schema_of("namespace", namespace_objects());
    let kinds = ["standalone", "domain_v1", "domain_v2", "samba"];
    let stages: Vec<_> = StageId::ALL.iter().map(|stage| stage.name()).collect();
    for (object, field, values) in [
        ("namespace_finding", "severity", &["high", "medium", "low"][..]),
        ("move_plan", "to", &kinds),
        ("move_stage", "id", &stages),
        ("move_stage", "impact", &["nothing", "pause", "failures"]),
        ("move_command", "tool", &["any", "dfsutil", "power-shell"]),
        ("stage_progress", "id", &stages),
        ("stage_progress", "status", &["pending", "running", "done", "undone"]),
        ("gate_verdict", "stage", &stages),
    ] {
        schema["$defs"][object]["properties"][field]["enum"] = json!(values);
    }
    schema
}

/// The schema of a document whose first object is the whole.
fn schema_of(document: &str, objects: &[Object]) -> Value {
    let mut definitions = Map::new();
    for object in objects {
        definitions.insert(object.name.to_owned(), object_schema(object, objects));
    }
    let root = objects.first().map_or("", |object| object.name);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("https://github.com/smbscope/smbscope/releases/latest/download/{document}.schema.json"),
        "title": format!("smbscope {document}"),
        "$ref": format!("#/$defs/{root}"),
        "$defs": definitions,
    })
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
