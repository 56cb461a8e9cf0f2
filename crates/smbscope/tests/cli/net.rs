//! `smbscope net`: both sides on loopback, the run folder in report, compare and query, and errors.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{answer, complaint, fixture, smbscope};

/// `net listen` on a free port of loopback.
struct Listening {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    target: String,
    token: String,
}

impl Listening {
    fn start() -> Listening {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
            .args(["net", "listen", "127.0.0.1:0", "--timeout", "60s"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = [String::new(), String::new(), String::new()];
        lines.iter_mut().for_each(|line| assert!(output.read_line(line).unwrap() > 0));
        let token = lines[0].split_whitespace().nth(1).unwrap().to_owned();
        let words: Vec<_> = lines[2].split_whitespace().collect();
        let [program, net, send, target, option, shown] = words[..] else { panic!("{lines:?}") };
        assert_eq!((program, net, send, option), ("smbscope", "net", "send", "--token"));
        assert_eq!(shown, token);
        Listening { target: target.to_owned(), token, child, output }
    }

    /// Waits for the end: exit code, the rest of the output, and messages.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut text, mut messages) = (String::new(), String::new());
        self.output.read_to_string(&mut text).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        (self.child.wait().unwrap().code(), text, messages)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A test of 300 ms in each direction into a run folder.
fn measure(out: &Path, more: &[&str]) -> serde_json::Value {
    let listening = Listening::start();
    let out = out.to_str().unwrap();
    let mut command = vec!["net", "send", &listening.target, "--token", &listening.token];
    command.extend(["--duration", "300ms", "--interval", "100ms", "--round-trips", "20"]);
    command.extend(["--format", "json", "--out", out]);
    command.extend(more);
    let text = answer(command);
    let (code, served, messages) = listening.end();
    assert_eq!((code, messages.as_str()), (Some(0), ""), "{served}");
    assert!(served.contains("served one test of 127.0.0.1"), "{served}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_run_of_the_network_is_reported_and_put_next_to_smb() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("net");
    let net = measure(&run, &["--streams", "2"]);
    let tests = net["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 2);
    assert!(tests.iter().all(|test| test["bytes"].as_u64() > Some(0) && test["streams"] == 2));
    assert_eq!(net["round_trips"].as_array().unwrap().len(), 9);
    assert_eq!(net["ratios"], serde_json::json!([]));

    let run = run.to_str().unwrap();
    let text = answer(["report", run]);
    assert!(text.contains("Without SMB: "), "{text}");
    assert!(text.contains("THE NETWORK WITHOUT SMB") && text.contains("127.0.0.1"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&answer(["report", run, "--format", "json"])).unwrap();
    assert_eq!(json["net"]["tests"], net["tests"]);

    let capture = fixture("smb302.pcap");
    let json = answer(["compare", &capture, run, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ratios = json["ratios"].as_array().unwrap();
    assert!(!ratios.is_empty(), "{json}");
    // Loopback carries more than a capture of 121 operations.
    assert!(ratios.iter().all(|row| row["limit"] == "smb"), "{json}");
    let text = answer(["compare", &capture, run]);
    assert!(text.contains("SMB is the limit, not the network"), "{text}");
    let text = answer(["report", &capture, run, "--all"]);
    assert!(text.contains("SMB and the network"), "{text}");
}

#[cfg(feature = "sql")]
#[test]
fn intervals_are_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("net");
    let net = measure(&run, &["--direction", "send"]);
    let sql = "select cast(sum(bytes) as bigint) as bytes, count(*) as n from net_intervals";
    let text = answer(["query", run.to_str().unwrap(), sql, "--format", "json"]);
    let row: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(row["bytes"], net["tests"][0]["bytes"]);
    assert!(row["n"].as_u64() >= Some(3), "{row}");
}

#[test]
fn a_test_is_like_a_recording() {
    let listening = Listening::start();
    let capture = fixture("smb302.pcap");
    let (target, token) = (listening.target.clone(), listening.token.clone());
    let arguments =
        ["net", "send", &target, "--token", &token, "--like", &capture, "--bytes", "1MB"];
    let more = ["--round-trips", "0", "--pace", "none", "--format", "json"];
    let output = smbscope(arguments.into_iter().chain(more)).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("like ") && said.contains("1 streams, writes of "), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["tests"][0]["bytes"], 1_000_000);
    assert_eq!(listening.end().0, Some(0));
}

#[test]
fn a_wrong_token_and_wrong_options_are_named() {
    let listening = Listening::start();
    let target = listening.target.clone();
    let wrong = "aaaaaaaaaaaaaaaaaaaaaaaa";
    let said = complaint(1, ["net", "send", &target, "--token", wrong]);
    assert!(said.contains("the token was refused"), "{said}");
    assert!(!said.contains(&listening.token), "{said}");
    let said = complaint(2, ["net", "send", &target, "--token", "x"]);
    assert!(said.contains("is not a token"), "{said}");
    let said = complaint(2, ["net", "send", &target]);
    assert!(said.contains("--token"), "{said}");
    let good = ["net", "send", &target, "--token", &listening.token];
    for (option, value) in
        [("--interval", "1ms"), ("--streams", "0"), ("--duration", "5"), ("--pace", "10mbps")]
    {
        let said = complaint(2, good.iter().copied().chain([option, value]));
        assert!(said.contains(option), "{option}: {said}");
    }
    let said = complaint(2, ["net", "listen", "0.0.0.0"]);
    assert!(said.contains("listens on one address"), "{said}");
    let said = complaint(2, ["net", "send", "--against", "http://x"]);
    assert!(said.contains("iperf3://HOST"), "{said}");
    // After all that, the listener still serves its one test, and counts.
    let more = ["--bytes", "1kB", "--round-trips", "0", "--direction", "send"];
    answer(good.iter().copied().chain(more));
    let (code, _, messages) = listening.end();
    assert_eq!(code, Some(0));
    assert!(messages.contains("1 connections with a wrong token were refused"), "{messages}");
}
