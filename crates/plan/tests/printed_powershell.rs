//! Every line that the plan of a namespace prints, and the script that collects caches, is PowerShell.

// A test may panic.
#![allow(clippy::unwrap_used)]

use smbscope_plan::namespace::gate::collected::SCRIPT;
use smbscope_plan::namespace::model::{Flags, Kind, Link, Namespace, State, Target};
use smbscope_plan::namespace::stages::{Move, MovePlan, plan};
use tree_sitter::Parser;

/// The first piece of a text that is not PowerShell.
fn error(text: &str) -> Option<String> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_powershell::LANGUAGE.into()).unwrap();
    let tree = parser.parse(text, None).unwrap();
    let mut waiting = vec![tree.root_node()];
    while let Some(node) = waiting.pop() {
        if node.is_error() || node.is_missing() {
            return Some(text[node.byte_range()].to_owned());
        }
        let mut cursor = node.walk();
        waiting.extend(node.children(&mut cursor).filter(|child| child.has_error()));
    }
    None
}

fn target(server: &str, share: &str, state: State) -> Target {
    Target { server: server.to_owned(), share: share.to_owned(), state, ..Target::default() }
}

fn made(name: &str, kind: Kind, to: Kind) -> MovePlan {
    let link = |path: &str, server: &str| Link {
        path: path.to_owned(),
        targets: vec![target(server, "data$", State::Online)],
        ..Link::default()
    };
    let namespace = Namespace {
        host: "ad.nordwind.example".to_owned(),
        name: name.to_owned(),
        kind: Some(kind),
        ttl_s: Some(604_800),
        comment: Some(format!("{name} \u{2019} ; calc")),
        flags: Flags {
            site_costing: Some(true),
            access_based_enumeration: Some(false),
            ..Flags::default()
        },
        targets: vec![target("OLD1", name, State::Online), target("OLD2", name, State::Offline)],
        links: vec![link("it's [1] $x`", "NORDWIND"), link("b", "FS1")],
        ..Namespace::default()
    };
    let new_servers = ["NEW1", "OLD2"].map(str::to_owned).to_vec();
    let domains = ["ACME", "NORDWIND"].map(str::to_owned).to_vec();
    plan(&namespace, &Move { to, new_servers, domains, ..Move::default() }).unwrap()
}

#[test]
fn each_printed_line_is_powershell() {
    let mut lines = 0;
    for name in [
        "Public",
        "R&D",
        "it's",
        "F&E's $Daten",
        "a;b",
        "{x}(y)",
        "@(x)",
        "Отдел 7",
        "#1",
        "`x`",
        "x\u{2019}y",
    ] {
        for (kind, to) in [
            (Kind::DomainV1, Kind::DomainV2),
            (Kind::DomainV2, Kind::DomainV1),
            (Kind::DomainV2, Kind::DomainV2),
        ] {
            let made = made(name, kind, to);
            let steps = made.stages.iter().flat_map(|stage| stage.steps.iter().chain(&stage.undo));
            for line in steps.flat_map(|step| &step.commands).flat_map(|command| &command.lines) {
                assert_eq!(error(line), None, "{line}");
                lines += 1;
            }
        }
    }
    assert!(lines > 1_000, "{lines}");
    assert_eq!(error(SCRIPT), None);
    // The parser finds what is not.
    for wrong in ["Get-Item 'x", "if ($x) {", "Get-Item | | x"] {
        assert!(error(wrong).is_some(), "{wrong}");
    }
}
