//! `smbscope record`: recordings of users on a real Samba, and errors.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::users::{PATIENT, Users, rows};
use super::{answer, complaint, folder, smbscope};

/// A running recording; `None` without the right to capture.
struct Recording(Child);

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Recording {
    fn begin(arguments: &[&str]) -> Option<Recording> {
        let child = Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
            .args(["record", "--interface", "lo"])
            .args(PATIENT)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Ended also if its output is wrong.
        let mut recording = Recording(child);
        let mut line = String::new();
        BufReader::new(recording.0.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.contains("CAP_NET_RAW") || line.starts_with("without the server's slices") {
            smbscope_testing::skip!("{line}");
            return None;
        }
        let what =
            if arguments.contains(&"--no-probe") { "recording TCP port" } else { "recording " };
        assert!(line.starts_with(what), "{line}");
        Some(recording)
    }

    /// Capabilities of each thread, by its name.
    fn capabilities(&self) -> Vec<(String, u64)> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        let of_thread = threads.map(|thread| {
            let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            let held = u64::from_str_radix(field("CapEff:").trim(), 16).unwrap();
            (field("Name:").trim().to_owned(), held)
        });
        of_thread.collect()
    }

    /// Sends a signal, waits for the end, and returns whether it succeeded, with standard error.
    fn end(mut self, signal: &str) -> (bool, String) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let status = self.0.wait().unwrap();
        let mut said = String::new();
        let error = self.0.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut BufReader::new(error), &mut said).unwrap();
        (status.success(), said)
    }
}

#[test]
fn a_recording_holds_what_the_users_did() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let path = |name: &str| users.path(name);

    let (recorded, killed, pcap, run) =
        (path("recorded"), path("killed"), path("r.pcap"), path("run"));
    let ports = format!("{},445", users.port);
    // Whole packets: a reply of a compound may follow the data of another.
    let ports = ["--no-probe", "--port", &ports, "--snaplen", "65535"];
    let begin = |arguments: &[&str]| Recording::begin(&[&ports, arguments].concat());
    let Some(recording) = begin(&["--out", &recorded, "--pcap", &pcap]) else { return };
    let Some(to_kill) = begin(&["--out", &killed, "--anonymize"]) else { return };
    answer(users.busy("3s", &run));
    let (is_success, said) = recording.end("-INT");
    assert!(is_success && said.contains("operations") && said.contains(" 0 dropped"), "{said}");

    // Message by message, in both directions. Connections without users explore the server's features.
    let columns = "client_port, message_id, command, detail, compound_index, status, path, \
                   offset_bytes, transferred_bytes, request_wire_bytes, response_wire_bytes";
    let of = |source: &str| {
        format!(
            "select {columns} from operations where source = '{source}' and client_port in \
             (select client_port from operations where source = 'load')"
        )
    };
    let both = [run.as_str(), &recorded];
    let load: u64 =
        rows(&both, &format!("select count(*) from ({})", of("load")))[0].parse().unwrap();
    assert!(load > 100, "{load}");
    for (one, other) in [("load", "capture"), ("capture", "load")] {
        let missing = rows(&both, &format!("{} except {}", of(one), of(other)));
        assert!(
            missing.is_empty(),
            "{one} but not {other}: {}: {:?}",
            missing.len(),
            &missing[..missing.len().min(5)]
        );
    }
    let coverage =
        "select format, vantage, frames_dropped, operations_unanswered, gaps from coverage";
    assert_eq!(rows(&[&recorded], coverage), ["\"live, interface lo\",server,0,0,0"]);

    // The kept packets contain the same operations.
    let count = "select command, count(*) from operations group by command order by command";
    assert_eq!(rows(&[&pcap], count), rows(&[&recorded], count));
    for name in [&recorded, &pcap] {
        assert!(is_private(Path::new(name)), "{name}");
    }
    assert!(is_private(&Path::new(&recorded).join("manifest.json")));
    assert!(is_private(&Path::new(&recorded).join("operations/part-000000.parquet")));

    // Killed after the first part was complete: the tables written at the end are missing.
    let part = Path::new(&killed).join("operations/part-000000.parquet");
    let begin = Instant::now();
    while !part.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no part was completed");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(!to_kill.end("-KILL").0);
    let count = "select count(*) from operations";
    assert_eq!(rows(&[&killed], count), rows(&[&recorded], count));
    let names = rows(&[&killed], "select distinct path, share, client from operations").join("\n");
    assert!(!names.contains("127.0.0.1") && !names.contains("user0000"), "{names}");
}

fn is_private(path: &Path) -> bool {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o077 == 0
}

