//! `smbscope query`, except for the prompt.

use super::{COMMANDS, OPERATIONS, answer, capture, complaint, folder, objects, smbscope, stdout};

const BY_COMMAND: &str = "select command, count(*) as n from operations group by 1 order by 1";

#[test]
fn operations_are_counted_by_command() {
    let rows = objects(&answer(["query", &capture(), BY_COMMAND, "--format", "json"]));
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row["command"].as_str().unwrap().to_owned(), row["n"].as_u64().unwrap()))
        .collect();
    assert_eq!(rows, COMMANDS.map(|(command, n)| (command.to_owned(), n)));
}

#[test]
fn text_is_an_aligned_table() {
    let table = answer(["query", &capture(), BY_COMMAND]);
    assert!(table.starts_with("command          n\nClose           35\n"), "{table}");
    let none = answer(["query", &capture(), "select command from operations where false"]);
    assert_eq!(none, "command\n");
}

#[test]
fn sql_is_read_from_file_question_or_standard_input() {
    let (_guard, dir) = folder();
    let file = dir.join("q.sql");
    std::fs::write(&file, "-- how many\nselect count(*) as n from operations;\n").unwrap();
    let csv = format!("n\n{OPERATIONS}\n");
    let capture = capture();
    let file = file.to_str().unwrap();
    assert_eq!(answer(["query", &capture, "--file", file, "--format", "csv"]), csv);
    let assert = smbscope(["query", &capture, "--format", "csv"])
        .write_stdin("select count(*) as n from operations; select 'a;b' as x")
        .assert()
        .success();
    assert_eq!(stdout(&assert), format!("{csv}x\na;b\n"));
    let list = answer(["query", "--questions"]);
    let names: Vec<_> = list.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
    assert!(names.len() > 5, "{list}");
    for name in names {
        answer(["query", &capture, "--question", name]);
    }
    complaint(2, ["query", &capture, "--question", "no-such"]);
}

#[test]
fn a_wrong_query_is_code_6() {
    let capture = capture();
    for sql in [
        "select nonsense from operations",
        "select from",
        "select 1 from nowhere",
        "select 1; ;select",
    ] {
        let said = complaint(6, ["query", &capture, sql]);
        assert!(said.starts_with("smbscope: ") && said.lines().count() == 1, "{said}");
    }
    let assert =
        smbscope(["query", &capture]).write_stdin("drop table operations").assert().code(6);
    assert_eq!(assert.get_output().stderr.iter().filter(|&&byte| byte == b'\n').count(), 1);
    assert_eq!(answer(["query", &capture, "select 1 as one", "--format", "csv"]), "one\n1\n");
}

#[test]
fn a_mistyped_name_is_a_missing_input() {
    complaint(4, ["query", &capture(), "other.pcap"]);
    let said = complaint(4, ["query", &capture(), "selct * from operations"]);
    assert!(said.contains("begins with"), "{said}");
    complaint(2, ["query", "select 1"]);
    complaint(2, ["query"]);
}

#[test]
fn standard_input_can_be_queried() {
    let bytes = std::fs::read(capture()).unwrap();
    let sql = "select (select count(*) from operations) as n, count(*) as m from connections";
    let assert = smbscope(["query", "-", sql, "--format", "csv"]).write_stdin(bytes).assert();
    assert_eq!(stdout(&assert.success()), format!("n,m\n{OPERATIONS},1\n"));
    complaint(2, ["query", "-"]);
}

#[test]
fn anonymize_replaces_names() {
    let sql = "select distinct client, path from operations";
    let text = answer(["query", &capture(), sql, "--anonymize"]);
    assert!(text.contains("addr-") && !text.contains("127.0.0.1") && !text.contains("one.txt"));
}
