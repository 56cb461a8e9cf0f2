//! Plans of moves: the published case at its gates, a large namespace, names that try to escape.

use smbscope_findings::{Finding, Remedy};
use smbscope_plan::namespace::check::{Evidence as Place, FindingKind, Places};
use smbscope_plan::namespace::gate::{CapturedReferral, Evidence, judge};
use smbscope_plan::namespace::model::{
    CachedReferral, CachedTarget, ClientCache, Kind, Link, Namespace, State, Target,
};
use smbscope_plan::namespace::progress::Progress;
use smbscope_plan::namespace::stages::{Move, StageId, plan};
use smbscope_report::namespace::NamespacePlan;

/// 2026-01-05 09:00 UTC.
const START_S: i64 = 1_767_603_600;

fn target(server: &str, share: &str) -> Target {
    Target { server: server.to_owned(), share: share.to_owned(), ..Target::default() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// `\\child.corp.contoso.com\Testing` with three servers.
fn testing() -> Namespace {
    let link = |path: &str, servers: &[&str]| Link {
        path: path.to_owned(),
        ttl_s: Some(1_800),
        targets: servers.iter().map(|server| target(server, path)).collect(),
        ..Link::default()
    };
    let mut links = vec![
        link("Accounting", &["TARGET1", "TARGET2"]),
        link(r"Engineering\Drawings", &["TARGET2"]),
        link("R&D", &["TARGET3", "TARGET1"]),
        link("Users", &["TARGET3"]),
        link("Archive", &["FILE1"]),
    ];
    links[2].targets[1].state = State::Offline;
    links[4].state = State::Offline;
    Namespace {
        host: "child.corp.contoso.com".to_owned(),
        name: "Testing".to_owned(),
        kind: Some(Kind::DomainV1),
        ttl_s: Some(300),
        targets: ["FILE1", "FILE3", "FILE5"].map(|server| target(server, "Testing")).to_vec(),
        links,
        ..Namespace::default()
    }
}

fn of(namespace: Namespace, wanted: &Move) -> NamespacePlan {
    NamespacePlan {
        inputs: names(&["testing.xml"]),
        version: "0.0.0".to_owned(),
        plan: Some(plan(&namespace, wanted).unwrap()),
        namespace: Some(namespace),
        ..NamespacePlan::default()
    }
}

/// The plan of the published case.
pub fn published() -> NamespacePlan {
    let mut all = of(
        testing(),
        &Move {
            new_servers: names(&["FILE2", "FILE4", "FILE6"]),
            clients: names(&["PC17", "PC18", "PC19", "LAPTOP3"]),
            ..Move::default()
        },
    );
    let mut ampersands = Finding::new(FindingKind::Ampersands, "Names have &: 1");
    ampersands.remedies = vec![Remedy::fixed("namespace", "import the rewritten export")];
    let ampersands = ampersands.with_details(places("R&D", "the link's name has &"));
    let short = Finding::new(FindingKind::ShortNames, "Targets have short names: 1")
        .with_details(places("Tools", "TARGET1 in 1 targets"));
    all.checked.findings = vec![ampersands, short];
    all
}

fn places(link: &str, detail: &str) -> Places {
    let one = Place { link: Some(link.to_owned()), detail: detail.to_owned(), ..Place::default() };
    Places { count: 1, evidence: vec![one] }
}

/// The plan with the fewest commands: one server joins, none leaves.
pub fn small() -> NamespacePlan {
    let namespace = Namespace { kind: Some(Kind::DomainV2), ..testing() };
    let namespace = Namespace { targets: namespace.targets[..1].to_vec(), ..namespace };
    let stays = Move { new_servers: names(&["FILE1", "FILE2"]), ..Move::default() };
    of(namespace, &stays)
}

fn cache(client: &str, at_s: i64, servers: &[&str], open: &[&str]) -> ClientCache {
    let cached = |server: &&str| CachedTarget {
        server: (*server).to_owned(),
        share: "Testing".to_owned(),
        active: server == &servers[0],
        ..CachedTarget::default()
    };
    ClientCache {
        client: client.to_owned(),
        read_at_s: Some(at_s),
        referrals: vec![CachedReferral {
            entry: r"child.corp.contoso.com\Testing".to_owned(),
            expires_s: Some(200),
            use_count: Some(1),
            targets: servers.iter().map(cached).collect(),
            ..CachedReferral::default()
        }],
        open_files: names(open),
        ..ClientCache::default()
    }
}

/// The published case at the gate before the old servers are removed.
pub fn at_gate() -> NamespacePlan {
    let mut all = published();
    let mut progress = Progress::new(all.plan.clone().unwrap());
    let mut now = START_S;
    for (id, reason) in
        [(StageId::WaitNew, Some("LAPTOP3 is on a journey until Friday")), (StageId::WaitOld, None)]
    {
        while let Some(current) = progress.current().map(|stage| stage.id).filter(|at| *at != id) {
            progress.done(current, now, None).unwrap();
            now += 600;
        }
        now += 50_000;
        if reason.is_some() {
            let caches = [cache("PC17", now, &["FILE2.child.corp.contoso.com"], &[])];
            let evidence = Evidence { caches: &caches, now_s: now, ..Evidence::default() };
            let verdict = judge(id, &progress.plan, &evidence);
            progress.judged(&verdict).unwrap();
            progress.done(id, now, reason).unwrap();
        }
    }
    let caches = [
        cache("PC17", now - 60, &["FILE4.child.corp.contoso.com"], &[]),
        cache("PC18", now - 90, &["FILE3", "FILE2.child.corp.contoso.com"], &[]),
        cache("PC19", now - 30, &["FILE1"], &[r"\\FILE1\Testing: 2 open"]),
    ];
    let captured = [CapturedReferral {
        client: "10.0.0.44".to_owned(),
        answered_by: "10.0.0.2".to_owned(),
        at_s: now - 300,
        path: r"\child.corp.contoso.com\Testing".to_owned(),
        ttl_s: Some(300),
        servers: names(&["FILE5"]),
    }];
    let changed_at_s = progress.changed_at_s(StageId::WaitOld);
    let evidence = Evidence {
        caches: &caches,
        captured: &captured,
        changed_at_s,
        now_s: now,
        ..Evidence::default()
    };
    let verdict = judge(StageId::WaitOld, &progress.plan, &evidence);
    progress.judged(&verdict).unwrap();
    all.verdicts.push(verdict);
    all.progress = Some(progress);
    all
}

/// Many links below many folders, on many servers.
pub fn large(links: usize) -> NamespacePlan {
    let link = |number: usize| Link {
        path: format!(r"Department {}\Project {number}", number % 300),
        targets: vec![
            target(&format!("FS{}", number % 90), "data"),
            target(&format!("FS{}.contoso.com", number % 7), "copy"),
        ],
        ..Link::default()
    };
    let namespace = Namespace {
        host: "contoso.com".to_owned(),
        name: "Public".to_owned(),
        kind: Some(Kind::DomainV1),
        targets: (0..4).map(|number| target(&format!("NS{number}"), "Public")).collect(),
        links: (0..links).map(link).collect(),
        ..Namespace::default()
    };
    of(namespace, &Move { new_servers: names(&["NEW1", "NEW2"]), ..Move::default() })
}

/// Names that try to leave their places.
pub fn hostile() -> NamespacePlan {
    let bad = "<script>alert(1)</script>\u{1b}[31m\u{202e}\"'&";
    let mut all = at_gate();
    let namespace = all.namespace.as_mut().unwrap();
    namespace.links[0].path = bad.to_owned();
    namespace.links[0].targets[0].server = bad.to_owned();
    namespace.targets[0].server = bad.to_owned();
    all.checked.findings[0].details.evidence[0].link = Some(bad.to_owned());
    all.checked.findings[0].remedies = vec![Remedy::new("namespace", bad)];
    let verdict = &mut all.verdicts[0];
    verdict.held[0].client = bad.to_owned();
    verdict.held[0].uses = Some(bad.to_owned());
    verdict.held[0].reasons[0].entry = bad.to_owned();
    verdict.held[0].reasons[0].servers = names(&[bad]);
    verdict.missing = names(&[bad]);
    all.inputs = names(&[bad]);
    let progress = all.progress.as_mut().unwrap();
    progress.stages[0].forced = Some(bad.to_owned());
    all
}
