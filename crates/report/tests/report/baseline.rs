//! The judgement of a baseline: one screen of text, the page, its JSON, and names that try to escape.

use smbscope_analysis::predict::changes::Change;
use smbscope_plan::baseline::cost::CostOutcome;
use smbscope_report::baseline::{BaselinePlan, baseline_facts};
use smbscope_report::{TextOptions, html, json};

use super::golden::outline;
use super::is_well_formed;
use super::sample::baseline::plan;
use super::schema::{check_in, objects_of};

fn text(plan: &BaselinePlan, all: bool) -> String {
    smbscope_report::text(plan, &TextOptions::new(110, all))
}

#[test]
fn one_screen_says_what_costs_and_the_cheaper_way() {
    let text = text(&plan(false), false);
    insta::assert_snapshot!("baseline", text);
    assert!(text.lines().count() <= 66, "{}", text.lines().count());
}

#[test]
fn all_of_it() {
    insta::assert_snapshot!("baseline_all", text(&plan(true), true));
}

#[test]
fn page() {
    let page = html(&plan(true));
    is_well_formed(&page);
    insta::assert_snapshot!("baseline_page", outline(&page));
}

#[test]
fn the_json_is_of_its_published_schema() {
    for plan in [plan(true), plan(false), BaselinePlan::default()] {
        check_in(objects_of("baseline"), &json(&plan).unwrap(), "baseline", "$");
    }
}

#[test]
fn names_cannot_leave_their_place() {
    let page = html(&plan(true));
    assert_eq!(page.matches("<script").count(), 1);
    for text in [page, text(&plan(true), true), text(&plan(true), false)] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']));
    }
}

/// The replayed numbers are those of the calibration: 0.86 ns and 2 us for each message, at the server.
#[test]
fn the_cost_of_signing_is_that_of_the_calibration() {
    let judgement = plan(false).judgement;
    let CostOutcome::Predicted(signing) = &judgement.costs[0].outcome else { panic!() };
    assert_eq!(signing.question.changes, ["signing=hmac-sha256"]);
    let mib = signing.ns_per_mib.unwrap();
    let expected = 0.86 * (1_048_576.0 + 84.0 + 120.0) + 4_000.0;
    assert!((mib.value - expected).abs() < 5_000.0, "{mib:?} {expected}");
    assert!(mib.low < mib.value && mib.value < mib.high);
    let cpu = signing.cpu_s_per_gb.unwrap().value;
    assert!((cpu - expected / 1.048576e6).abs() < 0.01, "{cpu}");
    assert!((signing.users.unwrap().percent.value + 18.0).abs() < 1e-6);
    let way = &judgement.alternatives[0];
    assert!(way.what.contains("AES-GMAC") && way.price.is_none());
    assert!((way.saved_ns_per_mib.unwrap().value / mib.value - 0.9).abs() < 0.02);
}

/// The summary of a recording has what a judgement needs.
#[test]
fn facts_of_a_recording() {
    let report = super::sample::report(3_000);
    let facts = baseline_facts(&report);
    assert_eq!(facts.operations, report.totals.tally.operations);
    let moved: u64 = facts.shares.iter().map(|share| share.moved_bytes).sum();
    assert!(moved > 0 && facts.shares.len() as u64 <= report.shares.distinct, "{facts:?}");
    assert!(facts.dialect.is_some() && facts.signing_algorithm.is_some(), "{facts:?}");
    assert!(facts.read_most_bytes.is_some() && facts.rtt_ns.is_some(), "{facts:?}");
    assert_eq!(baseline_facts(&Default::default()).dialect, None);
}

/// Each change that a judgement asks for can be read by predict.
#[test]
fn questions_are_changes_of_predict() {
    let mut asked = 0;
    let judgement = plan(false).judgement;
    for cost in &judgement.costs {
        let CostOutcome::Predicted(one) = &cost.outcome else { continue };
        for change in &one.question.changes {
            assert!(change.parse::<Change>().is_ok(), "{change}");
            asked += 1;
        }
    }
    for change in [
        "max-read=65536B",
        "max-write=1048576B",
        "write-through=on",
        "dirlease",
        "channels=4",
        "encryption=off",
        "signing=off",
    ] {
        assert!(change.parse::<Change>().is_ok(), "{change}");
    }
    assert!(asked >= 1);
}
