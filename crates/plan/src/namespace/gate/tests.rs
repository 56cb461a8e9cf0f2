//! Tests of gates.

use super::*;
use crate::namespace::model::{CachedTarget, Kind, Link, Namespace, Target};
use crate::namespace::stages::{Move, plan};

const NOW: i64 = 1_800_000_000;

fn moved(clients: &[&str]) -> MovePlan {
    let target = |server: &str| Target {
        server: server.to_owned(),
        share: "Public".to_owned(),
        ..Target::default()
    };
    let namespace = Namespace {
        host: "contoso.com".to_owned(),
        name: "Public".to_owned(),
        kind: Some(Kind::DomainV1),
        targets: vec![target("OLD1"), target("OLD2")],
        links: vec![Link { path: "a".to_owned(), targets: vec![target("FS1")], ..Link::default() }],
        ..Namespace::default()
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let wanted = Move { new_servers: names(&["NEW1"]), clients: names(clients), ..Move::default() };
    plan(&namespace, &wanted).unwrap()
}

fn entry(entry: &str, expires_s: u64, servers: &[&str]) -> CachedReferral {
    let target = |server: &&str| CachedTarget {
        server: (*server).to_owned(),
        share: "Public".to_owned(),
        ..CachedTarget::default()
    };
    CachedReferral {
        entry: entry.to_owned(),
        expires_s: Some(expires_s),
        use_count: Some(1),
        targets: servers.iter().map(target).collect(),
        ..CachedReferral::default()
    }
}

fn cache(client: &str, read_at_s: i64, referrals: &[CachedReferral]) -> ClientCache {
    ClientCache {
        client: client.to_owned(),
        read_at_s: Some(read_at_s),
        referrals: referrals.to_vec(),
        ..ClientCache::default()
    }
}

fn judged(stage: StageId, plan: &MovePlan, caches: &[ClientCache]) -> Verdict {
    judge(stage, plan, &Evidence { caches, now_s: NOW, ..Evidence::default() })
}

const ROOT: &str = "contoso.com\\Public";

#[test]
fn each_rule_has_its_fault() {
    let plan = moved(&["PC1"]);
    let old = [cache("PC1", NOW, &[entry(ROOT, 200, &["OLD1", "OLD2"])])];
    let mixed = [cache("PC1", NOW, &[entry(ROOT, 200, &["OLD1", "new1.contoso.com"])])];
    let new = [cache("PC1", NOW, &[entry(ROOT, 200, &["NEW1.contoso.com"])])];
    let kinds = |stage, caches| {
        let verdict = judged(stage, &plan, caches);
        let kinds = verdict.held.iter().flat_map(|one| &one.reasons).map(|one| one.kind);
        (verdict.is_go, kinds.collect::<Vec<_>>())
    };
    assert_eq!(kinds(StageId::WaitNew, &old), (false, vec![ReasonKind::LacksNew]));
    assert_eq!(kinds(StageId::WaitNew, &mixed), (true, vec![]));
    assert_eq!(kinds(StageId::WaitOld, &mixed), (false, vec![ReasonKind::HoldsOld]));
    assert_eq!(kinds(StageId::WaitOld, &new), (true, vec![]));
    let verdict = judged(StageId::WaitOld, &plan, &mixed);
    assert_eq!(verdict.until_s, Some(NOW + 200));
    assert_eq!(verdict.held[0].lists_old, ["OLD1"]);
    let link = [cache("PC1", NOW, &[entry("contoso.com\\Public\\a", 900, &["FS1"])])];
    assert_eq!(kinds(StageId::Settle, &link), (false, vec![ReasonKind::OldLink]));
    let link = [cache("PC1", NOW, &[entry("contoso.com\\Public\\a", 900, &["fs1.contoso.com"])])];
    assert_eq!(kinds(StageId::Settle, &link), (true, vec![]));
}

#[test]
fn open_files_have_no_end() {
    let plan = moved(&["PC1", "PC2"]);
    let mut one = cache("PC1", NOW, &[entry(ROOT, 200, &["OLD1"])]);
    one.open_files = vec!["\\\\OLD1\\Public\\a.txt".to_owned()];
    let two = cache("PC2", NOW, &[entry(ROOT, 100, &["OLD1"])]);
    let verdict = judged(StageId::WaitOld, &plan, &[two, one]);
    assert_eq!((verdict.is_go, verdict.until_s), (false, None));
    assert_eq!(verdict.held[0].client, "PC1");
    assert_eq!(verdict.held[0].reasons[1].kind, ReasonKind::OpenFiles);
    assert_eq!(verdict.held[1].ready_at_s, Some(NOW + 100));
}

/// Files below the old root are in use, whatever the list says; other files of the same server are not meant.
#[test]
fn files_of_the_old_root_hold_it_up() {
    let plan = moved(&["PC1", "PC2"]);
    let new = entry(ROOT, 200, &["NEW1.contoso.com"]);
    let with = |client: &str, file: &str, referrals: &[CachedReferral]| ClientCache {
        open_files: vec![file.to_owned()],
        ..cache(client, NOW, referrals)
    };
    for (file, is_go) in [
        (r"\\OLD1\Public: 2 open", false),
        (r"\\old1.contoso.com\public\a.txt", false),
        (r"OLD2: C:\DFSRoots\Public\a.txt", false),
        (r"OLD1: D:\data\a.txt", true),
        (r"\\FS1\Public\a.txt", true),
        ("", true),
    ] {
        let caches = [with("PC1", file, std::slice::from_ref(&new)), cache("PC2", NOW, &[])];
        let verdict = judged(StageId::WaitOld, &plan, &caches);
        assert_eq!(verdict.is_go, is_go, "{file}");
        // It does not matter before.
        assert!(judged(StageId::WaitNew, &plan, &caches).is_go);
    }
    // A client that was not collected stays missing, and is named if it uses an old server.
    let uncollected =
        [with("PC2", r"OLD1: D:\x", &[]), with("10.0.0.9", r"OLD1: C:\DFSRoots\Public\x", &[])];
    let caches = [cache("PC1", NOW, &[new])];
    let evidence =
        Evidence { caches: &caches, uncollected: &uncollected, now_s: NOW, ..Evidence::default() };
    let verdict = judge(StageId::WaitOld, &plan, &evidence);
    assert_eq!(verdict.missing, ["PC2"]);
    assert_eq!((verdict.held.len(), verdict.held[0].client.as_str()), (1, "10.0.0.9"));
}

#[test]
fn missing_clients_are_named_and_hold_it_up() {
    let plan = moved(&["PC1", "PC2.contoso.com", "laptop7"]);
    let new = entry(ROOT, 200, &["NEW1.contoso.com"]);
    let caches = [cache("pc1", NOW, std::slice::from_ref(&new)), cache("PC2", NOW, &[new])];
    let verdict = judged(StageId::WaitOld, &plan, &caches);
    assert_eq!(
        (verdict.is_go, verdict.ready, verdict.missing),
        (false, 2, vec!["laptop7".to_owned()])
    );
    assert!(!judged(StageId::WaitOld, &plan, &[]).is_go);
}

/// A list that is right today can be followed by the old one, until everyone knows the change.
#[test]
fn caches_from_before_the_change_was_known_prove_nothing() {
    let plan = moved(&["PC1"]);
    let known = i64::try_from(plan.stage(StageId::WaitOld).unwrap().wait.as_ref().unwrap().known_s)
        .unwrap();
    let changed = NOW - known + 50;
    let at = |read_at: i64| {
        let caches = [cache("PC1", read_at, &[])];
        let evidence = Evidence {
            caches: &caches,
            changed_at_s: Some(changed),
            now_s: NOW + 100,
            ..Evidence::default()
        };
        judge(StageId::WaitOld, &plan, &evidence)
    };
    let early = at(NOW);
    assert_eq!(early.held[0].reasons[0].kind, ReasonKind::ReadTooEarly);
    // That is over by now, and only another collection can say more.
    assert_eq!((early.held[0].ready_at_s, early.until_s), (Some(NOW + 50), None));
    assert!(at(NOW + 60).is_go);
    // A list that expires before that can come again.
    let caches = [cache("PC1", NOW, &[entry(ROOT, 10, &["OLD1"])])];
    let evidence = Evidence {
        caches: &caches,
        changed_at_s: Some(changed),
        now_s: NOW,
        ..Evidence::default()
    };
    assert_eq!(judge(StageId::WaitOld, &plan, &evidence).until_s, Some(NOW + 50 + 300));
}

#[test]
fn an_expired_list_is_to_be_collected_again() {
    let plan = moved(&["PC1"]);
    let verdict =
        judged(StageId::WaitOld, &plan, &[cache("PC1", NOW - 900, &[entry(ROOT, 300, &["OLD1"])])]);
    assert!(!verdict.is_go);
    assert_eq!(verdict.held[0].reasons[1].kind, ReasonKind::ReadTooLongAgo);
    // Expired and without a user when it was read: it is gone.
    let mut dead = entry(ROOT, 0, &["OLD1"]);
    dead.use_count = Some(0);
    assert!(judged(StageId::WaitOld, &plan, &[cache("PC1", NOW, &[dead])]).is_go);
}

#[test]
fn entries_that_cannot_be_placed_hold_it_up() {
    let plan = moved(&["PC1"]);
    let judged_with = |entries: &[CachedReferral], domains: &[&str], others: &[&str]| {
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (domains, others): (Vec<String>, Vec<String>) = (strings(domains), strings(others));
        let caches = [cache("PC1", NOW, entries)];
        let evidence = Evidence {
            caches: &caches,
            domains: &domains,
            other_hosts: &others,
            now_s: NOW,
            ..Evidence::default()
        };
        judge(StageId::WaitOld, &plan, &evidence)
    };
    let others = [
        entry("contoso.com\\SYSVOL", 900, &["OLD1"]),
        entry("other.com\\Public2", 900, &["OLD1.other.com"]),
        entry("", 900, &["OLD1"]),
    ];
    assert!(judged_with(&others, &[], &[]).is_go);
    // The same share on a host that nothing names: it may be the domain by another name.
    let unknown = [entry("FS9\\Public", 900, &["FS9"])];
    let verdict = judged_with(&unknown, &[], &[]);
    assert_eq!(verdict.held[0].reasons[0].kind, ReasonKind::Unclear);
    assert_eq!((verdict.is_go, verdict.until_s), (false, None));
    assert!(judged_with(&unknown, &[], &["fs9"]).is_go);
    // A domain controller's address as an old server, a list without servers, a list without a time.
    let address = entry("CORP\\Public", 900, &["10.0.0.1"]);
    for (stage, referral) in [
        (StageId::WaitOld, address.clone()),
        (StageId::Settle, address.clone()),
        (StageId::WaitOld, entry(ROOT, 900, &[])),
        (StageId::Settle, entry("contoso.com\\Public\\a", 900, &[])),
    ] {
        let verdict = judged(stage, &plan, &[cache("PC1", NOW, &[referral])]);
        assert_eq!(verdict.held[0].reasons[0].kind, ReasonKind::Unclear, "{stage:?}");
    }
    let named = judged_with(&[address], &["CORP"], &[]);
    assert_eq!(named.held[0].reasons[0].kind, ReasonKind::Unclear);
    // The NetBIOS name of the domain, a server's own name, and any host whose list has an old server.
    for host in ["CORP", "old2", "other.com"] {
        let path = format!("{host}\\public");
        let verdict = judged_with(&[entry(&path, 900, &["OLD1"])], &[], &[]);
        assert_eq!(verdict.held[0].reasons[0].kind, ReasonKind::HoldsOld, "{host}");
    }
}

/// A root with the NetBIOS name of its domain, whose clients use the FQDN.
#[test]
fn netbios_and_fqdn_are_one_namespace() {
    let plan = MovePlan {
        host: "NORDWIND".to_owned(),
        domains: vec!["NORDWIND".to_owned(), "ad.nordwind.example".to_owned()],
        ..moved(&["PC1"])
    };
    for host in ["NORDWIND", "ad.nordwind.example", "AD"] {
        let path = format!("{host}\\Public");
        let of = |servers: &[&str]| [cache("PC1", NOW, &[entry(&path, 200, servers)])];
        assert!(!judged(StageId::WaitNew, &plan, &of(&["OLD1"])).is_go, "{host}");
        assert!(!judged(StageId::WaitNew, &plan, &of(&["X"])).is_go, "{host}");
        assert!(judged(StageId::WaitNew, &plan, &of(&["NEW1.contoso.com"])).is_go, "{host}");
    }
}

/// A client whose answer says nothing is not ready, whether or not it is expected.
#[test]
fn answers_that_say_nothing_hold_it_up() {
    let unread = |name: &str, is_server| Unread {
        name: name.to_owned(),
        why: "Zugriff verweigert".to_owned(),
        is_server,
    };
    let caches = [cache("PC1", NOW, &[entry(ROOT, 200, &["NEW1.contoso.com"])])];
    for plan in [moved(&["PC1"]), moved(&["PC1", "PC2"])] {
        let judged = |unread: &[Unread]| {
            let evidence = Evidence { caches: &caches, unread, now_s: NOW, ..Evidence::default() };
            judge(StageId::WaitOld, &plan, &evidence)
        };
        let verdict = judged(&[unread("pc2", false)]);
        assert_eq!((verdict.is_go, verdict.missing.len()), (false, 0));
        assert_eq!(verdict.held[0].reasons[0].kind, ReasonKind::NotRead);
        assert_eq!(verdict.until_s, None);
    }
    let plan = moved(&["PC1"]);
    let with = |unread: &[Unread], stage| {
        let evidence = Evidence { caches: &caches, unread, now_s: NOW, ..Evidence::default() };
        judge(stage, &plan, &evidence)
    };
    // A later file has its cache.
    assert!(with(&[unread("PC1", false)], StageId::WaitOld).is_go);
    // Open files of an old server matter where it is about to leave.
    let old = [unread("OLD2", true)];
    assert!(with(&old, StageId::WaitNew).is_go && !with(&old, StageId::WaitOld).is_go);
    assert!(with(&[unread("FS1", true)], StageId::WaitOld).is_go);
}

#[test]
fn referrals_on_the_wire_are_later_evidence() {
    let plan = moved(&["PC1"]);
    let caches = [cache("PC1", NOW - 600, &[entry(ROOT, 300, &["OLD1"])])];
    let captured = |at_s: i64, client: &str, servers: &[&str]| CapturedReferral {
        client: client.to_owned(),
        answered_by: "10.0.0.1".to_owned(),
        at_s,
        path: "\\CONTOSO.com\\public".to_owned(),
        ttl_s: Some(300),
        servers: servers.iter().map(|name| (*name).to_owned()).collect(),
    };
    let wire = [
        captured(NOW - 100, "10.0.0.7", &["NEW1.contoso.com"]),
        captured(NOW - 400, "10.0.0.7", &["OLD1"]),
        captured(NOW - 50, "10.0.0.8", &["OLD1"]),
    ];
    let aliases = BTreeMap::from([("10.0.0.7".to_owned(), "PC1".to_owned())]);
    let evidence =
        Evidence { caches: &caches, captured: &wire, aliases, now_s: NOW, ..Evidence::default() };
    let verdict = judge(StageId::WaitOld, &plan, &evidence);
    assert_eq!((verdict.ready, verdict.judged), (1, 2));
    assert_eq!(verdict.ready_clients[0].client, "PC1");
    assert_eq!((verdict.held[0].client.as_str(), verdict.held[0].is_captured), ("10.0.0.8", true));
    assert_eq!(verdict.until_s, Some(NOW + 250));
    // A domain controller that should know the change, and answers with the old list.
    let evidence = Evidence { changed_at_s: Some(NOW - 10_000), ..evidence };
    let verdict = judge(StageId::WaitOld, &plan, &evidence);
    assert_eq!(verdict.stale_answers.len(), 1);
    assert_eq!(verdict.stale_answers[0].servers, ["OLD1"]);
}

#[test]
fn stages_without_a_gate_are_go() {
    let plan = moved(&[]);
    assert!(judged(StageId::Copy, &plan, &[]).is_go);
    assert!(!judged(StageId::LowerTtl, &plan, &[]).is_go);
}

#[test]
fn many_clients_are_judged_in_time() {
    let names: Vec<_> = (0..2_000).map(|number| format!("PC{number}")).collect();
    let expected: Vec<_> = names.iter().map(String::as_str).collect();
    let plan = moved(&expected);
    let caches: Vec<_> = names
        .iter()
        .map(|name| {
            let links = (0..20).map(|link| entry(&format!("{ROOT}\\{link}"), 900, &["FS1"]));
            let root = entry(ROOT, 200, &["OLD1", "NEW1.contoso.com"]);
            cache(name, NOW, &links.chain([root]).collect::<Vec<_>>())
        })
        .collect();
    let began = std::time::Instant::now();
    let verdict = judged(StageId::WaitOld, &plan, &caches);
    assert!(began.elapsed().as_secs_f64() < 2.0, "{:?}", began.elapsed());
    assert_eq!((verdict.held.len(), verdict.missing.len()), (2_000, 0));
}

/// A client of Linux that stays with its server holds the gate before the old servers go, not the others.
#[test]
fn a_kernel_without_failover_holds_the_gate_of_the_old_servers() {
    let plan = moved(&["L1"]);
    let fresh = [entry(ROOT, 200, &["NEW1"])];
    let held = ClientCache { is_without_failover: true, ..cache("L1", NOW, &fresh) };
    let verdict = judged(StageId::WaitOld, &plan, std::slice::from_ref(&held));
    assert!(!verdict.is_go);
    assert_eq!(verdict.held[0].reasons[0].kind, ReasonKind::NoFailover);
    assert_eq!(verdict.until_s, None);
    assert!(judged(StageId::WaitNew, &plan, std::slice::from_ref(&held)).is_go);
    // Unmounted, it has no entry.
    let without = ClientCache { referrals: Vec::new(), ..held };
    assert!(judged(StageId::WaitOld, &plan, &[without]).is_go);
}
