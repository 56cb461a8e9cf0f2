//! CPU traces: `report` and `import` take them, commands about operations say what to do.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use serde_json::Value;
use smbscope_testing::etl::Builder;
use smbscope_testing::flooded_server::{Recording, Stage};

use super::{answer, capture, complaint, folder, smbscope, stdout};

/// A trace in tests/traces; record.py there made it.
fn trace(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name);
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// The totals of that trace by the script that recorded it.
fn truth(name: &str) -> serde_json::Value {
    let truth = std::fs::read_to_string(trace("truth.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
    truth[name].clone()
}

#[test]
fn a_report_of_a_trace_has_its_totals_in_each_form() {
    let binary = ["loopback.perf.data", "loopback.v6.dat", "loopback.v7.dat", "loopback.ctf"];
    for name in ["loopback.ftrace.txt", "loopback.perf.txt"].into_iter().chain(binary) {
        let input = trace(name);
        let text = answer(["report", &input]);
        assert!(text.contains("No CPU spends more than"), "{text}");
        // What takes the most time comes first.
        assert!(["NET_RX", "local_timer"].iter().any(|name| text.contains(name)), "{text}");
        assert!(text.lines().count() <= 60, "{text}");
        let json = answer(["report", &input, "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let truth = truth(name);
        let mut compared = 0;
        for group in json["interrupts"].as_array().unwrap() {
            let Some(truth) = truth["by_name"].get(group["name"].as_str().unwrap()) else {
                assert_eq!(group["kind"], "napi_poll");
                assert_eq!((&group["count"], &group["work"]), (&truth["polls"], &truth["work"]));
                continue;
            };
            let duration = &group["duration"];
            let found = [&group["count"], &duration["sum_ns"], &duration["max_ns"]];
            assert_eq!(found.map(Clone::clone), truth.as_array().unwrap()[..], "{group}");
            compared += 1;
        }
        assert_eq!(compared, truth["by_name"].as_object().unwrap().len());
    }
}

#[test]
fn a_folder_above_one_trace_is_that_trace() {
    let (_guard, dir) = folder();
    let inner = dir.join("session/kernel");
    std::fs::create_dir_all(&inner).unwrap();
    for file in std::fs::read_dir(trace("loopback.ctf")).unwrap().flatten() {
        std::fs::copy(file.path(), inner.join(file.file_name())).unwrap();
    }
    let above = dir.join("session").display().to_string();
    assert!(answer(["report", &above]).contains("No CPU spends more than"));
    // Two traces are two inputs.
    let other = dir.join("session/other");
    std::fs::create_dir(&other).unwrap();
    for file in std::fs::read_dir(&inner).unwrap().flatten() {
        std::fs::copy(file.path(), other.join(file.file_name())).unwrap();
    }
    assert!(answer(["report", &above]).contains("195 ms of 2 CPUs"));
}

#[test]
fn a_dataset_of_a_trace_gives_the_same_report() {
    let input = trace("loopback.ftrace.txt");
    let (_guard, dir) = folder();
    let out = dir.join("out");
    answer(["import", &input, "--out", out.to_str().unwrap()]);
    let report = |input: &str| -> serde_json::Value {
        let text = answer(["report", input, "--format", "json"]);
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["inputs"] = serde_json::Value::Null;
        json
    };
    assert_eq!(report(&input), report(out.to_str().unwrap()));
    let page = dir.join("page.html");
    let said = answer(["report", &input, "--html", page.to_str().unwrap()]);
    assert_eq!(said, "");
    assert!(std::fs::read_to_string(page).unwrap().contains("NET_RX"));
}

/// Compressed or not, whatever comes first.
#[test]
fn a_trace_on_standard_input_gives_the_same_report() {
    let report = |input: &str, bytes: &[u8]| -> serde_json::Value {
        let assert = smbscope(["report", input, "--format", "json"]).write_stdin(bytes).assert();
        let assert = assert.success();
        let mut json: serde_json::Value = serde_json::from_str(&stdout(&assert)).unwrap();
        json["inputs"] = serde_json::Value::Null;
        json["traces"][0]["recording"] = serde_json::Value::Null;
        json
    };
    let (_guard, dir) = folder();
    // One of its blocks is longer than what a trace is recognised by.
    let long = dir.join("flood.etl");
    let mut out = BufWriter::new(File::create(&long).unwrap());
    Recording::from_stage(Stage::WithoutBoth).write(&mut out).unwrap();
    drop(out);
    let short = ["loopback.ftrace.txt", "loopback.perf.data", "loopback.v7.dat"].map(trace);
    for input in short.into_iter().chain([long.to_str().unwrap().to_owned()]) {
        let name = &input;
        let bytes = std::fs::read(&input).unwrap();
        let expected = report(&input, &[]);
        assert_eq!(report("-", &bytes), expected, "{name}");
        let packed = std::process::Command::new("gzip").args(["-c", &input]).output().unwrap();
        assert_eq!(report("-", &packed.stdout), expected, "{name}");
        let packed = std::process::Command::new("zstd").args(["-qc", &input]).output();
        if let Ok(packed) = packed {
            assert_eq!(report("-", &packed.stdout), expected, "{name}");
        }
    }
}

/// What typeperf writes, alone and next to a capture.
#[test]
fn a_counter_log_of_windows_gives_counters() {
    let (_guard, dir) = folder();
    let log = dir.join("counters.csv");
    let text = "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\FS1\\Processor(_Total)\\% DPC Time\",\"\\\\FS1\\RDMA Activity(NIC 1)\\RDMA Inbound Bytes/sec\",\"\\\\FS1\\SMB Server\\Read Bytes/sec\"\r\n\
        \"11/27/2026 04:00:01.000\",\"12.5\",\"1000000\",\" \"\r\n\"11/27/2026 04:00:02.000\",\"37.5\",\"3000000\",\"7\"\r\n";
    std::fs::write(&log, text).unwrap();
    let log = log.to_str().unwrap();
    let question =
        "select name, instance, avg(value) as mean from counters group by 1, 2 order by 1";
    let rows = answer(["query", log, question, "--format", "csv"]);
    let expected = "name,instance,mean\ncpu_softirq_percent,,25.0\nrdma_receive_bytes_per_second,NIC 1,2000000.0\nwindows_smb_server_read_bytes_per_second,,7.0\n";
    assert_eq!(rows.replace("\r\n", "\n"), expected);
    let report = answer(["report", log, "--all"]);
    assert!(report.contains("The input holds samples of 3 counters."), "{report}");
    assert!(report.contains("Windows counter log"), "{report}");
    let both = answer(["report", log, &capture(), "--all"]);
    assert!(both.contains("Windows counter log") && both.contains("Create"), "{both}");
}

#[test]
fn a_trace_beside_operations_has_a_report_of_its_own() {
    let inputs = [&capture(), &trace("loopback.ftrace.txt")];
    let report = |options: &[&str]| {
        let arguments = ["report"].iter().chain(options).copied();
        answer(arguments.chain(inputs.iter().map(|input| input.as_str())))
    };
    assert!(report(&[]).contains("`smbscope report INPUT --cpu` shows it"));
    let alone = answer(["report", inputs[1], "--format", "json"]);
    let beside = report(&["--cpu", "--format", "json"]);
    let cpus = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap()["cpus"].take();
    assert_eq!(cpus(&beside), cpus(&alone));
}

#[test]
fn commands_about_operations_say_what_a_trace_is() {
    let input = trace("loopback.ftrace.txt");
    let said = complaint(2, ["ops", &input]);
    assert!(said.contains("no SMB operations") && said.contains("report"), "{said}");
    let said = complaint(2, ["compare", &capture(), &input]);
    assert!(said.contains("--cpu compares the CPUs of all"), "{said}");
    let said = complaint(2, ["report", "--processors", &capture()]);
    assert!(said.contains("the inputs have no CPU trace"), "{said}");
    let said = complaint(2, ["compare", &capture(), &capture(), &capture()]);
    assert!(said.contains("only if they are CPU traces"), "{said}");
    let said = complaint(2, ["explain", &input, "--why", "8"]);
    assert!(said.contains("--why does not apply"), "{said}");
    for command in ["report", "explain"] {
        let said = complaint(2, [command, &input, "--client", "10.0.0.1"]);
        assert!(said.contains("only --from and --to"), "{said}");
    }
    let said = complaint(9, ["report", &input, "--from", "1h"]);
    assert!(said.contains("nothing in this period"), "{said}");
    let said = complaint(2, ["report", &input, "--limit", "fast"]);
    assert!(said.contains("expected a duration such as 200us"), "{said}");
}

#[test]
fn a_trace_is_exported_with_a_track_for_each_processor() {
    let (_guard, dir) = folder();
    let out = dir.join("trace.pftrace");
    answer(["export", "--perfetto", &trace("flood.etl"), "--out", out.to_str().unwrap()]);
    let exported = std::fs::read(out).unwrap();
    let has = |words: &str| exported.windows(words.len()).any(|part| part == words.as_bytes());
    for words in ["CPU 0 deferred work", "CPU 0 interrupts", "ndis.sys", "exclusive_ns"] {
        assert!(has(words), "{words}");
    }
}

/// The interrupts of a name.
fn group<'a>(report: &'a Value, name: &str) -> &'a Value {
    let groups = report["interrupts"].as_array().unwrap();
    groups.iter().find(|group| group["name"] == name).unwrap()
}

/// The flooded backup server: the figures of the case study, and its causes one after the other.
#[test]
fn the_flooded_backup_server_is_told_as_the_case_study_did() {
    let (_guard, dir) = folder();
    let files = Stage::ALL.map(|stage| {
        let path = dir.join(stage.file_name());
        let mut out = BufWriter::new(File::create(&path).unwrap());
        Recording::from_stage(stage).write(&mut out).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let [before, without_team, after] = &files;
    let causes = |input: &str| -> Vec<String> {
        let json: Value =
            serde_json::from_str(&answer(["explain", input, "--format", "json"])).unwrap();
        let findings = json["findings"].as_array().unwrap();
        findings.iter().map(|found| found["trouble"].as_str().unwrap().to_owned()).collect()
    };
    for (stage, file) in Stage::ALL.into_iter().zip(&files) {
        let json: Value =
            serde_json::from_str(&answer(["report", file, "--format", "json"])).unwrap();
        let (count, ticks) = stage.ndis();
        let ndis = group(&json, "ndis.sys");
        assert_eq!((&ndis["count"], &ndis["exclusive_ns"]), (&count.into(), &(ticks * 100).into()));
        let cpus = ndis["cpus"].as_array().unwrap();
        let mut cpus: Vec<_> = cpus.iter().map(|one| one["cpu"].as_u64().unwrap()).collect();
        cpus.sort_unstable();
        assert_eq!(cpus, [0, 2, 4, 6]);
        let storage = group(&json, "storport.sys");
        assert_eq!(
            (&storage["count"], &storage["exclusive_ns"]),
            (&123_000.into(), &1_000_000_000.into())
        );
        assert_eq!((&json["traces"][0]["damaged"], &json["discarded"]), (&0.into(), &0.into()));
    }
    let first = "locked-processors";
    let (team, filter) = ("team-in-receive-path", "filter-in-receive-path");
    let few = "receive-on-few-processors";
    assert_eq!(causes(before), [first, few, filter, team, "long-runs"]);
    assert_eq!(causes(without_team), [first, few, filter, "long-runs"]);
    assert_eq!(causes(after), [few, "long-runs"]);
    let text = answer(["report", before]);
    assert!(text.lines().count() <= 60);
    let text = text.replace('\n', " ");
    assert!(text.contains("CPUs 0, 2, 4, 6 spend 92.3 %"), "{text}");
    assert!(text.contains("pktinspect.sys is between the network adapter and TCP"), "{text}");
    let said = complaint(7, ["explain", before, "--fail-on", "high"]);
    assert!(said.contains("Interrupt work holds CPUs"), "{said}");

    let text = answer(["compare", before, without_team, after]).replace('\n', " ");
    for words in [
        "take 1.25 CPUs in C instead of 3.79 CPUs in A",
        "ndis.sys (dpc): −2.54 CPUs (−69 %), 127,000 runs instead of 163,230",
        "a run takes 89.8 µs instead of 225 µs",
        "92 → 94 → 29",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let page = dir.join("change.html");
    answer(["compare", before, after, "--html", page.to_str().unwrap()]);
    assert!(std::fs::read_to_string(page).unwrap().contains("Durations of ndis.sys (dpc)"));

    // A fifth of the time has a fifth of the work, and the limit moves what is above it.
    let part = answer([
        "report", before, "--format", "json", "--from", "2s", "--to", "4s", "--limit", "500us",
    ]);
    let part: Value = serde_json::from_str(&part).unwrap();
    let ndis = group(&part, "ndis.sys");
    let share = ndis["exclusive_ns"].as_f64().unwrap() / 36.8e9;
    assert!((0.19..0.21).contains(&share), "{share}");
    assert_eq!(
        (&part["length_ns"], &ndis["limit_ns"]),
        (&2_000_000_000_u64.into(), &500_000.into())
    );
    assert!(ndis["over_limit"].as_u64().unwrap() < ndis["count"].as_u64().unwrap() / 10);
    assert!(part["period"].as_str().unwrap().starts_with("from "), "{}", part["period"]);
}

/// A trace of two CPUs, the first of which is held from `from` for a second, in a log that begins at `start`.
fn held(start: i64, from: i64) -> Vec<u8> {
    // Units of 100 ns since 1601.
    let start_filetime = 116_444_736_000_000_000 + start / 100;
    let mut builder =
        Builder { cpus: 2, buffer_bytes: 65_536, start_filetime, ..Builder::default() };
    let ticks = |ns: i64| builder.start_ticks + (ns - start) / 100;
    let mut buffer = builder.buffer(0);
    for run in 0..1_000 {
        let begin = ticks(from) + run * 10_000;
        buffer.run(68, begin, begin + 9_000, 0xffff_f800_0000_1000, &[]);
    }
    let last = ticks(from + 10_000_000_000);
    buffer.run(68, last - 10, last, 0xffff_f800_0000_1000, &[]);
    builder.add(buffer);
    builder.build()
}

#[test]
fn operations_of_the_time_of_a_trace_are_said_to_have_waited() {
    let (_guard, dir) = folder();
    let times = answer(["ops", &capture(), "--columns", "request_start", "--format", "csv"]);
    let first: i64 = times.lines().nth(1).unwrap().parse().unwrap();
    let explain = |start: i64, from: i64| {
        let path = dir.join(format!("{start}.etl"));
        std::fs::write(&path, held(start, from)).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let json = answer(["explain", &capture(), &path, "--format", "json"]);
        let text = answer(["explain", &capture(), &path]);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (serde_json::from_str::<Value>(&json).unwrap()["processors"].clone(), text)
    };
    let (beside, text) = explain(first - 1_000_000_000, first - 500_000_000);
    let waiting = &beside["waiting"];
    assert!(waiting["waited"].as_u64().unwrap() > 0, "{beside}");
    let commands = waiting["commands"].as_array().unwrap();
    let sum = commands.iter().map(|one| one["waited_ns"].as_i64().unwrap()).sum::<i64>();
    assert_eq!(waiting["waited_ns"].as_i64(), Some(sum));
    assert!(text.contains("CPUs at the same time"), "{text}");
    assert!(text.contains("operations were in flight meanwhile"), "{text}");
    // A trace of another day.
    let (beside, text) = explain(first - 86_400_000_000_000, first - 86_400_000_000_000);
    assert!(beside["waiting"].is_null());
    assert!(text.contains("have no time in common"), "{text}");
    // Without a trace nothing is said.
    assert!(!answer(["explain", &capture()]).contains("CPUs at the same time"));
}

/// PDB files that a report of `flood.etl` says are missing.
fn missing(arguments: &[&str]) -> Vec<String> {
    let text = answer([&["report", "--format", "json"], arguments].concat());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let files = json["symbols_missing"].as_array().unwrap().iter();
    files.map(|one| one["file"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_report_says_which_pdb_files_are_missing_and_takes_them() {
    let (input, store) = (trace("flood.etl"), trace("symbols"));
    let file = |name: &str| format!("{name}/030201000504070608090A0B0C0D0E0F2/{name}");
    let [ndis, kernel, nic] = ["ndis.pdb", "ntkrnlmp.pdb", "nic.pdb"].map(file);
    let without = missing(&[&input]);
    assert_eq!(without[0], ndis, "most of the time first");
    assert!(without.contains(&kernel) && without.contains(&nic) && without.len() == 3);
    let named = missing(&[&input, "--symbols", &store]);
    assert_eq!(named, std::slice::from_ref(&kernel));
    let text = answer(["report", &input, "--symbols", &store]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("PDB files (--symbols DIR): {kernel}.")), "{text}");
    // A dataset keeps the names.
    let (_guard, dir) = folder();
    let out = dir.join("out").to_str().unwrap().to_owned();
    answer(["import", &input, "--symbols", &store, "--out", &out]);
    assert_eq!(missing(&[&out]), [kernel]);
}

#[test]
fn symbols_that_are_none_are_refused() {
    let input = trace("flood.etl");
    let said = complaint(4, ["report", &input, "--symbols", "/nonexistent/folder"]);
    assert!(said.contains("/nonexistent/folder"), "{said}");
    let said = complaint(3, ["report", &input, "--symbols", &input]);
    assert!(said.contains("neither a folder with PDB or ELF files"), "{said}");
}

#[test]
fn sums_of_xperf_are_reported_as_sums() {
    let input = trace("dpcisr.txt");
    let text = answer(["report", &input]);
    for words in [
        "CPU 0 spends 60.2 % of its time in interrupts and deferred work.",
        "Most time takes ndis.sys (dpc): 1.20 s in 5,000 runs, 240 µs on average, on CPU 0.",
        "sums, not single runs",
        "99.0 %",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let json = |input: &str| -> serde_json::Value {
        let text = answer(["report", input, "--format", "json"]);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["totals"].clone()
    };
    let totals = json(&input);
    let module = &totals["modules"][0];
    assert_eq!((&module["over_limit_least"], &module["count"]), (&5_000.into(), &5_000.into()));
    assert_eq!(module["longest_above_ns"], 2_048_000);
    let (_guard, dir) = folder();
    let out = dir.join("out").to_str().unwrap().to_owned();
    answer(["import", &input, "--out", &out]);
    assert_eq!(json(&out), totals);
    // Single runs are not invented.
    let text = answer(["report", &input, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["interrupts"], serde_json::json!([]));
}
