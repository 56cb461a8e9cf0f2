//! Each finding on the smallest namespace that has it, and a namespace that has none.

use smbscope_findings::Kind as _;

use super::super::model::{CachedReferral, ClientCache, Kind, Link, State};
use super::super::read::read;
use super::*;

fn target(path: &str) -> Target {
    let (server, share) = path.split_once('\\').unwrap();
    Target { server: server.to_owned(), share: share.to_owned(), ..Target::default() }
}

fn link(path: &str, targets: &[&str]) -> Link {
    let targets = targets.iter().map(|path| target(path)).collect();
    Link { path: path.to_owned(), targets, ttl_s: Some(1800), ..Link::default() }
}

/// A namespace of mode 2008 without a finding.
fn clean() -> Namespace {
    Namespace {
        host: "contoso.com".to_owned(),
        name: "Public".to_owned(),
        kind: Some(Kind::DomainV2),
        ttl_s: Some(300),
        targets: vec![target("root1.contoso.com\\Public"), target("root2.contoso.com\\Public")],
        links: vec![
            link("Accounting", &["fs1.contoso.com\\accounting", "fs2.contoso.com\\accounting"]),
            link("Tools", &["fs1.contoso.com\\tools", "fs2.contoso.com\\tools"]),
        ],
        ..Namespace::default()
    }
}

fn whole(namespace: Namespace, form: Form) -> Reading {
    let link_places = vec![super::super::read::Place { file: 0, line: 7 }; namespace.links.len()];
    Reading {
        files: vec!["a.xml".to_owned()],
        namespaces: vec![ReadNamespace {
            namespace,
            form,
            place: super::super::read::Place { file: 0, line: 2 },
            link_places,
            blob_bytes: None,
            root_servers_differ: Vec::new(),
        }],
        ..Reading::default()
    }
}

fn findings(reading: &Reading, context: &Context<'_>) -> Vec<Finding> {
    check(reading, context).namespaces.remove(0).findings
}

fn of(namespace: Namespace) -> Vec<Finding> {
    findings(&whole(namespace, Form::DirectoryV2), &Context::default())
}

fn troubles(findings: &[Finding]) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}

/// The evidence of one trouble: link, target and detail.
fn evidence(findings: &[Finding], trouble: FindingKind) -> Vec<String> {
    let found = findings.iter().find(|finding| finding.kind == trouble);
    let found = found.unwrap_or_else(|| panic!("no {trouble:?} in {:?}", troubles(findings)));
    assert_eq!(found.details.count as usize, found.details.evidence.len());
    let text = |one: &Evidence| {
        format!(
            "{}|{}|{}",
            one.link.as_deref().unwrap_or_default(),
            one.target.as_deref().unwrap_or_default(),
            one.detail
        )
    };
    found.details.evidence.iter().map(text).collect()
}

#[test]
fn a_clean_namespace_has_no_finding() {
    assert_eq!(of(clean()), vec![]);
    let checked = check(&whole(clean(), Form::DirectoryV2), &Context::default());
    let namespace = &checked.namespaces[0];
    assert_eq!((namespace.links, namespace.targets), (2, 4));
    assert_eq!(namespace.servers, ["fs1.contoso.com", "fs2.contoso.com"]);
    assert_eq!(namespace.unchecked.len(), 5);
    assert!(namespace.is_blob_estimated);
}

