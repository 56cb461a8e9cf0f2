//! `smbscope plan namespace`: checked, rewritten, moved.

use serde_json::Value;

use super::{answer, complaint, text, written};
#[cfg(target_os = "linux")]
use super::{smbscope, stdout};

const EXPORT: &str = r#"<?xml version="1.0"?>
<Root Name="\\corp.example\Public" State="1" Timeout="300" Attributes="64" >
	<Target Server="OLD1" Folder="Public" State="2" />
	<Target Server="OLD2" Folder="Public" State="2" />
	<Link Name="Sales & Marketing" State="1" Timeout="86400" >
		<Target Server="FS1" Folder="Sales" State="2" />
		<Target Server="fs2.corp.example" Folder="Sales" State="2" />
	</Link>
	<Link Name="Tools" State="1" Timeout="1800" >
		<Target Server="FS1" Folder="Tools" State="2" />
	</Link>
</Root>
"#;

#[test]
fn a_namespace_is_checked_and_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    let export = written(dir.path(), "public.xml", EXPORT);
    let shown = answer(["plan", "namespace", text(&export), "--cut-over", "2h"]);
    for part in ["short name", "One target", "Sales & Marketing"] {
        assert!(shown.to_lowercase().contains(&part.to_lowercase()), "{part}: {shown}");
    }
    let json: Value =
        serde_json::from_str(&answer(["plan", "namespace", text(&export), "--format", "json"]))
            .unwrap();
    assert_eq!(json["namespace"]["links"], 2);

    let out = dir.path().join("rewritten.xml");
    let refused = complaint(2, ["plan", "namespace", "rewrite", text(&export), "--suffix", ""]);
    assert!(refused.contains("suffix"), "{refused}");
    let changes = answer([
        "plan",
        "namespace",
        "rewrite",
        text(&export),
        "--suffix",
        "corp.example",
        "--out",
        text(&out),
    ]);
    assert!(
        changes.contains("FS1.corp.example") || changes.contains("fs1.corp.example"),
        "{changes}"
    );
    let rewritten = std::fs::read_to_string(&out).unwrap();
    assert!(
        rewritten.contains("corp.example\\Sales") && rewritten.contains("ONLINE"),
        "{rewritten}"
    );
    let same = answer(["plan", "namespace", text(&out), "--compare", text(&out)]);
    assert_eq!(same, "no difference\n");
    complaint(1, ["plan", "namespace", text(&out), "--compare", text(&export)]);
    complaint(
        2,
        ["plan", "namespace", "rewrite", text(&export), "--suffix", "a.b", "--out", text(&out)],
    );
}

