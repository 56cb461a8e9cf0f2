//! The plan of a namespace's move: text and page of the published case, a large namespace, names that try to escape,
//! JSON of its schema.

use std::time::Instant;

use smbscope_report::namespace::NamespacePlan;
use smbscope_report::{TextOptions, html, json};

use super::golden::outline;
use super::is_well_formed;
use super::sample::namespace;
use super::schema::{check_in, objects_of};

fn text(plan: &NamespacePlan, width: usize) -> String {
    smbscope_report::text(plan, &TextOptions::new(width, true))
}

#[test]
fn text_of_the_published_case() {
    insta::assert_snapshot!("namespace", text(&namespace::published(), 100));
}

#[test]
fn text_at_a_gate() {
    let text = text(&namespace::at_gate(), 100);
    let (head, _) = text.split_once("── THE NAMESPACE").unwrap();
    insta::assert_snapshot!("namespace_gate", head);
}

#[test]
fn page_of_a_small_move() {
    let page = html(&namespace::small());
    is_well_formed(&page);
    insta::assert_snapshot!("namespace_page", outline(&page));
}

#[test]
fn the_page_says_who_holds_it_up() {
    let page = html(&namespace::at_gate());
    is_well_formed(&page);
    for words in [
        "<h1>No-go for stage wait-old: 3 clients of 4 not ready.</h1>",
        "Held up by PC19, PC18, 10.0.0.44.",
        "Not collected: LAPTOP3.",
        "Until its files are closed.",
        "forced: LAPTOP3 is on a journey until Friday",
        "Servers that answer with the old list",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("class=\"stage done\"").count(), 9);
    assert_eq!(page.matches("<script").count(), 1);
}

#[test]
fn a_large_namespace_is_drawn_in_part() {
    let plan = namespace::large(100_000);
    let began = Instant::now();
    let page = html(&plan);
    let text = text(&plan, 100);
    let json = json(&plan).unwrap().to_string();
    // What grows with the square takes minutes.
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    is_well_formed(&page);
    assert!(page.len() < 600_000 && json.len() < 300_000, "{} {}", page.len(), json.len());
    assert!(page.contains("more links") && page.contains("more servers of targets"));
    assert!(text.contains("more links") && text.contains("Department 0 (334 links)"));
}

#[test]
fn names_cannot_leave_their_places() {
    let plan = namespace::hostile();
    let page = html(&plan);
    is_well_formed(&page);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("&lt;script&gt;"));
    for text in [page, text(&plan, 100)] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']));
    }
}

#[test]
fn the_json_is_of_its_published_schema() {
    for plan in [
        NamespacePlan::default(),
        namespace::published(),
        namespace::small(),
        namespace::at_gate(),
        namespace::large(1_000),
        namespace::hostile(),
    ] {
        check_in(objects_of("namespace"), &json(&plan).unwrap(), "namespace_plan", "$");
        assert!(!text(&plan, 80).is_empty());
        is_well_formed(&html(&plan));
    }
}
