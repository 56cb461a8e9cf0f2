//! The reports of a small synthetic recording: golden files, the published schema, escaping.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod sample;

use serde_json::Value;
use smbscope_analysis::explain::{
    About, Confidence, Contributor, Diagnosis, Example, Figure, Finding, Gain, Note, Trouble, Whole,
};
use smbscope_analysis::predict::changes::Change;
use smbscope_report::fields::{Format, Object, Presence, explain_objects, objects};
use smbscope_report::{Look, Meta, Report, explain_schema, explain_text, html, json, schema, text};

/// Reports of a capture, of load runs, and from inside a server.
fn reports() -> [Report; 4] {
    [
        sample::report(3_000),
        sample::load::report(Default::default()),
        sample::load::single(),
        sample::server::report(2_000),
    ]
}

fn meta() -> Meta {
    Meta {
        version: "0.0.0".into(),
        inputs: vec!["monday.pcapng".into(), "<b>&.pcap".into()],
        forecast: None,
        diagnosis: None,
        selection: None,
    }
}

/// Two findings, one of them with an impossible name.
fn diagnosis() -> Diagnosis {
    let name = "<script>alert('1')\u{1b}[2J\u{202e}".to_owned();
    let contributor = Contributor { name: name.clone(), operations: 40, saved_ns: 800_000_000 };
    let found = Finding {
        trouble: Trouble::SmallReads,
        what: "Reads go one at a time".into(),
        saved_ns: 800_000_000,
        saved_error_ns: 4_000_000,
        share: 0.83,
        confidence: Confidence::High,
        because: "it was measured".into(),
        operations: 40,
        first_ns: Some(1_767_603_912_000_000_000),
        last_ns: Some(1_767_604_060_000_000_000),
        figures: vec![
            Figure { name: "block", value: 4096.0, error: None, unit: "bytes" },
            Figure { name: "round", value: 20e6, error: Some(15.6e6), unit: "ns" },
        ],
        clients: vec![contributor.clone()],
        connections: vec![contributor.clone()],
        shares: vec![],
        paths: vec![contributor],
        examples: vec![Example {
            recording: Some(name),
            command: "Read".into(),
            elapsed_ns: Some(21_000_000),
            request_frame: Some(17),
            ..Example::default()
        }],
        remedies: Trouble::SmallReads.remedies().to_vec(),
        gains: vec![Gain {
            change: "max-read=1MiB".into(),
            waiting_before_ns: 800_000_000,
            waiting_after_ns: 40_000_000,
            error_ns: Some(1_000_000),
            operations: 100_000,
            is_part: true,
        }],
        replayed: 40,
    };
    let little = Finding { share: 0.01, gains: vec![], ..found.clone() };
    let note = Note { about: About::Smb1, what: "<b>\u{1b}[2J".into() };
    let whole = Whole { operations: 40, timed: 40, ..Whole::default() };
    Diagnosis { findings: vec![found, little], notes: vec![note], whole }
}

#[test]
fn a_diagnosis_is_of_its_published_schema() {
    published("explain", &explain_schema());
    let objects = explain_objects();
    check_in(objects, &serde_json::to_value(diagnosis()).unwrap(), "diagnosis", "$");
    check_in(objects, &serde_json::to_value(Diagnosis::default()).unwrap(), "diagnosis", "$");
}

