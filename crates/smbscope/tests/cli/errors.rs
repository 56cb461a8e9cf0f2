//! Errors of inputs and outputs: one line, and the documented exit code.

use std::io::{Read as _, Write as _};

use super::{answer, capture, complaint, folder, smbscope, stdout};

fn assert_one_line(text: &str) {
    assert!(text.starts_with("smbscope: ") && text.lines().count() == 1, "{text:?}");
}

#[test]
fn a_missing_input_is_code_4() {
    for command in ["ops", "report", "query"] {
        let said = complaint(4, [command, "/nowhere/missing.pcap"]);
        assert_one_line(&said);
        assert!(said.contains("/nowhere/missing.pcap: no such file"), "{said}");
    }
    let said = complaint(4, ["import", "/nowhere/missing.pcap", "--out", "/nowhere/else"]);
    assert_one_line(&said);
}

#[test]
fn an_unrecognised_input_is_code_3() {
    let (_guard, dir) = folder();
    let text = dir.join("notes.txt");
    std::fs::write(&text, "hello, this is text\n").unwrap();
    for command in ["ops", "report"] {
        let said = complaint(3, [command, text.to_str().unwrap()]);
        assert_one_line(&said);
        assert!(said.contains("notes.txt"), "{said}");
    }
    let empty = dir.join("empty");
    std::fs::write(&empty, "").unwrap();
    assert_one_line(&complaint(3, ["ops", empty.to_str().unwrap()]));
    assert_one_line(&complaint(3, ["ops", dir.to_str().unwrap()]));
    let assert = smbscope(["ops", "-"]).write_stdin("hello, this is text\n").assert().code(3);
    assert_one_line(std::str::from_utf8(&assert.get_output().stderr).unwrap());
}

#[test]
fn a_repeated_input_is_code_2() {
    let (_guard, dir) = folder();
    let other = dir.join("..").join(dir.file_name().unwrap()).join("a.pcapng");
    std::fs::copy(capture(), dir.join("a.pcapng")).unwrap();
    let said =
        complaint(2, ["ops", dir.join("a.pcapng").to_str().unwrap(), other.to_str().unwrap()]);
    assert_one_line(&said);
    assert!(said.contains("a.pcapng: is given twice"), "{said}");
}

#[test]
fn a_truncated_capture_is_read_to_its_end() {
    let (_guard, dir) = folder();
    let cut = dir.join("cut.pcap");
    let whole = std::fs::read(capture()).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let lines = answer(["ops", cut.to_str().unwrap()]).lines().count();
    assert!((20..121).contains(&lines), "{lines}");
    let sql = "select cut_off from coverage";
    let row = answer(["query", cut.to_str().unwrap(), sql, "--format", "json"]);
    assert!(!row.contains("null") && row.contains("cut_off"), "{row}");
    assert!(answer(["report", cut.to_str().unwrap()]).len() > 100);
}

#[test]
fn an_empty_result_is_reported() {
    let (_guard, dir) = folder();
    let empty = dir.join("empty.pcap");
    let whole = std::fs::read(capture()).unwrap();
    std::fs::write(&empty, &whole[..28]).unwrap();
    let said = |arguments: &[&str]| {
        let output = smbscope(arguments).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&["ops", empty.to_str().unwrap()]).contains("no SMB operations"));
    let unmet = said(&["ops", &capture(), "--where", "operation < 0"]);
    assert!(unmet.contains("no operation matches the condition"), "{unmet}");
    assert_eq!(said(&["ops", &capture(), "--limit", "0"]), "");
    assert_eq!(said(&["ops", empty.to_str().unwrap(), "--quiet"]), "");
}

#[test]
fn an_unwritable_output_is_code_5() {
    let capture = capture();
    let said = complaint(5, ["ops", &capture, "--out", "/nowhere/file"]);
    assert_one_line(&said);
    assert_one_line(&complaint(5, ["report", &capture, "--html", "/nowhere/page.html"]));
    assert_one_line(&complaint(5, ["import", &capture, "--out", "/dev/null/dataset"]));
    if std::path::Path::new("/dev/full").exists() {
        assert_one_line(&complaint(5, ["ops", &capture, "--out", "/dev/full"]));
    }
}

#[test]
fn invalid_keys_are_code_2_and_not_printed() {
    let capture = capture();
    let said = complaint(2, ["ops", &capture, "--key", "0011,secret"]);
    assert_one_line(&said);
    assert!(!said.contains("secret"), "{said}");
    assert_one_line(&complaint(4, ["ops", &capture, "--keys", "/nowhere/keys"]));
    let (_guard, dir) = folder();
    let keys = dir.join("keys");
    std::fs::write(&keys, "not,keys\n").unwrap();
    assert_one_line(&complaint(2, ["ops", &capture, "--keys", keys.to_str().unwrap()]));
}

#[test]
fn standard_input_is_accepted() {
    let bytes = std::fs::read(capture()).unwrap();
    let from_file = answer(["ops", &capture(), "--columns", "message_id,path,elapsed_ns"]);
    let assert = smbscope(["ops", "-", "--columns", "message_id,path,elapsed_ns"])
        .write_stdin(bytes)
        .assert()
        .success();
    assert_eq!(stdout(&assert), from_file);
    complaint(2, ["ops", "-", "-"]);
}

/// What another server, a closed port, or a missing password means is said in words, with what to do.
#[test]
fn errors_of_load_say_what_is_wrong_at_the_other_end() {
    let load = |port: u16| {
        let target = format!("//127.0.0.1:{port}/home");
        let run =
            smbscope(["load", &target, "--users", "1"]).env("SMBSCOPE_PASSWORD", "x").assert();
        String::from_utf8(run.failure().get_output().stderr.clone()).unwrap()
    };
    let serving = |answer: &'static [u8]| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]).and_then(|_| stream.write_all(answer));
            }
        });
        port
    };
    for (answer, words) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "speaks HTTP here, not SMB: check the port"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "speaks SSH here, not SMB"),
        (b"\x99\x98\x97\x96\x95\x94\x93\x92", "bytes that are not SMB (99 98 97"),
        (b"", "ended the connection before user"),
    ] {
        let text = load(serving(answer));
        assert!(text.contains(words) && text.contains("445"), "{words}: {text}");
        assert_one_line(&text);
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = load(closed);
    assert!(text.contains("nothing listens there"), "{text}");
    assert_eq!(text.matches(&format!("127.0.0.1:{closed}")).count(), 1, "{text}");
}
