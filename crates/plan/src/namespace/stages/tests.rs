//! Tests of the plan: its stages, its commands with names that try to escape, its limits.

use std::time::Instant;

use super::*;
use crate::namespace::model::{Link, Target};

fn target(server: &str, share: &str) -> Target {
    Target { server: server.to_owned(), share: share.to_owned(), ..Target::default() }
}

/// `\\contoso.com\Public` with two servers and some links.
fn namespace(name: &str, links: usize) -> Namespace {
    let link = |number: usize| Link {
        path: format!("Department\\{number}"),
        ttl_s: Some(1_800),
        targets: vec![target("FS1", "data"), target("fs2.contoso.com", "data")],
        ..Link::default()
    };
    Namespace {
        host: "contoso.com".to_owned(),
        name: name.to_owned(),
        kind: Some(Kind::DomainV1),
        ttl_s: Some(300),
        targets: vec![target("OLD1", name), target("OLD2", name)],
        links: (0..links).map(link).collect(),
        ..Namespace::default()
    }
}

fn to(new: &[&str]) -> Move {
    Move { new_servers: new.iter().map(|name| (*name).to_owned()).collect(), ..Move::default() }
}

fn ids(plan: &MovePlan) -> Vec<StageId> {
    plan.stages.iter().map(|stage| stage.id).collect()
}

/// All lines of a plan.
fn lines(plan: &MovePlan) -> Vec<String> {
    let stages = plan.stages.iter().flat_map(|stage| stage.steps.iter().chain(&stage.undo));
    let lost = plan.lost.iter().flat_map(|one| std::iter::once(&one.save).chain(&one.restore));
    let commands = stages.chain(lost).flat_map(|step| &step.commands);
    commands.flat_map(|command| command.lines.iter().cloned()).collect()
}

#[test]
fn the_stages_are_those_of_the_real_move() {
    let made = plan(&namespace("Public", 3), &to(&["NEW1", "NEW2"])).unwrap();
    use StageId::*;
    assert_eq!(
        ids(&made),
        [
            Save, OldFqdn, Copy, NewFqdn, Export, Add, Refresh, WaitNew, Disable, WaitOld, Remove,
            CutOver, Restore, Verify, Settle
        ]
    );
    assert_eq!(made.new_servers, ["NEW1.contoso.com", "NEW2.contoso.com"]);
    assert_eq!(made.old_servers, ["OLD1", "OLD2"]);
    assert_eq!(made.rewritten_servers, ["fs1"]);
    let all = lines(&made).join("\n");
    for line in [
        r"dfsutil server registry dfsdnsconfig set \\OLD1",
        "Set-DfsnServerConfiguration -ComputerName OLD2 -UseFqdn $true",
        r"sc.exe \\OLD1 stop Dfs",
        "Invoke-Command -ComputerName NEW1.contoso.com -ScriptBlock { Restart-Service -Name LanmanServer -Force }",
        r"robocopy.exe '\\OLD1\C$\DFSRoots\Public' '\\NEW1.contoso.com\C$\DFSRoots\Public' /COPYALL /E /XJ /R:1 /W:1",
        r"dfsutil root export \\contoso.com\Public C:\temp\Public.original.xml",
        r"New-DfsnRootTarget -Path \\contoso.com\Public -TargetPath \\NEW1.contoso.com\Public",
        r"dfsutil target add \\NEW2.contoso.com\Public",
        "repadmin.exe /syncall $pdc /APed",
        r"dfsutil root forcesync \\NEW1.contoso.com\Public",
        r"Set-DfsnRootTarget -Path \\contoso.com\Public -TargetPath \\OLD1\Public -State Offline",
        r"Remove-DfsnRootTarget -Path \\contoso.com\Public -TargetPath \\OLD2\Public -Confirm:$false",
        r"dfsutil root remove \\contoso.com\Public",
        r"dfsutil root adddom \\NEW1.contoso.com\Public v2",
        r"New-DfsnRoot -Path \\contoso.com\Public -TargetPath \\NEW1.contoso.com\Public -Type DomainV2 -TimeToLiveSec 300",
        r"dfsutil root import merge C:\temp\Public.rewritten.xml \\contoso.com\Public",
        r"dfsdiag.exe /TestDFSIntegrity /DFSRoot:\\contoso.com\Public /Recurse /Full",
        r"dsacls.exe 'CN=Public,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com' > C:\temp\Public.delegation.txt",
    ] {
        // The comma of a distinguished name needs quotes, of whichever kind.
        let other = line.replace('\'', "\"");
        assert!(all.lines().any(|one| one == line || one == other), "{line}\n{all}");
    }
    // The share stays.
    assert!(!all.contains("-Cleanup"));
    let waits: Vec<_> = made.stages.iter().filter(|stage| stage.wait.is_some()).collect();
    let ids = waits.iter().map(|stage| stage.id).collect::<Vec<_>>();
    assert_eq!(ids, [WaitNew, WaitOld, Settle]);
    assert!(waits.iter().all(|stage| stage.gate.is_some() && stage.since.is_some()));
    assert_eq!(made.gate_of(Disable), Some(WaitNew));
    assert_eq!(made.gate_of(CutOver), Some(WaitOld));
    assert_eq!(made.gate_of(Save), None);
}

