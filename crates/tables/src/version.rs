//! The version of the schemas of all tables together, and what older versions called their columns.

use crate::registry::Table;

/// Version of all schemas together. A change of a column increments it and adds a fix-up for old files.
///
/// Version 2 renamed columns whose names are words of SQL elsewhere ([`renamed`]), and stores points in
/// time as timestamps.
pub const SCHEMA_VERSION: u32 = 2;

/// The name of a column in files of schema version 1, if it had another one.
pub fn renamed(table: Table, column: &str) -> Option<&'static str> {
    Some(match (table, column) {
        (Table::Operations, "offset_bytes") => "offset",
        (
            Table::Connections | Table::Sessions | Table::Trees | Table::Steps | Table::Coverage,
            "started_at",
        ) => "start",
        (
            Table::Connections | Table::Sessions | Table::Trees | Table::Steps | Table::Coverage,
            "ended_at",
        ) => "end",
        _ => return None,
    })
}
