//! The description of a column: type, unit, meaning and sensitivity. It is stored in the metadata of
//! the Arrow field, so that a dataset documents itself.

use arrow::datatypes::{DataType, Field};

/// What a column's values could identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitivity {
    /// Nothing.
    Public,
    /// A person (a user's name).
    Person,
    /// A machine (an address, a host name).
    Machine,
    /// A path or share name; its components can name persons and projects.
    Path,
    /// A file extension; well-known extensions are kept.
    Extension,
}

impl Sensitivity {
    /// The word in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Sensitivity::Public => "public",
            Sensitivity::Person => "person",
            Sensitivity::Machine => "machine",
            Sensitivity::Path => "path",
            Sensitivity::Extension => "extension",
        }
    }

    /// The inverse of [`Sensitivity::name`]; unknown words are public.
    pub fn from_name(name: &str) -> Sensitivity {
        match name {
            "person" => Sensitivity::Person,
            "machine" => Sensitivity::Machine,
            "path" => Sensitivity::Path,
            "extension" => Sensitivity::Extension,
            _ => Sensitivity::Public,
        }
    }
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Not a quantity.
    None,
    /// A point in time: nanoseconds since 1970-01-01 00:00 UTC.
    Time,
    /// A duration in nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
}

impl Unit {
    /// The word in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Time => "ns since 1970",
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
        }
    }
}

/// One column of one table.
#[derive(Clone, Debug)]
pub struct ColumnSpec {
    /// The column's name: a stable interface.
    pub name: &'static str,
    /// Its Arrow type.
    pub data_type: DataType,
    /// Whether it can be null.
    pub nullable: bool,
    /// Its unit.
    pub unit: Unit,
    /// What its values could identify.
    pub sensitivity: Sensitivity,
    /// One sentence on its meaning.
    pub doc: &'static str,
}

/// Metadata key of the unit.
pub const UNIT_KEY: &str = "smbscope.unit";
/// Metadata key of the sensitivity.
pub const SENSITIVITY_KEY: &str = "smbscope.sensitivity";
/// Metadata key of the sentence that explains the column.
pub const DOC_KEY: &str = "smbscope.doc";

impl ColumnSpec {
    /// The Arrow field with unit, sensitivity and meaning in its metadata.
    pub fn field(&self) -> Field {
        let mut metadata = std::collections::HashMap::new();
        if self.unit != Unit::None {
            metadata.insert(UNIT_KEY.to_owned(), self.unit.name().to_owned());
        }
        if self.sensitivity != Sensitivity::Public {
            metadata.insert(SENSITIVITY_KEY.to_owned(), self.sensitivity.name().to_owned());
        }
        metadata.insert(DOC_KEY.to_owned(), self.doc.to_owned());
        Field::new(self.name, self.data_type.clone(), self.nullable).with_metadata(metadata)
    }
}

/// The type of repeated text: a dictionary of its own in every batch.
pub fn text_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}
