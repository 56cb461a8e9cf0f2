use super::*;
use crate::source::{OpenOptions, Source};
use crate::sql::{Engine, EngineOptions};
use crate::synthetic_rest::{capture, dataset};
use arrow::util::pretty::pretty_format_batches_with_schema;

fn answer(engine: &Engine, question: &Question) -> (usize, String) {
    let answer = engine.query(question.sql).unwrap_or_else(|e| panic!("{}: {e}", question.name));
    let schema = answer.schema();
    let batches: Vec<_> = answer.map(|batch| batch.unwrap()).collect();
    let rows = batches.iter().map(|batch| batch.num_rows()).sum();
    (rows, pretty_format_batches_with_schema(schema, &batches).unwrap().to_string())
}

#[test]
fn every_file_is_listed_and_says_what_it_shows() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("questions");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let names: Vec<_> = list().iter().map(|question| format!("{}.sql", question.name)).collect();
    assert_eq!(names, files);
    for question in list() {
        assert!(!question.title().is_empty() && question.title().len() < 50, "{}", question.name);
        assert!(question.help().len() > 20, "{}", question.name);
        assert_eq!(get(question.name), Some(question));
    }
    assert_eq!(get("no such question"), None);
}

#[test]
fn every_question_has_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 3000);
    let source = Source::open(&[dir.path().display().to_string()], OpenOptions::default()).unwrap();
    let engine = Engine::new(source).unwrap();
    // The made-up rows have neither.
    let empty = ["breaks", "compounds"];
    for question in list() {
        let (rows, text) = answer(&engine, question);
        assert_eq!(rows == 0, empty.contains(&question.name), "{}\n{text}", question.name);
    }
    let shares = answer(&engine, get("latency-by-command").unwrap()).1;
    let percent =
        shares.lines().filter_map(|line| line.split('|').nth(3)?.trim().parse::<f64>().ok());
    let sum: f64 = percent.sum();
    assert!((99.9..100.1).contains(&sum), "{shares}");
}

/// Small recordings of a real server that between them have an answer to every question.
const FIXTURES: [&str; 6] = [
    "compound-related.pcapng.gz",
    "credits.pcapng",
    "errors.pcapng",
    "lease-v2-break.pcapng.gz",
    "multichannel.pcapng.gz",
    "smb311.pcapng",
];

#[test]
fn golden_answers_over_the_fixtures() {
    let Some(inputs) = FIXTURES.into_iter().map(capture).collect::<Option<Vec<_>>>() else {
        return;
    };
    // One thread: percentiles are sketches, which depend a little on how rows are divided.
    let mut options = OpenOptions::default();
    options.decode.threads = 1;
    let source = Source::open(&inputs, options).unwrap();
    let limits = EngineOptions { threads: 1, ..EngineOptions::default() };
    let engine = Engine::with_options(source, limits).unwrap();
    for question in list() {
        insta::assert_snapshot!(question.name, answer(&engine, question).1);
    }
}
