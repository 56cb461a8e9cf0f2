//! The reports of a small synthetic recording: golden files, order, escaping.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod baseline;
mod cores;
mod golden;
mod namespace;
mod net;
mod processors;
#[path = "../sample/mod.rs"]
mod sample;
mod schema;

use golden::compact;
use sample::diagnosis::diagnosis;
use schema::check;
use serde_json::Value;
use smbscope_analysis::explain::why::Explanation;
use smbscope_analysis::explain::{Diagnosis, State, Whole};
use smbscope_analysis::predict::changes::Change;
use smbscope_report::diagnosis::DiagnosisAnswer;
use smbscope_report::recording::RecordingAnswer;
use smbscope_report::why::WhyAnswer;
use smbscope_report::{Clock, Meta, Report, TextOptions};

/// Reports of a capture, of load runs, and from inside a server.
fn reports() -> [Report; 5] {
    [
        sample::report(3_000),
        sample::load::report(Default::default()),
        sample::load::single(),
        sample::server::report(2_000),
        sample::channels::report(),
    ]
}

fn meta() -> Meta {
    Meta {
        version: "0.0.0".into(),
        inputs: vec!["monday.pcapng".into(), "<b>&.pcap".into()],
        ..Meta::default()
    }
}

/// The complete text.
fn text(report: &Report, meta: &Meta, width: usize) -> String {
    smbscope_report::text(&RecordingAnswer { report, meta }, &TextOptions::new(width, true))
}

fn html(report: &Report, meta: &Meta) -> String {
    smbscope_report::html(&RecordingAnswer { report, meta })
}

fn json(report: &Report, meta: &Meta) -> serde_json::Result<Value> {
    smbscope_report::json(&RecordingAnswer { report, meta })
}

fn explain_text(diagnosis: &Diagnosis, options: &TextOptions) -> String {
    let inputs = "x".to_owned();
    let answer = DiagnosisAnswer {
        diagnosis,
        inputs,
        cpu: None,
        selection: None,
        recorded: None,
        clock: Clock::default(),
    };
    smbscope_report::text(&answer, options)
}

fn why_text(explanation: &Explanation, inputs: &str, options: &TextOptions) -> String {
    let inputs = inputs.to_owned();
    let answer =
        WhyAnswer { explanation, inputs, selection: None, recorded: None, clock: Clock::default() };
    smbscope_report::text(&answer, options)
}

/// The text that fits on [`LINES`] lines.
fn brief(report: &Report, meta: &Meta, width: usize) -> String {
    smbscope_report::text(&RecordingAnswer { report, meta }, &TextOptions::new(width, false))
}

