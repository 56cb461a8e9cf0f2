//! Tests of the state of a move.

use super::*;
use crate::namespace::gate::{Evidence, judge};
use crate::namespace::model::{ClientCache, Kind, Namespace, Target};
use crate::namespace::stages::{Move, plan};

const NOW: i64 = 1_800_000_000;

fn begun(clients: &[&str]) -> Progress {
    let target =
        Target { server: "OLD1".to_owned(), share: "Public".to_owned(), ..Target::default() };
    let namespace = Namespace {
        host: "contoso.com".to_owned(),
        name: "Public".to_owned(),
        kind: Some(Kind::DomainV1),
        targets: vec![target],
        ..Namespace::default()
    };
    let clients = clients.iter().map(|name| (*name).to_owned()).collect();
    let wanted = Move { new_servers: vec!["NEW1".to_owned()], clients, ..Move::default() };
    Progress::new(plan(&namespace, &wanted).unwrap())
}

/// All stages before one are done.
fn until(progress: &mut Progress, id: StageId, now: i64) {
    while let Some(current) = progress.current().map(|stage| stage.id).filter(|at| *at != id) {
        progress.done(current, now, None).unwrap();
    }
}

fn gate(progress: &mut Progress, id: StageId, caches: &[ClientCache], now_s: i64) {
    let changed_at_s = progress.changed_at_s(id);
    let evidence = Evidence { caches, changed_at_s, now_s, ..Evidence::default() };
    let verdict = judge(id, &progress.plan, &evidence);
    progress.judged(&verdict).unwrap();
}

#[test]
fn a_stage_waits_for_its_gate_or_a_reason() {
    let mut progress = begun(&["PC1"]);
    assert!(progress.done(StageId::Copy, NOW, None).unwrap_err().0.contains("not the next one"));
    until(&mut progress, StageId::WaitNew, NOW);
    let at = NOW + 50_000;
    let refused =
        |progress: &mut Progress| progress.done(StageId::WaitNew, at, None).unwrap_err().0;
    assert!(refused(&mut progress).contains("not judged yet"));
    gate(&mut progress, StageId::WaitNew, &[], at);
    assert!(refused(&mut progress).contains("1 client expected and missing"));
    assert!(
        progress.done(StageId::WaitNew, at, Some("  ")).unwrap_err().0.contains("needs a reason")
    );
    progress.done(StageId::WaitNew, at, Some("PC1 is on holiday")).unwrap();
    let stage = progress.stage(StageId::WaitNew).unwrap();
    assert_eq!(stage.forced.as_deref(), Some("PC1 is on holiday"));
    assert_eq!(stage.gates[0].names, ["PC1"]);
    assert_eq!(progress.current().unwrap().id, StageId::Disable);
}

#[test]
fn a_go_lets_it_pass() {
    let mut progress = begun(&["PC1"]);
    until(&mut progress, StageId::WaitNew, NOW);
    let at = NOW + 50_000;
    let seen = |read_at| ClientCache {
        client: "PC1".to_owned(),
        read_at_s: Some(read_at),
        ..ClientCache::default()
    };
    gate(&mut progress, StageId::WaitNew, &[seen(at)], at);
    progress.done(StageId::WaitNew, at, Some("in case")).unwrap();
    // It was not needed.
    assert_eq!(progress.stage(StageId::WaitNew).unwrap().forced, None);
}

#[test]
fn without_expected_clients_the_waiting_time_counts_too() {
    let mut progress = begun(&[]);
    until(&mut progress, StageId::WaitNew, NOW);
    let seen = |read_at| ClientCache {
        client: "PC1".to_owned(),
        read_at_s: Some(read_at),
        ..ClientCache::default()
    };
    let total = progress.plan.stage(StageId::WaitNew).unwrap().wait.as_ref().unwrap().total_s;
    let over = NOW + i64::try_from(total).unwrap();
    gate(&mut progress, StageId::WaitNew, &[seen(NOW + 10_000)], NOW + 10_000);
    assert!(
        progress.done(StageId::WaitNew, NOW + 10_000, None).unwrap_err().0.contains("waiting time")
    );
    progress.done(StageId::WaitNew, over, None).unwrap();
}

#[test]
fn stages_are_taken_back_from_the_last() {
    let mut progress = begun(&["PC1"]);
    until(&mut progress, StageId::Refresh, NOW);
    assert!(progress.undo(StageId::Copy, "x").unwrap_err().0.contains("add"));
    progress.undo(StageId::Add, "the new server is slow").unwrap();
    assert_eq!(progress.current().unwrap().id, StageId::Add);
    assert_eq!(progress.stage(StageId::Add).unwrap().status, Status::Undone);
    progress.begin(StageId::Add, NOW + 5).unwrap();
    progress.done(StageId::Add, NOW + 9, None).unwrap();
    assert_eq!(progress.changed_at_s(StageId::WaitNew), Some(NOW + 9));
}

#[test]
fn the_file_is_read_back_and_others_are_refused() {
    let mut progress = begun(&["PC1"]);
    until(&mut progress, StageId::WaitNew, NOW);
    gate(&mut progress, StageId::WaitNew, &[], NOW);
    let text = progress.to_json().unwrap();
    assert_eq!(Progress::from_json(&text).unwrap(), progress);
    assert!(Progress::from_json("{}").unwrap_err().0.contains("not the state"));
    let newer = text.replacen("\"version\": 1", "\"version\": 9", 1);
    assert!(Progress::from_json(&newer).unwrap_err().0.contains("version 9"));
    progress.stages.pop();
    let other = progress.to_json().unwrap();
    assert!(Progress::from_json(&other).unwrap_err().0.contains("not those of its plan"));
}
