//! Tests of the named questions: golden answers over own fixtures.

use super::*;
use crate::source::{OpenOptions, Source};
use crate::sql::{Engine, EngineOptions};
use crate::synthetic::load::load;
use crate::synthetic::rest::{capture, dataset};
use crate::synthetic::server::server;
use arrow::util::pretty::pretty_format_batches_with_schema;
use smbscope_tables::command_class::CommandClass;

fn answer(engine: &Engine, question: &Question) -> (usize, String) {
    let answer = engine.query(&question.sql()).unwrap_or_else(|e| panic!("{}: {e}", question.name));
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
        .filter(|name| name.ends_with(".sql"))
        .collect();
    files.sort();
    let names: Vec<_> = list().iter().map(|question| format!("{}.sql", question.name)).collect();
    assert_eq!(names, files);
    for question in list() {
        assert!(!question.title().is_empty() && question.title().len() < 50, "{}", question.name);
        assert!(question.help().len() > 20, "{}", question.name);
        assert_eq!(get(question.name), Some(question));
        assert!(!question.sql().contains(['{', '}']), "{}: a placeholder is left", question.name);
    }
    assert_eq!(get("no such question"), None);
}

#[test]
fn questions_about_a_server_name_every_kind_of_slice() {
    let [server, slow] = ["server", "slow-server"].map(|name| get(name).unwrap().sql());
    for kind in Kind::ALL {
        let column = kind.column_name();
        assert!(slow.contains(column), "slow-server: {column}");
        assert_eq!(server.contains(&format!("coalesce({column}, 0)")), kind.is_part(), "{column}");
    }
}

#[test]
fn lists_of_commands_are_those_of_their_class() {
    let mut lists = 0;
    for question in list() {
        for rest in question.sql().split("command IN (").skip(1) {
            let (names, _) = rest.split_once(')').unwrap();
            let names: Vec<_> =
                names.split(',').map(|name| name.trim().trim_matches('\'')).collect();
            for class in [CommandClass::Open, CommandClass::Read, CommandClass::Write] {
                let all = class.commands();
                let listed = all.iter().filter(|name| names.contains(name)).count();
                assert!(
                    listed == 0 || listed == all.len(),
                    "{}: {class:?} {names:?}",
                    question.name
                );
                lists += usize::from(listed > 0);
            }
        }
    }
    assert!(lists > 10, "{lists}");
}

#[test]
fn every_question_has_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    dataset(&dir.path().join("capture"), 3000);
    load(&dir.path().join("run"), 1, 1, None);
    server(&dir.path().join("server"), 200, None);
    let inputs =
        ["capture", "run", "server"].map(|name| dir.path().join(name).display().to_string());
    let idle = dir.path().join("idle.txt");
    std::fs::write(&idle, IDLE).unwrap();
    let traces = [TRACE_FILE, FLOOD_FILE, idle.to_str().unwrap()].map(str::to_owned);
    let inputs: Vec<_> = inputs.into_iter().chain(traces).collect();
    let source = Source::open(&inputs, OpenOptions::default()).unwrap();
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

#[test]
fn a_scenario_that_ran_once_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    load(dir.path(), 1, 1, None);
    let inputs = [dir.path().display().to_string()];
    let engine = Engine::new(Source::open(&inputs, OpenOptions::default()).unwrap()).unwrap();
    let once = "WHERE scenario_run = (SELECT min(scenario_run) FROM scenarios WHERE phase = 'measured' \
                AND response_ns IS NOT NULL) AND";
    let sql = get("operations-of-slow-scenarios").unwrap().sql().replacen("WHERE", once, 1);
    let rows: usize = engine.query(&sql).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert!(rows > 0);
}

