//! The options that ask about a part of a recording, in every command that has them.

use super::{OPERATIONS, answer, capture, complaint, folder, objects, smbscope};

/// Lines of `smbscope ops` with these options.
fn lines(options: &[&str]) -> Vec<String> {
    let mut arguments = vec!["ops".to_owned(), capture()];
    arguments.extend(options.iter().map(ToString::to_string));
    answer(arguments).lines().map(str::to_owned).collect()
}

#[test]
fn each_option_leaves_the_operations_that_it_names() {
    let all = lines(&[]);
    assert_eq!(all.len() as u64, OPERATIONS);
    assert_eq!(lines(&["--command", "create"]).len(), 35);
    assert_eq!(lines(&["--command", "Create,Close"]).len(), 70, "alternatives");
    assert_eq!(lines(&["--command", "create", "--command", "close"]).len(), 70);
    assert_eq!(lines(&["--command", "open"]).len(), 35, "a class of commands");
    assert_eq!(lines(&["--command", "session"]).len(), 9);
    let client = all[0].split_whitespace().nth(1).unwrap();
    assert_eq!(lines(&["--client", client]).len() as u64, OPERATIONS);
    assert_eq!(lines(&["--client", "0.0.0.0/0,::/0"]).len() as u64, OPERATIONS);
    let text = answer([
        "ops",
        &capture(),
        "--columns",
        "command,share,path,user,elapsed_ns",
        "--format",
        "json",
    ]);
    let rows = objects(&text);
    let mut took: Vec<_> = rows.iter().filter_map(|row| row["elapsed_ns"].as_i64()).collect();
    took.sort_unstable();
    let least = took[took.len() / 2];
    let slower = took.iter().filter(|ns| **ns >= least).count();
    assert_eq!(lines(&["--slower", &format!("{least}ns")]).len(), slower);
    assert!(slower > 0 && slower < took.len());
    let count = |column: &str, meets: &dyn Fn(&str) -> bool| {
        rows.iter().filter(|row| row[column].as_str().is_some_and(meets)).count()
    };
    let share = rows.iter().find_map(|row| row["share"].as_str()).unwrap();
    let name = share.rsplit('\\').next().unwrap().to_uppercase();
    let same = |other: &str| other.eq_ignore_ascii_case(share);
    assert_eq!(lines(&["--share", &name]).len(), count("share", &same));
    assert_eq!(lines(&["--share", share]).len(), count("share", &same));
    let creates = rows.iter().filter(|row| row["command"] == "Create");
    let path = creates.filter_map(|row| row["path"].as_str()).find(|path| !path.is_empty());
    let path = path.unwrap();
    let slashed = format!("/{}", path.replace('\\', "/"));
    let same = |other: &str| other.eq_ignore_ascii_case(path);
    assert_eq!(lines(&["--path", &slashed]).len(), count("path", &same), "{path}");
    let user = rows.iter().find_map(|row| row["user"].as_str()).unwrap().to_owned();
    let same = |other: &str| other.eq_ignore_ascii_case(&user);
    assert_eq!(lines(&["--user", &user.to_lowercase()]).len(), count("user", &same));
    let both = lines(&["--command", "create", "--path", &slashed]);
    assert!(both.len() < count("path", &|other: &str| other.eq_ignore_ascii_case(path)));
}

