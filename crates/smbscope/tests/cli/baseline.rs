//! `smbscope plan baseline` from files, a capture and a search.

use serde_json::Value;

use super::{answer, complaint, text, written};

/// A template with signing among harmless settings, and its value for it.
fn template(signing: u32) -> String {
    format!(
        "[Unicode]\r\nUnicode=yes\r\n[System Access]\r\nMinimumPasswordLength = 14\r\nLockoutBadCount = 10\r\n[Registry \
         Values]\r\nMACHINE\\System\\CurrentControlSet\\Services\\LanManServer\\Parameters\\RequireSecuritySignature=4,{signing}\r\n\
         MACHINE\\System\\CurrentControlSet\\Services\\LanManServer\\Parameters\\AutoDisconnect=4,15\r\n\
         MACHINE\\System\\CurrentControlSet\\Services\\LanManServer\\Parameters\\EnableSecuritySignature=4,1\r\n\
         [Version]\r\nsignature=\"$CHICAGO$\"\r\nRevision=1\r\n"
    )
}

#[test]
fn what_changes_for_file_serving_is_judged_and_written() {
    let dir = tempfile::tempdir().unwrap();
    let old = written(dir.path(), "old.inf", &template(0));
    let new = written(dir.path(), "new.inf", &template(1));
    let common = ["plan", "baseline", text(&new), "--against", text(&old), "--system", "2022"];
    let json: Value =
        serde_json::from_str(&answer([&common[..], &["--format", "json"]].concat())).unwrap();
    let changes = json["changes"].as_array().unwrap();
    let [change] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((&change["from"], &change["to"]), (&"0".into(), &"1".into()));
    assert_eq!(change["security"], "stricter");
    let shown = answer(common);
    assert!(shown.contains("No effect"), "{shown}");

    let script = dir.path().join("smb.ps1");
    answer([&common[..], &["--write", text(&script)]].concat());
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let (apply, undo) = (read("smb.ps1"), read("smb.undo.ps1"));
    assert!(
        apply.contains("RequireSecuritySignature") && !apply.contains("MinimumPassword"),
        "{apply}"
    );
    assert!(undo.contains("RequireSecuritySignature") && undo.contains("(0)"), "{undo}");
    // Files that exist stay.
    let refused = complaint(2, [&common[..], &["--write", text(&script)]].concat());
    assert!(refused.contains("exists already"), "{refused}");
    let refused = complaint(2, [&common[..], &["--write", "smb.docx"]].concat());
    assert!(refused.contains(".pol (registry.pol)"), "{refused}");
}

#[test]
fn everything_that_was_read_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    let new = written(dir.path(), "new.inf", &template(1));
    let list = answer(["plan", "baseline", text(&new), "--list"]);
    assert!(list.contains("5 settings") && list.contains("MinimumPasswordLength"), "{list}");
    assert!(list.contains("not a setting") && list.contains("signature="), "{list}");
    let nothing = written(dir.path(), "note.txt", "Monday: nothing new");
    assert!(complaint(3, ["plan", "baseline", text(&nothing)]).contains("note.txt"));
    complaint(4, ["plan", "baseline", "/nonexistent/baseline"]);
}