#[test]
fn names_of_servers() {
    let mut namespace = clean();
    namespace.links[0].targets[0].server = "FS1".to_owned();
    namespace.links[1].targets[1].server = "old".to_owned();
    namespace.targets[1].server = "10.0.0.9".to_owned();
    let found = of(namespace.clone());
    assert_eq!(
        evidence(&found, FindingKind::MixedNames),
        ["Accounting|FS1|FS1 in 1 targets, fs1.contoso.com in 1"]
    );
    assert_eq!(evidence(&found, FindingKind::ShortNames), ["Tools|old|old in 1 targets"]);
    assert_eq!(evidence(&found, FindingKind::Addresses), ["|10.0.0.9|10.0.0.9 in 1 targets"]);
    assert_eq!(found[0].details.evidence[0].place.as_deref(), Some("a.xml:7"));

    let zone = b"$ORIGIN contoso.com.\nfs1 IN A 10.0.0.1\nfs2 IN CNAME fs1\nroot1 IN A 10.0.0.3\nold IN A 10.0.0.4\n";
    let mut names = Resolution::read("zone", zone).unwrap();
    names.add("fs1", "10.9.9.9".parse().unwrap());
    let context = Context { resolution: Some(&names), ..Context::default() };
    let found = findings(&whole(namespace, Form::DirectoryV2), &context);
    assert_eq!(
        evidence(&found, FindingKind::DifferentAddresses),
        ["Accounting|FS1|FS1 is 10.9.9.9, fs1.contoso.com is 10.0.0.1"]
    );
    assert_eq!(
        evidence(&found, FindingKind::Aliases),
        ["Accounting|fs2.contoso.com|fs2.contoso.com is an alias of fs1.contoso.com"]
    );
    let mut gone = clean();
    gone.links[0].targets[0].server = "gone.contoso.com".to_owned();
    let found = findings(&whole(gone, Form::DirectoryV2), &context);
    assert_eq!(
        evidence(&found, FindingKind::UnresolvedNames),
        [
            "Accounting|gone.contoso.com|gone.contoso.com in 1 targets",
            "|root2.contoso.com|root2.contoso.com in 1 targets"
        ]
    );
}

#[test]
fn paths_of_links() {
    let mut namespace = clean();
    for path in ["accounting", "Accounting\\2024", "R&D", "a:b", "x\\..", "Büro [alt]", " y"] {
        namespace.links.push(link(path, &["fs1.contoso.com\\x", "fs2.contoso.com\\x"]));
    }
    namespace.links.push(link("Empty", &[]));
    let found = of(namespace);
    assert_eq!(
        evidence(&found, FindingKind::DuplicateLinks),
        ["accounting||also at a.xml:7 (another case)"]
    );
    assert_eq!(
        evidence(&found, FindingKind::NestedLinks),
        ["Accounting\\2024||below the link accounting (a.xml:7)"]
    );
    assert_eq!(evidence(&found, FindingKind::Ampersands), ["R&D||the link's name has &"]);
    assert_eq!(
        evidence(&found, FindingKind::ForbiddenNames),
        ["a:b||it has ':'", "x\\..||a part of the path is empty, . or .."]
    );
    assert_eq!(evidence(&found, FindingKind::DifficultNames).len(), 3);
    assert_eq!(evidence(&found, FindingKind::EmptyLinks), ["Empty||no target"]);
    assert_eq!(found[0].severity().unwrap(), Severity::High);
}

#[test]
fn states_and_spelling_of_targets() {
    let mut namespace = clean();
    namespace.links[0].targets[0].state = State::Offline;
    namespace.links[0].targets[1].state = State::Other(9);
    namespace.links[1].state = State::Offline;
    namespace.links.push(link("One", &["fs1.contoso.com\\x."]));
    namespace.links.push(link("Twice", &["fs1\\x", "FS1.contoso.com\\X"]));
    namespace.links.push(link("Case", &["fs1.contoso.com\\x", "fs2.contoso.com\\X"]));
    namespace.links.push(link("Deep", &["fs1.contoso.com\\x", "fs2.contoso.com\\x\\y"]));
    namespace.targets[0].state = State::Offline;
    namespace.targets[1].share = "Other".to_owned();
    let found = of(namespace);
    assert_eq!(
        evidence(&found, FindingKind::OfflineTargets),
        [
            "|\\\\root1.contoso.com\\Public|a namespace server",
            "Accounting|\\\\fs1.contoso.com\\accounting|offline"
        ]
    );
    let offline = found.iter().find(|one| one.kind == FindingKind::OfflineTargets).unwrap();
    assert_eq!(
        offline.details.evidence[1].repair.as_deref(),
        Some(
            "Set-DfsnFolderTarget -Path '\\\\contoso.com\\Public\\Accounting' -TargetPath '\\\\fs1.contoso.com\\accounting' -State Online"
        )
    );
    assert_eq!(
        evidence(&found, FindingKind::NothingOnline),
        ["Accounting||2 targets, none is online"]
    );
    assert_eq!(evidence(&found, FindingKind::UnknownStates).len(), 1);
    assert_eq!(evidence(&found, FindingKind::OfflineLinks).len(), 1);
    assert_eq!(evidence(&found, FindingKind::SingleTarget).len(), 1);
    assert_eq!(
        evidence(&found, FindingKind::DuplicateTargets),
        ["Twice|\\\\FS1.contoso.com\\X|also \\\\fs1\\x"]
    );
    assert_eq!(evidence(&found, FindingKind::TargetsDifferInCase).len(), 1);
    assert_eq!(evidence(&found, FindingKind::TrailingParts).len(), 2);
    assert_eq!(
        evidence(&found, FindingKind::RootShareNames),
        ["|\\\\root2.contoso.com\\Other|the namespace is Public"]
    );
    let mut single = clean();
    single.targets.truncate(1);
    assert_eq!(troubles(&of(single)), [FindingKind::SingleServer]);
}

