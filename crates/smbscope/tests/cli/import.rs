//! `smbscope import`: its output, and that queries of a dataset equal those of its capture.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{OPERATIONS, answer, capture, complaint, folder, smbscope};

#[test]
fn a_dataset_answers_like_its_capture() {
    let (_guard, dir) = folder();
    let (capture, dataset) = (capture(), dir.join("dataset"));
    let out = dataset.to_str().unwrap();
    let assert = smbscope(["import", &capture, "--out", out]).assert().success();
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(said.contains("121 operations") && said.contains("duckdb"), "{said}");
    assert!(assert.get_output().stdout.is_empty());
    let compared = [
        "select * from operations order by operation",
        "select * from connections",
        "select * from handles order by handle",
        "select * from coverage",
    ];
    for &sql in compared.iter().filter(|_| cfg!(feature = "sql")) {
        let of = |input| answer(["query", input, sql, "--format", "json"]);
        assert_eq!(of(out), of(&capture), "{sql}");
    }
    assert_eq!(answer(["ops", out]), answer(["ops", &capture]));
    // An existing dataset is kept unless --force is given.
    complaint(5, ["import", &capture, "--out", out]);
    answer(["import", &capture, "--out", out, "--force", "--quiet"]);
    assert_eq!(answer(["ops", out]).lines().count() as u64, OPERATIONS);
    // A folder with something else is never replaced.
    std::fs::write(dir.join("notes"), "mine").unwrap();
    complaint(5, ["import", &capture, "--out", dir.to_str().unwrap(), "--force"]);
}

#[test]
fn an_anonymous_dataset_holds_no_names() {
    let (_guard, dir) = folder();
    let dataset = dir.join("dataset");
    answer(["import", &capture(), "--out", dataset.to_str().unwrap(), "--anonymize"]);
    let manifest = std::fs::read_to_string(dataset.join("manifest.json")).unwrap();
    assert!(!manifest.contains("smb302"), "{manifest}");
    let text = answer(["ops", dataset.to_str().unwrap(), "--format", "json"]);
    for name in ["127.0.0.1", "alice", "one.txt", "smb302"] {
        assert!(!text.contains(name), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_import_leaves_a_valid_dataset() {
    let (_guard, dir) = folder();
    let dataset = dir.join("dataset");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
        .args(["import", "-", "--out", dataset.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = std::fs::read(capture()).unwrap();
    stdin.write_all(&bytes[..bytes.len() / 2]).unwrap();
    stdin.flush().unwrap();
    let begin = Instant::now();
    while !dataset.join("manifest.json").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the import did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    // The signal is noticed when the read returns.
    std::thread::sleep(Duration::from_millis(100));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted after") && said.contains("is valid"), "{said}");
    answer(["ops", dataset.to_str().unwrap()]);
}

#[cfg(unix)]
#[test]
fn a_killed_import_leaves_a_valid_dataset() {
    let (_guard, dir) = folder();
    let dataset = dir.join("dataset");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
        .args(["import", "-", "--out", dataset.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = std::fs::read(capture()).unwrap();
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    stdin.write_all(first).unwrap();
    // Parts are completed every ten seconds, as long as data arrives.
    let part = dataset.join("operations/part-000000.parquet");
    for piece in rest.chunks(rest.len() / 60) {
        if part.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
        stdin.write_all(piece).unwrap();
    }
    assert!(part.exists(), "no part was completed in half a minute");
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = answer(["ops", dataset.to_str().unwrap()]).lines().count() as u64;
    assert!(0 < kept && kept < OPERATIONS, "{kept} of {OPERATIONS} operations");
    let report = answer(["report", dataset.to_str().unwrap()]);
    assert!(report.contains("Create"), "{report}");
}
