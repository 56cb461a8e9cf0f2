//! Every field of the report, once: title, unit and one sentence of help. The text and HTML
//! reports take their headings from here, the JSON Schema is made from it, and a test compares it
//! with the real output, so that the four cannot drift.
//!
//! Columns of the tables (`coverage`, `connections`) are described by the `tables` crate; their
//! titles are made from their names.

use std::collections::HashMap;
use std::sync::OnceLock;

use smbscope_tables::column::{ColumnSpec, Unit};
use smbscope_tables::tables::{Connection, Coverage};

use crate::catalogue::{OBJECTS, Rows};
use crate::{catalogue_explain, catalogue_forecast, catalogue_load, catalogue_server};

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text.
    Text,
    /// A Wireshark filter, a file name: text that is typed as it is.
    Code,
    /// A number of things.
    Count,
    /// A number without unit.
    Number,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Duration,
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    Time,
    /// A part of a whole, from 0 to 1.
    Share,
    /// Yes or no.
    Flag,
    /// A list of numbers.
    Counts,
    /// A list of numbers without unit, null where there is none.
    Values,
    /// A list of words.
    Texts,
    /// Another object.
    Object(&'static str),
    /// A list of other objects.
    List(&'static str),
}

/// Whether a field always has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Always,
    /// Null when not known.
    Nullable,
    /// Left out when not asked for.
    Optional,
}

/// One field.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in JSON: a stable interface.
    pub name: &'static str,
    /// Its title in tables.
    pub title: &'static str,
    /// What it holds, which says its unit.
    pub format: Format,
    /// Whether it always has a value.
    pub presence: Presence,
    /// One sentence on its meaning.
    pub help: &'static str,
}

/// Fields that stand together.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name in the JSON Schema.
    pub name: &'static str,
    /// One sentence on its meaning.
    pub help: &'static str,
    /// Other objects whose fields stand among its own.
    pub includes: &'static [&'static str],
    /// Its own fields.
    pub fields: Vec<Field>,
}

impl Format {
    /// The unit in words; empty for what has none.
    pub fn unit(self) -> &'static str {
        match self {
            Format::Bytes => "bytes",
            Format::Duration => "ns",
            Format::Time => "ns since 1970",
            Format::Share => "0 to 1",
            Format::Count | Format::Counts => "count",
            _ => "",
        }
    }

    /// Whether values are numbers, to be aligned to the right.
    pub fn is_number(self) -> bool {
        !matches!(
            self,
            Format::Text
                | Format::Code
                | Format::Flag
                | Format::Counts
                | Format::Values
                | Format::Texts
                | Format::Object(_)
                | Format::List(_)
        )
    }
}

fn made(&(name, help, includes, fields): &Rows) -> Object {
    let fields = fields.iter().map(|&(name, title, format, presence, help)| Field {
        name,
        title,
        format,
        presence,
        help,
    });
    Object { name, help, includes, fields: fields.collect() }
}

/// The objects of a diagnosis; the first is the diagnosis itself.
pub fn explain_objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| catalogue_explain::OBJECTS.iter().map(made).collect())
}

/// All objects; the first is the report itself.
pub fn objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut objects: Vec<_> = OBJECTS
            .iter()
            .chain(catalogue_load::OBJECTS)
            .chain(catalogue_server::OBJECTS)
            .chain(catalogue_forecast::OBJECTS)
            .map(made)
            .collect();
        objects.push(table(
            "coverage",
            "What was seen, lost and not understood in one input.",
            Coverage::specs(),
        ));
        objects.push(table(
            "connection",
            "One TCP connection that carried SMB.",
            Connection::specs(),
        ));
        objects
    })
}

/// A field of an object, or of one that it includes.
pub fn field(object: &str, name: &str) -> &'static Field {
    static INDEX: OnceLock<HashMap<(&'static str, &'static str), &'static Field>> = OnceLock::new();
    static UNKNOWN: Field =
        Field { name: "", title: "?", format: Format::Text, presence: Presence::Always, help: "" };
    let index = INDEX.get_or_init(|| {
        let all = objects().iter();
        all.flat_map(|object| object.fields.iter().map(|field| ((object.name, field.name), field)))
            .collect()
    });
    let includes = objects().iter().find(|known| known.name == object);
    let includes = includes.map_or(&[][..], |known| known.includes);
    std::iter::once(object)
        .chain(includes.iter().copied())
        .find_map(|object| index.get(&(object, name)).copied())
        .unwrap_or(&UNKNOWN)
}

fn table(name: &'static str, help: &'static str, specs: Vec<ColumnSpec>) -> Object {
    let fields = specs.into_iter().map(|spec| Field {
        name: spec.name,
        title: title_of(spec.name),
        format: match (spec.unit, &spec.data_type) {
            (Unit::Bytes, _) => Format::Bytes,
            (Unit::Count, _) => Format::Count,
            (Unit::Nanoseconds, _) => Format::Duration,
            (Unit::Time, _) => Format::Time,
            (Unit::None, arrow::datatypes::DataType::Boolean) => Format::Flag,
            (Unit::None, kind) if kind.is_integer() => Format::Number,
            (Unit::None, _) => Format::Text,
        },
        presence: match spec.nullable {
            true => Presence::Nullable,
            false => Presence::Always,
        },
        help: spec.doc,
    });
    Object { name, help, includes: &[], fields: fields.collect() }
}

/// "server_rtt_ns" reads "Server round trip". Called once per column.
fn title_of(name: &str) -> &'static str {
    let name = name.trim_end_matches("_ns");
    let words: Vec<_> = name
        .split('_')
        .map(|word| match word {
            "rtt" => "round trip",
            "mss" => "MSS",
            "smb" => "SMB",
            "tcp" => "TCP",
            "guid" => "GUID",
            "max" => "most",
            "min" => "fewest",
            other => other,
        })
        .collect();
    let mut title = words.join(" ");
    if let Some(first) = title.get(..1).map(str::to_uppercase) {
        title.replace_range(..1, &first);
    }
    Box::leak(title.into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_title_and_a_sentence_and_every_object_is_there() {
        let names: Vec<_> = objects().iter().map(|object| object.name).collect();
        for object in objects() {
            assert!(object.help.ends_with('.'), "{}", object.name);
            assert!(object.includes.iter().all(|name| names.contains(name)));
            for field in &object.fields {
                let place = format!("{}.{}", object.name, field.name);
                assert!(!field.title.is_empty() && field.help.ends_with('.'), "{place}");
                if let Format::Object(of) | Format::List(of) = field.format {
                    assert!(names.contains(&of), "{place}");
                }
            }
        }
    }

    #[test]
    fn fields_are_found_through_what_an_object_includes() {
        assert_eq!(field("command", "operations").title, "Operations");
        assert_eq!(field("connection", "server_rtt_ns").title, "Server round trip");
        assert_eq!(field("command", "nonsense").title, "?");
    }
}