#[test]
fn shares_that_do_not_exist() {
    let mut reading = whole(clean(), Form::DirectoryV2);
    let net = "Share name   Resource                        Remark\n\n-------------------------------------------------------------------------------\naccounting   D:\\accounting\nThe command completed successfully.\n";
    reading.shares = read(&[("FS1.txt".to_owned(), net.as_bytes().to_vec())]).unwrap().shares;
    let found = findings(&reading, &Context::default());
    assert_eq!(
        evidence(&found, FindingKind::MissingShares),
        ["Tools|\\\\fs1.contoso.com\\tools|FS1 has no share tools"]
    );
}

#[test]
fn targets_that_are_dfs_paths() {
    let mut namespace = clean();
    namespace.links.push(link("Inter", &["contoso.com\\Public\\Tools\\bin"]));
    namespace.links.push(link("Loop1", &["root1.contoso.com\\public\\Loop2"]));
    namespace.links.push(link("Loop2", &["contoso\\Public\\Loop1"]));
    namespace.links.push(link("Up\\Down", &["contoso.com\\Public\\up"]));
    namespace.links.push(link("Else", &["contoso.com\\Unread\\x"]));
    let found = of(namespace);
    assert_eq!(
        evidence(&found, FindingKind::Interlinks),
        [
            "Inter|\\\\contoso.com\\Public\\Tools\\bin|leads to \\\\fs1.contoso.com\\tools\\bin over \\\\contoso.com\\Public\\Tools\\bin",
            "Else|\\\\contoso.com\\Unread\\x|a path of a namespace that was not read"
        ]
    );
    let loops = evidence(&found, FindingKind::Loops);
    assert_eq!(loops.len(), 3);
    assert!(loops[2].starts_with("Up\\Down|"));
}

#[test]
fn times_to_live_and_sizes() {
    let mut namespace = clean();
    namespace.links[0].ttl_s = Some(90_000);
    namespace.links[1].ttl_s = Some(0);
    let found = of(namespace.clone());
    assert_eq!(evidence(&found, FindingKind::LongTtl), ["Accounting||TTL 1 d 1 h"]);
    assert_eq!(evidence(&found, FindingKind::ZeroTtl), ["Tools||the TTL is 0"]);
    // In two days: there is time to shorten it; in an hour: there is not.
    for (left_s, severity) in [(172_800, Severity::Medium), (3_600, Severity::High)] {
        let context =
            Context { cutover: Some(Cutover { left_s, window_s: 7_200 }), ..Context::default() };
        let found = findings(&whole(namespace.clone(), Form::DirectoryV2), &context);
        let long = found.iter().find(|one| one.kind == FindingKind::TtlTooLong).unwrap();
        assert_eq!((long.severity().unwrap(), long.details.count), (severity, 1));
        assert_eq!(
            long.details.evidence[0].repair.as_deref(),
            Some("Set-DfsnFolder -Path '\\\\contoso.com\\Public\\Accounting' -TimeToLiveSec 3600")
        );
    }
    namespace.kind = Some(Kind::DomainV1);
    namespace.links = (0..5_001)
        .map(|number| Link {
            comment: Some("x".repeat(500)),
            ..link(&format!("l{number}"), &["a.c.com\\s", "b.c.com\\s"])
        })
        .collect();
    let found = of(namespace);
    assert_eq!(troubles(&found), [FindingKind::TooManyLinks, FindingKind::BlobTooLarge]);
    assert_eq!(found[0].severity().unwrap(), Severity::High);
}