#[test]
fn a_share_or_user_is_one_line_however_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path(), 10);
    let inputs = [dir.path().display().to_string()];
    let engine = Engine::new(Source::open(&inputs, OpenOptions::default()).unwrap()).unwrap();
    for name in ["share", "user"] {
        let rows = format!(
            "FROM (SELECT column1 AS \"{name}\", column2 AS busy_ns, column2 AS elapsed_ns, column2 AS \
             server_ns, column2 AS transferred_bytes, false AS waits FROM (VALUES ('A\\Home', 1), \
             ('a\\home', 2), (NULL, 3)))"
        );
        let question = get(&format!("latency-by-{name}")).unwrap();
        let sql = question.sql().replacen("FROM operations", &rows, 1);
        let rows: usize = engine.query(&sql).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, 2, "{name}");
    }
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
        let (rows, text) = answer(&engine, question);
        let lists = [&LOAD[..], &SERVER, &TRACE];
        if lists.iter().any(|list| list.contains(&question.name)) {
            // A capture has neither scenarios nor slices, and no interrupts.
            assert_eq!(rows, 0, "{text}")
        } else {
            insta::assert_snapshot!(question.name, text)
        }
    }
}

/// Questions about load runs.
const LOAD: [&str; 9] = [
    "capacity-curve",
    "commands-by-scenario",
    "counters-by-step",
    "counters-over-time",
    "errors-by-step",
    "operations-of-slow-scenarios",
    "scenario-response-times",
    "scenarios-over-time",
    "users-behind-schedule",
];

/// Questions about recordings from inside a server.
const SERVER: [&str; 2] = ["server", "slow-server"];

/// Questions about CPU traces, and a trace.
const TRACE: [&str; 8] = [
    "busiest-stacks",
    "idle-states",
    "interrupt-delays",
    "interrupts-by-cpu",
    "interrupts-by-function",
    "interrupts-by-module",
    "interrupts-over-limit",
    "nic-queue-spread",
];
const TRACE_FILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/loopback.ftrace.txt");
/// A trace with an idle state.
const IDLE: &str = "\
<idle>-0 [000] d..1. 10.000100: cpu_idle: state=2 cpu_id=0
<idle>-0 [000] d..1. 10.000400: cpu_idle: state=4294967295 cpu_id=0
";
/// A trace with samples and stacks.
const FLOOD_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/flood.etl");

#[test]
fn questions_about_interrupts_add_up_to_the_rows() {
    let source = Source::open(&[TRACE_FILE.to_owned()], OpenOptions::default()).unwrap();
    let engine = Engine::new(source).unwrap();
    let number = |sql: &str| {
        let batch = engine.query(sql).unwrap().next().unwrap().unwrap();
        let text = arrow::util::display::array_value_to_string(batch.column(0), 0).unwrap();
        text.parse::<f64>().unwrap()
    };
    let of = |what: &str, name: &str| {
        let sql = get(name).unwrap().sql();
        number(&format!("SELECT {what} FROM ({sql})"))
    };
    let all = number("SELECT count(*) FROM interrupts");
    let time = number("SELECT sum(exclusive_ns) FROM interrupts");
    assert!(all > 100.0 && time > 0.0);
    for name in ["interrupts-by-cpu", "interrupts-by-function", "interrupts-by-module"] {
        assert_eq!(of("sum(count)", name), all, "{name}");
    }
    for name in ["interrupts-by-function", "interrupts-by-module"] {
        assert_eq!(of("sum(exclusive_ns)", name), time, "{name}");
    }
    assert_eq!(of("sum(deferred_ns + interrupt_ns)", "interrupts-by-cpu"), time);
    assert!((0.0..100.0).contains(&of("max(cpu_percent)", "interrupts-by-cpu")));
    let longest = number("SELECT max(duration_ns) FROM interrupts");
    assert_eq!(of("max(duration_ns)", "interrupts-over-limit"), longest);
    let over = of("sum(over_limit)", "interrupts-by-module");
    assert_eq!(of("count(*)", "interrupts-over-limit"), over);
    assert!(over > 0.0);
    let delays = number("SELECT count(*) FROM interrupts WHERE delay_ns IS NOT NULL");
    assert_eq!(of("sum(n)", "interrupt-delays"), delays);
    let longest = number("SELECT max(delay_ns) FROM interrupts");
    assert_eq!(of("max(delay_ns_max)", "interrupt-delays"), longest);
    let runs = number("SELECT count(*) FROM interrupts WHERE device IS NOT NULL");
    assert_eq!(of("coalesce(sum(runs), 0)", "nic-queue-spread"), runs);
}

