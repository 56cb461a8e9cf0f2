//! A build without a feature says so, and does everything else.

use super::{answer, capture, complaint, folder};

#[test]
fn what_is_left_out_says_so() {
    let (_guard, dir) = folder();
    let log = dir.join("log.evtx");
    std::fs::write(&log, b"ElfFile\0").unwrap();
    let (log, capture) = (log.to_str().unwrap(), capture());
    let (sql, kerberos) = (cfg!(feature = "sql"), cfg!(feature = "kerberos"));
    for (is_built, code, arguments, words) in [
        (sql, 6, ["query", "x.pcap", "select 1"].as_slice(), "has no SQL"),
        (sql, 6, &["query", "--questions"], "has no SQL"),
        (sql, 6, &["ops", &capture, "--where", "status <> 0"], "has no SQL"),
        (kerberos, 2, &["load", "//localhost/home", "--auth", "kerberos"], "has no Kerberos"),
        (cfg!(feature = "plan"), 2, &["plan", "cores", "--help"], "has no planners"),
        (cfg!(feature = "serve"), 6, &["serve", &capture], "has no live page"),
        (cfg!(feature = "evtx"), 4, &["report", log], "reads no event logs"),
    ] {
        if !is_built {
            let text = complaint(code, arguments);
            let expected = format!("this build {words}: build with default features");
            assert!(text.contains(&expected), "{text}");
        }
    }
    assert_eq!(answer(["ops", &capture]).lines().count(), 121);
}
