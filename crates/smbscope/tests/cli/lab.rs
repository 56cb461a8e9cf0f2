//! `smbscope lab`: start, status and stop with the real Samba, and its error messages.

use std::path::Path;

use super::users::Down;
use super::{answer, complaint, smbscope, stdout};

/// A folder that others may enter, as root's labs need.
fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::Builder::new().prefix("lab").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn samba() -> bool {
    let there = Path::new("/usr/sbin/smbd").exists();
    if !there {
        smbscope_testing::skip!("smbd is missing (scripts/setup.sh test installs it)");
    }
    there
}

#[test]
fn a_lab_starts_shows_its_state_and_stops() {
    if !samba() {
        return;
    }
    let above = folder();
    let dir = above.path().join("lab").to_str().unwrap().to_owned();
    let _down = Down(dir.clone());
    let options = ["lab", "up", "--dir", &dir, "--users", "7", "--signing", "required"];
    let said = answer(options);
    let password = std::fs::read_to_string(format!("{dir}/password")).unwrap();
    let password = password.trim();
    assert!(!said.contains(password), "the password is not for the terminal: {said}");
    for part in [
        "user00001 to user00007",
        "signing required",
        &format!("{dir}/password"),
        &format!("smbscope lab down --dir {dir}"),
        "smbclient //127.0.0.1/home -p ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }

    let said = complaint(5, options);
    assert!(said.lines().count() == 1 && said.contains("runs here already"), "{said}");

    let text = answer(["lab", "status", "--dir", &dir, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let lab = &json["labs"][0];
    assert_eq!((&lab["state"], &lab["users"]), (&"running".into(), &7.into()), "{text}");
    let port = lab["port"].as_u64().unwrap();
    assert!(answer(["lab", "status"]).contains(&format!("//127.0.0.1:{port}/home")));
    let said =
        complaint(1, ["lab", "up", "--dir", "/tmp/smbscope-no", "--port", &port.to_string()]);
    assert!(said.contains("another program listens there"), "{said}");

    assert!(answer(["lab", "conf", "--dir", &dir]).contains("server signing = mandatory"));
    let assert = smbscope(["lab", "down", "--dir", &dir]).assert().success();
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(stdout(&assert).is_empty() && said.contains("the folder is gone"), "{said}");
    assert!(!Path::new(&dir).exists());
}

#[test]
fn the_password_is_shown_on_request_only() {
    if !samba() {
        return;
    }
    let above = folder();
    let dir = above.path().join("lab").to_str().unwrap().to_owned();
    let file = above.path().join("password");
    std::fs::write(&file, "chosen by me\nsecond line\n").unwrap();
    let _down = Down(dir.clone());
    let given = ["--password-file", file.to_str().unwrap(), "--show-password"];
    let options = [["lab", "up", "--dir", &dir].as_slice(), &given, &["--format", "json"]].concat();
    let json: serde_json::Value = serde_json::from_str(&answer(options)).unwrap();
    assert_eq!(json["password"], "chosen by me");
    assert_eq!(json["user_pattern"], "user{:05}");
    assert!(json["pid"].is_number() && json["free_bytes"].is_number(), "{json}");
}

#[test]
fn errors_are_one_line() {
    let above = folder();
    let dir = above.path().join("lab").to_str().unwrap().to_owned();
    let missing = complaint(1, ["lab", "up", "--dir", &dir, "--samba", "/nowhere"]);
    assert!(missing.contains("apt-get install samba"), "{missing}");
    for command in ["down", "status", "conf"] {
        let said = complaint(4, ["lab", command, "--dir", &dir]);
        assert!(said.lines().count() == 1 && said.contains("no lab is here"), "{said}");
    }
    complaint(2, ["lab"]);
    complaint(2, ["lab", "up", "--dir", &dir, "--users", "0"]);
    complaint(2, ["lab", "up", "--dir", &dir, "--signing", "maybe"]);
    let said = complaint(2, ["lab", "up", "--dir", &dir, "--set", "lock dir = /var/lib/samba"]);
    assert!(said.contains("the lab sets this itself"), "{said}");
    let password = ["--password-file", "/nowhere/password"];
    let said = complaint(4, [&["lab", "up", "--dir", &dir], password.as_slice()].concat());
    assert!(said.contains("/nowhere/password"), "{said}");
    assert!(!Path::new(&dir).exists());
}

/// The forwarder is this program in the background, with the arguments that `lab up` gives it.
#[test]
fn a_lab_behind_an_emulated_link() {
    use std::os::unix::fs::MetadataExt as _;
    let above = folder();
    let dir = above.path().join("lab").to_str().unwrap().to_owned();
    let said = complaint(2, ["lab", "up", "--dir", &dir, "--wan", "rtt=soon"]);
    assert!(said.contains("--wan rtt=soon"), "{said}");
    assert!(complaint(2, ["lab", "up", "--dir", &dir, "--netns", "x"]).contains("--wan"));
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        let said = complaint(2, ["lab", "up", "--dir", &dir, "--wan", "rtt=2ms"]);
        assert!(said.contains("needs root"), "{said}");
        return;
    }
    if !samba() {
        return;
    }
    let name = format!("clit{}", std::process::id());
    let client = format!("{name}-client");
    let _down = Down(dir.clone());
    let line = "rtt=2ms,rate=unlimited/45mbit,overhead=-14";
    let said = answer(["lab", "up", "--dir", &dir, "--wan", line, "--netns", &name]);
    for part in [line, "//10.45.0.2:445/home", &format!("ip netns exec {client} smbclient //")] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let text = answer(["lab", "status", "--dir", &dir, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let lab = &json["labs"][0];
    assert_eq!(lab["line"]["client_namespace"], client.as_str(), "{text}");
    assert_eq!(
        (&lab["line"]["options"], &lab["line_runs"]),
        (&line.into(), &true.into()),
        "{text}"
    );
    assert!(answer(["lab", "status", "--dir", &dir]).contains(&format!("{line}, from {client}")));
    let program = env!("CARGO_BIN_EXE_smbscope");
    let prepare = ["load", "prepare", "--workload", "metadata", "--scale", "0.01", "--users", "2"];
    let status = std::process::Command::new("ip")
        .args(["netns", "exec", &client, program])
        .args(prepare)
        .args(["--lab", &dir])
        .status();
    assert!(status.unwrap().success(), "files are made over the line");
    let out = format!("{dir}-run");
    let run = ["load", "--workload", "metadata", "--scale", "0.01", "--users", "2"];
    let times = ["--ramp", "20", "--warm-up", "0s", "--duration", "2s", "--cool-down", "0s"];
    let status = std::process::Command::new("ip")
        .args(["netns", "exec", &client, program])
        .args(run)
        .args(times)
        .args(["--lab", &dir, "--out", &out])
        .status();
    assert!(status.unwrap().success(), "users work over the line");
    let manifest = std::fs::read_to_string(Path::new(&out).join("manifest.json")).unwrap();
    assert!(manifest.contains(&format!("\"line\": \"{line}\"")), "{manifest}");
    std::fs::remove_dir_all(&out).unwrap();
    smbscope(["lab", "down", "--dir", &dir]).assert().success();
    assert!(!Path::new(&dir).exists() && !Path::new("/var/run/netns").join(client).exists());
}