#[test]
fn a_move_has_stages_gates_and_a_state() {
    let dir = tempfile::tempdir().unwrap();
    let export = written(dir.path(), "public.xml", EXPORT);
    let clients = written(dir.path(), "clients.txt", "PC1\nPC2\n");
    let state = dir.path().join("move.json");
    let page = dir.path().join("move.html");
    let shown = answer([
        "plan",
        "namespace",
        "migrate",
        text(&export),
        "--servers",
        "NEW1,NEW2",
        "--old",
        "OLD1,OLD2",
        "--suffix",
        "corp.example",
        "--clients",
        text(&clients),
        "--state",
        text(&state),
        "--html",
        text(&page),
        "--format",
        "text",
    ]);
    for part in ["New-DfsnRootTarget", "Undo", "Set-DfsnServerConfiguration"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<svg") && !html.contains("<script src"), "no drawing");

    let status = |more: &[&str]| {
        let all = [&["plan", "namespace", "status", "--state", text(&state)][..], more].concat();
        answer(all)
    };
    status(&["--begin", "save"]);
    let shown: Value =
        serde_json::from_str(&status(&["--done", "save", "--format", "json"])).unwrap();
    let progress = shown["progress"].as_array().unwrap();
    let of = |id: &str| progress.iter().find(|stage| stage["id"] == id).unwrap();
    assert_eq!(of("save")["status"], "done");
    // Not in this order.
    let refused =
        complaint(2, ["plan", "namespace", "status", "--state", text(&state), "--done", "remove"]);
    assert!(refused.contains("remove"), "{refused}");

    let cache = "smbscope-client: PC1 2026-11-26T18:00:00Z\nsmbscope-section: referrals\nEntry: \\corp.example\\Public\n\
                 ShortEntry: \\corp.example\\Public\nExpires in 200 seconds\nUseCount: 1 Type:0x81 ( REFERRAL_SVC DFS )\n   \
                 0:[\\OLD1\\Public] AccessStatus: 0 ( ACTIVE TARGETSET )\n   1:[\\OLD2\\Public] ( TARGETSET )\n\
                 smbscope-section: opens\n";
    let caches = written(dir.path(), "caches.txt", cache);
    let gate = [
        "plan",
        "namespace",
        "gate",
        "wait-new",
        "--state",
        text(&state),
        "--cache",
        text(&caches),
    ];
    let refused = complaint(1, gate);
    assert!(refused.contains("no-go"), "{refused}");
    let script = answer(["plan", "namespace", "gate", "--print-script"]);
    assert!(script.contains("dfsutil"), "{script}");
}

/// What a gate cannot place or read holds it up, and the answer is short.
#[test]
fn a_gate_does_not_go_on_what_it_cannot_read() {
    let dir = tempfile::tempdir().unwrap();
    // The root has the NetBIOS name of the domain, and clients use the FQDN.
    let export =
        written(dir.path(), "public.xml", &EXPORT.replace("corp.example\\Public", "ACME\\Public"));
    let state = dir.path().join("move.json");
    let migrate = [
        "plan",
        "namespace",
        "migrate",
        text(&export),
        "--servers",
        "NEW1,NEW2",
        "--state",
        text(&state),
    ];
    answer([&migrate[..], &["--suffix", "corp.example"]].concat());
    let entry = |host: &str, server: &str| {
        format!(
            "Client: PC1\nEntry: \\{host}\\Public\nExpires in 200 seconds\nUseCount: 1 Type:0x81\n   0:[\\{server}\\Public] AccessStatus: 0 ( ACTIVE )\n"
        )
    };
    let linux = "DFS cache\n---------\ncache entry: path=\\corp.example\\Public,type=root,ttl=300,etime=1,expired=yes\n  \\OLD1\\Public (target hint)\n";
    for (number, (content, word)) in [
        (entry("corp.example", "OLD1"), "no new server"),
        (entry("corp.example", "X"), "no new server"),
        (entry("elsewhere.example", "X"), "cannot be placed"),
        ("Zugriff verweigert\n".to_owned(), "says nothing"),
        (String::new(), "nothing was printed"),
        (linux.to_owned(), "no new server"),
    ]
    .into_iter()
    .enumerate()
    {
        let cache = written(dir.path(), &format!("PC{number}.txt"), &content);
        let gate = [
            "plan",
            "namespace",
            "gate",
            "wait-new",
            "--state",
            text(&state),
            "--cache",
            text(&cache),
        ];
        let output = super::smbscope(gate).assert().code(1);
        let shown = super::stdout(&output);
        assert!(shown.contains("No-go") && shown.contains(word), "{content}: {shown}");
        assert!(shown.lines().count() <= 10, "{shown}");
    }
    let elsewhere = written(
        dir.path(),
        "PC9.txt",
        &(entry("corp.example", "NEW1") + &entry("elsewhere.example", "X")),
    );
    let gate = [
        "plan",
        "namespace",
        "gate",
        "wait-new",
        "--state",
        text(&state),
        "--cache",
        text(&elsewhere),
    ];
    complaint(1, gate);
    let shown = answer([&gate[..], &["--other-host", "elsewhere.example"]].concat());
    assert!(shown.starts_with("Go for stage wait-new"), "{shown}");
    let status = answer(["plan", "namespace", "status", "--state", text(&state)]);
    assert!(status.lines().count() <= 10 && status.contains("0 of 15 stages"), "{status}");
    let all = answer(["plan", "namespace", "status", "--state", text(&state), "--all"]);
    assert!(all.contains("New-DfsnRootTarget"), "{all}");
}

/// Serious findings stop a plan; accepted ones are its preconditions.
#[test]
fn serious_findings_stop_a_move() {
    let dir = tempfile::tempdir().unwrap();
    let nested = EXPORT.replace("Name=\"Tools\"", "Name=\"Sales &amp; Marketing\\Tools\"");
    let export = written(dir.path(), "public.xml", &nested);
    let migrate = ["plan", "namespace", "migrate", text(&export), "--servers", "NEW1,NEW2"];
    let refused = complaint(2, migrate);
    assert!(refused.contains("below other links") && refused.contains("--anyway"), "{refused}");
    let shown = answer([&migrate[..], &["--anyway"]].concat());
    assert!(shown.contains("accepted: Links are below other links"), "{shown}");
}

#[test]
fn what_is_no_namespace_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let cut = written(dir.path(), "cut.xml", &EXPORT[..300]);
    assert!(complaint(3, ["plan", "namespace", text(&cut)]).contains("cut.xml"));
    complaint(4, ["plan", "namespace", "/nonexistent.xml"]);
    complaint(2, ["plan", "namespace", "gate", "wait-new", "--state", "/nonexistent.json"]);
}