#[test]
fn a_capture_shows_the_settings_of_its_server() {
    let capture = super::fixture("replay.pcapng");
    let list = answer(["plan", "baseline", &capture, "--list"]);
    assert!(list.contains("on the wire: SigningRequired"), "{list}");
    assert!(list.contains("on the wire: Dialect"), "{list}");
    let json = answer(["plan", "baseline", &capture, "--recording", &capture, "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["after"]["known"].as_u64().unwrap() > 3, "{json}");
}

#[test]
fn the_guilty_setting_is_searched_in_few_tries() {
    let dir = tempfile::tempdir().unwrap();
    let old = written(dir.path(), "old.inf", &template(0));
    let new = written(
        dir.path(),
        "new.inf",
        &template(1).replace("AutoDisconnect=4,15", "AutoDisconnect=4,1"),
    );
    let state = dir.path().join("slow.json");
    let begin = ["plan", "baseline", text(&new), "--against", text(&old), "--search", text(&state)];
    let first = answer(begin).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(first.contains("rule out the network"), "{first}");
    let step = |result: &str| {
        answer([
            "plan",
            "baseline",
            "--search",
            text(&state),
            "--result",
            result,
            "--format",
            "json",
        ])
    };
    let mut shown: Value = serde_json::from_str(&step("fast")).unwrap();
    let step_file = dir.path().join("step.txt");
    answer(["plan", "baseline", "--search", text(&state), "--write", text(&step_file)]);
    let lgpo = std::fs::read_to_string(&step_file).unwrap();
    assert!(lgpo.contains("Computer") && lgpo.contains("DWORD:"), "{lgpo}");
    assert!(dir.path().join("step.undo.txt").exists());
    let mut tries = 0;
    while shown["is_done"] == false {
        tries += 1;
        assert!(tries < 6, "{shown}");
        // Slow as long as signing is not taken back.
        let sentence = shown["sentences"].to_string();
        let result = if sentence.contains("are signed") { "fast" } else { "slow" };
        shown = serde_json::from_str(&step(result)).unwrap();
    }
    assert!(shown["found"].to_string().contains("RequireSecuritySignature"), "{shown}");
    let refused = complaint(2, ["plan", "baseline", "--search", text(&state), "--result", "slow"]);
    assert!(refused.contains("slow.json"), "{refused}");
    let none = dir.path().join("none.json");
    assert!(complaint(2, ["plan", "baseline", "--search", text(&none)]).contains("no such search"));
}

#[test]
fn settings_that_are_not_about_file_serving_have_the_texts_of_templates() {
    let dir = tempfile::tempdir().unwrap();
    let registry = |value: u32| {
        format!(
            "Computer\r\nSoftware\\Policies\\Lantern\r\nMode\r\nDWORD:{value}\r\n\r\nComputer\r\nSoftware\\Other\r\nName\r\nSZ:x\r\n"
        )
    };
    let old = written(dir.path(), "old.txt", &registry(1));
    let folder = dir.path().join("new");
    std::fs::create_dir_all(folder.join("de-DE")).unwrap();
    std::fs::create_dir_all(folder.join("en-US")).unwrap();
    written(&folder, "new.txt", &registry(2));
    let admx = "<policyDefinitions><policies><policy name=\"Mode\" class=\"Machine\" displayName=\"$(string.Mode)\" \
                explainText=\"$(string.Help)\" key=\"Software\\Policies\\Lantern\"><elements><enum id=\"M\" valueName=\"Mode\">\
                <item displayName=\"$(string.Dark)\"><value><decimal value=\"1\"/></value></item>\
                <item displayName=\"$(string.Light)\"><value><decimal value=\"2\"/></value></item></enum></elements></policy></policies></policyDefinitions>";
    written(&folder, "lantern.admx", admx);
    for (language, texts) in [
        ("en-US", ["Mode of the lantern", "How it shines.", "dark", "light"]),
        ("de-DE", ["Art der Laterne", "Was das Licht macht.", "dunkel", "hell"]),
    ] {
        let strings: String = ["Mode", "Help", "Dark", "Light"]
            .iter()
            .zip(texts)
            .map(|(id, text)| format!("<string id=\"{id}\">{text}</string>"))
            .collect();
        let adml = format!(
            "<policyDefinitionResources><resources><stringTable>{strings}</stringTable></resources></policyDefinitionResources>"
        );
        written(&folder.join(language), "lantern.adml", &adml);
    }
    let common = ["plan", "baseline", text(&folder), "--against", text(&old), "--all"];
    let json: Value =
        serde_json::from_str(&answer([&common[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!((&json["others"]["changed"], &json["others"]["same"]), (&1.into(), &1.into()));
    let [change] = &json["other_changes"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&change["from"], &change["to"]), (&"1".into(), &"2".into()));
    assert_eq!(change["policy"], "Mode of the lantern");
    assert_eq!(
        (&change["meaning"], &change["explain"]),
        (&"light".into(), &"How it shines.".into())
    );
    let shown = answer(common);
    assert!(shown.contains("Other settings that change"), "{shown}");
    assert!(shown.contains("Mode of the lantern: light"), "{shown}");
    let shown = answer([&common[..], &["--language", "de-DE"]].concat());
    assert!(shown.contains("Art der Laterne: hell"), "{shown}");
}
