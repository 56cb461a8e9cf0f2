//! Tests of what inputs are recognised as, and of their parts.

use super::*;
use crate::Part;
use crate::synthetic::load::load;
use crate::synthetic::rest::{capture, dataset};
use crate::synthetic::server::{RECORDING, server};
use smbscope_tables::filter::Filter;
use smbscope_tables::operation::Column;
use smbscope_tables::slice::Slice;
use std::collections::BTreeMap;

fn open(inputs: &[&str]) -> Result<Source> {
    let inputs: Vec<_> = inputs.iter().map(ToString::to_string).collect();
    Source::open(&inputs, OpenOptions::default())
}

fn counts(source: &Source) -> BTreeMap<Table, usize> {
    let mut counts = BTreeMap::new();
    for part in source.parts(&Request::all()).unwrap() {
        let part = part.unwrap();
        *counts.entry(part.table()).or_default() += part.to_batch().unwrap().num_rows();
    }
    counts
}

#[test]
fn an_invalid_input_is_one_clear_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let error = |name: &str| open(&[&path(name)]).unwrap_err().to_string();
    assert!(error("absent").contains("no such file"));
    std::fs::write(path("empty.pcap"), "").unwrap();
    std::fs::write(path("letter.pcap"), "To whom it may concern, ".repeat(30)).unwrap();
    for name in ["empty.pcap", "letter.pcap"] {
        let error = error(name);
        assert!(error.contains(name) && error.lines().count() == 1, "{error}");
    }
    let folder = error("");
    assert!(folder.contains("contains no dataset"), "{folder}");
    assert!(open(&["-", "-"]).is_err());
}

#[test]
fn a_dataset_and_its_single_files_read_alike() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 2500);
    let folder = dir.path().display().to_string();
    let source = open(&[&folder]).unwrap();
    assert_eq!(counts(&source)[&Table::Operations], 2500);
    // Recognised by content: the name says something else.
    let file = dir.path().join("capture.pcap");
    std::fs::rename(dir.path().join("operations/part-000000.parquet"), &file).unwrap();
    let file = file.display().to_string();
    let source = open(&[&file, &file]).unwrap();
    assert_eq!(counts(&source), [(Table::Operations, 5000)].into());
    assert_eq!(source.describe()[0].format, "parquet");
}

#[test]
fn a_projection_reads_its_columns_in_its_order_and_progress_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 2500);
    let source = open(&[&dir.path().display().to_string()]).unwrap();
    let projection = vec![Column::status as usize, Column::operation as usize];
    let request = Request { tables: vec![Table::Operations], projection: Some(projection) };
    let mut parts = source.parts(&request).unwrap();
    let progress = parts.progress();
    let mut rows = 0;
    for part in parts.by_ref() {
        let Part::Operations(batch) = part.unwrap() else { panic!() };
        let schema = batch.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["status", "operation"]);
        rows += batch.num_rows() as u64;
    }
    assert_eq!((progress.operations(), rows), (2500, 2500));
    assert_eq!(Some(progress.bytes_done()), progress.bytes_total());
    let none = Request { tables: vec![Table::Operations], projection: Some(Vec::new()) };
    let batches = source.parts(&none).unwrap().map(|part| part.unwrap().to_batch().unwrap());
    assert_eq!(batches.map(|batch| batch.num_rows()).sum::<usize>(), 2500);
}

#[test]
fn the_tokenizer_of_the_source_reaches_every_part() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 100);
    let options =
        OpenOptions { tokenizer: Some(Tokenizer::new([1; 32])), ..OpenOptions::default() };
    let source = Source::open(&[dir.path().display().to_string()], options).unwrap();
    for part in source.parts(&Request::all()).unwrap() {
        let text = format!("{:?}", part.unwrap());
        assert!(!text.contains("synthetic.pcap") && !text.contains("10.0.0."), "{text}");
    }
}