#[test]
fn the_page_begins_with_what_makes_it_slow() {
    let with = |diagnosis| Meta { diagnosis: Some(diagnosis), ..meta() };
    let page = html(&sample::report(100), &with(diagnosis()));
    is_well_formed(&page);
    assert_eq!(page.matches("<section").count(), page.matches("</section>").count());
    let place = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(
        place("<h1>Slow for users: reads go one at a time (83.0\u{a0}% of the waiting).")
            < place("class=\"tiles\"")
    );
    assert!(place("id=\"time\"") < place("id=\"findings\""));
    assert!(place("id=\"findings\"") < place("id=\"series\""));
    let of_run = "of the whole run, with warm-up";
    assert!(!page.contains(of_run));
    assert!(html(&sample::load::single(), &with(diagnosis())).contains(of_run));
    // One of them explains too little.
    assert_eq!(page.matches("class=\"finding\"").count(), 1);
    // Its evidence is drawn: a histogram and the waits of its examples.
    assert!(page.contains("10 ms to 20 ms: 10") && page.contains("The longest waits"));
    for words in ["stop-and-wait small reads", "83", "frame 17", "max-read=1MiB", "&lt;script&gt;"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains(['\u{1b}', '\u{202e}']));
    let sound = html(&sample::report(100), &with(Diagnosis::default()));
    assert!(sound.contains("Cannot tell: no operation has a time"));
    let fine = Whole { operations: 40, timed: 40, ..Whole::default() };
    let (state, p95_ns) = (State::Healthy, Some(2_000_000));
    let fine = Diagnosis { state, p95_ns, whole: fine, ..Diagnosis::default() };
    let page = html(&sample::report(100), &with(fine));
    assert!(page.contains("<h1>Healthy: 95 of 100 operations take at most 2.00"));
    let options = TextOptions { height: Some(24), ..TextOptions::new(80, true) };
    let text = explain_text(&diagnosis(), &options);
    assert!(text.contains("Effect: with max-read=1MiB") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn three_findings_fit_the_screen() {
    let mut diagnosis = diagnosis();
    let found = diagnosis.findings.first().cloned().unwrap();
    diagnosis.findings = vec![found; 3];
    (diagnosis.pauses, diagnosis.unexplained, diagnosis.change) = (None, None, None);
    diagnosis.logged.clear();
    diagnosis.channels.clear();
    let text = |height, all| {
        let options = TextOptions { height: Some(height), ..TextOptions::new(80, all) };
        let text = explain_text(&diagnosis, &options);
        assert!(all || text.lines().count() <= height, "{height}\n{text}");
        text
    };
    let counts = |height| {
        let text = text(height, false);
        let lines = ["Reads go", "Because", "See:", "Do (", "--all"];
        lines.map(|words| text.matches(words).count())
    };
    assert_eq!(counts(69), [3, 3, 3, 6, 0]);
    // The cheapest ones are dropped first, and the evidence stays longest.
    assert_eq!(counts(55), [3, 2, 2, 4, 1]);
    assert_eq!(counts(49), [2, 1, 1, 3, 1]);
    assert_eq!(counts(45), [1, 0, 0, 3, 1]);
    assert!(text(24, true).matches("Because").count() == 3);
}

/// Each section of a text as a golden file of its own.
fn blessed(name: &str, text: &str) {
    let (head, rest) = text.split_once("\n── ").unwrap();
    insta::assert_snapshot!(format!("{name}.head"), head);
    for section in rest.split("\n── ") {
        let (title, lines) = section.split_once('\n').unwrap();
        let title = title.trim_end_matches('─').trim().to_lowercase().replace([' ', ','], "_");
        insta::assert_snapshot!(format!("{name}.{title}"), lines.trim_matches('\n'));
    }
}

/// Likewise of JSON, each value of the object.
fn blessed_json(name: &str, value: &Value) {
    for (key, value) in value.as_object().unwrap() {
        if value.is_array() || value.is_object() {
            insta::assert_snapshot!(format!("{name}.{key}"), compact(value));
        }
    }
    let mut rest = value.clone();
    rest.as_object_mut().unwrap().retain(|_, value| !value.is_array() && !value.is_object());
    insta::assert_snapshot!(format!("{name}.rest"), compact(&rest));
}

#[test]
fn text_is_as_blessed() {
    let report = sample::report(60);
    let with = Meta { diagnosis: Some(diagnosis()), ..meta() };
    blessed("narrow", &text(&report, &meta(), 80));
    blessed("wide", &text(&report, &meta(), 200));
    insta::assert_snapshot!("brief", brief(&report, &with, 100));
    insta::assert_snapshot!(
        "brief_load",
        brief(&sample::load::report(Default::default()), &with, 100)
    );
}

/// The text was a data dump of hundreds of lines.
#[test]
fn a_text_fits_on_sixty_lines_and_says_what_is_left_out() {
    let with = Meta { diagnosis: Some(diagnosis()), ..meta() };
    for report in reports() {
        for meta in [&meta(), &with] {
            for width in [80, 100, 200] {
                let text = brief(&report, meta, width);
                assert!(text.lines().count() <= 60, "{}\n{text}", text.lines().count());
                assert!(text.split_whitespace().any(|word| word == "--all"), "{text}");
                let long = text.lines().find(|line| line.chars().count() > width);
                assert_eq!(long, None, "{text}");
            }
        }
    }
}

#[test]
fn json_is_as_blessed() {
    let mut value = json(&sample::report(12), &meta()).unwrap();
    // There are many similar bins.
    let bins = value["series"]["bins"].as_array_mut().unwrap();
    bins.truncate(1);
    value["commands"].as_array_mut().unwrap().truncate(4);
    blessed_json("report", &value);
}

#[test]
fn a_load_run_is_as_blessed() {
    let report = sample::load::report(Default::default());
    blessed("load", &text(&report, &meta(), 100));
    let mut value = json(&report, &meta()).unwrap();
    // There are many similar bins.
    let load = &mut value["load"];
    load["bins"].as_array_mut().unwrap().truncate(1);
    load["scenarios_by_step"].as_array_mut().unwrap().truncate(6);
    for counter in load["counters"].as_array_mut().unwrap() {
        counter["values"].as_array_mut().unwrap().truncate(1);
    }
    blessed_json("load_json", load);
    blessed("load_single", &text(&sample::load::single(), &meta(), 80));
}

#[test]
fn a_server_is_as_blessed() {
    let mut report = sample::server::report(2_000);
    let text = text(&report, &meta(), 120);
    let (_, section) = text.split_once("── INSIDE THE SERVER").unwrap();
    let (section, _) = section.split_once("\n── ").unwrap();
    insta::assert_snapshot!("server", section);
    // There are many similar bins.
    let server = report.server.as_mut().unwrap();
    server.bins.truncate(1);
    server.slowest.truncate(1);
    server.commands.truncate(1);
    insta::assert_snapshot!("server_json", compact(&json(&report, &meta()).unwrap()["server"]));
}

#[test]
fn a_report_without_slices_has_no_section_on_the_server() {
    let report = sample::report(60);
    assert!(!text(&report, &meta(), 100).contains("── INSIDE THE SERVER"));
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
    insta::assert_snapshot!("forecast_json", compact(forecast));
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
        text(&report, &meta(), 100).split_whitespace().collect::<Vec<_>>().join(" ")
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
    report.files.distinct = 1_000;
    let text = text(&report, &meta(), 100);
    assert!(text.contains("5 reads have a size past the limit"), "{text}");
    // Files and directories are one list, with what a page does not have.
    assert_eq!(text.matches("Files and directories").count(), 1, "{text}");
    assert!(
        text.contains("smbscope query monday.pcapng '<b>&.pcap' \"select share, path"),
        "{text}"
    );
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
fn an_explanation_has_all_its_parts_and_cannot_steer_the_terminal() {
    let why = sample::why::explanation();
    let options = TextOptions { height: Some(40), ..TextOptions::new(100, false) };
    let text = why_text(&why, "monday.pcapng", &options);
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    insta::assert_snapshot!("why", text);
    // No reason, kind of step or state of the connection lacks words.
    use smbscope_analysis::explain::why::{Blocking, Reason};
    for reason in Reason::ALL {
        for elapsed_ns in [None, why.operation.brief.elapsed_ns] {
            let mut other = why.clone();
            other.reason = reason;
            other.operation.brief.elapsed_ns = elapsed_ns;
            let text = why_text(&other, "monday.pcapng", &options);
            assert!(text.lines().nth(3).is_some_and(|line| line.len() > 20), "{text}");
        }
    }
    for blocking in Blocking::ALL {
        let mut other = why.clone();
        other.neighbours.blocking = blocking;
        assert!(why_text(&other, "", &options).contains("Its connection: "));
    }
}
