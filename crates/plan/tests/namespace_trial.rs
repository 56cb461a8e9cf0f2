//! The inputs of a trial that found plans which cause an outage, read in place.

// A test may panic.
#![allow(clippy::unwrap_used)]

use smbscope_plan::namespace::check::{Checked, Context, FindingKind, check, serious};
use smbscope_plan::namespace::gate::{Evidence, collected, judge};
use smbscope_plan::namespace::model::{ClientCache, Kind, Namespace};
use smbscope_plan::namespace::read::{Reading, read};
use smbscope_plan::namespace::resolution::Resolution;
use smbscope_plan::namespace::rewrite::{Rules, SuffixRule, rewrite};
use smbscope_plan::namespace::stages::{Move, MovePlan, StageId, plan};

/// A file of the trial; none, with a message, where it is missing.
fn bytes(name: &str) -> Option<Vec<u8>> {
    let path = smbscope_testing::shared(&format!("trials/inputs/planners/ns/{name}"))?;
    Some(std::fs::read(path).unwrap())
}

fn reading(name: &str) -> Option<Reading> {
    Some(read(&[(name.to_owned(), bytes(name)?)]).unwrap())
}

fn namespace(name: &str) -> Option<Namespace> {
    Some(reading(name)?.namespaces[0].namespace.clone())
}

fn moved(namespace: &Namespace, clients: &[&str]) -> MovePlan {
    let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let wanted = Move {
        new_servers: strings(&["nwns01", "nwns02", "nwns03"]),
        suffix: Some("ad.nordwind.example".to_owned()),
        clients: strings(clients),
        ..Move::default()
    };
    plan(namespace, &wanted).unwrap()
}

fn cache(text: &str) -> Result<ClientCache, String> {
    let reading = read(&[(String::new(), text.as_bytes().to_vec())]);
    let caches = reading.map_err(|error| error.message)?.caches;
    caches.into_iter().next().ok_or_else(|| "no cache".to_owned())
}

/// Both forms of the root, with the caches before, during and after: no-go and go as by hand.
#[test]
fn gates_are_those_of_the_hand() {
    let clients = ["PC-ANNA", "PC-BODO", "PC-CARL"];
    for export in ["old2003.xml", "old2003fqdn.xml"] {
        let Some(namespace) = namespace(export) else { return };
        let made = moved(&namespace, &clients);
        for (file, go) in [
            ("c_before.txt", [false, false, false]),
            ("c_during.txt", [true, false, false]),
            ("c_after.txt", [true, true, true]),
            ("anna_before.txt", [false, false, false]),
            ("linuxcache.txt", [false, false, false]),
        ] {
            let Some(text) = bytes(file) else { return };
            let found = collected::read(&String::from_utf8(text).unwrap(), "PC-ANNA", cache);
            assert!(found.unread.is_empty() && !found.caches.is_empty(), "{file}: {found:?}");
            let now_s = found.caches.iter().filter_map(|one| one.read_at_s).max();
            for (stage, go) in
                [StageId::WaitNew, StageId::WaitOld, StageId::Settle].into_iter().zip(go)
            {
                let evidence = Evidence {
                    caches: &found.caches,
                    now_s: now_s.unwrap_or(1_800_000_000),
                    ..Evidence::default()
                };
                let verdict = judge(stage, &made, &evidence);
                assert_eq!(verdict.is_go, go, "{export} {file} {stage:?}: {verdict:?}");
            }
        }
    }
}

#[test]
fn interlinks_keep_their_domain() {
    for (file, kept) in [
        ("old2003.xml", r"NORDWIND\Abteilung\Kreis"),
        ("old2008.xml", r"NORDWIND\Abteilung\Andere"),
    ] {
        let Some(namespace) = namespace(file) else { return };
        let suffixes = vec![SuffixRule::parse("ad.nordwind.example").unwrap()];
        let done = rewrite(&namespace, &Rules { suffixes, ..Rules::default() });
        assert_eq!((&done.domains[..], done.unclear.len()), (&["NORDWIND".to_owned()][..], 0));
        let targets = done.namespace.links.iter().flat_map(|link| &link.targets);
        let mut paths = targets.map(|target| format!("{}\\{}", target.server, target.share));
        assert!(paths.any(|path| path == kept), "{file}");
        assert!(!moved(&namespace, &[]).rewritten_servers.contains(&"nordwind".to_owned()));
    }
}

fn repairs(checked: &Checked, kind: FindingKind) -> Vec<String> {
    let findings = checked.namespaces[0].findings.iter().filter(|one| one.kind == kind);
    findings.flat_map(|one| &one.details.evidence).filter_map(|one| one.repair.clone()).collect()
}

#[test]
fn findings_and_repairs_are_right() {
    let Some(old) = reading("old2008.xml") else { return };
    let checked = check(&old, &Context::default());
    // FUE and fue are one link: no command repairs that.
    let links = repairs(&checked, FindingKind::DuplicateLinks);
    assert!(links.iter().all(|one| one.starts_with("in the file")) && !links.is_empty());
    assert!(serious(&checked, Kind::DomainV2).len() >= 3);
    // Access-based enumeration needs the 2008 mode.
    let made = moved(&old.namespaces[0].namespace, &[]);
    assert!(made.stage(StageId::CutOver).is_none());
    let Some(older) = reading("old2003.xml") else { return };
    let Some(hosts) = bytes("hosts.txt") else { return };
    let resolution = Resolution::read("hosts.txt", &hosts).unwrap();
    let checked = check(&older, &Context { resolution: Some(&resolution), ..Context::default() });
    let targets = repairs(&checked, FindingKind::DuplicateTargets);
    assert!(targets.iter().any(|one| one.starts_with("in the file")), "{targets:?}");
    // The one that differs in more than case is there twice.
    let is_safe = |one: &String| one.starts_with("in the file") || one.contains("fs1.ad.");
    assert!(targets.iter().all(is_safe), "{targets:?}");
    assert!(!serious(&checked, Kind::DomainV2).iter().any(|one| one.contains("does not resolve")));
    // Stored sites that differ for one server.
    let Some(view) = reading("view.txt") else { return };
    let checked = check(&view, &Context::default());
    assert!(checked.namespaces[0].findings.iter().any(|one| one.kind == FindingKind::StaleSites));
    // A name that only PowerShell can quote has a plan.
    let Some(quote) = namespace("quote.xml") else { return };
    assert!(moved(&quote, &[]).notes.iter().any(|note| note.contains("PowerShell only")));
}