#[test]
fn an_export_and_the_directory() {
    let mut reading = whole(clean(), Form::Export2008);
    reading.namespaces[0].namespace.kind = None;
    let found = findings(&reading, &Context::default());
    assert_eq!(troubles(&found), [FindingKind::ExportLoses]);
    assert_eq!(found[0].severity().unwrap(), Severity::Medium);
    let mut directory = whole(clean(), Form::DirectoryV2).namespaces.remove(0);
    directory.namespace.links[0].targets.remove(1);
    directory.namespace.links[1].targets[0].priority_rank = Some(3);
    directory.namespace.links.push(link("Old", &["fs0\\old"]));
    directory.root_servers_differ.push("\\\\gone\\Public".to_owned());
    reading.namespaces[0]
        .namespace
        .links
        .push(link("New", &["fs1.contoso.com\\new", "fs2.contoso.com\\new"]));
    reading.namespaces.push(directory);
    let checked = check(&reading, &Context::default());
    let found = &checked.namespaces[0].findings;
    assert_eq!(
        evidence(found, FindingKind::OrphanedLinks),
        ["Old||only in the directory: \\\\fs0\\old"]
    );
    assert_eq!(evidence(found, FindingKind::MissingInDirectory), ["New||only in the export"]);
    assert_eq!(evidence(found, FindingKind::DiffersFromDirectory).len(), 1);
    let loses = evidence(found, FindingKind::ExportLoses);
    assert_eq!(loses[0], "||priorities of targets: 1 (Tools (\\\\fs1.contoso.com\\tools))");
    assert_eq!(evidence(&checked.namespaces[1].findings, FindingKind::RootServersDiffer).len(), 1);
}

#[test]
fn objects_without_a_namespace() {
    let ldif = "dn: CN=link-2,CN=Gone,CN=Gone,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com\nobjectClass: msDFS-Linkv2\nmsDFS-LinkPathv2: /lost\nmsDFS-TargetListv2: <targets><target>\\\\s\\x</target></targets>\n";
    let reading = read(&[("a.ldif".to_owned(), ldif.as_bytes().to_vec())]).unwrap();
    let checked = check(&reading, &Context::default());
    assert_eq!(troubles(&checked.findings), [FindingKind::OrphanedObjects]);
    assert_eq!(checked.findings[0].details.evidence[0].place.as_deref(), Some("a.ldif:1"));
}

#[test]
fn caches_of_clients() {
    let cache = "Entry: \\contoso.com\\Public\\Accounting\nExpires in 70 seconds\n 0:[\\fs1.contoso.com\\accounting] AccessStatus: 0xc00000be ( TARGETSET )\n 1:[\\fs2\\accounting] AccessStatus: 0 ( ACTIVE )\n 2:[\\fs7\\accounting]\nEntry: \\elsewhere\\x\n 0:[\\a\\x]\n";
    let mut reading = whole(clean(), Form::DirectoryV2);
    reading.caches = read(&[("PC1.txt".to_owned(), cache.as_bytes().to_vec())]).unwrap().caches;
    let found = findings(&reading, &Context::default());
    assert_eq!(
        evidence(&found, FindingKind::FirstTargetFails),
        [
            "Accounting|\\\\fs1.contoso.com\\accounting|target 0: 0xC00000BE (STATUS_BAD_NETWORK_PATH), then \\\\fs2\\accounting answered"
        ]
    );
    assert_eq!(
        evidence(&found, FindingKind::CacheDiffers),
        ["Accounting|\\\\fs7\\accounting|not a target of the namespace, expires in 70 s"]
    );
}

