//! `smbscope record --cpu` and `top --cpu`: CPUs of this machine, alone and with operations. Needs
//! root and a kernel with BTF, and a build with the probe.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::users::Users;
use super::{answer, complaint, folder, objects, smbscope};

/// Runs the program; `None` where CPUs cannot be recorded.
fn try_answer(arguments: &[&str]) -> Option<(String, String)> {
    let output = smbscope(arguments).output().unwrap();
    let [said, error] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    if output.status.success() {
        return Some((said, error));
    }
    let is_impossible = ["built without", "by root only", "CONFIG_DEBUG_INFO_BTF", "tracefs"]
        .iter()
        .any(|why| error.contains(why));
    assert!(is_impossible, "{error}");
    smbscope_testing::skip!("{error}");
    None
}

/// Work in the kernel: samples of CPUs that run programs only have no stacks of it.
struct BusyKernel(Child);

impl BusyKernel {
    fn start() -> BusyKernel {
        let mut copy = Command::new("dd");
        copy.args(["if=/dev/zero", "of=/dev/null", "bs=1M"]).stderr(Stdio::null());
        BusyKernel(copy.spawn().unwrap())
    }
}

impl Drop for BusyKernel {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Rows of tables in a run folder.
fn rows(folder: &str) -> impl Fn(&str) -> u64 {
    let manifest = std::fs::read(Path::new(folder).join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["complete"], true);
    move |table| {
        let parts = manifest["tables"][table].as_array().unwrap().iter();
        parts.map(|part| part["rows"].as_u64().unwrap()).sum()
    }
}

#[test]
fn processors_are_recorded_alone() {
    let (_guard, dir) = folder();
    let out = dir.join("cpu");
    let out = out.to_str().unwrap();
    let record = ["record", "--cpu", "--no-probe", "--switches", "--duration", "1s", "--out", out];
    let kernel = BusyKernel::start();
    let Some((_, said)) = try_answer(&record) else { return };
    drop(kernel);
    assert!(said.contains("smbscope runs on ") && said.contains("recording CPUs to "), "{said}");
    let rows = rows(out);
    for table in ["interrupts", "samples", "stacks", "switches"] {
        assert!(rows(table) > 0, "{table}");
    }
    assert_eq!((rows("operations"), rows("traces")), (0, 1));
    let report = answer(["report", out, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let cpus = report["processors"].as_array().unwrap();
    assert!(cpus.len() as u64 == rows("cpus") && !cpus.is_empty());
    let length = report["length_ns"].as_u64().unwrap();
    assert!((900_000_000..10_000_000_000).contains(&length), "{length}");
    let trace = &report["traces"][0];
    assert!(trace["events_lost"].is_u64(), "{trace}");
    assert!(trace["notes"].as_str().unwrap().contains(" % of a CPU"), "{trace}");
    let text = answer(["report", out, "--all"]);
    assert!(text.contains("smbscope record --cpu"), "{text}");
}

/// Where eBPF is not to be had. The instance of tracefs is gone afterwards, although the program gave up its rights.
#[test]
fn processors_are_recorded_by_tracefs() {
    let (_guard, dir) = folder();
    let out = dir.join("cpu");
    let out = out.to_str().unwrap();
    let record = ["record", "--cpu", "--no-probe", "--tracer", "tracefs", "--duration", "1s"];
    let record = [&record[..], &["--switches", "--out", out]].concat();
    let kernel = BusyKernel::start();
    let Some((_, said)) = try_answer(&record) else { return };
    drop(kernel);
    assert!(!said.contains("by tracefs:"), "it was chosen: {said}");
    let rows = rows(out);
    for table in ["interrupts", "switches", "cpus", "samples", "stacks"] {
        assert!(rows(table) > 0, "{table}");
    }
    assert_eq!(rows("traces"), 1);
    let report = answer(["report", out, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let notes = report["traces"][0]["notes"].as_str().unwrap();
    assert!(notes.contains("; by tracefs"), "{notes}");
    let left = std::fs::read_dir("/sys/kernel/tracing/instances").unwrap().flatten();
    let is_gone = |name: &str| {
        let process = name.strip_prefix("smbscope-").unwrap_or_default();
        process.is_empty() || Path::new("/proc").join(process).exists()
    };
    let names: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| is_gone(name)), "{names:?}");
}

#[test]
fn processors_are_recorded_with_an_interface() {
    let Some(users) = Users::up() else { return };
    users.prepare();
    let (recorded, run) = (users.path("recorded"), users.path("run"));
    let wire = ["--interface", "lo", "--no-probe", "--port", &users.port];
    let child = Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
        .args(["record", "--cpu", "--quiet", "--out", &recorded])
        .args(wire)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    answer(users.busy("3s", &run));
    let id = child.id().to_string();
    // Where it cannot record it has ended.
    let _ = Command::new("kill").args(["-INT", &id]).status();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if !output.status.success() {
        return smbscope_testing::skip!("{said}");
    }
    let rows = rows(&recorded);
    for table in ["operations", "coverage", "interrupts", "traces"] {
        assert!(rows(table) > 0, "{table}");
    }
    let report = answer(["report", &recorded]);
    assert!(report.contains("operations"), "{report}");
}

#[test]
fn processors_are_shown_live() {
    let top = ["top", "--cpu", "--batch", "--count", "2", "--interval", "300ms"];
    let Some((text, _)) = try_answer(&top) else { return };
    assert_eq!(text.matches("Softirq").count(), 2, "{text}");
    let (json, _) = try_answer(&[&top[..], &["--format", "json"]].concat()).unwrap();
    let intervals = objects(&json);
    assert_eq!(intervals.len(), 2);
    assert!(!intervals[1]["cpus"].as_array().unwrap().is_empty(), "{json}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let said = complaint(2, ["record", "--no-probe", "--out", "x"]);
    assert!(said.contains("--interface or --cpu"), "{said}");
    complaint(2, ["record", "--samples", "10", "--out", "x"]);
    complaint(2, ["record", "--cpu", "--priority", "high", "--out", "x"]);
    complaint(2, ["top", "--cpu", "--by", "user"]);
    complaint(2, ["top", "--no-probe"]);
}

#[test]
fn a_script_for_windows_is_printed() {
    let script = ["record", "--print-windows-script", "--node", "1", "--duration", "20s"];
    let text = answer([&script[..], &["--to", r"S:\temp"]].concat());
    for part in
        [r#"set "TO=S:\temp""#, "/NODE %NODE%", "xperf -on PROC_THREAD+LOADER+INTERRUPT+DPC"]
    {
        assert!(text.contains(part), "{part}");
    }
    let smb =
        answer([&script[..], &["--what", "smb", "--wait-dpc", "80", "--to", r"S:\temp"]].concat());
    for part in [
        r#"set "NODE=1""#,
        "PercentDPCTime -ge %LIMIT%",
        "pktmon start --capture",
        "%RUN% typeperf",
    ] {
        assert!(smb.contains(part), "{part}");
    }
    let said = complaint(2, ["record", "--print-windows-script"]);
    assert!(said.contains("--to") && !said.contains("--out"), "{said}");
    let said = complaint(2, [&script[..], &["--to", r"S:\a & del"]].concat());
    assert!(said.contains(r"for example S:\temp"), "{said}");
    complaint(2, ["record", "--node", "1", "--out", "x"]);
}
