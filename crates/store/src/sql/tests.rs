//! Tests of SQL over captures and datasets.

use super::*;
use crate::dataset::properties::properties;
use crate::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use crate::source::{OpenOptions, Request};
use crate::synthetic::rest::{capture, dataset};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::util::pretty::pretty_format_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use smbscope_tables::anonymize::Tokenizer;
use std::fs::File;
use std::path::Path;

fn engine(inputs: &[&str], tokenizer: Option<Tokenizer>) -> Engine {
    let inputs: Vec<_> = inputs.iter().map(ToString::to_string).collect();
    let options = OpenOptions { tokenizer, ..OpenOptions::default() };
    let limits = EngineOptions { threads: 2, ..EngineOptions::default() };
    Engine::with_options(Source::open(&inputs, options).unwrap(), limits).unwrap()
}

fn folder(rows: u64) -> (tempfile::TempDir, Engine) {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), rows);
    let engine = engine(&[&dir.path().display().to_string()], None);
    (dir, engine)
}

fn table(engine: &Engine, sql: &str) -> String {
    let batches: Vec<_> = engine.query(sql).unwrap().map(|batch| batch.unwrap()).collect();
    pretty_format_batches(&batches).unwrap().to_string()
}

fn number(engine: &Engine, sql: &str) -> i64 {
    let batch = engine.query(sql).unwrap().next().unwrap().unwrap();
    batch.column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn answers_over_a_dataset() {
    let (_dir, engine) = folder(3000);
    assert_eq!(number(&engine, "SELECT count(*) FROM operations"), 3000);
    assert_eq!(number(&engine, "SELECT count(*) FROM handles WHERE closed_at IS NULL"), 60);
    let sql = "SELECT command, count(*) AS n, max(response_end) - min(response_end) AS span
               FROM operations GROUP BY command ORDER BY n DESC, command LIMIT 3";
    assert_eq!(
        table(&engine, sql),
        "+-----------+-----+----------+\n\
         | command   | n   | span     |\n\
         +-----------+-----+----------+\n\
         | Close     | 600 | 59900000 |\n\
         | Create    | 600 | 59880000 |\n\
         | QueryInfo | 600 | 59860000 |\n\
         +-----------+-----+----------+"
    );
    let joined = "SELECT count(*) FROM operations o
                  JOIN connections c ON o.connection = c.connection AND o.recording = c.recording";
    assert_eq!(number(&engine, joined), 3000);
}

#[test]
fn tables_explain_themselves_and_nothing_can_be_changed() {
    let (dir, engine) = folder(10);
    let tables = table(&engine, "SHOW TABLES");
    for name in Table::ALL.map(Table::name) {
        assert!(tables.contains(name), "{tables}");
    }
    assert!(table(&engine, "DESCRIBE operations").contains("response_end"));
    assert!(table(&engine, "EXPLAIN SELECT path FROM operations").contains("path"));
    let file = dir.path().join("out.parquet");
    let copy = format!("COPY (SELECT 1) TO '{}'", file.display());
    for sql in [
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO operations SELECT * FROM operations",
        "DROP TABLE operations",
        "SET datafusion.execution.batch_size = 1",
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '/tmp'",
        &copy,
    ] {
        let error = engine.query(sql).err().unwrap().to_string();
        assert!(error.contains("queries are read-only"), "{sql}: {error}");
    }
    assert!(!file.exists());
}

#[test]
fn errors_are_one_sentence() {
    let (_dir, engine) = folder(10);
    let error = |sql: &str| {
        let error = engine.query(sql).err().unwrap().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    assert!(error("SELECT comand FROM operations").contains("'operations.command'"));
    assert!(error("SELECT 1 FROM opertions").contains("SHOW TABLES"));
    assert!(error("SELEC 1").starts_with("invalid SQL"));
    assert!(error("SELECT 1; SELECT 2").contains("one"));
    // Once, the answer was "Did you mean 'operations.related'?".
    let quotes = error("SELECT 1 FROM operations WHERE command = Read");
    assert!(quotes.contains("single quotes, 'Read'"), "{quotes}");
    let far = error("SELECT user_name_of_the_client FROM operations");
    assert!(!far.contains("Did you mean"), "{far}");
    // Once, this was an internal error.
    let text = error("SELECT avg(path) FROM operations");
    assert!(text.starts_with("avg() does not take text"), "{text}");
    let text = error("SELECT percentile(path, 0.5) FROM operations");
    assert!(text.contains("percentile(elapsed_ns, 0.95)"), "{text}");
    assert!(error("SELECT foo(1)").contains("there is no function foo"));
    let percent = engine.query("SELECT percentile(elapsed_ns, 95) FROM operations").unwrap();
    let percent = percent.last().unwrap().unwrap_err().to_string();
    assert!(percent.contains("95 % is 0.95"), "{percent}");
    let failed = engine.query("SELECT 1 / (operation - operation) FROM operations").unwrap();
    let failed = failed.last().unwrap().unwrap_err().to_string();
    assert!(failed.to_lowercase().contains("divide by zero"), "{failed}");
}

#[test]
fn a_column_that_an_older_dataset_lacks_is_null() {
    let (dir, engine) = folder(10);
    let file = engine.source.files(Table::Coverage).remove(0);
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&file).unwrap()).unwrap();
    let batch = reader.build().unwrap().next().unwrap().unwrap();
    let later = batch.schema().index_of("frames_repeated").unwrap();
    let older: Vec<_> = (0..batch.num_columns()).filter(|place| *place != later).collect();
    let batch = batch.project(&older).unwrap();
    let written = properties(Table::Coverage, &batch.schema(), 10).unwrap();
    let file = File::create(&file).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(written)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let folder = dir.path().display().to_string();
    let sql = "SELECT frames, frames_repeated FROM coverage";
    let found = table(&self::engine(&[&folder], None), sql);
    assert!(found.contains("| 0      |                 |"), "{found}");
    // Rows that go through a struct count what is absent as 0.
    let found = table(&self::engine(&[&folder], Some(Tokenizer::new([9; 32]))), sql);
    assert!(found.contains("| 0      | 0               |"), "{found}");
}

