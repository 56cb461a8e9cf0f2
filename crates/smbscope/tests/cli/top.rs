//! `smbscope top`: its tables and its screen, with users on a real Samba.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::users::{PATIENT, Users, rows};
use super::{answer, complaint, objects, smbscope};

/// Ends a program even if the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts it, and waits until it reports that it is recording; `None` without the rights.
    fn begin(arguments: &[&str]) -> Option<Running> {
        let child = Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
            .args(arguments)
            .args(PATIENT)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut running = Running(child);
        let mut line = String::new();
        BufReader::new(running.0.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.contains("CAP_NET_RAW") {
            smbscope_testing::skip!("no CAP_NET_RAW");
            return None;
        }
        assert!(line.contains("TCP port"), "{line}");
        Some(running)
    }

    /// Ends it like Ctrl-C; returns its output.
    fn end(mut self) -> String {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let mut printed = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert!(self.0.wait().unwrap().success());
        printed
    }
}

fn has_script() -> bool {
    let there = Command::new("script").arg("--version").output();
    there.is_ok_and(|out| out.status.success())
}

/// Runs `top` on a terminal of 120 columns in that folder, types keys (each after a time in
/// milliseconds), returns the bytes sent to the terminal.
fn typed(folder: &Path, arguments: &str, keys: &[(u64, &str)]) -> String {
    let command = format!("stty cols 120 rows 30; exec $SMBSCOPE top {arguments}");
    let mut child = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(folder)
        .env("SMBSCOPE", assert_cmd::cargo::cargo_bin!("smbscope"))
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for (wait, key) in keys {
        std::thread::sleep(Duration::from_millis(*wait));
        input.write_all(key.as_bytes()).unwrap();
        input.flush().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(input);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() || shown.contains("CAP_NET_RAW"), "{shown}");
    shown
}

#[test]
fn top_shows_what_the_users_did() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let path = |name: &str| users.path(name);

    let (recorded, run, again) = (path("recorded"), path("run"), path("again"));
    let ports = format!("{},445", users.port);
    let wire = ["--interface", "lo", "--no-probe", "--port", &ports, "--snaplen", "65535"];
    let begin = |what: &[&str]| Running::begin(&[what, &wire].concat());
    let Some(record) = begin(&["record", "--out", &recorded]) else { return };
    let Some(json) = begin(&["top", "--format", "json", "--rows", "1000"]) else { return };
    let Some(table) = begin(&["top", "--batch", "--by", "user", "--filter", "USER"]) else {
        return;
    };
    let Some(hidden) = begin(&["top", "--batch", "--by", "user", "--anonymize"]) else { return };
    // Until the first complete interval.
    std::thread::sleep(Duration::from_millis(1_200));
    answer(users.busy("3s", &run));
    // Until the last interval was shown.
    std::thread::sleep(Duration::from_millis(2_500));
    let (json, table, hidden) = (json.end(), table.end(), hidden.end());
    record.end();

    // Per interval and command, it equals the recording.
    let intervals = objects(&json);
    let number = |value: &Value| value.as_u64().unwrap();
    let mut shown: BTreeMap<String, u64> = BTreeMap::new();
    // On a busy machine operations can arrive after their interval was shown; they are counted as late.
    let late = number(&intervals.last().unwrap()["late"]);
    for interval in &intervals {
        let (end, span) = (number(&interval["end_ns"]), number(&interval["span_ns"]));
        let sql = format!(
            "select count(*) from operations where response_end >= {} and response_end < {end}",
            end - span
        );
        let timed: u64 = rows(&[&recorded], &sql)[0].parse().unwrap();
        let total = number(&interval["total"]["operations"]);
        // Members of compounds have no time of their own.
        assert!(timed <= total + late && total <= timed * 2, "{timed}, {interval}");
        let mut sum = 0;
        for row in interval["rows"].as_array().unwrap() {
            sum += number(&row["operations"]);
            let command = row["name"].as_str().unwrap_or("?").to_owned();
            *shown.entry(command).or_default() += number(&row["operations"]);
        }
        assert_eq!(sum, total, "{interval}");
    }
    // A Cancel has no reply; other operations without a reply are reported only at the end.
    let sql = "select command, count(*) from operations where status is not null \
               or command = 'Cancel' group by command order by command";
    let wanted: Vec<String> = shown.iter().map(|(name, count)| format!("{name},{count}")).collect();
    match late {
        0 => assert_eq!(rows(&[&recorded], sql), wanted),
        late => smbscope_testing::skip!("{late} operations were late"),
    }
    assert!(shown.values().sum::<u64>() > 100, "{shown:?}");
    assert!(table.contains("Where the time goes") && table.contains("user0000"), "{table}");
    assert!(!table.contains('\x1b'));
    assert!(hidden.contains("user-") && !hidden.contains("user0"), "{hidden}");

    // On a terminal, with a recording that begins when users are logged on.
    if !has_script() {
        smbscope_testing::skip!("no script(1) here");
        return;
    }
    let load = Running(
        Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
            .args(users.busy("12s", &again))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let arguments = wire.join(" ");
    let keys = [(500, "5"), (5_000, "R"), (3_000, "R"), (2_000, "?"), (500, "x"), (300, "q")];
    let shown = typed(users.folder.path(), &format!("{arguments} --out mid"), &keys);
    drop(load);
    // Blank cells are not repeated: only single words.
    for wanted in ["\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h", "RECORDING", "(notifications,"] {
        assert!(shown.contains(wanted), "{wanted:?}: {shown}");
    }
    assert!(shown.contains("DuckDB reads it"), "{shown}");
    let mid = path("mid");
    assert!(std::fs::metadata(&mid).unwrap().permissions().mode() & 0o077 == 0);
    let one = |sql: &str| rows(&[&mid], sql)[0].clone();
    assert_ne!(one("select count(*) from operations"), "0");
    assert_eq!(one("select count(*) from coverage"), "1");
    let known = "select count(*) from operations o where connection is not null and not exists \
                 (select 1 from connections c where c.connection = o.connection)";
    assert_eq!(one(known), "0", "every connection has its row");
    let users = rows(&[&mid], "select distinct \"user\" from sessions where \"user\" is not null");
    assert!(users.iter().any(|user| user.contains("user0")), "{users:?}");
    let named = rows(&[&mid], "select distinct recording from operations");
    assert!(named.len() == 1 && named[0].starts_with("lo-"), "{named:?}");
}

