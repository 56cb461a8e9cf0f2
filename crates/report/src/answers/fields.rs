//! Every field of the report, defined once: title, unit and one sentence of help. The text and HTML
//! reports take their headings from here, the JSON Schema is generated from it, and a test compares it
//! with the real output, so that the four cannot drift apart.
//!
//! The fields themselves are in the modules of the answers. Columns of the tables `coverage` and `connections` are described by
//! the `tables` crate; their titles are derived from their names.

use std::collections::HashMap;
use std::sync::OnceLock;

use smbscope_tables::column::{ColumnSpec, Unit};
use smbscope_tables::tables::{Connection, Coverage, NetRoundTrip, NetTest, Trace};
use smbscope_tables::{Table, renamed};

use crate::answers::baseline::fields as baseline;
use crate::answers::cores::fields as cores;
use crate::answers::cpu::fields as processors;
use crate::answers::diagnosis::fields as findings;
use crate::answers::load::fields as load;
use crate::answers::namespace::fields as namespace;
use crate::answers::prediction::fields as forecast;
use crate::answers::recording::fields as summary;
use crate::answers::recording::fields::{channels, server};
use crate::answers::replication::fields as replication;
use crate::answers::why::fields as why;
use crate::value::fields::made;

pub use crate::value::fields::{Field, Format, Object, Presence};

/// The objects of a diagnosis; the first is the diagnosis itself.
pub fn explain_objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| {
        let of_traces = processors::OBJECTS.iter();
        let of_traces = of_traces.filter(|(name, ..)| processors::IN_DIAGNOSES.contains(name));
        let network = summary::OBJECTS.iter().filter(|(name, ..)| *name == "net_ratio");
        let beside = processors::BESIDE.iter().chain(channels::FINDINGS).chain(network);
        findings::OBJECTS.iter().chain(beside).chain(of_traces).map(made).collect()
    })
}

/// The objects of the explanation of one operation; the first is the explanation itself.
pub fn why_objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| {
        let selection = findings::OBJECTS.iter().filter(|(name, ..)| *name == "selection");
        why::OBJECTS.iter().chain(selection).map(made).collect()
    })
}

/// The objects of a plan of cores; the first is the plan itself.
pub fn cores_objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| cores::OBJECTS.iter().map(made).collect())
}

/// The objects of the report of a trace of processors; the first is the report itself.
pub fn processors_objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| {
        let distribution = summary::OBJECTS.iter().filter(|(name, ..)| *name == "distribution");
        let mut objects: Vec<_> =
            processors::OBJECTS.iter().chain(distribution).map(made).collect();
        objects.push(table(
            Table::Traces,
            "trace",
            "What was seen, lost and not understood in one trace.",
            Trace::specs(),
        ));
        objects
    })
}

/// The objects of the explanation of a trace of processors; the first is the explanation itself.
pub fn processors_explain_objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| {
        let of_reports = processors::OBJECTS
            .iter()
            .filter(|(name, ..)| *name == "recorded" || processors::IN_DIAGNOSES.contains(name));
        processors::EXPLANATION.iter().chain(of_reports).map(made).collect()
    })
}

/// The objects of the plan of a second server; the first is the plan itself.
pub fn replication_objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| replication::OBJECTS.iter().map(made).collect())
}

/// The objects of the judgement of a baseline; the first is the judgement itself.
pub fn baseline_objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| baseline::OBJECTS.iter().map(made).collect())
}

/// The objects of the plan of a namespace's move; the first is the whole.
pub fn namespace_objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| namespace::OBJECTS.iter().map(made).collect())
}

/// All objects; the first is the report itself.
pub fn objects() -> &'static [Object] {
    static ALL: OnceLock<Vec<Object>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut objects: Vec<_> = summary::OBJECTS
            .iter()
            .chain(load::OBJECTS)
            .chain(server::OBJECTS)
            .chain(channels::OBJECTS)
            .chain(channels::FINDINGS)
            .chain(forecast::OBJECTS)
            .map(made)
            .collect();
        objects.push(table(
            Table::Coverage,
            "coverage",
            "What was seen, lost and not understood in one input.",
            Coverage::specs(),
        ));
        objects.push(table(
            Table::Coverage,
            "connection",
            "One TCP connection that carried SMB.",
            Connection::specs(),
        ));
        objects.push(table(
            Table::NetTests,
            "net_test",
            "One direction of one phase of a test of the network.",
            NetTest::specs(),
        ));
        objects.push(table(
            Table::NetRoundTrips,
            "net_round_trip",
            "Round trips of one kind and size.",
            NetRoundTrip::specs(),
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
        let all = objects()
            .iter()
            .chain(processors_objects())
            .chain(replication_objects())
            .chain(baseline_objects())
            .chain(namespace_objects());
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

fn table(of: Table, name: &'static str, help: &'static str, specs: Vec<ColumnSpec>) -> Object {
    // JSON has the names of the rows' fields, which are those of the columns before SQL needed others.
    let key = |column| renamed(of, column).unwrap_or(column);
    let fields = specs.into_iter().map(|spec| Field {
        name: key(spec.name),
        title: title_of(key(spec.name)),
        format: match (spec.unit, &spec.data_type) {
            (Unit::Bytes, _) => Format::Bytes,
            (Unit::Count, _) => Format::Count,
            (Unit::Nanoseconds, _) => Format::Duration,
            (Unit::Time, _) => Format::Time,
            (Unit::None, arrow::datatypes::DataType::Boolean) => Format::Flag,
            (Unit::None, kind) if kind.is_numeric() => Format::Number,
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
            "naks" => "NAKs",
            "rdma" => "RDMA",
            "roce" => "RoCE",
            "smb" => "SMB",
            "tcp" => "TCP",
            "guid" => "GUID",
            "quic" => "QUIC",
            "cpus" => "CPUs",
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
