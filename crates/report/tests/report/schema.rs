//! The published schemas are those of the fields, and the output has exactly these.

use serde_json::Value;
use smbscope_analysis::explain::Diagnosis;
use smbscope_report::fields::{
    Format, Object, Presence, explain_objects, objects, processors_objects, why_objects,
};
use smbscope_report::{
    explain_schema, json, processors_json, processors_schema, schema, why_json, why_schema,
};

use super::sample::diagnosis::diagnosis;
use super::sample::why::explanation;
use super::{meta, processors, reports, sample};

#[test]
fn a_diagnosis_is_of_its_published_schema() {
    published("explain", &explain_schema());
    let objects = explain_objects();
    check_in(objects, &serde_json::to_value(diagnosis()).unwrap(), "diagnosis", "$");
    check_in(objects, &serde_json::to_value(Diagnosis::default()).unwrap(), "diagnosis", "$");
}

#[test]
fn an_explanation_is_of_its_published_schema() {
    published("why", &why_schema());
    check_in(why_objects(), &why_json(&explanation()).unwrap(), "explanation", "$");
    let mut empty = explanation();
    (empty.timer, empty.open, empty.filter) = (None, None, None);
    empty.operation = Default::default();
    empty.neighbours = Default::default();
    check_in(why_objects(), &why_json(&empty).unwrap(), "explanation", "$");
}

#[test]
fn a_report_of_a_trace_is_of_its_published_schema() {
    published("processors", &processors_schema());
    for report in [processors::report(), Default::default()] {
        let value = processors_json(&report, &meta()).unwrap();
        check_in(processors_objects(), &value, "processors", "$");
    }
}

#[test]
fn the_published_schema_is_the_fields() {
    published("report", &schema());
}

pub fn published(document: &str, schema: &Value) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let path = format!("{folder}/{document}.schema.json");
    let made = format!("{schema:#}\n");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        std::fs::write(&path, &made).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == made, "{path} is out of date: INSTA_UPDATE=always rewrites it");
}

#[test]
fn the_output_has_exactly_the_fields() {
    for operations in [0, 12, 5_000] {
        check(&json(&sample::report(operations), &meta()).unwrap(), "report", "$");
    }
    for report in reports() {
        check(&json(&report, &meta()).unwrap(), "report", "$");
    }
}

/// Compares a value with the fields of an object: names both ways, and every value's type.
pub fn check(value: &Value, name: &str, place: &str) {
    check_in(objects(), value, name, place);
}

pub fn check_in(objects: &[Object], value: &Value, name: &str, place: &str) {
    let map = value.as_object().unwrap_or_else(|| panic!("{place}: {value} is not an object"));
    let object = |name: &str| objects.iter().find(|object| object.name == name).unwrap();
    let own = object(name);
    let fields: Vec<_> = own
        .includes
        .iter()
        .map(|name| object(name))
        .chain([own])
        .flat_map(|object| &object.fields)
        .collect();
    for key in map.keys() {
        assert!(fields.iter().any(|field| field.name == key), "{place}.{key} is in no list");
    }
    for field in fields {
        let place = format!("{place}.{}", field.name);
        let Some(value) = map.get(field.name) else {
            assert_eq!(field.presence, Presence::Optional, "{place} is missing");
            continue;
        };
        if value.is_null() {
            assert_eq!(field.presence, Presence::Nullable, "{place} is null");
            continue;
        }
        let fits = match field.format {
            Format::Text | Format::Code => value.is_string(),
            Format::Flag => value.is_boolean(),
            Format::Count | Format::Bytes => value.is_u64(),
            Format::Duration | Format::Time => value.is_i64(),
            Format::Number | Format::Share => value.is_number(),
            Format::Counts => value.as_array().is_some_and(|list| list.iter().all(Value::is_i64)),
            Format::Values => value
                .as_array()
                .is_some_and(|list| list.iter().all(|it| it.is_number() || it.is_null())),
            Format::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Format::Object(name) => {
                check_in(objects, value, name, &place);
                true
            }
            Format::List(name) => {
                let list = value.as_array().unwrap_or_else(|| panic!("{place} is not a list"));
                list.iter().for_each(|value| check_in(objects, value, name, &format!("{place}[]")));
                true
            }
        };
        assert!(fits, "{place}: {value}");
    }
}

#[test]
fn units_stand_in_the_keys() {
    for object in
        // Rows of tables have the names of their columns.
        objects().iter().filter(|object| {
            !matches!(object.name, "coverage" | "connection" | "net_test" | "net_round_trip")
        })
    {
        for field in &object.fields {
            let end = match field.format {
                Format::Duration | Format::Time => "_ns",
                Format::Bytes => "_bytes",
                _ => continue,
            };
            let named = field.name.ends_with(end) || field.name.starts_with("bytes_");
            assert!(named, "{}.{}", object.name, field.name);
        }
    }
}