/// A stage says who runs it, how long it takes, what users notice and how to go back; a step has commands.
#[test]
fn each_stage_is_complete() {
    let long = Namespace { ttl_s: Some(86_400), ..namespace("Public", 3) };
    let made = plan(&long, &to(&["NEW1"])).unwrap();
    assert!(ids(&made).contains(&StageId::LowerTtl));
    for stage in &made.stages {
        let name = stage.id.name();
        assert_eq!(StageId::from_name(name), Some(stage.id));
        assert!(
            !stage.who.is_empty() && !stage.why.is_empty() && !stage.users.is_empty(),
            "{name}"
        );
        assert!(
            stage.takes.least_s <= stage.takes.most_s && !stage.takes.because.is_empty(),
            "{name}"
        );
        assert!(!stage.undo.is_empty() || !stage.undo_note.is_empty(), "{name}");
        assert!(!stage.steps.is_empty(), "{name}");
        for step in stage.steps.iter().chain(&stage.undo) {
            assert!(!step.place.is_empty() && !step.commands.is_empty(), "{name}: {}", step.does);
            let filled = |command: &Command| !command.lines.is_empty();
            assert!(step.commands.iter().all(filled), "{name}: {}", step.does);
        }
    }
    // With the long TTL one wait is long, and the others are short.
    let wait = |id: StageId| made.stage(id).unwrap().wait.as_ref().unwrap().total_s;
    assert_eq!(wait(StageId::LowerTtl) - wait(StageId::WaitNew), 86_400 - 300);
}

#[test]
fn a_namespace_of_the_wanted_mode_changes_its_servers_only() {
    let there = Namespace { kind: Some(Kind::DomainV2), ..namespace("Public", 3) };
    let made =
        plan(&there, &Move { old_servers: vec!["old1".to_owned()], ..to(&["NEW1"]) }).unwrap();
    assert!(!ids(&made).contains(&StageId::CutOver) && made.lost.is_empty());
    assert_eq!((made.old_servers.len(), made.kept_servers.len()), (1, 1));
    assert_eq!(ids(&made).last(), Some(&StageId::Verify));
    // Only the mode changes: no server joins or leaves.
    let same = plan(&namespace("Public", 3), &to(&["OLD1", "OLD2.contoso.com"])).unwrap();
    assert!(!ids(&same).contains(&StageId::Add) && !ids(&same).contains(&StageId::Disable));
    assert!(ids(&same).contains(&StageId::CutOver));
    // Those that stay get FQDNs with the new root.
    let all = lines(&same);
    assert!(all.iter().any(|line| line == r"dfsutil root adddom \\OLD1.contoso.com\Public v2"));
    // A lowered TTL is set back.
    let long = Namespace { ttl_s: Some(86_400), ..there };
    let made = plan(&long, &to(&["NEW1"])).unwrap();
    let back = r"Set-DfsnRoot -Path \\contoso.com\Public -TimeToLiveSec 86400";
    let verify = made.stage(StageId::Verify).unwrap();
    assert!(verify.steps.iter().any(|step| step.commands[0].lines == [back]));
}

