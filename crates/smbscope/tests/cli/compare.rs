//! `smbscope compare`: two recordings side by side.

use serde_json::Value;

use super::load_run::run;
use super::{COMMANDS, answer, capture, complaint, fixture, folder, objects, smbscope};

fn json(arguments: &[&str]) -> Vec<Value> {
    objects(&answer([&["compare"], arguments, &["--format", "json", "--quiet"]].concat()))
}

fn of<'a>(rows: &'a [Value], kind: &str, name: Option<&str>) -> &'a Value {
    let wanted = |row: &&Value| row["kind"] == kind && row["name"].as_str() == name;
    rows.iter().find(wanted).unwrap()
}

#[test]
fn a_capture_compared_with_itself_shows_no_change() {
    let rows = json(&[&capture(), &capture()]);
    for (command, n) in COMMANDS {
        let row = of(&rows, "command", Some(command));
        assert_eq!(
            (row["a_operations"].as_u64(), row["b_operations"].as_u64()),
            (Some(n), Some(n))
        );
        assert_eq!(row["a_mean_seconds"], row["b_mean_seconds"]);
        assert_eq!(row["significant"], false, "{row}");
        // No group consists of waiting operations only, so each has a change, of zero.
        assert!(row["change_percent"].as_f64().unwrap().abs() < 1e-9, "{row}");
        assert_eq!(row["cliffs_delta"], 0.0);
        assert!(row["p"].as_f64().is_none_or(|p| p > 0.999_999), "{row}");
    }
    let total = of(&rows, "total", None);
    assert_eq!(total["a_unit"], "time-block");
    assert_eq!(total["effect"], "negligible");
    let text = answer(["compare", &capture(), &capture()]);
    assert!(text.contains("note: A and B are the same input"), "{text}");
    assert!(text.starts_with("No significant difference: operations take "), "{text}");
    assert!(!text.contains("Mean elapsed time"), "a table of what did not change: {text}");
}

#[test]
fn differences_are_listed_before_the_table() {
    let (a, b) = (capture(), fixture("signed-hmac-sha256-210.pcapng"));
    let text = answer(["compare", &a, &b]);
    assert!(text.contains("warning: different dialects (A: 3.0.2; B: 2.1)"), "{text}");
    assert!(text.contains("warning: different signing"), "{text}");
    let run = smbscope(["compare", &a, &b, "--format", "csv"]).assert().success();
    let output = run.get_output();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(said.contains("warning: different dialects"), "{said}");
    let rows = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(rows.starts_with("kind,name,a_operations,a_timed,a_mean_seconds"), "{rows}");
}

#[test]
fn all_formats_hold_the_same_rows() {
    let (_dir, path) = folder();
    let (a, b) = (capture(), fixture("smb210.pcap"));
    let rows = json(&[&a, &b]);
    for form in ["csv", "parquet", "arrow"] {
        let out = path.join(form);
        let out = out.to_str().unwrap();
        answer(["compare", &a, &b, "--format", form, "--out", out, "--quiet"]);
        let written = std::fs::read(out).unwrap();
        if form == "csv" {
            assert_eq!(String::from_utf8(written).unwrap().lines().count(), rows.len() + 1);
        } else {
            assert!(written.len() > 1000);
        }
    }
}

#[test]
fn by_selects_the_groups_and_anonymize_hides_names() {
    let (a, b) = (capture(), fixture("smb210.pcap"));
    for by in ["share", "client", "user"] {
        let rows = json(&[&a, &b, "--by", by]);
        assert!(rows.iter().any(|row| row["kind"] == by && !row["name"].is_null()), "{by}");
    }
    let text = answer(["compare", &a, &b, "--by", "user", "--anonymize", "--format", "csv"]);
    assert!(
        text.contains("user-") && !text.contains("alice") && !text.contains("smb210"),
        "{text}"
    );
}

#[test]
fn load_runs_are_compared_by_scenario_too() {
    let (_dir, path) = folder();
    let named = |name: &str, seed: u64| {
        let dir = path.join(name);
        std::fs::create_dir(&dir).unwrap();
        run(&dir, 1, |description| description.seed = seed)
    };
    let (a, b, c) = (named("a", 1), named("b", 1), named("c", 2));
    let rows = json(&[&a, &b]);
    let scenario = of(&rows, "scenario", Some("WordFileOpen"));
    assert_eq!(
        (scenario["a_operations"].as_u64(), &scenario["a_mean_seconds"]),
        (Some(2), &1.0.into())
    );
    // A single user is not a sample.
    assert!(scenario["p"].is_null(), "{scenario}");
    assert_eq!(of(&rows, "total", None)["a_operations"], 2);
    let all = json(&[&a, &b, "--phase", "all"]);
    assert_eq!(of(&all, "total", None)["a_operations"], 5);
    let rows = json(&[&a, &b, "--by", "scenario"]);
    assert!(rows.iter().all(|row| row["kind"].as_str().unwrap().starts_with("scenario")));
    let text = answer(["compare", &a, &c]);
    assert!(text.contains("different seeds"), "{text}");
    assert!(text.contains("workload homefolder, seed 1"), "{text}");
    assert!(complaint(1, ["compare", &capture(), &a, "--by", "scenario"]).contains("no scenarios"));
}

#[test]
fn empty_and_disjoint_inputs_are_reported() {
    complaint(2, ["compare", &capture()]);
    assert!(complaint(2, ["compare", "-", "-"]).contains("once only"));
    complaint(4, ["compare", &capture(), "/nonexistent.pcap"]);
    let (_dir, path) = folder();
    // A capture without packets.
    let empty = path.join("empty.pcap");
    std::fs::write(&empty, &std::fs::read(capture()).unwrap()[..24]).unwrap();
    let said = complaint(1, ["compare", &capture(), empty.to_str().unwrap()]);
    assert!(said.contains("contains no operations"), "{said}");
    let said = complaint(1, ["compare", &capture(), &fixture("nt1.pcap"), "--by", "command"]);
    assert!(said.contains("no command in common"), "{said}");
}

#[test]
fn a_comparison_can_be_a_page() {
    let (_guard, dir) = folder();
    let page = dir.join("change.html");
    let (a, b) =
        (fixture("findings/slow-logon-not.pcap.gz"), fixture("findings/slow-logon.pcap.gz"));
    let said = answer(["compare", &a, &b, "--html", page.to_str().unwrap()]);
    assert_eq!(said, "");
    let page = std::fs::read_to_string(page).unwrap();
    for words in [
        "<h1>B is slower: its operations take 62.1\u{a0}% more time",
        "id=\"changes\"",
        "id=\"numbers\"",
        "95 % interval",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // Text goes to standard output where a format is requested, too.
    let other = dir.join("other.html");
    let words = ["compare", &a, &b, "--html", other.to_str().unwrap(), "--format", "text"];
    assert!(answer(words).contains("Mean elapsed time"));
}
