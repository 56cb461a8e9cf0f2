//! What a load run answers: the same numbers as its report, limits on response times, and servers that die,
//! cannot do something, or are not Samba.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::users::Users;
use super::{answer, smbscope};

/// Runs a command; its exit code, standard output and standard error.
fn ran(arguments: &[&str]) -> (i32, String, String) {
    let output = smbscope(arguments).env("SMBSCOPE_PASSWORD", "secret").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Once, p95 at 140 users was 5,323 ms on the terminal and 4.51 s in the report.
#[test]
fn the_terminal_and_the_report_have_the_same_numbers() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let run = users.path("run");
    let search = ["--find-capacity", "--start-users", "2", "--full-steps", "--max-users", "3"];
    let times = ["--ramp", "100", "--warm-up", "0s", "--duration", "10s", "--format", "json"];
    let limit = ["--max-response", "p95<1h", "--max-response", "Read:max<1h", "--out", &run];
    let arguments = [["load"].as_slice(), &users.options(), &search, &times, &limit].concat();
    let table: Value = serde_json::from_str(&answer(arguments)).unwrap();
    let report: Value =
        serde_json::from_str(&answer(["report", &run, "--format", "json"])).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let steps = report["load"]["steps"].as_array().unwrap();
    assert!(rows.len() >= 2 && rows.len() == steps.len(), "{table}");
    let mut some = false;
    for (row, step) in rows.iter().zip(steps) {
        for (name, in_report) in [("p50_ns", "p50_ns"), ("p95_ns", "p95_ns"), ("max_ns", "max_ns")]
        {
            assert_eq!(row["response"][name], step["response"][in_report], "{name}: {row} {step}");
        }
        let rates = [&row["operations_per_second"], &step["operations_per_second"]];
        let [a, b] = rates.map(|rate| rate.as_f64().unwrap());
        assert!((a - b).abs() <= 0.01 * a, "{a} {b}");
        some |= a > 0.0;
        assert!(step["server_cpu_share"].as_f64().is_some(), "{step}");
        let commands = row["commands"].as_array().unwrap();
        assert!(a == 0.0 || commands.iter().any(|it| it["command"] == "Create"), "{row}");
    }
    assert!(some, "{table}");
    let (said, found) = (&table["answer"], &report["load"]["answers"][0]);
    assert_eq!((&said["users"], &said["p95_ns"]), (&found["users"], &found["p95_ns"]));
    assert_eq!(said["limits"].as_array().unwrap().len(), 2);
    assert!(found["reason"].as_str().unwrap().contains("within p95<3600s, Read:max<3600s, p95 "));
}

/// A limit that nothing can keep.
#[test]
fn a_limit_on_response_times_ends_the_search() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let search = ["--find-capacity", "--start-users", "2", "--full-steps", "--max-users", "3"];
    let times = ["--ramp", "100", "--warm-up", "0s", "--duration", "5s"];
    let limit = ["--max-response", "p50<1us"];
    let (code, shown, _) =
        ran(&[["load"].as_slice(), &users.options(), &search, &times, &limit].concat());
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("limit 1.00 µs"), "{shown}");
    assert!(shown.contains("the fewest that could be tried, are too many: p50 "), "{shown}");
    // One header, and each step once.
    assert_eq!(shown.matches("Scenarios/s").count(), 1, "{shown}");
}

#[test]
fn fixed_load_points_are_run_in_their_order() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let points = ["--steps", "3,2", "--ramp", "100", "--warm-up", "0s", "--duration", "8s"];
    let arguments =
        [["load"].as_slice(), &users.options(), &points, &["--format", "json"]].concat();
    let (code, shown, said) = ran(&arguments);
    let table: Value = serde_json::from_str(&shown).unwrap_or_else(|_| panic!("{code} {said}"));
    let rows = table["rows"].as_array().unwrap();
    let tried: Vec<_> = rows.iter().map(|row| row["users"].as_u64().unwrap()).collect();
    assert_eq!(tried, [3, 2], "{table}");
    let reason = table["answer"]["reason"].as_str().unwrap();
    assert!(reason == "points_tried" && table["answer"]["steps"] == 2, "{table}");
    let (code, _, message) = ran(&["load", "//127.0.0.1:1/x", "--steps", "3", "--find-capacity"]);
    assert!(code == 2 && message.contains("--steps"), "{message}");
}

#[test]
fn wrong_limits_are_explained() {
    let search = ["load", "//127.0.0.1:1/share", "--find-capacity", "--max-response"];
    for (limit, words) in [
        ("p94<2s", "p94"),
        ("2s", "no \"<\""),
        ("Nothing:p95<2s", "neither a scenario of the workload (CmdLineFileDelete"),
    ] {
        let (code, _, message) = ran(&[search.as_slice(), &[limit]].concat());
        let words = words.replace("no \"<\"", "there is no '<'");
        assert!(code == 2 && message.contains(&words), "{code} {message}");
    }
    let (code, _, message) = ran(&["load", "//127.0.0.1:1/share", "--max-response", "p95<2s"]);
    assert!(code == 2 && message.contains("--find-capacity"), "{message}");
}