#[test]
fn what_makes_a_plan_impossible_is_said_at_once() {
    let errors = |namespace: &Namespace, wanted: &Move| plan(namespace, wanted).unwrap_err().0;
    let public = namespace("Public", 0);
    let none = errors(&public, &Move::default());
    assert!(none.iter().any(|one| one.contains("no namespace server would be left")), "{none:?}");
    let both =
        Move { old_servers: vec!["NEW1.contoso.com".to_owned()], ..to(&["NEW1", "new1", "a;b"]) };
    let both = errors(&public, &both);
    for words in
        ["among the new and the old", "is not a server of the namespace", "given twice", "`a;b`"]
    {
        assert!(both.iter().any(|one| one.contains(words)), "{words}: {both:?}");
    }
    let alone = Namespace { kind: Some(Kind::Standalone), ..public.clone() };
    assert!(errors(&alone, &to(&["NEW1"]))[0].contains("not in a directory"));
    let many: Vec<_> = (0..=SERVERS_MAX).map(|number| format!("N{number}")).collect();
    let many = Move { new_servers: many, ..Move::default() };
    assert!(errors(&public, &many)[0].contains("more than 256"));
    assert!(errors(&namespace("a\nb", 0), &to(&["NEW1"]))[0].contains("namespace `a"));
}

/// What a line has outside its quotes.
fn skeleton(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let ends = |one: char| match c {
                    '\'' => matches!(one, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}'),
                    _ => one == '"',
                };
                while let Some(one) = chars.next() {
                    if ends(one) && c == '\'' && chars.peek().is_some_and(|next| ends(*next)) {
                        chars.next();
                    } else if ends(one) {
                        break;
                    }
                }
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[test]
fn names_cannot_leave_their_quotes() {
    for name in [
        "x'; calc; 'y",
        "a & calc",
        "$(calc)",
        "`calc`",
        "x\u{2019}; calc",
        "a;calc",
        "a)calc(b",
        "{calc}",
        "#calc",
        "%calc%",
        "@(calc)",
    ] {
        let mut hostile = namespace(name, 2);
        hostile.comment = Some(format!("{name}\n calc"));
        let made = plan(&hostile, &to(&["NEW1"])).unwrap();
        for line in lines(&made) {
            let skeleton = skeleton(&line);
            assert!(!skeleton.contains("calc"), "{name}: {line}\n{skeleton}");
            assert!(!line.contains('\n'));
        }
        // At the command prompt, & runs what follows unless double quotes surround it.
        if name.contains('&') {
            let dfsutil = lines(&made).into_iter().filter(|line| line.starts_with("dfsutil"));
            assert!(dfsutil.into_iter().all(|line| !line.contains('&') || line.contains('"')));
        }
    }
}

#[test]
fn a_namespace_of_100_000_links_is_planned_in_time() {
    let large = namespace("Public", 100_000);
    let began = Instant::now();
    let made = plan(&large, &to(&["NEW1", "NEW2"])).unwrap();
    assert!(began.elapsed().as_secs_f64() < 2.0, "{:?}", began.elapsed());
    assert_eq!((made.links, made.targets), (100_000, 200_000));
    // The import's time follows from the links.
    assert!(made.stage(StageId::CutOver).unwrap().takes.most_s > 2 * 5_000);
    assert!(made.waits_s() > 0);
    let slow = Move { import_links_per_s: 1e-300, ..to(&["NEW1"]) };
    assert!(plan(&large, &slow).is_ok());
}
