//! Tests of the dataset writer: parts, interruption, refusals.

use super::*;
use crate::Table;
use crate::source::{OpenOptions, Request, Source};
use crate::synthetic::rest::{dataset, rest, with_path};
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

/// The error of reading a folder.
fn unreadable(dir: &Path) -> String {
    let read = || -> Result<()> {
        let source = Source::open(&[dir.display().to_string()], OpenOptions::default())?;
        source.parts(&Request::all())?.try_for_each(|part| part.map(drop))
    };
    read().unwrap_err().to_string()
}

#[test]
fn parts_that_are_not_what_the_manifest_lists_are_refused() {
    let changed = |change: fn(&Path)| {
        let dir = tempfile::tempdir().unwrap();
        dataset(dir.path(), 100);
        change(dir.path());
        unreadable(dir.path())
    };
    let error = changed(|dir| {
        let part = dir.join("operations/part-000000.parquet");
        std::fs::copy(dir.join("sessions/part-000000.parquet"), part).unwrap();
    });
    assert!(error.contains("it holds the table sessions, but belongs to operations"), "{error}");
    let error = changed(|dir| {
        let path = dir.join("manifest.json");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text.replacen("\"rows\": 100", "\"rows\": 101", 1)).unwrap();
    });
    assert!(error.contains("100 rows, but the manifest lists 101"), "{error}");
}

#[test]
fn a_manifest_lists_files_of_its_folder_only() {
    for name in ["../../../etc/passwd", "/etc/passwd", "operations/../../x"] {
        let dir = tempfile::tempdir().unwrap();
        dataset(dir.path(), 10);
        let path = dir.path().join("manifest.json");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text.replacen("operations/part-000000.parquet", name, 1)).unwrap();
        let error = unreadable(dir.path());
        assert!(error.contains("which is not in the folder"), "{error}");
    }
}

/// A text of many bytes is a few in a dictionary.
#[test]
fn a_bomb_of_texts_is_refused() {
    let wrong = |text: String| {
        let batch = with_path(2000, &text);
        let dir = tempfile::tempdir().unwrap();
        let options = WriteOptions::default();
        let mut writer = DatasetWriter::create(dir.path(), seed(), options).unwrap();
        writer.part(Part::Operations(batch)).unwrap();
        writer.finish(true).unwrap();
        unreadable(dir.path())
    };
    let error = wrong("x".repeat(200_000));
    assert!(error.contains("column path: a text of 200000 bytes"), "{error}");
}

#[cfg(unix)]
#[test]
fn pipes_devices_and_huge_manifests_are_refused() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 10);
    symlink("/dev/zero", dir.path().join("operations/part-000099.parquet")).unwrap();
    assert!(unreadable(dir.path()).contains("not a regular file"));
    let manifest = dir.path().join("manifest.json");
    std::fs::remove_file(&manifest).unwrap();
    symlink("/dev/zero", &manifest).unwrap();
    assert!(unreadable(dir.path()).contains("not a regular file"));
    std::fs::remove_file(&manifest).unwrap();
    std::fs::File::create(&manifest).unwrap().set_len(1 << 30).unwrap();
    assert!(unreadable(dir.path()).contains("not a manifest"));
}

#[test]
fn an_unfinished_recording_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let options = WriteOptions { part_rows: 100, ..WriteOptions::default() };
    let writer = DatasetWriter::create(dir.path(), seed(), options).unwrap();
    drop(writer);
    let source = Source::open(&[dir.path().display().to_string()], OpenOptions::default()).unwrap();
    let parts: Vec<_> = source.parts(&Request::all()).unwrap().collect::<Result<_>>().unwrap();
    let [Part::Coverage(coverage)] = &parts[..] else { panic!("{parts:?}") };
    assert!(coverage.cut_off.as_ref().unwrap().contains("not finished"));
}

/// What a kill leaves of rows that are in no complete part: the pieces, which the part replaces.
#[test]
fn rows_are_visible_before_their_part_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let visible = Some(Duration::from_millis(5));
    let options = WriteOptions { visible, ..WriteOptions::default() };
    let mut writer = DatasetWriter::create(dir.path(), seed(), options).unwrap();
    let wait_for = |rows_wanted: usize| {
        let begin = Instant::now();
        while rows(dir.path(), Table::Operations) != rows_wanted {
            assert!(begin.elapsed() < Duration::from_secs(60), "{rows_wanted} rows");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let mut batches = Synthetic::new(3000, 1000, None);
    writer.part(Part::Operations(batches.next().unwrap())).unwrap();
    wait_for(1000);
    writer.part(Part::Operations(batches.next().unwrap())).unwrap();
    wait_for(2000);
    let piece = dir.path().join("operations/part-000000-00.parquet");
    assert!(piece.exists() && !dir.path().join("operations/part-000000.parquet").exists());
    // They stay for a reader that has found them, but count no longer.
    writer.complete_parts().unwrap();
    super::tests::wait_for(dir.path(), Table::Operations, 0);
    assert!(piece.exists());
    assert_eq!(rows(dir.path(), Table::Operations), 2000);
    writer.part(Part::Operations(batches.next().unwrap())).unwrap();
    wait_for(3000);
    let manifest = writer.finish(true).unwrap();
    assert_eq!(manifest.rows("operations"), 3000);
    assert_eq!(rows(dir.path(), Table::Operations), 3000);
    let left = std::fs::read_dir(dir.path().join("operations")).unwrap().count();
    assert_eq!(left, 2, "the pieces are gone");
}

#[test]
fn two_writers_of_one_folder_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let first = DatasetWriter::create(dir.path(), seed(), options.clone()).unwrap();
    let second = DatasetWriter::create(dir.path(), seed(), options.clone());
    assert!(second.err().unwrap().to_string().contains("another smbscope is writing"));
    first.finish(true).unwrap();
    DatasetWriter::create(dir.path(), seed(), options).unwrap().finish(true).unwrap();
}

#[cfg(unix)]
#[test]
fn a_dataset_is_its_owners_and_links_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("run");
    dataset(&dir, 10);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for file in ["manifest.json", "operations/part-000000.parquet"] {
        assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
    }
    let victim = outer.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("a.parquet"), "kept").unwrap();
    std::fs::remove_dir_all(dir.join("operations")).unwrap();
    std::fs::remove_file(dir.join("manifest.json")).unwrap();
    symlink(&victim, dir.join("operations")).unwrap();
    let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
    DatasetWriter::create(&dir, seed(), options).unwrap().finish(true).unwrap();
    assert_eq!(std::fs::read(victim.join("a.parquet")).unwrap(), b"kept");
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 1);
    assert!(std::fs::symlink_metadata(dir.join("operations")).unwrap().is_dir());
}