#[test]
fn captures_and_datasets_mix() {
    let Some(capture) = capture("smb2-delete.pcap") else { return };
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 100);
    let alone = counts(&open(&[&capture]).unwrap())[&Table::Operations];
    let mixed = open(&[&capture, &dir.path().display().to_string()]).unwrap();
    let counts = counts(&mixed);
    assert!(alone > 0);
    assert_eq!(counts[&Table::Operations], alone + 100);
    assert_eq!(counts[&Table::Coverage], 2);
    assert_eq!(mixed.describe()[0].format, "pcap");
}

#[test]
fn a_load_run_is_identified_before_its_operations() {
    let dir = tempfile::tempdir().unwrap();
    load(dir.path(), 1, 2, None);
    let folder = dir.path().display().to_string();
    let source = open(&[&folder]).unwrap();
    let runs = source.runs();
    assert_eq!((runs.len(), runs[0].1, runs[0].0.shards), (1, true, 2));
    assert_eq!(runs[0].0.capacity.as_ref().and_then(|it| it.users), Some(40));
    let tables: Vec<_> = source
        .parts(&Request::all())
        .unwrap()
        .map(Result::unwrap)
        .filter(|part| part.to_batch().unwrap().num_rows() > 0)
        .map(|part| part.table())
        .collect();
    use Table::*;
    assert_eq!(tables, [Steps, Scenarios, Counters, Operations, Coverage]);
    // A capture has these tables, and they are empty.
    let Some(capture) = capture("smb2-delete.pcap") else { return };
    let capture = open(&[&capture]).unwrap();
    assert!(capture.runs().is_empty() && !counts(&capture).contains_key(&Scenarios));
}

#[test]
fn names_in_a_load_run_become_tokens_on_request() {
    let key = || Some(Tokenizer::new([1; 32]));
    let dir = tempfile::tempdir().unwrap();
    let (plain, tokens) = (dir.path().join("plain"), dir.path().join("tokens"));
    load(&plain, 1, 1, None);
    load(&tokens, 1, 1, key());
    let manifest = std::fs::read_to_string(tokens.join("manifest.json")).unwrap();
    let options = OpenOptions { tokenizer: key(), ..OpenOptions::default() };
    let source = Source::open(&[plain.display().to_string()], options).unwrap();
    let mut text = format!("{manifest}{:?}", source.runs());
    let request = Request { tables: vec![Table::Scenarios, Table::Steps], projection: None };
    source.parts(&request).unwrap().for_each(|part| text.push_str(&format!("{:?}", part.unwrap())));
    for word in ["fs1.example.com", "user00001", "client1", "load-1of1", "user{:05}"] {
        assert!(!text.contains(word), "{word}");
    }
    // The same token wherever the name stands, so that descriptions and rows still join.
    let run = &source.runs()[0].0;
    assert!(manifest.contains(&run.recording) && text.contains(&format!("{:?}", run.run)));
    assert!(run.run.starts_with("recording-"));
}

