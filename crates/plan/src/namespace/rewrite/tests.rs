//! Rules on small namespaces, and that rewriting what was rewritten changes nothing.

use super::super::difference::text;
use super::super::form::Form;
use super::super::model::Link;
use super::super::write::tests::{namespace, through};
use super::*;
use proptest::prelude::*;

fn target(path: &str) -> Target {
    let (server, share) = path.split_once('\\').unwrap();
    Target { server: server.to_owned(), share: share.to_owned(), ..Target::default() }
}

fn link(path: &str, targets: &[&str]) -> Link {
    let targets = targets.iter().map(|path| target(path)).collect();
    Link { path: path.to_owned(), targets, ttl_s: Some(1800), ..Link::default() }
}

fn sample() -> Namespace {
    Namespace {
        host: "CONTOSO".to_owned(),
        name: "Public".to_owned(),
        ttl_s: Some(300),
        targets: vec![target("ROOT1\\Public")],
        links: vec![
            link("Accounting", &["FS1\\accounting", "fs2.contoso.com\\accounting"]),
            link("Tools", &["fs3\\Data$\\tools"]),
        ],
        ..Namespace::default()
    }
}

fn paths(namespace: &Namespace) -> Vec<String> {
    let targets = namespace.links.iter().flat_map(|link| &link.targets);
    targets.map(|target| format!("{}\\{}", target.server, target.share)).collect()
}

/// The namespace's host, suffixes and named domains are not servers; a path that may be one of the namespace is unclear.
#[test]
fn domains_keep_their_names() {
    let mut namespace = sample();
    namespace.links.push(link("Circle", &["CONTOSO\\Public\\Circle"]));
    namespace.links.push(link("Other", &["NORDWIND\\Else\\Other", "contoso.com\\Else"]));
    namespace.links.push(link("Own", &["ACME\\public\\Tools", "root1\\Public"]));
    let suffix =
        |text: &str| Rules { suffixes: vec![SuffixRule::parse(text).unwrap()], ..Rules::default() };
    let mut rules = suffix("ad.nordwind.example");
    let done = rewrite(&namespace, &rules);
    assert_eq!(done.domains, ["CONTOSO", "NORDWIND"]);
    assert_eq!(done.unclear, ["ACME"]);
    let after = paths(&done.namespace);
    for kept in ["CONTOSO\\Public\\Circle", "NORDWIND\\Else\\Other", "ACME\\public\\Tools"] {
        assert!(after.iter().any(|path| path == kept), "{kept}: {after:?}");
    }
    assert!(after.iter().any(|path| path == "root1.ad.nordwind.example\\Public"));
    rules.domains = vec!["ACME".to_owned()];
    assert_eq!(rewrite(&namespace, &rules).unclear, Vec::<String>::new());
    // DNS decides: a name that does not exist with the suffix gets the one that exists.
    rules.resolution = Some(
        Resolution::read(
            "hosts",
            b"10.0.0.1 fs1.ad.nordwind.example\n10.0.0.3 fs3.eu.nordwind.example\n",
        )
        .unwrap(),
    );
    rules.domains.clear();
    let done = rewrite(&namespace, &rules);
    assert!(paths(&done.namespace).iter().any(|path| path.starts_with("fs3.eu.")));
    assert_eq!(
        (done.short_names, done.unclear.len()),
        (vec!["ACME".to_owned(), "root1".to_owned()], 0)
    );
}

#[test]
fn short_names_become_full_by_map_suffix_and_dns() {
    let mut rules = Rules {
        fqdn: read_map("fs1 files1.contoso.com\n# comment\n").unwrap(),
        suffixes: vec![SuffixRule::parse("fs3=emea.contoso.com").unwrap()],
        ..Rules::default()
    };
    let done = rewrite(&sample(), &rules);
    assert_eq!(
        paths(&done.namespace),
        [
            "files1.contoso.com\\accounting",
            "fs2.contoso.com\\accounting",
            "fs3.emea.contoso.com\\Data$\\tools"
        ]
    );
    assert_eq!(done.namespace.targets[0].server, "ROOT1");
    assert_eq!(done.short_names, Vec::<String>::new());
    rules.includes_root = true;
    assert_eq!(rewrite(&sample(), &rules).short_names, ["ROOT1"]);

    let hosts = b"10.0.0.1 fs1.contoso.com\n10.0.0.3 fs3.a.com\n10.0.0.4 fs3.b.com\n";
    let rules = Rules { resolution: Resolution::read("hosts", hosts).ok(), ..Rules::default() };
    let done = rewrite(&sample(), &rules);
    assert_eq!(paths(&done.namespace)[0], "fs1.contoso.com\\accounting");
    assert_eq!(done.ambiguous["fs3"], ["fs3.a.com", "fs3.b.com"]);
    assert_eq!(done.short_names, ["fs3"]);
}