fn row(client: &str, at_s: i64, path: &str, targets: &[&str]) -> ReferralRow {
    ReferralRow {
        client: client.to_owned(),
        server: "root1".to_owned(),
        at_ns: at_s * 1_000_000_000,
        path: path.to_owned(),
        targets: targets.iter().map(|path| (*path).to_owned()).collect(),
        ttl_s: Some(300),
        elapsed_ns: Some(2_000_000),
        ..ReferralRow::default()
    }
}

#[test]
fn referrals_of_a_capture() {
    let accounting = ["\\fs1\\accounting", "\\fs2.contoso.com\\accounting"];
    let mut rows = vec![
        row("a", 0, "\\contoso.com\\Public\\Accounting\\2024\\x", &accounting),
        row("a", 1, "\\CONTOSO\\public\\tools", &["\\old\\tools", "\\fs1\\tools"]),
        row("b", 2, "\\contoso.com\\Public\\Gone\\x", &["\\fs1\\gone"]),
        row("b", 2, "\\contoso.com\\Public", &["\\root1\\Public", "\\root2\\Public"]),
        row("b", 3, "\\other.com\\Public\\x", &["\\x\\y"]),
    ];
    rows.extend((0..10).map(|second| {
        row("c", 100 + second, "\\contoso.com\\Public\\Accounting", &accounting[..1])
    }));
    let new_servers = ["fs2.contoso.com".to_owned()];
    let context = Context { referrals: &rows, new_servers: &new_servers, ..Context::default() };
    let found = findings(&whole(clean(), Form::DirectoryV2), &context);
    assert_eq!(
        evidence(&found, FindingKind::ReferralsDiffer),
        ["tools|\\old\\tools|not in the export"]
    );
    assert_eq!(
        evidence(&found, FindingKind::ReferralsLack),
        [
            "tools|\\\\fs2.contoso.com\\tools|online in the export, not in the answer",
            "Accounting|\\\\fs2.contoso.com\\accounting|online in the export, not in the answer"
        ]
    );
    assert_eq!(
        evidence(&found, FindingKind::UnknownReferrals),
        ["Gone\\x||root1 answers \\fs1\\gone"]
    );
    assert_eq!(
        evidence(&found, FindingKind::NeverNewServers),
        ["||10 answers, none with fs2.contoso.com; the last came from root1"]
    );
    assert_eq!(
        evidence(&found, FindingKind::ReferralStorms),
        ["\\contoso.com\\Public\\Accounting||10 requests, 10 or more of them within a minute"]
    );
    assert_eq!(
        evidence(&found, FindingKind::ReferralCost),
        [
            "||14 round trips of 3 clients, 28.0 ms in total, median 2.00 ms, longest 2.00 ms (n = 14); the most by c: 10"
        ]
    );
}

#[test]
fn referrals_of_domain_controllers_are_kept_for_900_seconds() {
    let of =
        |path: &str, ttl_s| ReferralRow { ttl_s: Some(ttl_s), ..row("a", 0, path, &["\\dc1\\x"]) };
    let rows = [
        of("\\contoso.com\\SYSVOL", 900),
        of("\\contoso.com\\NETLOGON", 1800),
        of("\\other.com\\SYSVOL", 60),
    ];
    let mut reading = whole(clean(), Form::DirectoryV2);
    let entry = |entry: &str, expires_s| CachedReferral {
        entry: entry.to_owned(),
        expires_s: Some(expires_s),
        ..CachedReferral::default()
    };
    reading.caches.push(ClientCache {
        client: "PC1".to_owned(),
        referrals: vec![entry("contoso.com\\sysvol", 86_000), entry("CONTOSO\\SYSVOL", 0)],
        ..ClientCache::default()
    });
    let found = findings(&reading, &Context { referrals: &rows, ..Context::default() });
    let mut shown = evidence(&found, FindingKind::SysvolTtl);
    shown.sort();
    assert_eq!(
        shown,
        ["\\contoso.com\\NETLOGON||TTL 1800 s", "\\contoso.com\\sysvol||86000 s left"]
    );
}

#[test]
fn every_trouble_has_a_name_of_its_own() {
    let mut names: Vec<&str> = FindingKind::ALL.iter().map(|trouble| trouble.id()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FindingKind::ALL.len());
}
