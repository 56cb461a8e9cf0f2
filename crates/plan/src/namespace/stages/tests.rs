//! Tests of the plan: its stages, its commands with names that try to escape, its limits.

use std::time::Instant;

use super::*;
use crate::namespace::model::{Link, State, Target};

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
        "New-SmbShare -CimSession NEW1.contoso.com -Name 'Public' -Path 'C:\\DFSRoots\\Public' -SecurityDescriptor (Get-SmbShare -CimSession OLD1 -Name 'Public').SecurityDescriptor",
        r"([WMIClass]'\\NEW1.contoso.com\root\cimv2:Win32_Share').Create('C:\DFSRoots\Public', 'Public', 0, $null, '', $null, $access)",
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
    // The share stays, and no service that other users need restarts.
    assert!(!all.contains("-Cleanup") && !all.contains("LanmanServer -"));
    assert!(!all.contains(" stop LanmanServer"));
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
    let raise = made.stages.last().unwrap();
    assert_eq!(raise.id, StageId::RaiseTtl);
    assert!(raise.steps[0].commands.iter().any(|command| command.lines == [back]));
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

/// The state of each server before a stage is what its undo brings back.
#[test]
fn the_undo_of_servers_is_the_state_before() {
    let mut public = namespace("Public", 1);
    public.targets.push(Target { state: State::Offline, ..target("OLD3", "Public") });
    let made = plan(&public, &to(&["NEW1", "NEW2"])).unwrap();
    let undo = |id: StageId| {
        let steps = &made.stage(id).unwrap().undo;
        let lines = steps.iter().flat_map(|step| &step.commands).flat_map(|one| &one.lines);
        lines.cloned().collect::<Vec<_>>().join("\n")
    };
    let disable = undo(StageId::Disable);
    assert!(
        disable.contains(r"\\OLD1\Public -State Online")
            && !disable.contains(r"OLD3\Public -State")
    );
    let remove = undo(StageId::Remove);
    for server in ["OLD1", "OLD2", "OLD3"] {
        let line = format!(r"-TargetPath \\{server}\Public -State Offline");
        assert!(remove.contains(&line), "{remove}");
        assert!(remove.contains(&format!(r"dfsutil property state offline \\{server}\Public")));
    }
    let add = made.stage(StageId::Add).unwrap();
    assert!(add.steps[1].shows.contains(r"\\OLD3\Public offline"), "{}", add.steps[1].shows);
    // A server that stays offline does not hold the new root.
    let mut offline = namespace("Public", 1);
    offline.targets[0].state = State::Offline;
    let all = lines(&plan(&offline, &to(&["OLD1", "OLD2"])).unwrap());
    assert!(all.iter().any(|line| line == r"dfsutil root adddom \\OLD2.contoso.com\Public v2"));
    let back = r"New-DfsnRootTarget -Path \\contoso.com\Public -TargetPath \\OLD1.contoso.com\Public -State Offline";
    assert!(all.iter().any(|line| line == back), "{all:?}");
}

/// Until the last stage each root that is created has a short TTL, also on the way back.
#[test]
fn the_ttl_stays_short_until_the_end() {
    for (ttl, creation) in [(604_800, 300), (1_800, 300), (300, 300), (60, 60)] {
        let long = Namespace { ttl_s: Some(ttl), ..namespace("Public", 1) };
        let made = plan(&long, &to(&["NEW1", "NEW2"])).unwrap();
        let (last, before) = made.stages.split_last().unwrap();
        let is_raised = last.id == StageId::RaiseTtl;
        assert_eq!(is_raised, ttl != creation);
        for stage in before.iter().filter(|stage| stage.id >= StageId::CutOver) {
            for line in
                stage.steps.iter().flat_map(|step| &step.commands).flat_map(|one| &one.lines)
            {
                assert!(
                    !line.contains(&format!("-TimeToLiveSec {ttl}")) || ttl == creation,
                    "{line}"
                );
            }
        }
        let all = lines(&made);
        let files = all.iter().filter(|line| line.contains("namespace rewrite"));
        let is_short = |line: &String| line.contains(&format!("--root-ttl {creation}s"));
        assert!(files.clone().count() == 2 && files.into_iter().all(is_short));
        // The undo of the cut-over ends with the TTL of before it.
        let moving = if ttl > LOWERED_ABOVE_S { 300 } else { ttl };
        let undo = &made.stage(StageId::CutOver).unwrap().undo;
        let set = undo.iter().any(|step| {
            step.commands.iter().any(|one| {
                one.lines.iter().any(|line| line.ends_with(&format!("-TimeToLiveSec {moving}")))
            })
        });
        assert!(set, "{ttl}");
    }
}

/// Only Windows Server 2008 mode has access-based enumeration: no outage is planned on a guess.
#[test]
fn a_mode_is_recognised_by_what_needs_it() {
    let mut public = Namespace { kind: None, ..namespace("Public", 1) };
    let unknown = plan(&public, &to(&["NEW1", "NEW2"])).unwrap();
    assert!(ids(&unknown).contains(&StageId::CutOver));
    let condition = "plan again with --from v2";
    assert!(unknown.stages[0].requires.iter().any(|one| one.contains(condition)));
    public.flags.access_based_enumeration = Some(true);
    let likely = plan(&public, &to(&["NEW1", "NEW2"])).unwrap();
    assert!(!ids(&likely).contains(&StageId::CutOver));
    assert!(likely.notes.iter().any(|one| one.contains("likely") && one.contains("--from v1")));
    let said = Move { from: Some(Kind::DomainV1), ..to(&["NEW1", "NEW2"]) };
    assert!(ids(&plan(&public, &said).unwrap()).contains(&StageId::CutOver));
}

/// A link to another namespace is not rewritten, and is opened at the end.
#[test]
fn links_to_other_namespaces_are_kept_and_opened() {
    let mut public = namespace("Public", 1);
    let other = |path: &str, server: &str| Link {
        path: path.to_owned(),
        targets: vec![target(server, r"Public\x")],
        ..Link::default()
    };
    public.links.extend([other("it's", "CONTOSO"), other("Else", "ACME"), other("S", "FS7")]);
    let wanted = Move { domains: vec!["ACME".to_owned()], ..to(&["NEW1", "NEW2"]) };
    let made = plan(&public, &wanted).unwrap();
    assert_eq!(made.rewritten_servers, ["fs1", "fs7"]);
    let all = lines(&made);
    let opened = |line: &str| all.iter().any(|one| one == line);
    assert!(opened(r"Test-Path -LiteralPath '\\contoso.com\Public\it''s'"));
    assert!(opened(r"Test-Path -LiteralPath '\\contoso.com\Public\Else'"));
    assert!(!opened(r"Test-Path -LiteralPath '\\contoso.com\Public\S'"));
    assert!(all.iter().any(|one| one.contains("--suffix contoso.com --domain ACME --root-ttl")));
}

#[test]
fn the_last_server_is_named_as_a_loss() {
    let made = plan(&namespace("Public", 1), &to(&["NEW1"])).unwrap();
    let loss = "loses its redundancy";
    assert!(made.notes.iter().any(|note| note.contains(loss)));
    let remove = made.stage(StageId::Remove).unwrap();
    assert!(remove.requires.iter().any(|one| one.contains(loss)));
    let made = plan(&namespace("F&E's $Daten", 1), &to(&["NEW1", "NEW2"])).unwrap();
    assert!(made.notes.iter().any(|note| note.contains("PowerShell only")));
}