#[test]
fn a_period_is_given_by_time_by_offset_and_from_the_end() {
    let text =
        answer(["ops", &capture(), "--columns", "request_start,response_end", "--format", "json"]);
    let rows = objects(&text);
    let starts: Vec<i64> = rows.iter().filter_map(|row| row["request_start"].as_i64()).collect();
    let report = answer(["report", &capture(), "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let (start, end) = (report["start_ns"].as_i64().unwrap(), report["end_ns"].as_i64().unwrap());
    let half = (end - start) / 2;
    let offset = format!("{}us", half / 1000);
    let late = lines(&["--from", &offset]).len();
    let early = lines(&["--to", &offset]).len();
    assert_eq!((late + early) as u64, OPERATIONS);
    let expected = starts.iter().filter(|time| **time >= start + half / 1000 * 1000).count();
    assert!(late >= expected && late < OPERATIONS as usize && late > 0, "{late} {expected}");
    let last = format!("last {}ns", end - start - half / 1000 * 1000);
    assert_eq!(lines(&["--from", &last]).len(), late);
    // Standard input can be read only once, so it is copied.
    let bytes = std::fs::read(capture()).unwrap();
    let piped = smbscope(["ops", "-", "--from", &offset]).write_stdin(bytes).assert().success();
    assert_eq!(super::stdout(&piped).lines().count(), late);
    let error = complaint(2, ["ops", &capture(), "--from", "noon"]);
    assert!(error.contains("14:05:30") && error.contains("last 5m"), "{error}");
    let error = complaint(2, ["ops", &capture(), "--from", "2s", "--to", "1s"]);
    assert!(error.contains("ends before it begins"), "{error}");
}

#[test]
fn a_clock_time_is_local_and_a_zone_can_be_given() {
    // The capture begins at that second (UTC).
    let first = lines(&["--utc"]).remove(0);
    let (date, clock) = first.trim().split_once('T').unwrap();
    let hour: u32 = clock[..2].parse().unwrap();
    let rest = &clock[2..8];
    let count = |from: &str, zone: &str| {
        let output =
            smbscope(["ops", &capture(), "--from", from]).env("TZ", zone).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().count() as u64
    };
    assert_eq!(count(&format!("{hour:02}{rest}"), "UTC"), OPERATIONS);
    assert_eq!(count(&format!("{:02}{rest}", (hour + 2) % 24), "EET-2"), OPERATIONS);
    assert_eq!(count(&format!("{date}T{clock}", clock = &clock[..8]), "UTC"), OPERATIONS);
    assert_eq!(count(&format!("{date}T{}Z", &clock[..8]), "EST+5"), OPERATIONS);
}

/// What `report`, `explain` and `ops` show in one zone can be typed back there, with and without --utc.
#[test]
fn times_that_are_shown_can_be_given() {
    let zone = "Europe/Berlin";
    let output = |arguments: &[&str]| {
        let output = smbscope(arguments).env("TZ", zone).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let capture = capture();
    for (more, mark) in [(&[][..], "+0"), (&["--utc"][..], "UTC")] {
        let shown = |command: &str| {
            let words = [command, &capture].into_iter().chain(more.iter().copied());
            output(&words.collect::<Vec<_>>())
        };
        let count = |from: &str| {
            let words = ["ops", &capture, "--from", from].into_iter().chain(more.iter().copied());
            output(&words.collect::<Vec<_>>()).lines().count() as u64
        };
        let first =
            shown("ops").lines().next().unwrap().split_whitespace().next().unwrap().to_owned();
        assert_eq!(first.ends_with('Z'), mark == "UTC", "{first}");
        assert_eq!(count(&first), OPERATIONS);
        // With its zone, without it, and without the date.
        let whole = &first[..19];
        assert_eq!((count(whole), count(&first[11..19])), (OPERATIONS, OPERATIONS));
        let report = shown("report");
        let header = report
            .lines()
            .find_map(|line| line.split(", for ").next().filter(|_| line.contains(", for ")));
        let header = header.unwrap().rsplit(" · ").next().unwrap();
        assert!(header.contains(mark), "{header}");
        assert_eq!(count(header), OPERATIONS);
        assert_eq!(&header[..19].replace(' ', "T"), whole);
    }
}

#[test]
fn a_report_says_what_was_left_out() {
    let options = ["--command", "read,write"];
    let arguments = |more: &[&str]| {
        let capture = capture();
        let words = ["report", &capture].into_iter().chain(options).chain(more.iter().copied());
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let text = answer(arguments(&[]));
    assert!(text.contains("only command read or write: 3 of 121 operations"), "{text}");
    let report: serde_json::Value =
        serde_json::from_str(&answer(arguments(&["--format", "json"]))).unwrap();
    assert_eq!(report["selection"]["filter"], "command read or write");
    assert_eq!(report["selection"]["operations"], 3);
    assert_eq!(report["selection"]["operations_all"], OPERATIONS);
    assert_eq!(report["totals"]["operations"], 3);
    let (_keep, dir) = folder();
    let page = dir.join("page.html");
    answer(arguments(&["--html", page.to_str().unwrap()]));
    assert!(std::fs::read_to_string(page).unwrap().contains("3 of 121 operations"));
    let whole: serde_json::Value =
        serde_json::from_str(&answer(["report", &capture(), "--format", "json"])).unwrap();
    assert!(whole["selection"].is_null());
}

/// A dataset whose manifest says that it was recorded with a filter.
fn recorded_with(filter: &str, dir: &std::path::Path) -> String {
    let dataset = dir.join("recorded");
    let path = dataset.to_str().unwrap().to_owned();
    answer(["import", &capture(), "--out", &path]);
    let manifest = dataset.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value["filter"].is_null(), "everything was imported");
    value["filter"] = filter.into();
    // As if one operation more had been seen.
    value["coverage"][0]["operations"] = (OPERATIONS + 1).into();
    std::fs::write(&manifest, value.to_string()).unwrap();
    path
}

#[test]
fn what_a_recording_left_out_is_said_by_every_answer() {
    let (_keep, dir) = folder();
    let recorded = recorded_with("user Bob", &dir);
    let kept = "only user Bob: 121 of 122 operations";
    let text = answer(["report", &recorded]);
    assert!(text.contains(&format!("The recording kept {kept}.")), "{text}");
    let text = answer(["explain", &recorded]);
    assert!(text.replace("\n", " ").contains(&format!("the recording kept {kept}")), "{text}");
    for command in ["report", "explain"] {
        let answer = answer([command, &recorded, "--format", "json"]);
        let value: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(value["recorded"]["filter"], "user Bob", "{command}");
        assert_eq!(value["recorded"]["operations"], OPERATIONS);
        assert_eq!(value["recorded"]["operations_all"], OPERATIONS + 1);
        assert!(value["selection"].is_null());
    }
    // A second filter is another sentence.
    let text = answer(["report", &recorded, "--command", "read"]);
    assert!(text.contains("only command read: ") && text.contains(kept), "{text}");
    // A copy has the same gap, and the name is replaced where names are.
    let (again, hidden) = (dir.join("again"), dir.join("hidden"));
    let (again, hidden) = (again.to_str().unwrap(), hidden.to_str().unwrap());
    answer(["import", &recorded, "--out", again]);
    assert!(answer(["report", again]).contains("only user Bob"));
    answer(["import", &recorded, "--out", hidden, "--anonymize"]);
    let manifest = std::fs::read_to_string(format!("{hidden}/manifest.json")).unwrap();
    assert!(manifest.contains("\"filter\": \"what a filter kept") && !manifest.contains("Bob"));
    let text = answer(["report", &recorded, "--anonymize"]);
    assert!(
        !text.contains("Bob") && text.contains("The recording kept only what a filter"),
        "{text}"
    );
    // Recordings without a filter say nothing.
    assert!(!answer(["report", &capture()]).contains("The recording kept"));
}

#[test]
fn a_capture_and_its_dataset_answer_alike() {
    let (_keep, dir) = folder();
    let dataset = dir.join("dataset").display().to_string();
    answer(["import", &capture(), "--out", &dataset]);
    for options in [["--command", "close"], ["--from", "1ms"], ["--path", "**"]] {
        let of = |input: &str| {
            let report = answer(["report", input, "--format", "json", options[0], options[1]]);
            let report: serde_json::Value = serde_json::from_str(&report).unwrap();
            ["totals", "commands", "handles", "trees", "sessions", "selection"]
                .map(|section| report[section].clone())
        };
        assert_eq!(of(&capture()), of(&dataset), "{options:?}");
    }
}

#[test]
fn explain_compare_predict_and_export_take_the_same_options() {
    let capture = capture();
    let text = answer(["explain", &capture, "--command", "create"]);
    assert!(text.contains("only command Create: 35 of 121 operations"), "{text}");
    let diagnosis: serde_json::Value = serde_json::from_str(&answer([
        "explain",
        &capture,
        "--command",
        "create",
        "--format",
        "json",
    ]))
    .unwrap();
    assert_eq!(diagnosis["selection"]["operations"], 35);
    assert_eq!(diagnosis["whole"]["operations"], 35);
    let (_keep, dir) = folder();
    let copy = dir.join("copy.pcap");
    std::fs::copy(&capture, &copy).unwrap();
    let text = answer(["compare", &capture, copy.to_str().unwrap(), "--command", "create"]);
    assert!(text.contains("35 of 121 operations") && !text.contains("QueryInfo"), "{text}");
    let text = answer(["predict", &capture, "--command", "create", "--change", "rtt=20ms"]);
    assert!(text.contains("only command Create: 35 of 121 operations"), "{text}");
    let trace = dir.join("trace").display().to_string();
    let trace = smbscope(["export", "--perfetto", &capture, "--command", "read", "--out", &trace]);
    let assert = { trace }.assert().success();
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(said.contains("only command read: 1 of 121 operations"), "{said}");
}

#[test]
fn a_filter_that_matches_nothing_is_one_sentence_and_a_code_of_its_own() {
    let capture = capture();
    for command in [&["report"][..], &["explain"], &["ops"], &["predict", "--change", "rtt=1ms"]] {
        let words = command.iter().copied().chain([&*capture, "--user", "absent-user"]);
        let error = complaint(9, words);
        assert_eq!(
            error.trim_end(),
            "smbscope: none of 121 operations matches the filter (user absent-user)",
            "{command:?}"
        );
    }
    let error = complaint(2, ["ops", &capture, "--command", "Creates"]);
    assert!(error.contains("no such command (similar: Create"), "{error}");
}

#[test]
fn names_of_the_filter_are_hidden_when_names_are() {
    let capture = capture();
    let share = objects(&answer(["ops", &capture, "--format", "json"]))
        .iter()
        .find_map(|row| row["share"].as_str().map(str::to_owned))
        .unwrap();
    let name = share.rsplit('\\').next().unwrap();
    let text = answer(["report", &capture, "--share", name, "--anonymize"]);
    assert!(text.contains("only one share:"), "{text}");
}

#[test]
fn top_and_record_have_the_options_too() {
    for command in ["top", "record"] {
        let help = answer([command, "--help"]);
        for option in
            ["--from", "--to", "--client", "--server", "--share", "--user", "--path", "--command"]
        {
            assert!(help.contains(&format!("{option} <")), "{command} {option}");
        }
    }
    let error = complaint(2, ["top", "--from", "last 5m"]);
    assert!(error.contains("has ended"), "{error}");
}
