//! Tests of the dataset writer: parts, interruption, refusals.

use super::*;
use crate::Table;
use crate::source::{OpenOptions, Request, Source};
use crate::synthetic::rest::{dataset, rest};
use crate::synthetic::{START, Synthetic};
use smbscope_tables::SCHEMA_VERSION;
use smbscope_tables::tables::Coverage;

fn seed() -> ManifestSeed {
    ManifestSeed { created_at: 5, ..ManifestSeed::now(Kind::Import, Vec::new()) }
}

fn rows(dir: &Path, table: Table) -> usize {
    let source = Source::open(&[dir.display().to_string()], OpenOptions::default()).unwrap();
    let request = Request { tables: vec![table], projection: None };
    let parts = source.parts(&request).unwrap();
    parts.map(|part| part.unwrap().to_batch().unwrap().num_rows()).sum()
}

fn wait_for(dir: &Path, table: Table, number: usize) {
    let part = dir.join(format!("{}/part-{number:06}.parquet", table.name()));
    let begin = Instant::now();
    while !part.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} is missing", part.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_finished_folder_describes_its_contents() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = dataset(dir.path(), 2500);
    assert!(manifest.complete);
    let parts = &manifest.tables["operations"];
    assert_eq!((parts.len(), parts[0].rows), (1, 2500));
    assert_eq!(parts[0].time_min, Some(START + 400_000));
    assert_eq!(parts[0].time_max, Some(START + 2499 * 20_000 + 400_000));
    assert_eq!(parts[0].file, "operations/part-000000.parquet");
    assert_eq!(manifest.rows("handles"), 500);
    assert_eq!(manifest.rows("referrals"), 0);
    assert_eq!(manifest.coverage.len(), 1);
    assert_eq!(manifest.clocks[0].resolution_ns, Some(1000));
    let dataset = Dataset::open(dir.path()).unwrap();
    assert_eq!(dataset.manifest(), Some(&manifest));
    for table in Table::ALL {
        assert_eq!(dataset.parts(table).len(), 1, "{}", table.name());
        assert_eq!(rows(dir.path(), table) as u64, manifest.rows(table.name()));
    }
}

#[test]
fn complete_parts_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let options = WriteOptions { part_rows: 2000, ..WriteOptions::default() };
    let mut writer = DatasetWriter::create(dir.path(), seed(), options).unwrap();
    for batch in Synthetic::new(5000, 1000, None) {
        writer.part(Part::Operations(batch)).unwrap();
    }
    wait_for(dir.path(), Table::Operations, 1);
    // As after kill -9: finish is not called, and a half-written part remains.
    std::mem::forget(writer);
    std::fs::write(dir.path().join("operations/part-000009.parquet.tmp"), b"PAR1 half").unwrap();
    assert_eq!(rows(dir.path(), Table::Operations), 4000);
    assert!(!Dataset::open(dir.path()).unwrap().is_complete());
    // The manifest may lag behind, or be lost.
    std::fs::remove_file(dir.path().join("manifest.json")).unwrap();
    assert!(Dataset::is_at(dir.path()));
    assert_eq!(rows(dir.path(), Table::Operations), 4000);
}

#[test]
fn parts_are_completed_in_time_also_when_no_rows_come() {
    let dir = tempfile::tempdir().unwrap();
    let options = WriteOptions { interval: Duration::from_millis(5), ..WriteOptions::default() };
    let mut writer = DatasetWriter::create(dir.path(), seed(), options).unwrap();
    writer.part(rest(10).remove(0)).unwrap();
    wait_for(dir.path(), Table::Connections, 0);
    let manifest = writer.finish(false).unwrap();
    assert!(!manifest.complete);
    assert_eq!(manifest.rows("connections"), 7);
}

#[test]
fn parts_are_completed_early_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = DatasetWriter::create(dir.path(), seed(), WriteOptions::default()).unwrap();
    writer.part(rest(10).remove(0)).unwrap();
    writer.complete_parts().unwrap();
    wait_for(dir.path(), Table::Connections, 0);
    // With nothing new there is no other part.
    writer.complete_parts().unwrap();
    let manifest = writer.finish(true).unwrap();
    assert_eq!(manifest.tables["connections"].len(), 1);
}

#[test]
fn dropping_a_writer_leaves_no_half_written_part() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = DatasetWriter::create(dir.path(), seed(), WriteOptions::default()).unwrap();
    writer.part(rest(10).remove(0)).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path().join("connections")).unwrap().count(), 0);
}

#[test]
fn only_a_dataset_is_replaced_and_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let create = |dir: &Path, overwrite| {
        let options = WriteOptions { overwrite, ..WriteOptions::default() };
        DatasetWriter::create(dir, seed(), options)
    };
    let other = dir.path().join("thesis");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("chapter1.txt"), "...").unwrap();
    let error = create(&other, true).err().unwrap().to_string();
    assert!(error.contains("contains no dataset"), "{error}");
    assert!(create(&other.join("chapter1.txt"), true).is_err());

    let run = dir.path().join("run");
    dataset(&run, 3000);
    let error = create(&run, false).err().unwrap().to_string();
    assert!(error.contains("--force"), "{error}");
    std::fs::write(run.join("notes.txt"), "mine").unwrap();
    let manifest = create(&run, true).unwrap().finish(true).unwrap();
    assert_eq!(manifest.rows("operations"), 0);
    assert_eq!(rows(&run, Table::Operations), 0);
    assert!(run.join("notes.txt").exists());
}

#[test]
fn a_dataset_is_not_replaced_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 10);
    let name = dir.path().display().to_string();
    let seed = ManifestSeed { inputs: vec![InputFile { name, ..InputFile::default() }], ..seed() };
    let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
    assert!(DatasetWriter::create(dir.path(), seed, options).is_err());
    assert_eq!(rows(dir.path(), Table::Operations), 10);
}

#[test]
fn a_missing_part_and_a_newer_version_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 10);
    let part = dir.path().join("handles/part-000000.parquet");
    std::fs::remove_file(&part).unwrap();
    let error = Dataset::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("handles/part-000000.parquet"), "{error}");
    let manifest = dir.path().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(
        &manifest,
        text.replace(&format!("\"schema_version\": {SCHEMA_VERSION}"), "\"schema_version\": 99"),
    )
    .unwrap();
    let error = Dataset::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("newer"), "{error}");
}

#[test]
fn an_anonymous_dataset_holds_no_name() {
    let dir = tempfile::tempdir().unwrap();
    let tokenizer = Tokenizer::new([3; 32]);
    let options = WriteOptions { tokenizer: Some(tokenizer), ..WriteOptions::default() };
    let name = "synthetic.pcap".to_owned();
    let seed = ManifestSeed { inputs: vec![InputFile { name, ..InputFile::default() }], ..seed() };
    let mut writer = DatasetWriter::create(dir.path(), seed, options).unwrap();
    for batch in Synthetic::new(100, 100, None) {
        writer.part(Part::Operations(batch)).unwrap();
    }
    for part in rest(100) {
        writer.part(part).unwrap();
    }
    let manifest = writer.finish(true).unwrap();
    let coverage: &Coverage = &manifest.coverage[0];
    assert_eq!(manifest.inputs[0].name, coverage.recording);
    assert_eq!(manifest.inputs[0].format, "synthetic");
    let source = Source::open(&[dir.path().display().to_string()], OpenOptions::default()).unwrap();
    for part in source.parts(&Request::all()).unwrap() {
        let text = format!("{:?}", part.unwrap());
        for word in ["synthetic.pcap", "10.0.0", "EXAMPLE", "documents", "home"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}
