//! A dataset read by other tools: DuckDB and pyarrow read every table, and find the same rows, sums and
//! types as smbscope. Needs a Python with both: `SMBSCOPE_PYTHON` (set by `make test`), otherwise
//! `python3`; without them the test reports that it is skipped.

// Helpers are outside of the test function.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use serde_json::Value;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_store::source::{OpenOptions, Request, Source};
use smbscope_store::sql::Engine;

fn open(name: &str) -> Source {
    Source::open(&[name.to_owned()], OpenOptions::default()).unwrap()
}

fn number(engine: &Engine, sql: &str) -> i64 {
    let batch = engine.query(sql).unwrap().next().unwrap().unwrap();
    batch.column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn duckdb_and_pyarrow_read_what_was_written() {
    let python = std::env::var("SMBSCOPE_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python).args(["-c", "import duckdb, pyarrow"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        smbscope_testing::skip!("{python} has no duckdb and pyarrow");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let capture = root.join("tests/fixtures/smb311.pcapng");
    let source = open(&capture.display().to_string());
    let dir = tempfile::tempdir().unwrap();
    let seed = ManifestSeed::now(Default::default(), source.describe());
    // Small parts, so that every reader has to combine several.
    let options = WriteOptions { part_rows: 1, ..WriteOptions::default() };
    let mut writer = DatasetWriter::create(dir.path(), seed, options).unwrap();
    for part in source.parts(&Request::all()).unwrap() {
        writer.part(part.unwrap()).unwrap();
    }
    let manifest = writer.finish(true).unwrap();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers.py");
    let output = Command::new(&python).arg(script).arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (duckdb, pyarrow) = (&found["duckdb"], &found["pyarrow"]);
    for what in ["rows", "sums", "counts", "commands"] {
        assert_eq!(duckdb[what], pyarrow[what], "{what}");
    }
    let text = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let types = |of: &Value| {
        ["response_end", "path", "file_id", "offset_bytes"].map(|name| text(&of["types"][name]))
    };
    assert_eq!(types(duckdb), ["TIMESTAMPTZ_NS", "VARCHAR", "BLOB", "UBIGINT"]);
    assert_eq!(
        types(pyarrow),
        [
            "timestamp[ns, tz=UTC]",
            "dictionary<values=string, indices=int32, ordered=0>",
            "fixed_size_binary[16]",
            "uint64"
        ]
    );
    for (table, rows) in duckdb["rows"].as_object().unwrap() {
        assert_eq!(rows.as_u64().unwrap(), manifest.rows(table), "{table}");
    }
    let engine = Engine::new(open(&capture.display().to_string())).unwrap();
    for (name, sum) in duckdb["sums"].as_object().unwrap() {
        let high = 1_000_000_000;
        // In two halves, because sums of times overflow 64 bits.
        let sql = |part: &str| format!("SELECT CAST(sum({part}) AS BIGINT) FROM operations");
        let upper = number(&engine, &sql(&format!("CAST({name} AS BIGINT) / {high}")));
        let lower = number(&engine, &sql(&format!("CAST({name} AS BIGINT) % {high}")));
        let ours = i128::from(upper) * i128::from(high) + i128::from(lower);
        let theirs: i128 = sum.as_str().unwrap().parse().unwrap();
        assert_eq!(ours, theirs, "{name}");
    }
    for (name, count) in duckdb["counts"].as_object().unwrap() {
        let ours = number(&engine, &format!("SELECT count({name}) FROM operations"));
        assert_eq!(Some(ours), count.as_i64(), "{name}");
    }
    for (share, theirs) in duckdb["percentiles"].as_object().unwrap() {
        let sql = format!("SELECT percentile(elapsed_ns, {share}) FROM operations");
        assert_eq!(Some(number(&engine, &sql)), theirs.as_i64(), "percentile {share}");
    }
    let commands = duckdb["commands"].as_object().unwrap();
    assert!(commands.len() > 3);
    for (command, count) in commands {
        let sql = format!("SELECT count(*) FROM operations WHERE command = '{command}'");
        assert_eq!(Some(number(&engine, &sql)), count.as_i64(), "{command}");
    }
}