#[test]
fn the_page_begins_with_what_makes_it_slow() {
    let with = |diagnosis| Meta { diagnosis: Some(diagnosis), ..meta() };
    let page = html(&sample::report(100), &with(diagnosis()));
    is_well_formed(&page);
    assert_eq!(page.matches("<section").count(), page.matches("</section>").count());
    assert!(page.find("id=\"findings\"").unwrap() < page.find("id=\"coverage\"").unwrap());
    let of_run = "Of the whole run, with warm-up";
    assert!(!page.contains(of_run));
    assert!(html(&sample::load::single(), &with(diagnosis())).contains(of_run));
    // One of them explains too little.
    assert_eq!(page.matches("<details").count(), 1);
    for words in ["stop-and-wait small reads", "83", "frame 17", "max-read=1MiB", "&lt;script&gt;"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains(['\u{1b}', '\u{202e}']));
    let sound = html(&sample::report(100), &with(Diagnosis::default()));
    assert!(sound.contains("there is no diagnosis"));
    let look = Look { width: 80, height: 24, bold: ("", ""), all: true };
    let text = explain_text(&diagnosis(), "x", look);
    assert!(text.contains("Effect: with max-read=1MiB") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn three_findings_fit_the_screen() {
    let mut diagnosis = diagnosis();
    let found = diagnosis.findings.first().cloned().unwrap();
    diagnosis.findings = vec![found; 3];
    let text = |height, all| {
        let look = Look { width: 80, height, bold: ("", ""), all };
        let text = explain_text(&diagnosis, "x", look);
        assert!(all || text.lines().count() <= height, "{height}\n{text}");
        text
    };
    let counts = |height| {
        let text = text(height, false);
        let lines = ["Reads go", "Because", "See:", "Do (", "--all"];
        lines.map(|words| text.matches(words).count())
    };
    assert_eq!(counts(60), [3, 3, 3, 6, 0]);
    // The cheapest ones are dropped first, and the evidence stays longest.
    assert_eq!(counts(46), [3, 2, 2, 4, 1]);
    assert_eq!(counts(40), [2, 1, 1, 3, 1]);
    assert_eq!(counts(36), [1, 0, 0, 3, 1]);
    assert!(text(24, true).matches("Because").count() == 3);
}

#[test]
fn text_is_as_blessed() {
    let report = sample::report(60);
    insta::assert_snapshot!("narrow", text(&report, &meta(), 80));
    insta::assert_snapshot!("wide", text(&report, &meta(), 200));
}

#[test]
fn json_is_as_blessed() {
    let mut value = json(&sample::report(12), &meta()).unwrap();
    // There are many similar bins.
    let bins = value["series"]["bins"].as_array_mut().unwrap();
    bins.truncate(1);
    insta::assert_json_snapshot!("report", value);
}

#[test]
fn a_load_run_is_as_blessed() {
    let report = sample::load::report(Default::default());
    insta::assert_snapshot!("load", text(&report, &meta(), 100));
    let mut value = json(&report, &meta()).unwrap();
    // There are many similar bins.
    let load = &mut value["load"];
    load["bins"].as_array_mut().unwrap().truncate(1);
    for counter in load["counters"].as_array_mut().unwrap() {
        counter["values"].as_array_mut().unwrap().truncate(1);
    }
    insta::assert_json_snapshot!("load_json", load);
    insta::assert_snapshot!("load_single", text(&sample::load::single(), &meta(), 80));
}

#[test]
fn a_server_is_as_blessed() {
    let mut report = sample::server::report(2_000);
    let text = text(&report, &meta(), 120);
    let (_, section) = text.split_once("── SERVER").unwrap();
    let (section, _) = section.split_once("\n── ").unwrap();
    insta::assert_snapshot!("server", section);
    // There are many similar bins.
    let server = report.server.as_mut().unwrap();
    server.bins.truncate(1);
    server.slowest.truncate(1);
    server.commands.truncate(1);
    insta::assert_json_snapshot!("server_json", json(&report, &meta()).unwrap()["server"]);
}

#[test]
fn a_report_without_slices_has_no_section_on_the_server() {
    let report = sample::report(60);
    assert!(!text(&report, &meta(), 100).contains("── SERVER"));
    assert!(!html(&report, &meta()).contains("id=\"server\""));
}

/// With steps up, down, and too small to be drawn separately.
fn changed() -> Meta {
    let changes =
        [Change::Rtt(0.005), Change::Filesystem(4.0), Change::Cpu(1.5), Change::Queue(0.5)];
    Meta { forecast: Some(sample::forecast::forecast(&changes)), ..meta() }
}

#[test]
fn what_a_change_would_bring_is_as_blessed() {
    let (report, meta) = (sample::report(12), changed());
    let text = text(&report, &meta, 100);
    let (_, section) = text.split_once("── WHAT A CHANGE").unwrap();
    let (section, _) = section.split_once("\n── ").unwrap();
    insta::assert_snapshot!("forecast", section);
    let page = html(&report, &meta);
    let (_, section) = page.split_once("<section id=\"forecast\">\n").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    insta::assert_snapshot!("forecast_page", section);
    let mut value = json(&report, &meta).unwrap();
    let forecast = &mut value["forecast"];
    forecast["commands"].as_array_mut().unwrap().truncate(1);
    forecast["scenarios"].as_array_mut().unwrap().truncate(1);
    insta::assert_json_snapshot!("forecast_json", forecast);
}

#[test]
fn what_a_change_would_bring_is_well_formed_and_of_the_schema() {
    let report = sample::load::single();
    for meta in [
        changed(),
        Meta { forecast: Some(sample::forecast::forecast(&[Change::Rtt(0.2)])), ..meta() },
        Meta { forecast: Some(sample::forecast::forecast(&[Change::Filesystem(1e6)])), ..meta() },
        Meta { forecast: Some(Default::default()), ..meta() },
    ] {
        let page = html(&report, &meta);
        is_well_formed(&page);
        assert!(page.contains("href=\"#forecast\"") && !page.contains(">?<"));
        for place in ["\u{1b}", "\u{202e}"] {
            assert!(!page.contains(place), "{place:?}");
        }
        assert_eq!(page.matches("<script").count(), 1);
        for width in [80, 100, 240] {
            let text = text(&report, &meta, width);
            assert!(!text.contains(['\u{1b}', '\u{202e}']) && !text.contains(" ? "));
            for line in text.lines() {
                let fits = line.chars().count() <= width;
                assert!(fits || line.contains("smbscope query"), "{width}: {line}");
            }
        }
        let value = json(&report, &meta).unwrap();
        check(&value, "report", "$");
        let rows = value["forecast"]["commands"].as_array().unwrap().iter();
        for row in rows.chain([&value["forecast"]["operations"]]) {
            for side in ["before_ns", "after_ns"] {
                let parts = row["parts"].as_array().unwrap().iter();
                let sum: i64 = parts.map(|part| part[side].as_i64().unwrap()).sum();
                assert_eq!(sum, row[side].as_i64().unwrap_or(0), "{side} of {row}");
            }
        }
    }
    assert!(!html(&report, &meta()).contains("id=\"forecast\""));
    assert!(json(&report, &meta()).unwrap().get("forecast").is_none());
}

#[test]
fn text_fits_its_width() {
    for report in reports() {
        for width in [80, 100, 132, 240] {
            for line in text(&report, &meta(), width).lines() {
                let fits = line.chars().count() <= width;
                assert!(fits || line.contains("smbscope query"), "{width}: {line}");
            }
        }
    }
}

#[test]
fn what_took_longer_than_the_last_bound_has_its_place_in_the_histograms() {
    let mut report = sample::report(60);
    let command = &mut report.commands[0].tally;
    *command.elapsed.histogram.as_mut().unwrap().last_mut().unwrap() += 3;
    let page = html(&report, &meta());
    assert!(page.contains("<title>1 min 40 s to ∞: 3</title>"));
    let (_, chart) = page.split_once("<div class=\"histograms\">").unwrap();
    let (chart, _) = chart.split_once("</figure>").unwrap();
    assert!(!chart.contains("x=\"100.20%\""), "{chart}");
    let text = text(&report, &meta(), 240);
    assert!(text.contains(" … ∞") && !text.contains(" … 0"), "{text}");
}

#[test]
fn replies_with_unknown_status_are_not_called_successes() {
    let said = |success, unknown| {
        let mut report = sample::report(60);
        let statuses = &mut report.statuses;
        (statuses.success, statuses.unknown) = (success, unknown);
        statuses.rows.clear();
        text(&report, &meta(), 100)
    };
    assert!(said(60, 0).contains("Every recorded reply was a success."));
    assert!(said(20, 40).contains("Every reply with a known status was a success."));
    assert!(said(0, 60).contains("No reply has a known status."));
}

#[test]
fn dropped_packets_are_reported_as_lost() {
    for inputs in [1, 9] {
        let mut report = sample::report(60);
        let mut one = smbscope_tables::tables::Coverage::default();
        (one.frames, one.frames_dropped) = (500, Some(7));
        report.coverage = vec![one; inputs];
        let text = text(&report, &meta(), 100);
        assert!(text.contains("Lost, truncated or undecodable"), "{text}");
        assert!(!text.contains("No data was lost"), "{text}");
        assert!(inputs == 1 || text.contains("63"), "{text}");
    }
}

#[test]
fn lists_say_what_is_not_in_them() {
    let mut report = sample::report(60);
    report.reads.others = 5;
    report.files.by_bytes.truncate(2);
    let text = text(&report, &meta(), 100);
    assert!(text.contains("5 reads have a size past the limit"), "{text}");
    // Files without bytes do not belong to those ranked by bytes.
    let (_, list) = text.split_once("Files by bytes").unwrap();
    let (list, _) = list.split_once("Files by operations").unwrap();
    assert!(!list.contains("more"), "{list}");
}

#[test]
fn a_bar_is_as_long_as_its_share_where_the_round_trip_was_estimated_too_long() {
    let mut report = sample::report(60);
    report.commands.truncate(1);
    let command = &mut report.commands[0];
    (command.tally.busy_ns, report.totals.tally.busy_ns) = (1_000, 2_000);
    let split = &mut command.busy_split;
    (split.request_transfer_ns, split.response_transfer_ns, split.unsplit_ns) = (0, 0, 0);
    (split.server_ns, split.network_ns) = (-500, 1_500);
    let page = html(&report, &meta());
    let (_, bars) = page.split_once("<b>Time by command</b>").unwrap();
    assert!(bars.contains(": 50.0 % (Network 50.0 %)</title>"));
}

#[test]
fn an_empty_summary_can_be_shown() {
    let report = smbscope_report::Report::default();
    assert!(text(&report, &meta(), 80).contains("no coverage record"));
    assert!(html(&report, &meta()).ends_with("</html>\n"));
    check(&json(&report, &meta()).unwrap(), "report", "$");
}

#[test]
fn names_from_strangers_cannot_leave_their_place() {
    let report = sample::report(2_000);
    let page = html(&report, &meta());
    assert!(page.contains("&lt;script&gt;alert(&#39;1&#39;)"));
    assert!(page.contains("&lt;b&gt;&amp;.pcap"));
    assert_eq!(page.matches("<script").count(), 1);
    for place in ["<b>&.pcap", "\u{1b}", "\u{202e}", "http://", "https://", "src="] {
        assert!(!page.contains(place), "{place:?}");
    }
    let text = text(&report, &meta(), 240);
    assert!(text.contains("\\u{1b}[2J") && !text.contains(['\u{1b}', '\u{202e}']));
    assert!(!page.contains(">?<") && !text.contains(" ? "), "a heading without a title");
}

#[test]
fn a_load_run_s_names_cannot_leave_their_place() {
    for report in reports().into_iter().skip(1) {
        let page = html(&report, &meta());
        assert_eq!(page.matches("<script").count(), 1);
        for place in ["\u{1b}", "\u{202e}", "src=", ">?<", "<link"] {
            assert!(!page.contains(place), "{place:?}");
        }
        let text = text(&report, &meta(), 240);
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && !text.contains(" ? "));
    }
    let page = html(&sample::load::report(Default::default()), &meta());
    assert!(page.contains("&lt;script&gt;alert(&#39;1&#39;)"));
}

#[test]
fn every_chart_and_table_says_what_it_is() {
    reports().iter().for_each(|report| is_well_formed(&html(report, &meta())));
}

fn is_well_formed(page: &str) {
    assert_eq!(page.matches("<table").count(), page.matches("<caption>").count());
    assert_eq!(page.matches("<figure>").count(), page.matches("<figcaption>").count());
    assert_eq!(page.matches("role=\"img\"").count(), {
        let drawings = page.split("role=\"img\"").skip(1);
        drawings
            .filter(|rest| {
                rest.split_once('>').is_some_and(|(_, rest)| rest.starts_with("<title>"))
            })
            .count()
    });
    for tag in ["table", "section", "figure", "svg", "div", "ul", "dl", "span", "tr", "td", "th"] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn the_published_schema_is_the_fields() {
    published("report", &schema());
}

fn published(document: &str, schema: &Value) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let path = format!("{folder}/{document}.schema.json");
    let made = format!("{schema:#}\n");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        std::fs::write(&path, &made).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == made, "{path} is out of date: INSTA_UPDATE=always rewrites it");
}