#[test]
fn top_restores_the_terminal() {
    if !has_script() {
        smbscope_testing::skip!("no script(1) here");
        return;
    }
    let (_guard, dir) = super::folder();
    let wire = "--interface lo --port 1";
    let ended = typed(&dir, &format!("{wire} --duration 1s"), &[]);
    if ended.contains("CAP_NET_RAW") {
        smbscope_testing::skip!("no CAP_NET_RAW");
        return;
    }
    let killed = Command::new("script")
        .args([
            "-qec",
            &format!("timeout --foreground --preserve-status -s TERM 2 $SMBSCOPE top {wire}; stty"),
            "/dev/null",
        ])
        .env("SMBSCOPE", assert_cmd::cargo::cargo_bin!("smbscope"))
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let killed = String::from_utf8_lossy(&killed.stdout).into_owned();
    for shown in [ended, killed.clone(), typed(&dir, wire, &[(800, "\u{3}")])] {
        let (begun, left) = (shown.find("\x1b[?1049h"), shown.rfind("\x1b[?1049l"));
        assert!(begun.is_some() && begun < left, "{shown:?}");
    }
    assert!(!killed.contains("-icanon") && !killed.contains("-echo "), "{killed:?}");
}

#[test]
fn impossible_observations_are_refused() {
    let said = complaint(4, ["top", "--interface", "no-such0", "--batch"]);
    assert!(said.contains("no-such0: no such interface"), "{said}");
    complaint(2, ["top", "--interface", "lo", "--interval", "1ms"]);
    complaint(2, ["top", "--interface", "lo", "--by", "nonsense"]);
    complaint(2, ["top", "--interface", "lo", "--no-probe", "--pid", "1"]);
}

#[test]
fn an_interval_without_traffic_is_printed() {
    let arguments = ["top", "--interface", "lo", "--port", "1", "--batch"];
    let output = smbscope(arguments).args(["--count", "2"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("CAP_NET_RAW") {
        smbscope_testing::skip!("no CAP_NET_RAW");
        return;
    }
    assert!(output.status.success() && said.contains("observing TCP port 1 on lo"), "{said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = printed.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert!(lines[0].contains("last 1.00 s: 0 operations/s, 0 B/s read"), "{printed}");
    assert!(!said.contains("only "), "there is no filter: {said}");
    let output = smbscope(arguments).args(["--count", "1", "--share", "docs"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("only share docs: 0 of 0 operations"), "{said}");
}
