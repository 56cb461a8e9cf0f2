//! The output has exactly the fields of its JSON Schema, with their types.

use serde_json::Value;
use smbscope_analysis::explain::Diagnosis;
use smbscope_analysis::replication::forecast::{GoalForecast, GoalPoint};
use smbscope_analysis::replication::search::Found;
use smbscope_report::cpu::{CpuAnswer, CpuExplanation};
use smbscope_report::diagnosis::DiagnosisAnswer;
use smbscope_report::fields::{Fields, Format, Object, Presence};
use smbscope_report::replication::ReplicationPlan;
use smbscope_report::why::WhyAnswer;
use smbscope_report::{ALL_FIELDS, Clock, Report, TextOptions, html, schema};

use super::sample::diagnosis::diagnosis;
use super::sample::why::explanation;
use super::{json, meta, processors, reports, sample};

#[test]
fn a_diagnosis_is_of_its_published_schema() {
    let objects = objects_of("explain");
    for diagnosis in [diagnosis(), Diagnosis::default()] {
        let answer = DiagnosisAnswer {
            diagnosis: &diagnosis,
            inputs: String::new(),
            cpu: None,
            selection: None,
            recorded: None,
            clock: Clock::default(),
        };
        check_in(objects, &smbscope_report::json(&answer).unwrap(), "diagnosis", "$");
    }
}

#[test]
fn an_explanation_is_of_its_published_schema() {
    let mut empty = explanation();
    (empty.timer, empty.open, empty.filter) = (None, None, None);
    empty.operation = Default::default();
    empty.neighbours = Default::default();
    for explanation in [&explanation(), &empty] {
        let inputs = String::new();
        let answer = WhyAnswer {
            explanation,
            inputs,
            selection: None,
            recorded: None,
            clock: Clock::default(),
        };
        let value = smbscope_report::json(&answer).unwrap();
        check_in(objects_of("why"), &value, "explanation", "$");
    }
}

#[test]
fn a_report_of_a_trace_is_of_its_published_schema() {
    for report in processors::reports() {
        let value = smbscope_report::json(&CpuAnswer { report: &report, meta: &meta() }).unwrap();
        check_in(objects_of("processors"), &value, "processors", "$");
    }
}

#[test]
fn an_explanation_of_a_trace_is_of_its_published_schema() {
    let schema = schema(fields_of("explain-processors"));
    let finding = &schema["$defs"]["processor_finding"]["properties"];
    let mut found = 0;
    for report in processors::reports() {
        let value =
            smbscope_report::json(&CpuExplanation { report: &report, meta: &meta() }).unwrap();
        check_in(objects_of("explain-processors"), &value, "processors_explanation", "$");
        for one in value["findings"].as_array().unwrap() {
            let troubles = finding["trouble"]["enum"].as_array().unwrap();
            assert!(troubles.contains(&one["trouble"]), "{one}");
            found += 1;
        }
    }
    assert!(found > 0);
}

#[test]
fn a_plan_of_a_second_server_is_of_its_published_schema() {
    for plan in [super::sample::replication::plan(), ReplicationPlan::default()] {
        let value = smbscope_report::json(&plan).unwrap();
        check_in(objects_of("replication"), &value, "replication", "$");
        assert!(html(&plan).contains("smbscope plan replication"));
        assert!(!smbscope_report::text(&plan, &TextOptions::new(100, true)).is_empty());
    }
}

/// Links of different rates are neither averaged nor answered by one of them.
#[test]
fn each_rate_has_its_own_goal_and_its_own_chart() {
    let plan = super::sample::replication::plan();
    let text = smbscope_report::text(&plan, &TextOptions::new(200, true));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "is kept up to a round trip of 7.00 ms (700 km of fibre, if only light took time) over a link of 1 Gbit/s",
        "is missed at any distance over a link of 1 Mbit/s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let html = html(&plan);
    let chart = "Added time over the round trip, over a link of";
    // The other rate has one round trip only.
    assert_eq!(
        (html.matches(chart).count(), html.contains(&format!("{chart} 1 Gbit/s"))),
        (1, true)
    );
}

/// The end of a search is not an answer.
#[test]
fn a_goal_that_no_round_trip_misses_is_kept_at_any() {
    let mut plan = super::sample::replication::plan();
    let tried = vec![GoalPoint { rtt_ns: 1_000_000_000, time_ns: 2_000_000 }];
    let goal =
        GoalForecast { goal: "Write p99 < 10ms".to_owned(), tried, ..GoalForecast::default() };
    plan.forecast.goals = vec![goal.answer(Found::Always(1_000_000_000))];
    let value = smbscope_report::json(&plan).unwrap();
    check_in(objects_of("replication"), &value, "replication", "$");
    let goal = &value["goals"][0];
    assert_eq!((&goal["rtt_ns"], &goal["is_always"]), (&Value::Null, &Value::Bool(true)));
    let text = smbscope_report::text(&plan, &TextOptions::new(200, true));
    assert!(text.contains("Write p99 < 10ms is kept at any round trip"), "{text}");
    assert!(html(&plan).contains("Longest round trip for the goal"));
}

