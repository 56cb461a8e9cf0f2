//! How a field is described, and the tuples in which each answer lists its own.

use crate::value::format;

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

pub(crate) fn made(&(name, help, includes, fields): &Rows) -> Object {
    let fields = fields.iter().map(|&(name, title, format, presence, help)| Field {
        name,
        title,
        format,
        presence,
        help,
    });
    Object { name, help, includes, fields: fields.collect() }
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
