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
    let first_text = answer(begin);
    let first = first_text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        first.contains("First take back all settings that can slow SMB 2 and 3 (2)"),
        "{first}"
    );
    assert!(first.contains("At most 3 more tries"), "{first}");
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
    let step_file = dir.path().join("step.ps1");
    answer(["plan", "baseline", "--search", text(&state), "--write", text(&step_file)]);
    let script = std::fs::read_to_string(&step_file).unwrap();
    assert!(
        script.contains("Set-SmbServerConfiguration -RequireSecuritySignature $false"),
        "{script}"
    );
    assert!(dir.path().join("step.undo.ps1").exists());
    // An honest user: slow while signing is in force, as the commands say.
    let (mut is_signed, mut tries) = (true, 0);
    let run = |shown: &str, is_signed: &mut bool| {
        for line in shown.lines() {
            let line = line.trim_start_matches([' ', '"']);
            if line.starts_with("Set-SmbServerConfiguration -RequireSecuritySignature") {
                *is_signed = line.contains("$true");
            }
        }
    };
    run(&first_text, &mut is_signed);
    let mut shown = Value::Null;
    while shown["is_done"] != true {
        tries += 1;
        assert!(tries < 5, "{shown}");
        shown = serde_json::from_str(&step(if is_signed { "slow" } else { "fast" })).unwrap();
        for block in shown["commands"].as_array().unwrap() {
            for line in block["apply"].as_array().unwrap() {
                run(line.as_str().unwrap(), &mut is_signed);
            }
        }
    }
    assert!(!is_signed, "the cause stays taken back");
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