/// The figures of a plan that can be computed by hand: each Flush waits for a round trip and for its data.
#[test]
fn a_plan_says_what_waits_and_what_is_at_risk() {
    let plan = super::sample::replication::plan();
    let line = &plan.forecast.lines[0];
    let flush = line.sync.commands.iter().find(|row| row.name == "Flush").unwrap();
    let added = flush.added.unwrap();
    assert_eq!((flush.waiting, added.n), (Some(100), 100));
    assert!(added.p50_ns.unwrap().abs_diff(1_000_000) < 20_000, "{added:?}");
    // A receipt is there while the local Flush of 2 ms still lasts.
    let received = line.received.commands.iter().find(|row| row.name == "Flush").unwrap();
    assert_eq!(received.waiting, Some(0));
    let names = |rows: &[smbscope_analysis::replication::forecast::WaitRow]| {
        rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&line.sync.applications), ["database", "office"]);
    assert_eq!(plan.forecast.written_bytes, 300 * 65_536);
    // 15 writes a second: 7.9 Mbit/s, which 1 Mbit/s does not carry.
    let slow = &plan.forecast.lines[1];
    assert!(slow.load.times_mean.unwrap() < 0.2 && slow.initial_copy.unwrap().loaded_ns.is_none());
    let risk = line.at_risk.unwrap();
    assert_eq!(risk.max_bytes, 65_536);
    let text = smbscope_report::text(&plan, &TextOptions::new(100, true));
    for line in [
        "Flush p99 < 10ms is kept up to a round trip of 7.00 ms",
        "Test-SRTopology -SourceComputerName",
        "The link cannot carry the writes",
        "Failed <script>",
    ] {
        assert!(
            line == "The link cannot carry the writes" || text.contains(line),
            "{line}:\n{text}"
        );
    }
    assert!(!html(&plan).contains("<script>alert"));
}

#[test]
fn durability_has_exactly_the_fields_and_a_section() {
    let found = super::sample::replication::durability();
    check(&serde_json::to_value(&found).unwrap(), "durability", "$");
    assert!(!found.files.is_empty() && !found.series_bytes.is_empty());
    assert_eq!((found.writes, found.flushes, found.ways.len()), (300, 99, 2));
    let report = Report { durability: Some(found), ..sample::report(12) };
    let text = super::text(&report, &meta(), 100);
    assert!(text.contains("DURABILITY") && text.contains("Flush before Close"), "{text}");
    assert!(super::html(&report, &meta()).contains("Which acknowledged writes were stable"));
}

/// The objects of an answer.
pub fn objects_of(name: &str) -> &'static [Object] {
    fields_of(name).objects()
}

fn fields_of(name: &str) -> &'static Fields {
    ALL_FIELDS.iter().copied().find(|fields| fields.name == name).unwrap()
}

#[test]
fn the_output_has_exactly_the_fields() {
    for operations in [0, 12, 5_000] {
        check(&json(&sample::report(operations), &meta()).unwrap(), "report", "$");
    }
    for mut report in reports() {
        check(&json(&report, &meta()).unwrap(), "report", "$");
        // Rates are rarely whole numbers.
        if let Some(load) = &mut report.load {
            load.steps.iter_mut().for_each(|step| step.bytes_per_second = Some(47_539_206.320_786));
            check(&json(&report, &meta()).unwrap(), "report", "$");
        }
    }
}

/// Compares a value with the fields of an object: names both ways, and every value's type.
pub fn check(value: &Value, name: &str, place: &str) {
    check_in(objects_of("report"), value, name, place);
}

pub fn check_in(objects: &[Object], value: &Value, name: &str, place: &str) {
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
        // Rows of tables have the names of their columns.
        objects_of("report").iter().filter(|object| {
            !matches!(object.name, "coverage" | "connection" | "net_test" | "net_round_trip")
        })
    {
        for field in &object.fields {
            let end = match field.format {
                Format::Duration | Format::Time => "_ns",
                Format::Bytes => "_bytes",
                _ => continue,
            };
            let named = field.name.ends_with(end) || field.name.starts_with("bytes_");
            assert!(named, "{}.{}", object.name, field.name);
        }
    }
}
