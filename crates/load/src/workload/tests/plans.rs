//! Plans: pure functions of (workload, seed, user, run).

use std::sync::Arc;
use std::time::Duration;

use crate::fileset::{BLOCK_BYTES, Scale, content};
use crate::workload::{Amount, ClientCache, Expectation, Op, Plan, Planner, Workload, counts};

fn planner(seed: u64) -> Planner {
    Planner::new(Arc::new(Workload::built_in("homefolder").unwrap()), seed, Scale::FULL)
}

/// All contents of a plan.
fn shown(plan: &Plan) -> String {
    let mut out =
        format!("{} {} {} {:?}", plan.scenario().name, plan.user(), plan.run(), plan.due());
    for (index, _) in plan.scenario().paths.iter().enumerate() {
        out += &format!("|{}", plan.path(crate::workload::PathId(index as u16)));
    }
    out + &format!("{:?}", plan.files())
}

#[test]
fn a_plan_does_not_depend_on_how_one_gets_there() {
    let planner = planner(5);
    let mut all = planner.user(9, "h");
    let mut buffer = all.buffer();
    let mut list = Vec::new();
    for run in 0..300 {
        assert_eq!(all.due(), planner.schedule(9, run));
        all.next_into(&mut buffer);
        assert_eq!((buffer.user(), buffer.run()), (9, run));
        list.push(shown(&buffer));
    }
    // Another planner, other users in between, directly to a run.
    let other = self::planner(5);
    other.user(8, "h").skip_to(20);
    let mut late = other.user(9, "h");
    late.skip_to(299);
    assert_eq!(shown(&late.next_plan()), list[299]);
    let mut again = other.user(9, "h");
    assert!(list.iter().all(|shown| *shown == self::shown(&again.next_plan())));
    // Another seed or user is another stream.
    assert_ne!(shown(&self::planner(6).user(9, "h").next_plan()), list[0]);
    assert_ne!(shown(&planner.user(10, "h").next_plan())[..40], list[0][..40]);
}

/// Pinned: a run must be repeatable with the next version.
#[test]
fn stays_the_same_from_version_to_version() {
    let mut plans = planner(1).user(1, "user1");
    plans.skip_to(10);
    let plan = plans.next_plan();
    let text = format!(
        "{} {:?} {} {}",
        plan.scenario().name,
        plan.due(),
        plan.path(crate::workload::PathId(0)),
        plan.files()[0].bytes
    );
    assert_eq!(text, PINNED);
}

const PINNED: &str =
    "ExplorerDragDropFileDownload 120.965542095s user1\\Downloads\\desktop.ini 257390";

#[test]
fn scenarios_come_as_often_as_they_should() {
    let planner = planner(2);
    let workload = planner.workload();
    let mut drawn = vec![0u32; workload.scenarios.len()];
    let (users, runs) = (200u32, 200u32);
    for user in 0..users {
        let mut plans = planner.user(user.into(), "");
        let mut plan = plans.buffer();
        for _ in 0..runs {
            plans.next_into(&mut plan);
            drawn[plan.scenario_index()] += 1;
        }
    }
    let all = f64::from(users * runs);
    for (scenario, count) in workload.scenarios.iter().zip(drawn) {
        let share = scenario.runs_per_hour / 331.0;
        let deviation = (f64::from(count) / all - share) / (share * (1.0 - share) / all).sqrt();
        assert!(deviation.abs() < 4.0, "{}: {deviation:.1} standard deviations", scenario.name);
    }
}

/// The reads and writes of real executions have the computed average.
#[test]
fn transfers_have_their_average() {
    let planner = planner(3);
    let expectation = Expectation::new(planner.files());
    for (index, scenario) in planner.workload().scenarios.iter().enumerate() {
        let expected = expectation.counts(scenario, ClientCache::Published);
        let mut sum = 0.0;
        let mut squares = 0.0;
        let mut number = 0.0;
        for user in 0..150 {
            let mut plans = planner.user(user, "");
            for _ in 0..20 {
                let Some(plan) = plans.next_of(index) else { break };
                let total = counts(&plan, ClientCache::Published).total();
                sum += total;
                squares += total * total;
                number += 1.0;
            }
        }
        let mean = sum / number;
        let error = ((squares / number - mean * mean) / number).max(0.0).sqrt();
        let off = (mean - expected.total()).abs();
        assert!(off <= 4.0 * error + 1e-6, "{}: {mean} {}", scenario.name, expected.total());
    }
}

#[test]
fn blocks_cover_a_transfer_once() {
    let planner = planner(4);
    let mut plans = planner.user(1, "");
    let mut transfers = 0;
    for _ in 0..500 {
        let plan = plans.next_plan();
        for request in plan.scenario().requests() {
            let (Op::Read(transfer) | Op::Write(transfer)) = &request.op else { continue };
            let amount = plan.amount(transfer);
            let mut at = amount.offset_bytes;
            for (offset, length) in amount.blocks(transfer.block_bytes) {
                assert_eq!(offset, at);
                assert!(length > 0 && length <= transfer.block_bytes);
                at += u64::from(length);
            }
            assert_eq!(at, amount.offset_bytes + amount.bytes);
            assert_eq!(amount.blocks(transfer.block_bytes).count() as u64, amount.requests);
            assert_eq!(amount.requests, amount.bytes.div_ceil(BLOCK_BYTES));
            transfers += 1;
        }
    }
    assert!(transfers > 300);
    let none = Amount { offset_bytes: 9, bytes: 0, requests: 0 };
    assert_eq!(none.blocks(0).count(), 0);
}

#[test]
fn an_hour_has_331_executions_of_27_operations() {
    let planner = planner(1);
    let hour = Duration::from_secs(3600);
    let runs: u64 = (0..100)
        .map(|user| (0..400).take_while(|&run| planner.schedule(user, run) < hour).count() as u64)
        .sum();
    assert!((32_950..=33_100).contains(&runs), "{runs}");
    let expectation = Expectation::new(planner.files());
    let operations = expectation.hour(planner.workload(), ClientCache::Published).total() / 331.0;
    // As in field-notes.md.
    assert!((operations - 27.26).abs() < 0.01, "{operations}");
}

/// A written copy has the same bytes that the file always has.
#[test]
fn contents_follow_from_the_file() {
    let planner = planner(1);
    let upload = planner
        .workload()
        .scenarios
        .iter()
        .position(|scenario| scenario.name == "CmdLineFileUpload")
        .unwrap();
    let bytes = |user| {
        let plan = planner.user(user, "").next_of(upload).unwrap();
        let mut bytes = vec![0; 100];
        content(plan.file(crate::workload::PickId(0)), 10, &mut bytes);
        bytes
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}