/// Text of `xperf -a dpcisr`, which has sums.
const SUMS_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/dpcisr.txt");

#[test]
fn questions_about_interrupts_count_sums() {
    let source = Source::open(&[SUMS_FILE.to_owned()], OpenOptions::default()).unwrap();
    let engine = Engine::new(source).unwrap();
    let number = |what: &str, name: &str| {
        let sql = format!("SELECT {what} FROM ({})", get(name).unwrap().sql());
        let batch = engine.query(&sql).unwrap().next().unwrap().unwrap();
        let text = arrow::util::display::array_value_to_string(batch.column(0), 0).unwrap();
        text.parse::<f64>().unwrap()
    };
    let ndis = "max(CASE WHEN name = 'ndis.sys' THEN exclusive_ns END)";
    assert_eq!(number(ndis, "interrupts-by-module"), 1.2e9);
    let count = "max(CASE WHEN name = 'ndis.sys' THEN count END)";
    assert_eq!(number(count, "interrupts-by-module"), 5_000.0);
    let over = "max(CASE WHEN name = 'ndis.sys' THEN over_limit END)";
    assert_eq!(number(over, "interrupts-by-module"), 5_000.0);
    let cpu = "max(CASE WHEN cpu = 0 THEN cpu_percent END)";
    assert_eq!(number(cpu, "interrupts-by-cpu"), 60.16);
}

#[test]
fn stacks_are_listed_by_their_samples_from_the_innermost_call_outwards() {
    let source = Source::open(&[FLOOD_FILE.to_owned()], OpenOptions::default()).unwrap();
    let engine = Engine::new(source).unwrap();
    let (rows, text) = answer(&engine, get("busiest-stacks").unwrap());
    assert_eq!(rows, 1, "{text}");
    assert!(text.contains("ndis.sys < nic.sys < ntoskrnl.exe"), "{text}");
    assert!(text.contains("100.0"), "{text}");
}

#[test]
fn golden_answers_over_a_recording_from_inside_a_server() {
    let dir = tempfile::tempdir().unwrap();
    server(dir.path(), 200, None);
    let inputs = [dir.path().display().to_string()];
    let source = Source::open(&inputs, OpenOptions::default()).unwrap();
    // One thread: percentiles are sketches, which depend a little on how rows are divided.
    let limits = EngineOptions { threads: 1, ..EngineOptions::default() };
    let engine = Engine::with_options(source, limits).unwrap();
    for name in SERVER {
        insta::assert_snapshot!(name, answer(&engine, get(name).unwrap()).1);
    }
}

#[test]
fn golden_answers_over_a_load_run_of_two_machines() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [1, 2].map(|shard| {
        let part = dir.path().join(shard.to_string());
        load(&part, shard, 2, None);
        part.display().to_string()
    });
    let source = Source::open(&inputs, OpenOptions::default()).unwrap();
    // One thread: percentiles are sketches, which depend a little on how rows are divided.
    let limits = EngineOptions { threads: 1, ..EngineOptions::default() };
    let engine = Engine::with_options(source, limits).unwrap();
    for name in LOAD {
        let text = answer(&engine, get(name).unwrap()).1;
        // Many pieces of time are alike.
        let lines: Vec<_> = text.lines().take(40).collect();
        insta::assert_snapshot!(name, lines.join("\n"));
    }
}
