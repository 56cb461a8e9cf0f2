//! Traces of processors: `report` and `import` take them, commands about operations say what to do.

use std::path::Path;

use super::{answer, capture, complaint, folder};

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
    for name in ["loopback.ftrace.txt", "loopback.perf.txt"] {
        let input = trace(name);
        let text = answer(["report", &input]);
        assert!(text.contains("No CPU spends more than"), "{text}");
        assert!(text.contains("NET_RX") && text.lines().count() <= 60, "{text}");
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

#[test]
fn commands_about_operations_say_what_a_trace_is() {
    let input = trace("loopback.ftrace.txt");
    for command in [&["ops"][..], &["explain"], &["export", "--perfetto"], &["compare", &capture()]]
    {
        let arguments = command.iter().copied().chain([input.as_str()]);
        let said = complaint(2, arguments);
        assert!(said.contains("no SMB operations") && said.contains("report"), "{said}");
    }
    let said = complaint(2, ["report", &input, "--client", "10.0.0.1"]);
    assert!(said.contains("filter options"), "{said}");
}
