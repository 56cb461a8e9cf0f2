//! How a field is described: title, unit and one sentence of help, once. Text and page take their headings from it, the
//! JSON Schema is made from it, and a test compares it with the real output, so that the four cannot drift apart.
//!
//! The fields themselves are in the modules of the answers, as tuples. Fields that are columns of a table are described
//! by the `tables` crate; their titles are derived from their names.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Value, json};
use smbscope_findings::{Confidence, Kind};
use smbscope_tables::column::{ColumnSpec, Unit};
use smbscope_tables::{Table, renamed};

use crate::value::format;

/// A field whose values are a closed list: object, field, values.
pub(crate) type Closed = (&'static str, &'static str, Vec<Value>);

/// A field: name, title, format, presence, help.
type Row = (&'static str, &'static str, Format, Presence, &'static str);
/// An object: name, help, the objects that it includes, its fields.
pub(crate) type Rows = (&'static str, &'static str, &'static [&'static str], &'static [Row]);

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text.
    Text,
    /// Literal text: a Wireshark filter, a file name.
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
    /// A boolean.
    Flag,
    /// A list of numbers.
    Counts,
    /// A list of numbers without unit; null for missing values.
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
    /// Null when unknown.
    Nullable,
    /// Omitted unless requested.
    Optional,
}

/// One field.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in JSON: a stable interface.
    pub name: &'static str,
    /// Its title in tables.
    pub title: &'static str,
    /// What it holds, which implies its unit.
    pub format: Format,
    /// Whether it always has a value.
    pub presence: Presence,
    /// One sentence on its meaning.
    pub help: &'static str,
}

/// An object of the JSON report.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name in the JSON Schema.
    pub name: &'static str,
    /// One sentence on its meaning.
    pub help: &'static str,
    /// Other objects whose fields are among its own.
    pub includes: &'static [&'static str],
    /// Its own fields.
    pub fields: Vec<Field>,
}

/// The fields of an answer, from which its tables, its JSON Schema and a test of its JSON are made.
#[derive(Debug)]
pub struct Fields {
    /// The name of its schema.
    pub name: &'static str,
    make: fn() -> Vec<Object>,
    pub(crate) closed: fn() -> Vec<Closed>,
    objects: OnceLock<Vec<Object>>,
}

impl Fields {
    /// `make` gives the objects, of which the first is the answer itself.
    pub(crate) const fn new(
        name: &'static str,
        make: fn() -> Vec<Object>,
        closed: fn() -> Vec<Closed>,
    ) -> Fields {
        Fields { name, make, closed, objects: OnceLock::new() }
    }

    /// All objects; the first is the answer itself.
    pub fn objects(&self) -> &[Object] {
        self.objects.get_or_init(self.make)
    }

    /// A field of an object, or of one that it includes.
    pub fn field(&self, object: &str, name: &str) -> &Field {
        static UNKNOWN: Field = Field {
            name: "",
            title: "?",
            format: Format::Text,
            presence: Presence::Always,
            help: "",
        };
        let find = |wanted: &str| self.objects().iter().find(|known| known.name == wanted);
        let own = find(object);
        let included =
            own.into_iter().flat_map(|known| known.includes).filter_map(|name| find(name));
        let mut fields = own.into_iter().chain(included).flat_map(|known| &known.fields);
        let field = fields.find(|field| field.name == name);
        debug_assert!(field.is_some(), "{}: there is no field {object}.{name}", self.name);
        field.unwrap_or(&UNKNOWN)
    }
}

impl Format {
    /// The unit in words; empty where there is none.
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

/// All values of a field.
pub(crate) fn values_of<T: Serialize>(
    object: &'static str,
    field: &'static str,
    values: &[T],
) -> Closed {
    (object, field, values.iter().map(|value| json!(value)).collect())
}

/// The closed lists of an object that is a finding: its kinds, and the words for how sure it is.
pub(crate) fn kinds_of<K: Kind + Serialize>(object: &'static str) -> [Closed; 2] {
    [values_of(object, "trouble", K::ALL), values_of(object, "confidence", &Confidence::ALL)]
}

/// Objects from the tuples that describe them.
pub(crate) fn all<'a>(rows: impl IntoIterator<Item = &'a Rows>) -> Vec<Object> {
    rows.into_iter().map(made).collect()
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

/// An object whose fields are the columns of a table.
pub(crate) fn table(
    of: Table,
    name: &'static str,
    help: &'static str,
    specs: Vec<ColumnSpec>,
) -> Object {
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
        presence: if spec.nullable { Presence::Nullable } else { Presence::Always },
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
            "netbeui" => "NetBEUI",
            "ipx" => "IPX",
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

/// A value of a format as people read it.
pub(crate) fn show(format: Format, value: f64) -> String {
    match format {
        Format::Bytes => format::bytes(value.max(0.0) as u64),
        Format::Duration => format::duration(value as i64),
        Format::Share => format::share(value),
        Format::Count if value.fract() == 0.0 => format::count(value.max(0.0) as u64),
        _ if value >= 1000.0 => format::count(value.round() as u64),
        _ => format::number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_made_from_the_names_of_columns() {
        assert_eq!(title_of("server_rtt_ns"), "Server round trip");
        assert_eq!(title_of("max_smb_bytes"), "Most SMB bytes");
    }
}
