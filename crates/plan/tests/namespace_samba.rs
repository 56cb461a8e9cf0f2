//! A rewritten namespace on a private Samba: smbclient follows every link of it.
//!
//! An export of 2003 with short names is rewritten to FQDN and new servers, written as links of Samba, and the script of
//! links is run. smbd listens on port 445 in a network namespace of its own, because clients follow links to port 445
//! only; names resolve by a file that is mounted over `/etc/hosts` there. Each target has a file with its own text.
//!
//! With tcpdump and tshark, the referrals that smbd answered are compared with the namespace by the check.
//!
//! Skips without root, smbd, smbclient or unshare.

// A test may panic.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use smbscope_plan::namespace::check::{Context, FindingKind, check};
use smbscope_plan::namespace::form::Form;
use smbscope_plan::namespace::read::read;
use smbscope_plan::namespace::referral::{ReferralRow, namespaces};
use smbscope_plan::namespace::rewrite::{Rules, ServerRule, SuffixRule, rewrite};
use smbscope_plan::namespace::write::{Allowed, Lost, write};

/// Links with names that shells, PowerShell and XML treat specially; targets with short names of old servers.
const EXPORT: &str = r#"<?xml version="1.0"?>
<Root Name="\\CONTOSO\Public" State="1" Timeout="300" Attributes="64" >
	<Target Server="ROOT1" Folder="Public" State="2" />
	<Link Name="Accounting" State="1" Timeout="1800" >
		<Target Server="OLD1" Folder="accounting" State="2" />
	</Link>
	<Link Name="Departments\R&D" State="1" Timeout="1800" >
		<Target Server="OLD2" Folder="R&D" State="2" />
	</Link>
	<Link Name="it's $(touch x) [1]" State="1" Timeout="1800" >
		<Target Server="OLD1" Folder="data$\tools\it's" State="2" />
	</Link>
	<Link Name="Büro" State="1" Timeout="1800" >
		<Target Server="GONE" Folder="buero" State="2" />
		<Target Server="OLD2" Folder="buero" State="2" />
	</Link>
	<Link Name="Departments\Deep\Er" State="1" Timeout="1800" >
		<Target Server="OLD2" Folder="accounting" State="2" />
	</Link>
</Root>
"#;

/// Whether a program can be started.
fn has(program: &str, argument: &str) -> bool {
    let there = Command::new(program).arg(argument).output().is_ok();
    if !there {
        smbscope_testing::skip!("{program} is not installed");
    }
    there
}

