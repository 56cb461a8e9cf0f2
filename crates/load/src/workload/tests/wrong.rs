//! Invalid workloads: position and text of the message.

use crate::workload::{Workload, WorkloadError};

/// A workload with one scenario of these steps (one per line, from line 9 on).
fn steps(steps: &str) -> String {
    format!(
        "[files.docs]\nclass = \"static\"\nname = \"{{n}}\"\nblocks = [1]\n[scenarios.S]\nruns_per_hour = 1\n\
         files = {{ doc = \"docs\" }}\nsteps = [\n{steps}\n]\n"
    )
}

fn parse(toml: &str) -> Result<Workload, WorkloadError> {
    Workload::parse("mine.toml", "mine", toml)
}

/// The error of a text must point at line:column and contain this (in its message or help).
fn check(toml: &str, place: &str, says: &[&str]) {
    let error = match parse(toml) {
        Ok(_) => panic!("no error in:\n{toml}"),
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(text.starts_with(&format!("mine.toml:{place}: ")), "expected {place}:\n{text}");
    for says in says {
        assert!(text.contains(says), "expected {says}:\n{text}");
    }
}

const OPEN: &str = r#"{ action = "a", create = "{doc}", handle = "h" },"#;
const CLOSE: &str = r#"{ action = "a", close = "h" },"#;

/// Steps between an open and a close; the step under test is on line 10.
fn inside(step: &str) -> String {
    steps(&format!("{OPEN}\n{step}\n{CLOSE}"))
}

#[test]
fn the_frame_of_these_tests_is_right() {
    let workload = parse(&inside("")).unwrap();
    assert_eq!(workload.scenarios[0].steps.len(), 2);
}

#[test]
fn toml_itself() {
    check("x = ", "1:5", &["invalid TOML"]);
    check(
        "[scenarios.S]\nruns_per_hour = \"often\"",
        "2:17",
        &["`runs_per_hour` must be a number, not text"],
    );
    check("", "1:1", &["needs scenarios"]);
    check("scenarios = 1", "1:13", &["`[scenarios]` must be a table, not a whole number"]);
}

#[test]
fn unknown_keys_and_words() {
    check(
        "descripton = \"x\"\n[scenarios.S]\nruns_per_hour = 1\nsteps = []",
        "4:9",
        &["from 1 to"],
    );
    check(
        &format!("descripton = \"x\"\n{}", inside("")),
        "1:1",
        &["no key `descripton`", "`description`?"],
    );
    check(
        &inside(r#"{ action = "a", query_inf = "h", class = "x" },"#),
        "10:17",
        &["names no request", "`query_info`"],
    );
    check(
        &inside(r#"{ action = "a", close = "h", post = true },"#),
        "10:30",
        &["a step has no key `post`", "`post_query`?"],
    );
    check(
        &inside(r#"{ action = "a", query_info = "h", class = "FileBasicInfo" },"#),
        "10:43",
        &["`FileBasicInfo` is not a known class of a query", "`FileBasicInformation`?"],
    );
    check(
        &inside(r#"{ action = "a", query_info = "h", class = "FileRenameInformation" },"#),
        "10:43",
        &["not a known class of a query"],
    );
    check(
        &inside(r#"{ action = "a", flush = "h", expect = "STATUS_SUCESS" },"#),
        "10:39",
        &["`STATUS_SUCESS` is not a known status", "`STATUS_SUCCESS`?"],
    );
    check(
        &inside(r#"{ action = "a", ioctl = "h", code = "FSCTL_DISMOUNT_VOLUME" },"#),
        "10:37",
        &["is not a known control code"],
    );
    check(
        &steps(r#"{ action = "a", create = "x", handle = "h", access = ["reed"] },"#),
        "9:55",
        &["`read`?"],
    );
    check(
        &steps(r#"{ action = "a", create = "x", handle = "h", options = "dir" },"#),
        "9:55",
        &["`dir` is not a known value of `options`"],
    );
    check(&steps(r#"{ create = "x", handle = "h" },"#), "9:1", &["needs `action`"]);
    check(&steps(r#"{ action = " ", close = "h" },"#), "9:12", &["empty action"]);
    check(
        &inside(r#"{ action = "a", read = "h", flush = "h", file = "doc" },"#),
        "10:29",
        &["`read` and `flush`"],
    );
}

#[test]
fn frequencies() {
    // With 1e-300 per hour the interval between two executions overflowed: a panic.
    for wrong in ["0", "-3", "nan", "inf", "-0.5", "1e-300", "1e300"] {
        let text = inside("").replace("runs_per_hour = 1", &format!("runs_per_hour = {wrong}"));
        check(&text, "6:17", &["number"]);
    }
    check(&inside("").replace("runs_per_hour = 1\n", "\n"), "5:1", &["needs `runs_per_hour`"]);
}

#[test]
fn handles() {
    check(&steps(CLOSE), "9:25", &["no handle `h` is open"]);
    check(&inside(r#"{ action = "a", flush = "hh" },"#), "10:25", &["no handle `hh`", "`h`?"]);
    check(&steps(&format!("{OPEN}\n{CLOSE}\n{CLOSE}")), "11:25", &["not open any more"]);
    check(&steps(OPEN), "9:44", &["never closed"]);
    check(&inside(OPEN), "10:44", &["open already"]);
    check(&steps(r#"{ action = "a", create = "x" },"#), "9:1", &["needs a name for its handle"]);
    check(
        &steps(r#"{ action = "a", create = "x", handle = "h", expect = "STATUS_ACCESS_DENIED" },"#),
        "9:40",
        &["opens no handle"],
    );
    check(
        &steps(
            r#"{ action = "a", create = "x", handle = "h", expect = ["STATUS_SUCCESS", "STATUS_ACCESS_DENIED"] },"#,
        ),
        "9:45",
        &["either opens or fails"],
    );
}

#[test]
fn paths_and_files() {
    check(&steps(r#"{ action = "a", create = "{doc", handle = "h" },"#), "9:26", &["without `}`"]);
    check(&steps(r#"{ action = "a", create = "{dok}", handle = "h" },"#), "9:26", &["{doc}"]);
    check(&steps(r#"{ action = "a", create = 'a\b', handle = "h" },"#), "9:26", &["`/`"]);
    check(
        &inside(r#"{ action = "a", read = "h", file = "dok" },"#),
        "10:36",
        &["no file `dok`", "`doc`"],
    );
    check(&inside(r#"{ action = "a", read = "h" },"#), "10:1", &["needs `file`"]);
    check(
        &inside(r#"{ action = "a", read = "h", file = "doc", block = "9 MiB" },"#),
        "10:51",
        &["8 MiB"],
    );
    check(
        &inside(r#"{ action = "a", read = "h", file = "doc", bytes = "some" },"#),
        "10:51",
        &["\"64 KiB\""],
    );
    check(
        &inside(r#"{ action = "a", read = "h", file = "doc", depth = 0 },"#),
        "10:51",
        &["from 1 to 1024"],
    );
    check(
        &inside("").replace("\"docs\"", "\"dogs\""),
        "7:17",
        &["no set of files `dogs`", "`docs`?"],
    );
    check(
        &inside("").replace("\"docs\"", "{ make = \"docs\" }"),
        "7:26",
        &["class static", "needs new"],
    );
    check(
        &inside("").replace("\"static\"", "\"fixed\""),
        "2:9",
        &["`fixed` is not a known class of files", "`static`"],
    );
    check(&inside("").replace("[1]", "[1, 2]").replace("{n}", "x"), "3:8", &["2 files need {n}"]);
    check(&inside("").replace("\"{n}\"", "\"a/{n}\""), "3:8", &["'/'"]);
    check(
        &inside("").replace("blocks = [1]", "blocks = [1]\nkeep = 3"),
        "5:8",
        &["`keep` is for new files"],
    );
}

#[test]
fn compounds() {
    let compound = |members: &str| format!(r#"{{ action = "a", compound = [ {members} ] }},"#);
    let close = r#"{ close = "h" }"#;
    let query = r#"{ query_info = "h", class = "FileBasicInformation" }"#;
    check(&inside(&compound(query)), "10:28", &["from 2 to 16"]);
    check(
        &inside(&compound(r#"{ flush = "h" }, { read = "h", file = "doc" }"#)),
        "10:47",
        &["in no compound"],
    );
    check(
        &steps(&format!("{OPEN}\n{}", compound(&format!("{close}, {query}")))),
        "10:30",
        &["end a compound"],
    );
    let create = r#"{ create = "x", handle = "i" }"#;
    check(&inside(&compound(&format!("{query}, {create}"))), "10:84", &["begin a compound"]);
    let two = format!(
        "{OPEN}\n{}\n{}",
        OPEN.replace("\"h\"", "\"i\""),
        compound(r#"{ flush = "h" }, { flush = "i" }"#)
    );
    check(&steps(&two), "11:47", &["one handle"]);
    let fails = r#"{ create = "x", expect = "STATUS_NO_SUCH_FILE" }, { close = "h" }"#;
    check(&inside(&compound(fails)), "10:30", &["leaves nothing"]);
    let notify = r#"{ change_notify = "h", notification = "n", filter = "file_name", expect = "STATUS_CANCELLED" }"#;
    check(&inside(&compound(&format!("{notify}, {query}"))), "10:30", &["can only end"]);
    check(
        &inside(&compound(&format!("{query}, {{ action = \"b\", flush = \"h\" }}"))),
        "10:86",
        &["no key `action`"],
    );
}

#[test]
fn notifications() {
    let notify = |expect: &str| {
        format!(
            r#"{{ action = "a", change_notify = "h", notification = "n", filter = "file_name", expect = "{expect}" }},"#
        )
    };
    let cancel = r#"{ action = "a", cancel = "n" },"#;
    let cancelled = notify("STATUS_CANCELLED");
    let fired = notify("STATUS_SUCCESS");
    let ended = notify("STATUS_NOTIFY_CLEANUP");
    for right in [&format!("{cancelled}\n{cancel}"), &ended] {
        parse(&inside(right)).unwrap();
    }
    check(&inside(cancel), "10:26", &["no notification `n` waits"]);
    check(
        &inside(&format!("{cancelled}\n{cancel}\n{cancel}")),
        "12:26",
        &["no notification `n` waits"],
    );
    check(&inside(&cancelled), "10:53", &["still waits", "STATUS_NOTIFY_CLEANUP"]);
    check(&inside(&fired), "10:53", &["still waits"]);
    check(&inside(&format!("{ended}\n{cancel}")), "11:26", &["STATUS_CANCELLED"]);
    check(&inside(&format!("{cancelled}\n{cancelled}\n{cancel}")), "11:53", &["waits already"]);
    let wait = r#"{ action = "a", wait = "n", flush = "h" },"#;
    parse(&inside(&format!("{fired}\n{wait}"))).unwrap();
    check(&inside(&format!("{cancelled}\n{wait}")), "11:24", &["STATUS_SUCCESS"]);
    check(
        &inside(&fired.replace("filter = \"file_name\", ", "")),
        "10:1",
        &["needs `filter`", "dir_name"],
    );
    check(
        &inside(&cancel.replace("\"n\"", "\"n\", expect = \"STATUS_CANCELLED\"")),
        "10:26",
        &["waits"],
    );
}

#[test]
fn client_caches() {
    let marked = |mark: &str, inner: &str| {
        let create = format!(r#"{{ action = "a", create = "d", handle = "h", {mark} }},"#);
        steps(&format!("{create}\n{inner}\n{CLOSE}"))
    };
    let flush = r#"{ action = "a", flush = "h" },"#;
    parse(&marked("collapse = true", "")).unwrap();
    parse(&marked("dirlease = \"d\"", flush)).unwrap();
    check(&marked("collapse = true", flush), "10:25", &["only reaches the client's own cache"]);
    check(&marked("dirlease = \"\"", flush), "10:25", &["not open when a lease answers"]);
    check(
        &marked("dirlease = \"\"", ""),
        "9:56",
        &["no Create of the scenario asks for the directory lease on \"\""],
    );
    let notify = r#"{ action = "a", change_notify = "h", notification = "n", filter = "size", expect = "STATUS_NOTIFY_CLEANUP", dirlease = true },"#;
    // The watched handle requests no lease, so another Create has to.
    check(&marked("dirlease = \"d\"", notify), "9:56", &["no Create of the scenario asks"]);
    let other = r#"{ action = "a", create = "d", handle = "g", dirlease = "d" }, { action = "a", close = "g" },"#;
    parse(&marked("dirlease = \"d\"", &format!("{notify}\n{other}"))).unwrap();
    check(
        &marked("dirlease = \"d\"", &notify.replace(", dirlease = true", "")),
        "10:53",
        &["wait for ever"],
    );
    check(&marked("share = \"read\"", notify), "10:109", &["has no lease"]);
}

#[test]
fn scenarios_that_delete_files() {
    let text = |first: &str, second: &str| {
        format!(
            "[files.old]\nclass = \"volatile\"\nname = \"{{n}}\"\nblocks = [1]\n[scenarios.A]\nruns_per_hour = 1\n\
             files = {{ x = {first} }}\nsteps = [{{ action = \"a\", create = \"{{x}}\", expect = \"STATUS_ACCESS_DENIED\" }}]\n\
             [scenarios.B]\nruns_per_hour = 1\nfiles = {{ x = {second} }}\n\
             steps = [{{ action = \"a\", create = \"{{x}}\", expect = \"STATUS_ACCESS_DENIED\" }}]\n"
        )
    };
    let take = "{ take = [\"old\"] }";
    check(&text(take, take), "5:2", &["every scenario takes"]);
    check(&text(take, "\"old\""), "5:2", &["`old` are taken away by A and needed by B"]);
}

/// Whatever a file contains: an error with a position, never a panic.
#[test]
fn any_text_is_an_error_at_a_place() {
    let text = include_str!("../../../workloads/bulk-copy.toml");
    for end in (0..text.len()).step_by(7) {
        let Some(cut) = text.get(..end) else { continue };
        if let Err(error) = parse(cut) {
            assert!(error.line <= cut.lines().count() + 1, "{error}");
        }
    }
    for (from, to) in
        [("\"", ""), ("[", ""), ("}", "{"), ("=", "=="), ("60", "1e999"), ("read", "\u{feff}")]
    {
        let _ = parse(&text.replace(from, to));
    }
    let deep = format!("x = {}", "[".repeat(100_000));
    assert!(parse(&deep).is_err());
    assert!(parse(&" ".repeat(5 << 20)).is_err());
}

/// Everything is below the user's home.
#[test]
fn nothing_leads_out_of_the_home() {
    let set = |folders: &str| {
        format!(
            "[files.docs]\nclass = \"static\"\nfolders = [\"Docs\", \"{folders}\"]\nname = \"{{n}}\"\nblocks = [1]\n"
        )
    };
    check(&set("../New"), "3:20", &["`../New`", "leads out of the user's home"]);
    check(&set("a/../../b"), "3:20", &["leads out"]);
    check(&set("/etc"), "3:20", &["begins and ends with a name"]);
    check(&set("C:/x"), "3:20", &["':' is not allowed in a path"]);
    check(&set("C:\\\\x"), "3:20", &["is not allowed in a path"]);
    check("folders = [\"..\"]", "1:12", &["leads out"]);
    check("[files.docs]\nclass = \"static\"\nname = \"..\"\nblocks = [1]", "3:8", &["leads out"]);
    let away = r#"{ action = "a", create = "{doc.dir}/../../user00002/x", handle = "i" },"#;
    check(&inside(away), "10:26", &["leads out"]);
    let rename =
        r#"{ action = "a", set_info = "h", class = "FileRenameInformation", to = "../x" },"#;
    check(&inside(rename), "10:71", &["leads out"]);
}

#[test]
fn invalid_utf8_is_located() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("latin.toml");
    std::fs::write(&file, b"block = 1\ndescription = \"gr\xfc\xdfe\"\n").unwrap();
    let text = Workload::load(&file).unwrap_err().to_string();
    assert!(text.contains("latin.toml:2:18: byte 0xfc is not valid UTF-8"), "{text}");
    assert!(text.contains("help: write the file as UTF-8"), "{text}");
}