/// Links with names that shells treat specially, to folders of one share, and a first target that does not exist.
#[cfg(target_os = "linux")]
const LINKS: &str = r#"<?xml version="1.0"?>
<Root Name="\\CORP\home" State="1" Timeout="300" Attributes="64" >
	<Target Server="OLD1" Folder="home" State="2" />
	<Link Name="Accounting" State="1" Timeout="1800" >
		<Target Server="OLD1" Folder="home\data\accounting" State="2" />
	</Link>
	<Link Name="Departments\R&D" State="1" Timeout="1800" >
		<Target Server="OLD2" Folder="home\data\R&D" State="2" />
	</Link>
	<Link Name="it's [1]" State="1" Timeout="900" >
		<Target Server="OLD1" Folder="gone\data" State="2" />
		<Target Server="OLD2" Folder="home\data\it's" State="2" />
	</Link>
	<Link Name="Again" State="1" Timeout="900" >
		<Target Server="OLD2" Folder="home\Accounting\below" State="2" />
	</Link>
</Root>
"#;

/// The load client follows every link of a rewritten namespace that a private Samba serves.
#[cfg(target_os = "linux")]
#[test]
fn users_follow_the_links_of_a_rewritten_namespace() {
    use std::os::unix::fs::PermissionsExt as _;

    use super::users::Users;

    let Some(users) = Users::up_with(&["--set", "host msdfs = yes", "--set", "msdfs root = yes"])
    else {
        return;
    };
    let export = written(users.folder.path(), "links.xml", LINKS);
    let out = users.path("samba");
    let rewrite = ["plan", "namespace", "rewrite", text(&export), "--to", "msdfs", "--out", &out];
    let servers = ["OLD1=127.0.0.1", "OLD2=127.0.0.1"].map(|rule| ["--server", rule]).concat();
    answer([&rewrite[..], &servers, &["--allow", "all"]].concat());
    let script = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    let script = script.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "sh"));
    let share = std::path::Path::new(&users.lab).join("share");
    let made = std::process::Command::new("sh").arg(script.unwrap()).arg(&share).status().unwrap();
    assert!(made.success());

    let places = [
        ("Accounting", "data/accounting", 1),
        ("Departments/R&D/deep", "data/R&D/deep", 1),
        ("it's [1]", "data/it's", 1),
        // Two links, one behind the other.
        ("Again", "data/accounting/below", 2),
    ];
    let password = std::path::Path::new(&users.lab).join("password");
    for (link, folder, links) in places {
        let at = share.join(folder);
        std::fs::create_dir_all(&at).unwrap();
        // The lab's users are not those who run the test.
        std::fs::set_permissions(&at, std::fs::Permissions::from_mode(0o777)).unwrap();
        let target = format!("//127.0.0.1:{}/home/{link}", users.port);
        let prepared = smbscope(["load", "prepare", &target, "--users", "1", "--scale", "0.02"])
            .args(["--password-file", text(&password)])
            .assert()
            .success();
        let said = String::from_utf8(prepared.get_output().stderr.clone()).unwrap();
        assert_eq!(said.matches("is a DFS link to").count(), links, "{said}");
        assert!(std::fs::read_dir(&at).unwrap().count() > 0, "{link}: nothing in {folder}: {said}");
    }
    // A run and its recording name the share behind the link.
    let target = format!("//127.0.0.1:{}/home/Accounting", users.port);
    let run = users.path("run");
    let times = ["--warm-up", "0s", "--duration", "2s", "--cool-down", "0s", "--closed"];
    let ran = smbscope(["load", &target, "--users", "1", "--scale", "0.02", "--out", &run])
        .args(times)
        .args(["--password-file", text(&password)])
        .assert()
        .success();
    assert!(!stdout(&ran).is_empty());

    // Links that lead to each other end with an error that says so.
    let ring = share.join("ring");
    std::os::unix::fs::symlink("msdfs:127.0.0.1\\home\\ring", ring).unwrap();
    let target = format!("//127.0.0.1:{}/home/ring", users.port);
    let refused = smbscope(["load", "prepare", &target, "--users", "1", "--scale", "0.02"])
        .args(["--password-file", text(&password)])
        .assert()
        .failure();
    let said = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(said.contains("lead to each other"), "{said}");
}