/// `tests/fixtures/dataset-v1` was written from errors.pcapng by the last program with schema version 1.
#[test]
fn files_of_schema_version_1_have_todays_columns() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let old = engine(&[&fixtures.join("dataset-v1").display().to_string()], None);
    let new = engine(&[&fixtures.join("errors.pcapng").display().to_string()], None);
    for sql in [
        "SELECT count(*), sum(elapsed_ns), max(offset_bytes), min(request_start) FROM operations",
        "SELECT min(started_at), max(ended_at), count(*) FROM connections",
        "SELECT min(started_at), max(ended_at), count(*) FROM sessions",
    ] {
        let answer = table(&old, sql);
        assert_eq!(answer, table(&new, sql), "{sql}");
        assert!(!answer.contains("|  |"), "{answer}");
    }
}

/// Other tools see points in time as such; within smbscope they are integers.
#[test]
fn files_have_timestamps_and_queries_integers() {
    let (dir, engine) = folder(100);
    let path = dir.path().join("operations/part-000000.parquet");
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let field = reader.schema().field_with_name("request_start").unwrap().clone();
    assert_eq!(field.data_type().to_string(), "Timestamp(ns, \"UTC\")");
    let sql = "SELECT arrow_typeof(request_start) FROM operations LIMIT 1";
    assert!(table(&engine, sql).contains("Int64"));
}

#[test]
fn row_groups_are_skipped_by_time() {
    let (_dir, engine) = folder(4000);
    let sql = "SELECT count(*) AS n, min(operation) AS least FROM operations
               WHERE response_end >= 1700000000070400000";
    assert!(table(&engine, sql).contains("| 500 | 3500  |"));
    let plan = table(&engine, &format!("EXPLAIN ANALYZE {sql}"));
    let pruned = plan.split("row_groups_pruned_statistics=").nth(1).unwrap_or_default();
    assert!(pruned.starts_with("4 total → 1 matched"), "{plan}");
}

#[test]
fn queries_run_side_by_side() {
    let (_dir, engine) = folder(20_000);
    std::thread::scope(|scope| {
        for status in [0, 0xc000_0034u32, 0, 0xc000_0034] {
            let engine = &engine;
            let expected = if status == 0 { 19_333 } else { 667 };
            scope.spawn(move || {
                let sql = format!("SELECT count(*) FROM operations WHERE status = {status}");
                assert_eq!(number(engine, &sql), expected);
            });
        }
    });
    // Two answers, taken in turns.
    let sql = "SELECT operation FROM operations ORDER BY operation LIMIT 10000";
    let (one, mut other) = (engine.query(sql).unwrap(), engine.query(sql).unwrap());
    for batch in one {
        assert_eq!(batch.unwrap(), other.next().unwrap().unwrap());
    }
    assert!(other.next().is_none());
}

#[test]
fn a_limit_ends_decoding_early() {
    let Some(path) = capture("smb311-multichannel.pcap") else { return };
    let mut inputs = Vec::new();
    inputs.resize(40, path.as_str());
    let engine = engine(&inputs, None);
    let count = |sql: &str| {
        let rows: usize = engine.query(sql).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        let progress = engine.progress().unwrap();
        // The decoder may still be ending.
        while Arc::strong_count(&progress) > 2 {
            std::thread::yield_now();
        }
        (rows, progress.operations())
    };
    let (all, decoded) = count("SELECT operation, path FROM operations");
    assert_eq!(all as u64, decoded);
    let (few, decoded) = count("SELECT operation, path FROM operations LIMIT 10");
    assert_eq!(few, 10);
    assert!(decoded < all as u64 / 2, "{decoded} of {all} operations decoded");
}