/// Once, the table said "overloaded" with 0 errors, and the exit code was 0.
#[test]
fn a_server_that_dies_is_not_overloaded() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let run = users.path("run");
    let times =
        ["--ramp", "100", "--warm-up", "0s", "--duration", "120s", "--outage", "5s", "--out", &run];
    let arguments = [["load"].as_slice(), &users.options(), &times].concat();
    let load = std::thread::spawn({
        let owned: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        move || ran(&owned.iter().map(String::as_str).collect::<Vec<_>>())
    });
    std::thread::sleep(Duration::from_secs(4));
    let begun = Instant::now();
    answer(["lab", "down", "--dir", &users.lab]);
    let (code, shown, message) = load.join().unwrap();
    assert_eq!(code, 8, "{shown}{message}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(shown.contains("the server stopped answering"), "{shown}");
    assert!(!shown.contains("overloaded"), "{shown}");
    assert!(message.contains("the server stopped answering during the run"), "{message}");
    let report = answer(["report", &run]);
    assert!(report.contains("The server stopped answering"), "{report}");
}

#[test]
fn what_the_server_lacks_is_reported_before_anything_is_written() {
    let Some(users) = Users::up() else { return };
    let many = ["load", "prepare", "--lab", &users.lab, "--users", "200", "--scale", "0.1"];
    let (code, _, message) = ran(&many);
    assert_eq!(code, 4, "{message}");
    assert!(message.contains("the last of 200 users cannot log on"), "{message}");
    assert!(message.contains("nothing was written"), "{message}");
    users.prepare();
    let leases = ["--client-cache", "dirlease", "--duration", "2s"];
    let (code, shown, message) = ran(&[["load"].as_slice(), &users.options(), &leases].concat());
    // Samba grants directory leases since version 4.22.
    if code == 4 {
        assert!(message.contains("grants no directory leases"), "{message}");
    } else {
        assert_eq!(code, 0, "{shown}{message}");
    }
}

#[test]
fn single_requests_do_the_same_as_compounds() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let mut operations = Vec::new();
    for compounds in ["on", "off"] {
        let run = users.path(compounds);
        let more =
            ["--compounds", compounds, "--duration", "20s", "--warm-up", "0s", "--ramp", "100"];
        answer([["load"].as_slice(), &users.options(), &more, &["--out", &run]].concat());
        let sql = "select count(*) filter (where outcome = 'failed'), sum(operations) from scenarios where outcome <> 'not started'";
        let row = super::users::rows(&[&run], sql).remove(0);
        let (failed, sum) = row.split_once(',').unwrap();
        assert_eq!(failed, "0", "{compounds}: {row}");
        operations.push(sum.to_owned());
        let sql = "select count(*) from operations where compound is not null";
        let in_compounds = super::users::rows(&[&run], sql).remove(0);
        assert_eq!(in_compounds == "0", compounds == "off", "{compounds}: {in_compounds}");
    }
    assert_eq!(operations[0], operations[1]);
}

/// Ends the server also when the test fails.
struct Impacket(Child);

impl Drop for Impacket {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that is not Samba: impacket's (PyPI), which knows neither compounds without a Create nor some
/// questions, and says STATUS_NO_SUCH_FILE for what is absent.
#[test]
fn a_run_goes_on_against_impacket() {
    let python = std::env::var("SMBSCOPE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import impacket.smbserver"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        smbscope_testing::skip!("{python} has no impacket (scripts/setup.sh test installs it)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = format!(
        "from impacket.smbserver import SimpleSMBServer
from impacket.ntlm import compute_lmhash, compute_nthash
server = SimpleSMBServer(listenAddress='127.0.0.1', listenPort={port})
server.addShare('home', {:?})
server.setSMB2Support(True)
server.addCredential('user00001', 0, compute_lmhash('secret'), compute_nthash('secret'))
server.start()",
        folder.path()
    );
    let child = Command::new(&python)
        .args(["-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Impacket(child);
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "impacket does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    let target = format!("//127.0.0.1:{port}/home");
    let users = ["--users", "1", "--user", "user00001", "--scale", "0.01"];
    let (code, _, message) = ran(&[["load", "prepare", &target].as_slice(), &users].concat());
    assert_eq!(code, 0, "{message}");
    let times = [
        "--closed",
        "--warm-up",
        "0s",
        "--duration",
        "8s",
        "--fail-above",
        "50",
        "--format",
        "json",
    ];
    let (code, table, message) = ran(&[["load", &target].as_slice(), &users, &times].concat());
    assert_eq!(code, 0, "{message}");
    assert!(message.contains("only related compounds that begin with a Create"), "{message}");
    let table: Value = serde_json::from_str(&table).unwrap();
    let done = |name: &str| {
        let rows = table["rows"][0]["scenarios"].as_array().unwrap();
        rows.iter().any(|row| row["scenario"] == name)
    };
    // These end well; before, all scenarios failed.
    for name in ["CmdLineFileDownload", "CmdLineFileUpload", "ExplorerNavigate", "ExplorerSelect"] {
        assert!(done(name), "{name}: {table}");
    }
}
