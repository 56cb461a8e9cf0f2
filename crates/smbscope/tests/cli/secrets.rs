//! Decryption by password, NT hash and keytab: options, errors and warnings, which never show a secret.

use std::path::Path;

use super::{answer, complaint, fixture, folder, smbscope};

const CAPTURE: &str = "encrypted-aes-128-gcm-311.pcapng";
const PASSWORD: &str = "Pass-w0rd";
const HASH: &str = "4362ee3792b9e4a30d1fb6a44befad17";

/// A file with these permissions.
fn file(folder: &Path, contents: &str, mode: u32) -> String {
    let path = folder.join("secrets");
    std::fs::write(&path, contents).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_command_that_reads_captures_decrypts() {
    let (_guard, folder) = folder();
    let capture = fixture(CAPTURE);
    let passwords = file(&folder, &format!("LAB\\alice:{PASSWORD}\n"), 0o600);
    let keys = fixture("encrypted-aes-128-gcm-311.keys");
    let with = |command: &[&str], option: &str, path: &str| {
        let words = command.iter().copied().chain([option, path]);
        smbscope(words).assert().success().get_output().stdout.clone()
    };
    for command in [
        &["ops", capture.as_str(), "--format", "csv"][..],
        &["explain", &capture],
        &["compare", &capture, &capture, "--format", "json"],
        &["export", &capture, "--perfetto"],
    ] {
        let expected = with(command, "--keys", &keys);
        assert_eq!(with(command, "--password-file", &passwords), expected, "{command:?}");
        let without = smbscope(command).assert().success().get_output().stdout.clone();
        assert_ne!(without, expected, "{command:?}");
    }
    let report = answer(["report", &capture, "--all", "--password-file", &passwords]);
    assert!(report.contains("sessions whose key was computed: 1"), "{report}");
    let dataset = folder.join("dataset");
    answer(["import", &capture, "--out", dataset.to_str().unwrap(), "--password-file", &passwords]);
    let manifest = std::fs::read_to_string(dataset.join("manifest.json")).unwrap();
    assert!(!manifest.contains(PASSWORD), "{manifest}");
    let text = answer(["ops", dataset.to_str().unwrap()]);
    assert!(!text.contains("(encrypted)"));
    let hashes = file(&folder, &format!("alice:{HASH}\n"), 0o600);
    let text = answer(["ops", &capture, "--nt-hash-file", &hashes]);
    assert!(!text.contains("(encrypted)"));
}

#[test]
fn a_keytab_decrypts_and_names_the_user() {
    let capture = fixture("encrypted-kerberos-128.pcapng.gz");
    let keytab = fixture("encrypted-kerberos-128.keytab");
    let text = answer(["ops", &capture, "--keytab", &keytab, "--quiet"]);
    assert!(!text.contains("(encrypted)"));
    let text = answer(["ops", &capture, "--keytab", &keytab, "--format", "csv"]);
    assert!(text.contains("alice@LAB.TEST"));
}

#[test]
fn the_report_says_why_sessions_stay_encrypted() {
    let (_guard, folder) = folder();
    let capture = fixture(CAPTURE);
    for (line, expected) in [
        ("alice:Other-w0rd", "the given secret does not match (sessions: 1)"),
        ("carol:Other-w0rd", "no secret was given for the account or service (sessions: 1)"),
    ] {
        let secrets = file(&folder, line, 0o600);
        let text = answer(["report", &capture, "--password-file", &secrets]);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("Other-w0rd"));
    }
}

#[test]
fn errors_name_the_line_and_not_the_secret() {
    let (_guard, folder) = folder();
    let capture = fixture(CAPTURE);
    let secrets = file(&folder, "alice:x\nTop-s3cret\n", 0o600);
    let error = complaint(2, ["ops", &capture, "--password-file", &secrets]);
    assert!(
        error.contains("line 2: not NAME:PASSWORD") && !error.contains("Top-s3cret"),
        "{error}"
    );
    let error = complaint(2, ["ops", &capture, "--nt-hash-file", &secrets]);
    assert!(
        error.contains("line 1: the NT hash is not 32") && !error.contains("s3cret"),
        "{error}"
    );
    let error = complaint(2, ["ops", &capture, "--keytab", &secrets]);
    assert!(error.contains("not a valid keytab"), "{error}");
    assert!(complaint(4, ["ops", &capture, "--keytab", "/nowhere"]).contains("cannot read"));
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_a_warning() {
    let (_guard, folder) = folder();
    let capture = fixture(CAPTURE);
    let warning = |path: &str, quiet: &[&str]| {
        let words = ["ops", &capture, "--password-file", path];
        let assert = smbscope(words.iter().chain(quiet)).assert().success();
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let open = file(&folder, "alice:x\n", 0o640);
    assert!(warning(&open, &[]).contains("other users of this machine can read the secrets"));
    assert_eq!(warning(&open, &["--quiet"]), "");
    let closed = file(&folder, "alice:x\n", 0o600);
    assert_eq!(warning(&closed, &[]), "");
}