#[test]
fn slices_come_after_their_operations_and_join_them_also_as_tokens() {
    let dir = tempfile::tempdir().unwrap();
    server(dir.path(), 40, None);
    let folder = dir.path().display().to_string();
    let options =
        OpenOptions { tokenizer: Some(Tokenizer::new([1; 32])), ..OpenOptions::default() };
    for options in [OpenOptions::default(), options] {
        let tokens = options.tokenizer.is_some();
        let source = Source::open(&[folder.as_str()].map(str::to_owned), options).unwrap();
        let mut names = Vec::new();
        for part in source.parts(&Request::all()).unwrap() {
            match part.unwrap() {
                Part::Operations(batch) => {
                    let column = smbscope_tables::row::read_column::<String>(&batch, "recording");
                    names.extend(column.first().cloned());
                }
                Part::Slices(batch) => {
                    let rows = Slice::from_batch(&batch);
                    // 40 times queue, processing and send, and of two commands two and one more.
                    assert_eq!(rows.len(), 40 * 3 + 10 + 2 * 10);
                    assert!(rows.is_sorted_by_key(|row| row.operation));
                    assert_eq!(names, [rows[0].recording.to_string()]);
                }
                _ => {}
            }
        }
        assert_eq!(names[0] == RECORDING, !tokens);
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_once_or_kept_for_several_passes() {
    let Some(capture) = capture("smb2-delete.pcap") else { return };
    let expected = counts(&open(&[&capture]).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        smbscope_testing::skip!("no mkfifo");
        return;
    }
    let bytes = std::fs::read(&capture).unwrap();
    let writer = pipe.clone();
    let thread = std::thread::spawn(move || std::fs::write(writer, bytes).unwrap());
    let mut source = open(&[&pipe.display().to_string()]).unwrap();
    assert!(source.is_stream());
    source.spool().unwrap();
    thread.join().unwrap();
    for _ in 0..2 {
        let found = counts(&source);
        assert_eq!(found[&Table::Operations], expected[&Table::Operations]);
        assert_eq!(found[&Table::Coverage], 1);
    }
}

#[test]
fn a_filter_leaves_the_same_of_a_capture_and_of_a_dataset() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 2500);
    let folder = dir.path().display().to_string();
    let mut source = open(&[&folder]).unwrap();
    let all = counts(&source);
    assert!(source.filtered().is_none());
    let read = "Read".parse().unwrap();
    source.set_filter(Filter { commands: vec![read], ..Filter::default() });
    let some = counts(&source);
    let filtered = source.filtered().unwrap();
    assert_eq!((filtered.kept() as usize, filtered.all()), (some[&Table::Operations], 2500));
    assert!(some[&Table::Operations] > 0 && some[&Table::Operations] < all[&Table::Operations]);
    assert_eq!(some[&Table::Coverage], all[&Table::Coverage]);
    // The filter's own columns do not appear.
    let columns = vec![Column::elapsed_ns as usize, Column::operation as usize];
    let request = Request { tables: vec![Table::Operations], projection: Some(columns) };
    let mut rows = 0;
    for part in source.parts(&request).unwrap() {
        let batch = part.unwrap().to_batch().unwrap();
        let names: Vec<_> = batch.schema().fields().iter().map(|one| one.name().clone()).collect();
        assert_eq!(names, ["elapsed_ns", "operation"]);
        rows += batch.num_rows();
    }
    assert_eq!(rows, some[&Table::Operations]);
    source.set_filter(Filter::default());
    assert_eq!(counts(&source), all);
}

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/loopback.ftrace.txt");

#[test]
fn binary_traces_of_linux_are_recognised_and_read_to_their_end() {
    for (name, format) in [
        ("loopback.perf.data", "perf.data"),
        ("loopback.v6.dat", "trace.dat"),
        ("loopback.v7.dat", "trace.dat"),
        ("loopback.ctf", "Common Trace Format"),
    ] {
        let path = std::path::Path::new(TRACE).with_file_name(name);
        let source = open(&[&path.display().to_string()]).unwrap();
        assert_eq!((source.is_trace(), source.describe()[0].format.as_str()), (true, format));
        let rows = counts(&source);
        assert_eq!((rows[&Table::Traces], rows[&Table::Cpus]), (1, 2), "{name}");
        let progress = source.progress().unwrap();
        assert_eq!(Some(progress.bytes_done()), progress.bytes_total(), "{name}");
    }
}

#[test]
fn a_trace_of_processors_reads_like_the_dataset_made_of_it() {
    let dir = tempfile::tempdir().unwrap();
    // Recognised by content: the name says something else.
    let path = dir.path().join("capture.pcap");
    std::fs::copy(TRACE, &path).unwrap();
    let path = path.display().to_string();
    let source = open(&[&path]).unwrap();
    assert!(source.is_trace());
    assert_eq!(source.describe()[0].format, "Linux trace text");
    let of_trace = counts(&source);
    assert_eq!((of_trace[&Table::Traces], of_trace[&Table::Cpus]), (1, 2));
    assert!(of_trace[&Table::Interrupts] > 50 && of_trace[&Table::Switches] > 50);
    assert!(!of_trace.contains_key(&Table::Operations));
    let progress = source.progress().unwrap();
    assert_eq!(Some(progress.bytes_done()), progress.bytes_total());

    let out = dir.path().join("out");
    import(source.parts(&Request::all()).unwrap(), &out, &[]).unwrap();
    let dataset = open(&[&out.display().to_string()]).unwrap();
    assert!(dataset.is_trace());
    assert_eq!(counts(&dataset), of_trace);
}