#[test]
fn smbclient_follows_every_link_of_the_rewritten_namespace() {
    if !has("smbd", "--version") || !has("smbclient", "--version") || !has("unshare", "--version") {
        return;
    }
    let alone = ["--net", "--mount", "--pid", "--fork", "--kill-child"];
    let probe =
        Command::new("unshare").args(alone).args(["ip", "link", "set", "lo", "up"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        smbscope_testing::skip!("no network namespace of its own (needs root)");
        return;
    }

    let reading = read(&[("export.xml".to_owned(), EXPORT.as_bytes().to_vec())]).unwrap();
    let rules = Rules {
        servers: ["OLD1=NEW1", "OLD2=NEW2"].map(|rule| ServerRule::parse(rule).unwrap()).to_vec(),
        suffixes: vec![SuffixRule::parse("contoso.com").unwrap()],
        ..Rules::default()
    };
    let rewritten = rewrite(&reading.namespaces[0].namespace, &rules).namespace;
    let allowed =
        Allowed { all: false, some: vec![Lost::Ttls, Lost::Flags, Lost::NamespaceServers] };
    let written = write(&rewritten, Form::Msdfs, &allowed).unwrap();
    let script = written.files.iter().find(|file| file.name.ends_with(".sh")).unwrap();

    let folder = std::env::temp_dir().join(format!("smbscope-namespace-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let root = folder.join("root");
    fs::create_dir_all(&root).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("links.sh"), &script.bytes).unwrap();
    let made = Command::new("sh").arg(folder.join("links.sh")).arg(&root).status().unwrap();
    assert!(made.success());

    // Every server is this smbd; each target's folder says which one it is.
    let mut hosts = String::from("127.0.0.1 localhost dfs\n");
    let mut conf = configuration(&folder);
    let mut commands = String::new();
    let mut shares = std::collections::BTreeSet::new();
    for link in &rewritten.links {
        let target = link.targets.last().unwrap();
        let (share, below) = target.share.split_once('\\').unwrap_or((&target.share, ""));
        let path = folder.join("shares").join(share);
        let inner = path.join(below.replace('\\', "/"));
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("marker.txt"), format!("marker of {}\n", target.share)).unwrap();
        if shares.insert(share.to_owned()) {
            let _ = writeln!(conf, "[{share}]\n    path = {}\n    guest ok = yes", path.display());
        }
        let _ = writeln!(commands, "get \"{}\\marker.txt\" -", link.path);
    }
    for server in ["new1", "new2"] {
        let _ = writeln!(hosts, "127.0.0.1 {server}.contoso.com");
    }
    // A first target without a route: the client takes the second one. All of 127.0.0.0/8 would be this smbd.
    hosts.push_str("192.0.2.1 gone.contoso.com\n");
    fs::write(folder.join("hosts"), hosts).unwrap();
    fs::write(folder.join("smb.conf"), conf).unwrap();
    fs::write(folder.join("commands"), commands).unwrap();

    let run = format!(
        "cd {folder} && ip link set lo up && mount --bind hosts /etc/hosts && \
         (tcpdump -i lo -U -s 0 -w referrals.pcap tcp port 445 >/dev/null 2>&1 &) ; \
         (smbd --foreground --no-process-group -s smb.conf >smbd.out 2>&1 &) && \
         for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
           smbclient -s smb.conf -N //dfs/Public -c ls >first.out 2>&1 && break; sleep 1; done; \
         smbclient -s smb.conf -N //dfs/Public <commands 2>&1; sleep 1",
        folder = folder.display()
    );
    let output = Command::new("unshare").args(alone).args(["sh", "-c", &run]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = fs::read_to_string(folder.join("first.out")).unwrap_or_default();
    let log = fs::read_to_string(folder.join("smbd.out")).unwrap_or_default();
    let mut followed = 0;
    for link in &rewritten.links {
        let marker = format!("marker of {}", link.targets.last().unwrap().share);
        assert!(text.contains(&marker), "{}: no {marker:?} in\n{text}\n{first}\n{log}", link.path);
        followed += 1;
    }
    assert!(!folder.join("x").exists() && !root.join("x").exists(), "a name became a command");
    println!("smbclient followed {followed} links");
    let list = written.files.iter().find(|file| file.name.ends_with(".links")).unwrap();
    answers(&folder, &list.bytes);
    fs::remove_dir_all(&folder).unwrap();
}

/// Compares the answers of smbd with the namespace, as tshark reads them.
fn answers(folder: &Path, list: &[u8]) {
    let fields = ["smb.dfs.referral.path", "smb.dfs.referral.node", "smb.dfs.referral.ttl"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(folder.join("referrals.pcap"));
    command.args(["-Y", "smb.dfs.num_referrals", "-T", "fields", "-E", "aggregator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }

    let Some(output) = command.output().ok().filter(|output| output.status.success()) else {
        smbscope_testing::skip!("no tcpdump or no tshark");
        return;
    };
    // Its dissector of referrals makes one byte of each UTF-16 unit.
    let text: String = output.stdout.iter().copied().map(char::from).collect();
    let row = |line: &str| {
        let mut columns = line.split('\t').map(|column| column.split('|').map(str::to_owned));
        let mut column = || columns.next().unwrap().collect::<Vec<_>>();
        let (paths, targets, ttls) = (column(), column(), column());
        ReferralRow {
            client: "smbclient".to_owned(),
            server: "dfs".to_owned(),
            path: paths[0].clone(),
            dfs_path: paths[0].clone(),
            targets,
            ttl_s: ttls[0].parse().ok(),
            ..ReferralRow::default()
        }
    };
    // smbd also answers for the share itself: its own name, which the list does not have.
    let is_link = |row: &ReferralRow| row.dfs_path.matches('\\').count() > 2;
    let rows: Vec<ReferralRow> = text.lines().map(row).filter(is_link).collect();
    let list = String::from_utf8(list.to_vec()).unwrap().replace("\\\\CONTOSO\\", "\\\\dfs\\");
    let reading = read(&[("Public.links".to_owned(), list.into_bytes())]).unwrap();
    let context = Context { referrals: &rows, ..Context::default() };
    let checked = check(&reading, &context);
    for finding in &checked.namespaces[0].findings {
        let is_different = matches!(
            finding.kind,
            FindingKind::ReferralsDiffer
                | FindingKind::ReferralsLack
                | FindingKind::UnknownReferrals
        );
        assert!(!is_different, "{finding:#?}");
    }
    let seen = namespaces(&rows);
    assert_eq!(seen.len(), 1);
    let links = &reading.namespaces[0].namespace.links;
    assert_eq!(seen[0].links.len(), links.len(), "{text}");
    for link in links {
        let answered = seen[0].links.iter().find(|one| one.path.eq_ignore_ascii_case(&link.path));
        assert_eq!(answered.map(|one| &one.targets), Some(&link.targets), "{}", link.path);
    }
    println!("{} answers of smbd name the targets of {} links", rows.len(), links.len());
}

fn configuration(folder: &Path) -> String {
    let at = |name: &str| {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        path.display().to_string()
    };
    format!(
        "[global]\n    workgroup = LAB\n    netbios name = DFS\n    server role = standalone server\n    map to guest = Bad User\n    \
         smb ports = 445\n    host msdfs = yes\n    disable netbios = yes\n    load printers = no\n    printing = bsd\n    disable spoolss = yes\n    \
         lock directory = {}\n    state directory = {}\n    cache directory = {}\n    pid directory = {}\n    private dir = {}\n    \
         ncalrpc dir = {}\n    log file = {}/log\n[Public]\n    path = {}\n    msdfs root = yes\n    guest ok = yes\n",
        at("lock"),
        at("state"),
        at("cache"),
        at("pid"),
        at("private"),
        at("ncalrpc"),
        folder.display(),
        folder.join("root").display()
    )
}
