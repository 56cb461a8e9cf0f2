//! The case study from begin to end: three old and three new servers, three caches of a client; no-go, go and go at the
//! right places. `case/README.md` says which facts are published and which are made.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod case;
mod readers;

use case::{ADDED, AFTER, BEFORE, CUT_OVER, DISABLED, DURING, cache, namespace, wanted};
use smbscope_plan::namespace::gate::{Evidence, ReasonKind, Verdict, judge};
use smbscope_plan::namespace::model::ClientCache;
use smbscope_plan::namespace::progress::{Progress, Status};
use smbscope_plan::namespace::stages::{GateRule, StageId, Tool, plan};

/// Judges the gate of the present stage, and keeps the verdict.
fn gate(progress: &mut Progress, caches: &[ClientCache], now_s: i64) -> Verdict {
    let id = progress.current().unwrap().id;
    let changed_at_s = progress.changed_at_s(id);
    let evidence = Evidence { caches, changed_at_s, now_s, ..Evidence::default() };
    let verdict = judge(id, &progress.plan, &evidence);
    progress.judged(&verdict).unwrap();
    verdict
}

/// Does all stages up to one.
fn until(progress: &mut Progress, id: StageId, now_s: i64) {
    while let Some(current) = progress.current().map(|stage| stage.id).filter(|at| *at != id) {
        progress.begin(current, now_s).unwrap();
        progress.done(current, now_s, None).unwrap();
    }
}

#[test]
fn the_plan_is_that_of_the_published_move() {
    let made = plan(&namespace(), &wanted()).unwrap();
    assert_eq!(made.old_servers, ["FILE1", "FILE3", "FILE5"]);
    let new = ["FILE2", "FILE4", "FILE6"].map(|name| format!("{name}.child.corp.contoso.com"));
    assert_eq!(made.new_servers, new);
    assert_eq!(made.rewritten_servers, ["target1", "target2", "target3"]);
    let lines: Vec<_> = made
        .stages
        .iter()
        .flat_map(|stage| &stage.steps)
        .flat_map(|step| &step.commands)
        .filter(|command| command.tool != Tool::PowerShell)
        .flat_map(|command| &command.lines)
        .collect();
    for line in [
        r"dfsutil server registry dfsdnsconfig set \\FILE1",
        r"sc.exe \\FILE1 stop Dfs",
        r"sc.exe \\FILE1 start Dfs",
        r"dfsutil server registry dfsdnsconfig set \\FILE2.child.corp.contoso.com",
        r"dfsutil root export \\child.corp.contoso.com\Testing C:\temp\Testing.original.xml",
        r"dfsutil target add \\FILE2.child.corp.contoso.com\Testing",
        r"dfsutil target remove \\FILE1\Testing",
        r"dfsutil root remove \\child.corp.contoso.com\Testing",
        r"dfsutil root adddom \\FILE2.child.corp.contoso.com\Testing v2",
        r"dfsutil root import merge C:\temp\Testing.rewritten.xml \\child.corp.contoso.com\Testing",
    ] {
        assert!(lines.iter().any(|one| *one == line), "{line}");
    }
    // Each of the six servers has its own lines, and the gates are where servers change.
    let at = |id: StageId| made.stages.iter().position(|stage| stage.id == id).unwrap();
    assert!(at(StageId::Add) < at(StageId::WaitNew) && at(StageId::WaitNew) < at(StageId::Disable));
    assert!(
        at(StageId::Disable) < at(StageId::WaitOld) && at(StageId::WaitOld) < at(StageId::Remove)
    );
    assert!(at(StageId::Remove) < at(StageId::CutOver));
    assert_eq!(made.stage(StageId::WaitNew).unwrap().gate, Some(GateRule::NewListed));
}

/// The caches in the order of the move: before, during and after.
#[test]
fn no_go_go_go_at_the_right_places() {
    let mut progress = Progress::new(plan(&namespace(), &wanted()).unwrap());
    until(&mut progress, StageId::WaitNew, ADDED);

    // Two hours after the new servers joined, the client still has the old list.
    let late = ADDED + 7_200;
    let before = [cache(BEFORE, late)];
    let verdict = gate(&mut progress, &before, late);
    assert!(!verdict.is_go);
    assert_eq!(verdict.held[0].reasons[0].kind, ReasonKind::LacksNew);
    assert_eq!(verdict.held[0].uses.as_deref(), Some("FILE3"));
    assert_eq!(verdict.until_s, Some(late + 112));
    assert!(progress.done(StageId::WaitNew, late, None).is_err());

    // Then it lists all six.
    let during = [cache(DURING, late + 200)];
    let verdict = gate(&mut progress, &during, late + 200);
    assert!(verdict.is_go, "{:?}", verdict.because);
    assert_eq!(
        (verdict.ready_clients[0].lists_new.len(), verdict.ready_clients[0].lists_old.len()),
        (3, 3)
    );
    progress.done(StageId::WaitNew, late + 200, None).unwrap();

    // The old ones go offline: with the same list the next gate is no-go.
    until(&mut progress, StageId::WaitOld, DISABLED);
    let late = DISABLED + 7_200;
    let mut during = cache(DURING, late);
    during.open_files = vec![r"\\FILE3\Testing\index.htm".to_owned()];
    let verdict = gate(&mut progress, &[during.clone()], late);
    assert!(!verdict.is_go && verdict.until_s.is_none());
    let kinds: Vec<_> = verdict.held[0].reasons.iter().map(|reason| reason.kind).collect();
    assert_eq!(kinds, [ReasonKind::HoldsOld, ReasonKind::OpenFiles]);
    // The old cache is the last evidence of a machine that did not answer; the other one is right.
    let verdict = gate(&mut progress, &[cache(AFTER, late + 60), during], late + 60);
    assert!(verdict.is_go, "{:?}", verdict.because);
    progress.done(StageId::WaitOld, late + 60, None).unwrap();

    // After the cut-over, the links of the old export are still in use.
    until(&mut progress, StageId::Settle, CUT_OVER);
    let late = CUT_OVER + 7_200;
    let verdict = gate(&mut progress, &[cache(DURING, late)], late);
    assert_eq!(verdict.held[0].reasons.last().unwrap().kind, ReasonKind::OldLink);
    assert!(gate(&mut progress, &[cache(AFTER, late)], late).is_go);
    progress.done(StageId::Settle, late, None).unwrap();
    assert!(progress.current().is_none());
    assert!(
        progress.stages.iter().all(|stage| stage.status == Status::Done && stage.forced.is_none())
    );
}

/// The data for the rewrite: find-and-replace of the three targets' names gives the rewritten export.
#[test]
fn the_rewritten_export_is_that_of_find_and_replace() {
    case::assert_rewritten(|export| {
        let mut text = export.to_owned();
        for name in ["TARGET1", "TARGET2", "TARGET3"] {
            let qualified = format!(r"\\{name}.child.corp.contoso.com\");
            text = text.replace(&format!(r"\\{name}\"), &qualified);
        }
        text
    });
}