#[test]
fn a_pass_over_other_tables_does_not_read_a_trace() {
    let source = open(&[TRACE]).unwrap();
    let request = Request { tables: vec![Table::Operations], projection: None };
    assert_eq!(source.parts(&request).unwrap().count(), 0);
    assert_eq!(source.progress().unwrap().bytes_total(), Some(0));
}

#[test]
fn a_trace_beside_a_dataset_of_operations_is_not_only_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 100);
    let source = open(&[TRACE, &dir.path().display().to_string()]).unwrap();
    assert!(!source.is_trace());
    let counts = counts(&source);
    assert_eq!(counts[&Table::Operations], 100);
    assert!(counts.contains_key(&Table::Interrupts));
}

#[test]
fn a_folder_is_all_captures_and_traces_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let copy = |from: &str, to: &str| {
        std::fs::copy(fixtures.join(from), dir.path().join(to)).unwrap();
    };
    copy("fixtures/smb311.pcapng", "b.pcapng");
    copy("traces/loopback.ftrace.txt", "a.txt");
    std::fs::write(dir.path().join("notes.txt"), "Monday, after the change").unwrap();
    std::fs::create_dir(dir.path().join("more")).unwrap();
    let mut source = open(&[&dir.path().display().to_string()]).unwrap();
    let formats: Vec<_> = source.describe().into_iter().map(|file| file.format).collect();
    assert_eq!(formats, ["Linux trace text", "pcapng"]);
    let rows = counts(&source);
    assert!(rows[&Table::Operations] > 10 && rows[&Table::Interrupts] > 10);
    assert!(source.has_traces() && !source.is_trace());
    source.only_processors();
    assert!(source.is_trace());
}

/// Rows of the table `interrupts` of an input.
fn interrupts(input: &Path) -> (usize, Vec<String>) {
    let source = Source::open(&[input.display().to_string()], OpenOptions::default()).unwrap();
    assert!(source.is_trace());
    let request = Request { tables: vec![Table::Interrupts, Table::Traces], projection: None };
    let (mut rows, mut recordings) = (0, Vec::new());
    for part in source.parts(&request).unwrap() {
        match part.unwrap() {
            Part::Interrupts(batch) => rows += batch.num_rows(),
            Part::Traces(traces) => recordings.extend(traces.into_iter().map(|it| it.recording)),
            _ => {}
        }
    }
    (rows, recordings)
}

#[test]
fn compressed_traces_are_read_like_others() {
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces/flood.etl");
    let bytes = std::fs::read(&plain).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let zstd = dir.path().join("monday.etl.zst");
    let packed = zstd::encode_all(&bytes[..], 1).unwrap();
    std::fs::write(&zstd, &packed).unwrap();
    let gzip = dir.path().join("tuesday.gz");
    let file = std::fs::File::create(&gzip).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &bytes).unwrap();
    encoder.finish().unwrap();
    let (rows, _) = interrupts(&plain);
    assert!(rows > 10);
    assert_eq!(interrupts(&zstd), (rows, vec!["monday.etl.zst".to_owned()]));
    assert_eq!(interrupts(&gzip), (rows, vec!["tuesday.gz".to_owned()]));
    // A file that was cut has what can be unpacked.
    let packed = std::fs::read(&gzip).unwrap();
    std::fs::write(&gzip, &packed[..packed.len() - 4]).unwrap();
    assert_eq!(interrupts(&gzip).0, rows);
    // Zeros are not a trace, however many they are.
    std::fs::write(&zstd, zstd::encode_all(&vec![0; 1 << 20][..], 1).unwrap()).unwrap();
    assert!(Source::open(&[zstd.display().to_string()], OpenOptions::default()).is_err());
    // What begins like a trace and never ends is refused.
    let mut bomb = bytes.clone();
    bomb.resize(256 << 20, 0);
    std::fs::write(&zstd, zstd::encode_all(&bomb[..], 1).unwrap()).unwrap();
    let refused = Source::open(&[zstd.display().to_string()], OpenOptions::default());
    assert!(refused.unwrap_err().to_string().contains("times its size"));
}