/// The load's operations, each with the values from inside and from the wire.
#[test]
fn rows_combine_probe_and_interface() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let (recorded, run) = (users.path("recorded"), users.path("run"));
    let arguments = ["--port", &users.port, "--out", &recorded];
    let Some(recording) = Recording::begin(&arguments) else { return };
    // CAP_BPF, with which it reads its own counters, and nothing else.
    let mut capabilities = recording.capabilities();
    // A thread sets its own name.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !capabilities.iter().any(|(name, _)| name == "dataset") {
        assert!(Instant::now() < deadline, "{capabilities:?}");
        std::thread::sleep(Duration::from_millis(10));
        capabilities = recording.capabilities();
    }
    assert!(capabilities.iter().all(|(_, held)| held & !(1 << 39) == 0), "{capabilities:?}");
    answer(users.busy("3s", &run));
    let (is_success, said) = recording.end("-INT");
    assert!(is_success && said.contains(" packets (") && said.contains(" events"), "{said}");
    assert!(said.contains(" 0 dropped"), "{said}");

    let of = |source: &str| {
        format!(
            "select client_port, message_id, command, status, path, transferred_bytes, \
             request_wire_bytes, response_wire_bytes from operations where source = '{source}' and \
             client_port in (select client_port from operations where source = 'load')"
        )
    };
    let both = [run.as_str(), &recorded];
    for (one, other) in [("load", "probe"), ("probe", "load")] {
        let missing = rows(&both, &format!("{} except {}", of(one), of(other)));
        assert!(missing.is_empty(), "{one}, not {other}: {:?}", &missing[..missing.len().min(5)]);
    }
    // All have slices, and a round trip that only a wire shows.
    let without =
        "select count(*) from operations where processing_ns is null and command <> 'Cancel'";
    assert_eq!(rows(&[&recorded], without), ["0"]);
    let without = "select count(*) from connections where client_rtt_ns is null";
    assert_eq!(rows(&[&recorded], without), ["0"]);
    let coverage =
        "select format, frames_dropped, operations_unjoined from coverage order by format desc";
    let coverage = rows(&[&recorded], coverage);
    assert_eq!(coverage, ["probe inside smbd,0,0", "\"live, interface lo\",0,0"]);
    let report = answer(["report", &recorded]);
    assert!(report.contains("By slice of the server's time"), "{report}");
}

#[test]
fn impossible_recordings_are_refused() {
    let (_guard, dir) = folder();
    let out = dir.join("run");
    let out = out.to_str().unwrap();
    // The folder's contents are checked before the server is contacted.
    let (_kept, taken) = folder();
    std::fs::write(taken.join("letter.txt"), "kept").unwrap();
    let arguments = ["record", "--interface", "no-such0", "--out", taken.to_str().unwrap()];
    let said = complaint(5, arguments);
    assert!(said.contains("is not empty and contains no dataset"), "{said}");
    assert!(taken.join("letter.txt").exists());

    let said = complaint(4, ["record", "--interface", "no-such0", "--out", out]);
    assert!(
        said.contains("no-such0: no such interface; there are ") && said.contains("lo"),
        "{said}"
    );
    assert!(!Path::new(out).exists(), "nothing was written");
    complaint(2, ["record", "--interface", "lo"]);
    let said = complaint(
        2,
        ["record", "--interface", "lo", "--out", out, "--pcap", "x.pcap", "--anonymize"],
    );
    assert!(said.contains("--anonymize"), "{said}");
}

#[test]
fn a_recording_with_a_filter_says_what_it_kept() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let (recorded, run) = (users.path("recorded"), users.path("run"));
    let options = ["--no-probe", "--port", &users.port, "--command", "read", "--out", &recorded];
    let Some(recording) = Recording::begin(&options) else { return };
    answer(users.busy("2s", &run));
    let (is_success, said) = recording.end("-INT");
    let report = answer(["report", &recorded, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let kept = &report["recorded"];
    assert_eq!(kept["filter"], "command read");
    let (some, all) = (number(&kept["operations"]), number(&kept["operations_all"]));
    assert!(0 < some && some < all, "{kept}");
    assert_eq!(number(&report["totals"]["operations"]), some);
    let line = said.lines().find(|line| line.starts_with("only command read: ")).unwrap_or(&said);
    let digits = |word: &str| word.replace(',', "").parse::<u64>().ok();
    let numbers: Vec<u64> = line.split(' ').filter_map(digits).collect();
    assert_eq!(numbers, [some, all], "{said}");
    assert!(is_success, "{said}");
}

#[test]
fn a_recording_without_traffic_is_valid() {
    let (_guard, dir) = folder();
    let out = dir.join("run");
    std::fs::create_dir(&out).unwrap();
    let out = out.to_str().unwrap();
    let arguments =
        ["record", "--interface", "lo", "--port", "1", "--duration", "1s", "--out", out];
    let output = smbscope(arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("CAP_NET_RAW") {
        smbscope_testing::skip!("no CAP_NET_RAW");
        return;
    }
    assert!(output.status.success() && said.contains("0 operations"), "{said}");
    assert_eq!(rows(&[out], "select frames from coverage"), ["0"]);
    assert!(is_private(Path::new(out)), "also a folder that was there");
    complaint(5, arguments);
}
