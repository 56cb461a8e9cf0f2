//! `smbscope.toml` and baselines by name.

use std::path::Path;

use super::{OPERATIONS, capture, fixture, folder, smbscope, stdout};

/// The program in a folder with this file of settings.
fn with_settings(dir: &Path, text: &str, words: &[&str]) -> assert_cmd::Command {
    std::fs::write(dir.join("smbscope.toml"), text).unwrap();
    let mut command = smbscope(words);
    command.env_remove("SMBSCOPE_CONFIG").current_dir(dir).env("HOME", dir);
    command
}

fn stderr(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[test]
fn a_baseline_is_an_input_by_its_name() {
    let (_keep, dir) = folder();
    let ran = |words: &[&str]| {
        let mut command = smbscope(words);
        command.env("XDG_DATA_HOME", &dir).assert()
    };
    ran(&["import", &capture(), "--baseline", "last-week"]).success();
    let report = stdout(&ran(&["report", "last-week", "--format", "json"]).success());
    assert!(report.contains(&format!("\"operations\": {OPERATIONS}")), "{report}");
    let same = stdout(&ran(&["compare", "last-week", &capture()]).success());
    assert!(same.contains("A  last-week"), "{same}");
    // It is there already; a name is not a path.
    ran(&["import", &capture(), "--baseline", "last-week"]).code(5);
    ran(&["import", &capture(), "--baseline", "last-week", "--force"]).success();
    ran(&["import", &capture(), "--baseline", "../up"]).code(2);
    ran(&["report", "next-week"]).code(4);
}

#[test]
fn a_project_says_server_zone_and_what_is_slow() {
    let (_keep, dir) = folder();
    std::fs::write(dir.join("secret"), "x\n").unwrap();
    let text = "server = '//127.0.0.1:1/home'\npassword-file = 'secret'\nslow = '10s'\ntime-zone = '+02:00'\n";
    let load = with_settings(&dir, text, &["load", "--users", "1"]).assert().code(1);
    assert!(stderr(&load).contains("127.0.0.1:1: cannot connect"), "{}", stderr(&load));
    // An option comes first.
    let load = with_settings(&dir, text, &["load", "//127.0.0.1:2/home"]).assert().code(1);
    assert!(stderr(&load).contains("127.0.0.1:2"), "{}", stderr(&load));
    // Its user waits for two seconds.
    let slow = fixture("findings/small-reads.pcap.gz");
    let report = stdout(&with_settings(&dir, text, &["report", &slow]).assert().success());
    assert!(report.contains("Healthy") && report.contains("+02:00"), "{report}");
    let options = ["report", &slow, "--noticed", "1s", "--utc"];
    let usual = stdout(&with_settings(&dir, text, &options).assert().success());
    assert!(usual.contains("Slow for users") && !usual.contains("+02:00"), "{usual}");
    let doctor = stdout(&with_settings(&dir, text, &["doctor"]).assert());
    assert!(doctor.contains("server //127.0.0.1:1/home") && doctor.contains("slow 10"), "{doctor}");
}

#[test]
fn a_setting_that_is_unknown_is_reported_with_its_place() {
    let (_keep, dir) = folder();
    let wrong = with_settings(&dir, "sever = '//a/b'\n", &["report", "x"]).assert().code(2);
    assert!(stderr(&wrong).contains("unknown field `sever`"), "{}", stderr(&wrong));
    // The checks continue.
    let doctor = stdout(&with_settings(&dir, "sever = '//a/b'\n", &["doctor"]).assert());
    assert!(doctor.contains("unknown field `sever`"), "{doctor}");
}