#[test]
fn the_output_has_exactly_the_fields() {
    for operations in [0, 12, 5_000] {
        check(&json(&sample::report(operations), &meta()).unwrap(), "report", "$");
    }
    for report in reports() {
        check(&json(&report, &meta()).unwrap(), "report", "$");
    }
}

/// Compares a value with the fields of an object: names both ways, and every value's type.
fn check(value: &Value, name: &str, place: &str) {
    check_in(objects(), value, name, place);
}

fn check_in(objects: &[Object], value: &Value, name: &str, place: &str) {
    let map = value.as_object().unwrap_or_else(|| panic!("{place}: {value} is not an object"));
    let object = |name: &str| objects.iter().find(|object| object.name == name).unwrap();
    let own = object(name);
    let fields: Vec<_> = own
        .includes
        .iter()
        .map(|name| object(name))
        .chain([own])
        .flat_map(|object| &object.fields)
        .collect();
    for key in map.keys() {
        assert!(fields.iter().any(|field| field.name == key), "{place}.{key} is in no list");
    }
    for field in fields {
        let place = format!("{place}.{}", field.name);
        let Some(value) = map.get(field.name) else {
            assert_eq!(field.presence, Presence::Optional, "{place} is missing");
            continue;
        };
        if value.is_null() {
            assert_eq!(field.presence, Presence::Nullable, "{place} is null");
            continue;
        }
        let fits = match field.format {
            Format::Text | Format::Code => value.is_string(),
            Format::Flag => value.is_boolean(),
            Format::Count | Format::Bytes => value.is_u64(),
            Format::Duration | Format::Time => value.is_i64(),
            Format::Number | Format::Share => value.is_number(),
            Format::Counts => value.as_array().is_some_and(|list| list.iter().all(Value::is_i64)),
            Format::Values => value
                .as_array()
                .is_some_and(|list| list.iter().all(|it| it.is_number() || it.is_null())),
            Format::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Format::Object(name) => {
                check_in(objects, value, name, &place);
                true
            }
            Format::List(name) => {
                let list = value.as_array().unwrap_or_else(|| panic!("{place} is not a list"));
                list.iter().for_each(|value| check_in(objects, value, name, &format!("{place}[]")));
                true
            }
        };
        assert!(fits, "{place}: {value}");
    }
}

#[test]
fn units_stand_in_the_keys() {
    for object in
        objects().iter().filter(|object| !matches!(object.name, "coverage" | "connection"))
    {
        for field in &object.fields {
            let end = match field.format {
                Format::Duration | Format::Time => "_ns",
                Format::Bytes => "_bytes",
                _ => continue,
            };
            let named = field.name.ends_with(end) || field.name.starts_with("bytes_to_");
            assert!(named, "{}.{}", object.name, field.name);
        }
    }
}
