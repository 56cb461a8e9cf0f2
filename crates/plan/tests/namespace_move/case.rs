//! The namespace, servers, client and times of the case study.

use smbscope_plan::namespace::model::{
    CachedReferral, CachedTarget, ClientCache, Kind, Link, Namespace, State, Target,
};
use smbscope_plan::namespace::stages::Move;

pub const EXPORT: &str = include_str!("case/export.xml");
pub const REWRITTEN: &str = include_str!("case/rewritten.xml");
pub const BEFORE: &str = include_str!("case/before.txt");
pub const DURING: &str = include_str!("case/during.txt");
pub const AFTER: &str = include_str!("case/after.txt");

/// 2014-06-23 09:00 UTC: the new servers join; old ones offline a day later; the cut-over on the third day.
pub const ADDED: i64 = 1_403_514_000;
pub const DISABLED: i64 = ADDED + 86_400;
pub const CUT_OVER: i64 = ADDED + 2 * 86_400;

fn target(server: &str, share: &str) -> Target {
    Target { server: server.to_owned(), share: share.to_owned(), ..Target::default() }
}

/// What `case/export.xml` holds.
pub fn namespace() -> Namespace {
    let link = |path: &str, targets: &[(&str, &str)]| Link {
        path: path.to_owned(),
        ttl_s: Some(1_800),
        targets: targets.iter().map(|(server, share)| target(server, share)).collect(),
        ..Link::default()
    };
    let mut links = vec![
        link("Accounting", &[("TARGET1", "Accounting"), ("TARGET2", "Accounting")]),
        link(r"Engineering\Drawings", &[("TARGET2", "Drawings")]),
        link("R&D", &[("TARGET3", "Research"), ("TARGET1", "Research$")]),
        link("Users", &[("TARGET3", "Users")]),
    ];
    links[2].targets[1].state = State::Offline;
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

pub fn wanted() -> Move {
    let names = |names: [&str; 3]| names.map(str::to_owned).to_vec();
    Move {
        new_servers: names(["FILE2", "FILE4", "FILE6"]),
        old_servers: names(["FILE1", "FILE3", "FILE5"]),
        clients: vec!["PC17".to_owned()],
        ..Move::default()
    }
}

/// The output of `dfsutil cache referral` of the client, read at a time.
///
/// A small reader of these three files; the one of the product is tested on its own.
pub fn cache(text: &str, read_at_s: i64) -> ClientCache {
    let mut referrals: Vec<CachedReferral> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(entry) = line.strip_prefix("Entry: \\") {
            referrals.push(CachedReferral { entry: entry.to_owned(), ..CachedReferral::default() });
        }
        let Some(last) = referrals.last_mut() else { continue };
        if let Some(rest) = line.strip_prefix("Expires in ") {
            last.expires_s = rest.split(' ').next().and_then(|word| word.parse().ok());
        }
        if let Some(rest) = line.strip_prefix("UseCount: ") {
            last.use_count = rest.split(' ').next().and_then(|word| word.parse().ok());
        }
        if let Some((path, rest)) =
            line.split_once(":[\\").and_then(|(_, rest)| rest.split_once(']'))
        {
            let (server, share) = path.split_once('\\').unwrap();
            last.targets.push(CachedTarget {
                server: server.to_owned(),
                share: share.to_owned(),
                active: rest.contains("ACTIVE"),
                target_set: rest.contains("TARGETSET"),
                access_status: rest.contains("AccessStatus: 0").then_some(0),
            });
        }
    }
    assert!(!referrals.is_empty() && referrals.iter().all(|one| !one.targets.is_empty()));
    ClientCache {
        client: "PC17".to_owned(),
        read_at_s: Some(read_at_s),
        referrals,
        ..ClientCache::default()
    }
}

/// Compares a rewrite of the export with what find-and-replace made.
pub fn assert_rewritten(rewrite: impl Fn(&str) -> String) {
    assert_eq!(rewrite(EXPORT), REWRITTEN);
}
