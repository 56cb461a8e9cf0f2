//! The first screen: verdict, findings and coverage as the report has them, and the largest groups by SQL. A
//! finding says which filter leads to its operations.

use serde::Deserialize;
use serde_json::{Value, json};
use smbscope_analysis::explain::{Contributor, Diagnosis, Finding, is_reported};
use smbscope_findings::Kind as _;
use smbscope_report::recording::RecordingAnswer;
use smbscope_report::{Meta, Selection};

use crate::data::{About, Data, Loaded};
use crate::error::Result;
use crate::filter::Filter;
use crate::pivot::{self, Pivot};
use crate::subject::{OPERATIONS, Subject};

/// Sections of the report that the page shows.
const SECTIONS: [&str; 4] = ["findings", "waits", "coverage", "recording"];
/// Dimensions with bars.
const GROUPS: [&str; 8] =
    ["slice", "command", "share", "client", "user", "extension", "status", "access"];
/// The same for CPU traces.
const CPU_GROUPS: [&str; 4] = ["module", "function", "cpu", "kind"];
/// Bars of a dimension.
const BARS: usize = 8;

/// The request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    pub filter: Filter,
}

/// The verdict, findings and coverage as HTML, and the filters of the findings.
///
/// # Errors
///
/// Those of reading the inputs.
pub fn report(request: &Request, data: &Data) -> Result<Value> {
    let (filter, left_out) = request.filter.of_report()?;
    let words = (!filter.is_empty()).then(|| filter.words(false, data.about.clock.offset_s()));
    let (report, diagnosis, kept) = data.report(filter)?;
    let selection = words.zip(kept).map(|(filter, (operations, all))| Selection {
        filter,
        operations,
        operations_all: Some(all),
    });
    let findings: Vec<_> = diagnosis.iter().flat_map(findings).collect();
    let markers: Vec<_> = diagnosis.iter().flat_map(markers).collect();
    let meta = Meta {
        version: data.about.version.clone(),
        inputs: data.about.inputs.clone(),
        diagnosis,
        selection,
        clock: data.about.clock.clone(),
        ..Meta::default()
    };
    let fragment =
        smbscope_report::fragment(&RecordingAnswer { report: &report, meta: &meta }, &SECTIONS);
    // The page's policy allows no styles in attributes: the page's script sets them.
    let html = fragment.replace(" style=\"", " data-style=\"");
    let titles = left_out.iter().filter_map(|key| OPERATIONS.dimension(key)).map(|one| one.title);
    Ok(json!({
        "html": html,
        "findings": findings,
        "markers": markers,
        "operations": report.totals.tally.operations,
        "left_out": titles.collect::<Vec<_>>(),
    }))
}

/// The largest groups of each dimension, by their time.
///
/// # Errors
///
/// Those of the queries.
pub fn groups(request: &Request, loaded: &Loaded, about: &About) -> Result<Value> {
    let Some(subject) = loaded.subjects.first() else { return Ok(json!([])) };
    let is_cpu = subject.table != OPERATIONS.table;
    let keys: &[&str] = if is_cpu { &CPU_GROUPS } else { &GROUPS };
    let value = if is_cpu { "exclusive_ns" } else { "busy_ns" };
    let mut groups = Vec::new();
    for key in keys {
        let Some(dimension) = subject.dimension(key) else { continue };
        let asked = pivot::Request {
            table: Some(subject.table.to_owned()),
            filter: request.filter.clone(),
            rows: vec![(*key).to_owned()],
            value: Some(value.to_owned()),
            show: vec!["sum".to_owned()],
            sort: pivot::Sort { by: Some("sum".to_owned()), ..pivot::Sort::default() },
            limit: BARS,
            ..pivot::Request::default()
        };
        let answer = Pivot::new(&asked, loaded, about)?.answer(&asked, loaded)?;
        groups.push(json!({ "key": key, "title": dimension.title, "answer": answer }));
    }
    Ok(Value::from(groups))
}

/// A finding's place in the page, and the filter of its operations.
fn findings(diagnosis: &Diagnosis) -> Vec<Value> {
    let reported = diagnosis.findings.iter().filter(|found| is_reported(found));
    reported
        .map(|found| {
            let examples: Vec<_> =
                found.details.examples.iter().filter_map(|one| one.operation.map(|n| n.to_string())).collect();
            let recordings: Vec<_> =
                found.details.examples.iter().filter_map(|one| one.recording.clone()).collect();
            json!({
                "title": found.kind.title(),
                "filter": filter_of(found),
                "examples": (!examples.is_empty()).then(|| json!({ "in": { "operation": examples, "recording": recordings } })),
            })
        })
        .collect()
}

/// When findings with a known period began.
fn markers(diagnosis: &Diagnosis) -> Vec<Value> {
    let reported = diagnosis.findings.iter().filter(|found| is_reported(found));
    reported
        .filter_map(|found| {
            let first = found.first_ns?.to_string();
            Some(json!({ "at": first, "title": found.kind.title() }))
        })
        .collect()
}

/// The period and those names that have all of a finding's operations; names of only some would hide others.
fn filter_of(found: &Finding) -> Filter {
    let details = &found.details;
    let mut filter = Filter {
        from: found.first_ns.map(|ns| ns.to_string()),
        to: found.last_ns.map(|ns| ns.saturating_add(1).to_string()),
        ..Filter::default()
    };
    let all = [("client", &details.clients), ("share", &details.shares)];
    for (key, names) in all {
        let operations: u64 = names.iter().map(|one| one.operations).sum();
        if !names.is_empty() && operations >= details.operations {
            let name = |one: &Contributor| match key {
                "share" => Some(one.name.to_lowercase()),
                _ => Some(one.name.clone()),
            };
            filter.values.insert(key.to_owned(), names.iter().map(name).collect());
        }
    }
    filter
}

/// What the page needs to draw itself.
pub fn about(data: &Data, loaded: &Loaded) -> Value {
    let subject = |subject: &&'static Subject| {
        json!({
            "table": subject.table,
            "title": subject.title,
            "dimensions": subject.dimensions.iter().map(|one| json!({
                "key": one.key,
                "title": one.title,
                "form": match one.form {
                    crate::subject::Form::Text => "text",
                    crate::subject::Form::Number => "number",
                    crate::subject::Form::Period(_) => "period",
                    crate::subject::Form::Slice => "slice",
                },
                "length_ns": match one.form {
                    crate::subject::Form::Period(length) => Some(length),
                    _ => None,
                },
            })).collect::<Vec<_>>(),
            "values": subject.values.iter().map(|one| json!({ "key": one.key, "title": one.title, "unit": one.unit })).collect::<Vec<_>>(),
        })
    };
    json!({
        "inputs": data.about.inputs,
        "version": data.about.version,
        "offset_s": data.about.clock.offset_s(),
        "zone": data.about.clock.zone(),
        "data_version": loaded.version.to_string(),
        "is_live": data.is_live(),
        "from": loaded.extent.map(|extent| extent.0.to_string()),
        "to": loaded.extent.map(|extent| extent.1.to_string()),
        "subjects": loaded.subjects.iter().map(subject).collect::<Vec<_>>(),
        "statistics": crate::subject::STATISTICS.map(|(name, _)| name),
    })
}