#[test]
fn a_capture_and_its_dataset_answer_alike() {
    for name in ["smb302-signed-leases-compounds.pcap", "smb21-compounds.pcap"] {
        let Some(path) = capture(name) else { return };
        let dir = tempfile::tempdir().unwrap();
        import(&path, dir.path());
        let capture = engine(&[&path], None);
        let dataset = engine(&[&dir.path().display().to_string()], None);
        for table_name in Table::ALL.map(Table::name) {
            let sql = format!("SELECT * FROM {table_name}");
            let sort = |text: String| {
                let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            let (one, other) = (table(&capture, &sql), table(&dataset, &sql));
            assert_eq!(sort(one), sort(other), "{table_name} of {name}");
        }
        let sql = "SELECT command, count(*), sum(elapsed_ns), max(path) FROM operations
                   GROUP BY command ORDER BY command";
        assert_eq!(table(&capture, sql), table(&dataset, sql));
        let both = engine(&[&path, &dir.path().display().to_string()], None);
        let count = "SELECT count(*) FROM operations";
        assert_eq!(number(&both, count), 2 * number(&capture, count));
    }
}

#[test]
fn no_answer_over_an_anonymous_source_holds_a_name() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 200);
    let folder = dir.path().display().to_string();
    let engine = engine(&[&folder], Some(Tokenizer::new([9; 32])));
    let sql = "SELECT upper(path) AS p, client, \"user\", count(*) AS n FROM operations
               WHERE path NOT LIKE 'home%' GROUP BY 1, 2, 3 LIMIT 5";
    let text = table(&engine, sql);
    assert!(text.contains("NAME-") && text.contains("addr-") && text.contains("user-"), "{text}");
    assert_eq!(number(&engine, "SELECT count(*) FROM operations WHERE client LIKE '10.%'"), 0);
}

fn import(capture: &str, dir: &Path) {
    let source = Source::open(&[capture.to_owned()], OpenOptions::default()).unwrap();
    let seed = ManifestSeed::now(Default::default(), source.describe());
    let mut writer = DatasetWriter::create(dir, seed, WriteOptions::default()).unwrap();
    for part in source.parts(&Request::all()).unwrap() {
        writer.part(part.unwrap()).unwrap();
    }
    writer.finish(true).unwrap();
}

/// The error of a query over a changed dataset.
fn refused(change: impl FnOnce(&Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 100);
    change(dir.path());
    let inputs = [dir.path().display().to_string()];
    let run = || -> Result<()> {
        let engine = Engine::new(Source::open(&inputs, OpenOptions::default())?)?;
        let mut rows = engine.query("SELECT path, count(*) FROM operations GROUP BY path")?;
        rows.try_for_each(|batch| batch.map(drop))
    };
    run().unwrap_err().to_string()
}

#[test]
fn files_of_strangers_have_the_limits_of_other_readers() {
    let part = |dir: &Path| dir.join("operations/part-000000.parquet");
    let error = refused(|dir| {
        std::fs::copy(dir.join("sessions/part-000000.parquet"), part(dir)).unwrap();
    });
    assert!(error.contains("it holds the table sessions, but belongs to operations"), "{error}");
    // A text of many bytes is there once in a dictionary, and in each row of an answer.
    let error = refused(|dir| {
        let rows = crate::synthetic::rest::with_path(2000, &"x".repeat(200_000));
        write_as_ours(&part(dir), &rows);
        std::fs::remove_file(dir.join("manifest.json")).unwrap();
    });
    assert!(error.contains("column path: a text of 200000 bytes"), "{error}");
    #[cfg(unix)]
    {
        let error = refused(|dir| {
            std::fs::remove_file(part(dir)).unwrap();
            std::os::unix::fs::symlink("/dev/zero", part(dir)).unwrap();
            std::fs::remove_file(dir.join("manifest.json")).unwrap();
        });
        assert!(error.contains("not a regular file"), "{error}");
    }
}

/// A file exactly as the dataset writer makes it.
fn write_as_ours(path: &Path, rows: &RecordBatch) {
    let schema = crate::dataset::stored_schema(&Table::Operations.schema());
    let properties = properties(Table::Operations, &schema, 1000).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties)).unwrap();
    writer.write(&crate::dataset::stored(rows, &schema).unwrap()).unwrap();
    writer.close().unwrap();
}

/// Only a file with the very schema that this version writes is read by DataFusion's reader, which obeys that schema.
#[test]
fn a_damaged_arrow_schema_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 100);
    let part = dir.path().join("operations/part-000000.parquet");
    assert!(crate::dataset::reader::is_as_written(&part, Table::Operations));
    let mut bytes = std::fs::read(&part).unwrap();
    let at = bytes.windows(12).position(|bytes| bytes == b"ARROW:schema").unwrap();
    bytes[at + 500] = if bytes[at + 500] == b'A' { b'Q' } else { b'A' };
    std::fs::write(&part, bytes).unwrap();
    assert!(!crate::dataset::reader::is_as_written(&part, Table::Operations));
    let engine = engine(&[&dir.path().display().to_string()], None);
    assert_eq!(number(&engine, "SELECT count(*) FROM operations"), 100);
}
