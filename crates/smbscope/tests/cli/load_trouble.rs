//! Runs of `smbscope load` that fail on the client: what they still report, and how they end.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::answer;
use super::users::Users;

/// Starts a command without waiting for it.
fn begin(arguments: &[&str]) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
        .args(arguments)
        .arg("--no-progress")
        .env("SMBSCOPE_PASSWORD", "secret")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn end(child: Child) -> (i32, String, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn manifest(run: &str) -> Value {
    serde_json::from_slice(&std::fs::read(Path::new(run).join("manifest.json")).unwrap()).unwrap()
}

fn wait_for(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Once, such a run continued to its end and then did not show its results.
#[test]
fn an_unwritable_folder_ends_the_run_with_its_results() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let run = users.path("run");
    let begun = Instant::now();
    let child = begin(&users.busy("300s", &run));
    // The folder of a table becomes a file, as if the disk had failed.
    let operations = Path::new(&run).join("operations");
    wait_for(&operations);
    std::fs::remove_dir_all(&operations).unwrap();
    std::fs::write(&operations, "").unwrap();
    let (code, table, message) = end(child);
    assert!(begun.elapsed() < Duration::from_secs(120));
    assert_eq!(code, 5, "{message}");
    assert!(message.contains("writing it failed"), "{message}");
    assert!(table.contains("Scenarios/s") && table.contains("CmdLineFileDownload"), "{table}");
}

#[test]
fn start_at_is_recorded_without_passwords() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let run = users.path("run");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let agreed = now.as_secs() + 5;
    let agreed_text = agreed.to_string();
    // No program listens on this port.
    let metrics = "http://me:geheim@127.0.0.1:1/metrics";
    let more = ["--start-at", &agreed_text, "--metrics", metrics];
    answer([users.busy("2s", &run).as_slice(), &more].concat());
    let manifest = manifest(&run);
    assert!(!manifest.to_string().contains("geheim"), "{manifest}");
    let description = &manifest["runs"][0];
    let agreed_ns = agreed as i64 * 1_000_000_000;
    assert_eq!(description["start_ns"].as_i64(), Some(agreed_ns), "{description}");
    let sql = "select min(time) from counters";
    let first = super::users::rows(&[&run], sql).remove(0).parse::<i64>().unwrap();
    assert!(first >= agreed_ns, "counters of the time before the begin");
}

/// A server that accepts connections and never answers: the run waits until --timeout.
#[test]
fn a_waiting_logon_can_be_interrupted() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("//{}/home", silent.local_addr().unwrap());
    for options in [[].as_slice(), &["--workload", "bulk-copy", "--matrix"]] {
        let child = begin(&[["load", &target].as_slice(), options].concat());
        let connection = silent.accept().unwrap();
        let begun = Instant::now();
        let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let (code, _, message) = end(child);
        assert_eq!(code, 130, "{message}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{message}");
        drop(connection);
    }
}

/// Once, the step in progress was written to the run's folder but not shown.
#[test]
fn an_interrupted_search_shows_its_steps() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let run = users.path("run");
    let search = ["--find-capacity", "--start-users", "2", "--full-steps", "--format", "json"];
    let times = ["--ramp", "100", "--warm-up", "0s", "--duration", "4s", "--out", &run];
    let options = users.options();
    let mut child = begin(&[["load"].as_slice(), &options, &search, &times].concat());
    // The first step ended, the second is measured.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().trim_start().starts_with("2 ")));
    std::thread::sleep(Duration::from_secs(2));
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let (code, table, _) = end(child);
    assert_eq!(code, 130);
    let table: Value = serde_json::from_str(&table).unwrap();
    assert_eq!(table["answer"]["reason"], "interrupted", "{table}");
    let of_row = |row: &Value| format!("{},{},{}", row["step"], row["users"], row["ended_early"]);
    let shown: Vec<String> = table["rows"].as_array().unwrap().iter().map(of_row).collect();
    let sql = "select step, users, ended_early from steps order by step";
    assert_eq!(super::users::rows(&[&run], sql), shown);
    assert_eq!(shown.last().unwrap(), "2,3,true");
}
