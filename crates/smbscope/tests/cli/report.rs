//! `smbscope report`: that it appears, in each form; its contents are tested in its crate.

use super::{OPERATIONS, answer, capture, folder};

#[test]
fn text_json_and_html() {
    let capture = capture();
    let text = answer(["report", &capture]);
    assert!(text.contains("Create") && text.contains("smb302.pcap"), "{text}");
    assert!(!text.contains('\x1b'));
    let json: serde_json::Value =
        serde_json::from_str(&answer(["report", &capture, "--format", "json"])).unwrap();
    assert_eq!(json["totals"]["operations"], OPERATIONS);
    let (_guard, dir) = folder();
    let page = dir.join("report.html");
    let said = answer(["report", &capture, "--html", page.to_str().unwrap()]);
    assert_eq!(said, "");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!") && page.contains("Create"));
}

#[test]
fn a_dataset_reports_like_its_capture() {
    let (_guard, dir) = folder();
    let dataset = dir.join("dataset");
    let out = dataset.to_str().unwrap();
    answer(["import", &capture(), "--out", out]);
    let of = |input: &str| -> serde_json::Value {
        let text = answer(["report", input, "--format", "json"]);
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value.as_object_mut().unwrap().remove("inputs");
        value
    };
    assert_eq!(of(out), of(&capture()));
}

#[test]
fn names_become_tokens() {
    for format in ["text", "json"] {
        let text = answer(["report", &capture(), "--format", format, "--anonymize"]);
        for name in ["127.0.0.1", "alice", "one.txt", "smb302.pcap"] {
            assert!(!text.contains(name), "{name} in {format}");
        }
    }
}