#[test]
fn servers_are_renamed_and_merged() {
    let servers = [
        "FS1=new.contoso.com",
        "fs2=new.contoso.com",
        "\\\\fs3\\data$=\\\\new.contoso.com\\all\\d",
        "gone=x",
    ];
    let rules = Rules {
        servers: servers.iter().map(|rule| ServerRule::parse(rule).unwrap()).collect(),
        ..Rules::default()
    };
    let done = rewrite(&sample(), &rules);
    assert_eq!(
        paths(&done.namespace),
        ["new.contoso.com\\accounting", "new.contoso.com\\all\\d\\tools"]
    );
    assert_eq!(done.merged, 1);
    assert_eq!(done.unused, ["gone"]);
    assert!(ServerRule::parse("a").is_err());
    assert!(ServerRule::parse("a=\\\\b\\c").is_err());
    assert!(SuffixRule::parse("con toso").is_err());
    assert!(read_map("fs1").is_err());
}

#[test]
fn times_and_states_change() {
    let rules = Rules {
        root_ttl_s: Some(60),
        link_ttl_s: Some(120),
        states: vec![
            StateRule { subject: StateSubject::Server("fs1".to_owned()), state: State::Offline },
            StateRule { subject: StateSubject::Link("tools".to_owned()), state: State::Offline },
        ],
        host: Some("contoso.com".to_owned()),
        ..Rules::default()
    };
    let done = rewrite(&sample(), &rules);
    assert_eq!(done.unused, Vec::<String>::new());
    assert_eq!(
        text(&done.changes),
        "  (root)\n-   path \\\\CONTOSO\\Public\n+   path \\\\contoso.com\\Public\n-   TTL 300 s\n+   TTL 60 s\n\
         \x20 Accounting\n-   TTL 1800 s\n+   TTL 120 s\n-   target \\\\FS1\\accounting online\n+   target \\\\FS1\\accounting offline\n\
         \x20 Tools\n-   state online\n+   state offline\n-   TTL 1800 s\n+   TTL 120 s\n"
    );
}

#[test]
fn the_difference_names_added_and_removed_parts() {
    let before = sample();
    let mut after = sample();
    after.links.remove(1);
    after.links[0].targets[0] = target("new\\accounting");
    after.links.push(link("New", &["fs9\\new"]));
    let changes = difference(&before, &after);
    assert_eq!(
        text(&changes),
        "  Accounting\n-   \\\\FS1\\accounting\n+   \\\\new\\accounting\n  New\n+   link \\\\fs9\\new\n  Tools\n-   link \\\\fs3\\Data$\\tools\n"
    );
    assert_eq!(difference(&before, &before), vec![]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rewriting_twice_changes_nothing_more(namespace in namespace()) {
        let rules = Rules {
            suffixes: vec![SuffixRule { names: String::new(), suffix: "contoso.com".to_owned() }],
            includes_root: true,
            link_ttl_s: Some(300),
            ..Rules::default()
        };
        let once = rewrite(&namespace, &rules);
        let twice = rewrite(&once.namespace, &rules);
        prop_assert_eq!(&twice.namespace, &once.namespace);
        prop_assert_eq!(twice.changes, vec![]);
        prop_assert!(once.namespace.links.iter().flat_map(|link| &link.targets).all(|target| !is_short(&target.server)
                || once.domains.contains(&target.server)
                || once.unclear.contains(&target.server)));
    }

    #[test]
    fn a_rewritten_export_is_that_of_find_and_replace(namespace in namespace()) {
        // The case study: every target's short name becomes its FQDN in the text of the export.
        let mut namespace = through(&namespace, Form::Export2003);
        // No share has the name of the namespace: it could be a path of it.
        namespace.name = "Testing-7".to_owned();
        for link in &mut namespace.links {
            for (number, target) in link.targets.iter_mut().enumerate() {
                target.server = format!("TARGET{number}");
            }
        }
        let allowed = super::super::write::Allowed::default();
        let before = super::super::write::write(&namespace, Form::Export2003, &allowed).unwrap();
        let before = String::from_utf8(before.files[0].bytes.clone()).unwrap();
        let mut replaced = before.clone();
        for number in 0..4 {
            replaced = replaced.replace(
                &format!("Server=\"TARGET{number}\""),
                &format!("Server=\"TARGET{number}.child.corp.contoso.com\""),
            );
        }
        let rules = Rules {
            suffixes: vec![SuffixRule::parse("TARGET*=child.corp.contoso.com").unwrap()],
            ..Rules::default()
        };
        let done = rewrite(&namespace, &rules);
        let after = super::super::write::write(&done.namespace, Form::Export2003, &allowed).unwrap();
        prop_assert_eq!(String::from_utf8(after.files[0].bytes.clone()).unwrap(), replaced);
    }
}
