//! Messages of the commands that write a dataset: `import` and `record`.

use std::path::Path;

use smbscope_report::format;
use smbscope_store::Table;
use smbscope_tables::manifest::Manifest;

pub use crate::pipeline::record::folder::cannot_write as cannot;

/// Rows of a table.
pub fn rows(manifest: &Manifest, table: Table) -> u64 {
    manifest.tables.get(table.name()).into_iter().flatten().map(|part| part.rows).sum()
}

/// A summary of the written dataset.
pub fn written(out: &Path, manifest: &Manifest) -> String {
    let files = manifest.tables.values().flatten();
    let (count, bytes) = files.fold((0, 0), |(n, bytes), file| (n + 1, bytes + file.size_bytes));
    let tables = if is_trace(manifest) {
        [Table::Interrupts, Table::Samples, Table::Stacks, Table::Switches, Table::Cpus]
    } else {
        [Table::Operations, Table::Connections, Table::Sessions, Table::Trees, Table::Handles]
    };
    let tables =
        tables.map(|table| format!("{} {}", format::count(rows(manifest, table)), table.name()));
    format!("{}: {}; {} in {count} files", out.display(), tables.join(", "), format::bytes(bytes),)
}

/// Whether it has CPU traces and no operations.
fn is_trace(manifest: &Manifest) -> bool {
    rows(manifest, Table::Traces) > 0 && rows(manifest, Table::Operations) == 0
}

/// How to read it with DuckDB.
pub fn hint(out: &Path, manifest: &Manifest) -> String {
    let (table, column) = if is_trace(manifest) {
        (Table::Interrupts, "name")
    } else {
        (Table::Operations, "command")
    };
    let parts = out.join(table.name()).join("*.parquet");
    format!(
        "DuckDB reads it directly: duckdb -c \"select {column}, count(*) from '{}' group by 1\"",
        parts.display()
    )
}
