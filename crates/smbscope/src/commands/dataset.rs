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
    let others = [Table::Connections, Table::Sessions, Table::Trees, Table::Handles];
    let others =
        others.map(|table| format!("{} {}", format::count(rows(manifest, table)), table.name()));
    format!(
        "{}: {} operations, {}; {} in {count} files",
        out.display(),
        format::count(rows(manifest, Table::Operations)),
        others.join(", "),
        format::bytes(bytes),
    )
}

/// How to read it with DuckDB.
pub fn hint(out: &Path) -> String {
    let parts = out.join("operations").join("*.parquet");
    format!(
        "DuckDB reads it directly: duckdb -c \"select command, count(*) from '{}' group by 1\"",
        parts.display()
    )
}
