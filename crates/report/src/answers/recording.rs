//! What the report says, section by section, in the order in which it is read: the answer, where the time
//! goes, what makes it slow, the course over time, then what is looked up.

mod both_sides;
mod channels;
mod connections;
mod coverage;
pub(crate) mod fields;
mod latency;
mod logged;
pub(crate) mod meta;
mod net;
mod paths;
mod portions;
mod server;
pub(crate) mod verdict;
mod waits;
mod work;

use serde_json::{Value, json};
use smbscope_analysis::summary::Report;

use crate::answers::diagnosis::section::findings;
use crate::answers::durability::section::durability;
use crate::answers::load::state::is_migration;
use crate::answers::load::{self, counters, run};
use crate::answers::prediction::section::forecast;
use crate::answers::recording::meta::Meta;
use crate::document::{Block, Document, Section};
use crate::render::Answer;

pub(crate) use net::{limit, problem};

/// A recording or a load run, summed up.
#[derive(Clone, Copy, Debug)]
pub struct RecordingAnswer<'a> {
    pub report: &'a Report,
    pub meta: &'a Meta,
}

impl Answer for RecordingAnswer<'_> {
    fn document(&self) -> Option<Document> {
        Some(document(self.report, self.meta))
    }

    fn json(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(self.report)?;
        if let Some(object) = value.as_object_mut() {
            let inputs = self.meta.inputs.iter().map(|name| json!({ "name": name }));
            object.insert("version".to_owned(), json!(self.meta.version));
            object.insert("inputs".to_owned(), inputs.collect());
            if let Some(selection) = &self.meta.selection {
                object.insert("selection".to_owned(), selection.json());
            }
            if let Some(recorded) = &self.meta.recorded {
                object.insert("recorded".to_owned(), recorded.json());
            }
            if let Some(forecast) = &self.meta.forecast {
                object.insert("forecast".to_owned(), serde_json::to_value(forecast)?);
            }
        }
        Ok(value)
    }
}

/// The tests of a network in a report; for programs they are alone.
#[derive(Clone, Copy, Debug)]
pub struct NetAnswer<'a>(pub RecordingAnswer<'a>);

impl Answer for NetAnswer<'_> {
    fn document(&self) -> Option<Document> {
        self.0.document()
    }

    fn json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(&self.0.report.net)
    }
}

/// The whole report.
pub(crate) fn document(report: &Report, meta: &Meta) -> Document {
    let mut notices = report.load.as_ref().map(run::notices).unwrap_or_default();
    notices.extend(meta.selection.as_ref().map(coverage::selected));
    notices.extend(meta.recorded.as_ref().map(coverage::recorded));
    if meta.has_processors {
        notices.push(Block::Note(
            "The inputs also have a CPU trace: `smbscope report INPUT --cpu` shows it, and `smbscope explain INPUT` both."
                .to_owned(),
        ));
    }
    notices.extend(coverage::notices(report));
    Document {
        brand: "smbscope report",
        title: meta.inputs.join(", "),
        span: span(report, meta),
        verdict: verdict::verdict(report, meta),
        tiles: verdict::tiles(report),
        notices,
        sections: sections(report, meta),
        clock: meta.clock.clone(),
        inputs: meta.inputs.clone(),
        version: meta.version.clone(),
        schema: report.schema_version,
    }
}

fn span(report: &Report, meta: &Meta) -> String {
    match (report.start_ns, report.end_ns) {
        (Some(start), Some(end)) => format!(
            "{}, for {}",
            meta.clock.second(start),
            crate::value::format::duration(end.saturating_sub(start))
        ),
        _ => "No time is known.".to_owned(),
    }
}

/// All sections that say something.
fn sections(report: &Report, meta: &Meta) -> Vec<Section> {
    // A recording without operations has only what was read, which is not folded then.
    if report.totals.tally.operations == 0 && report.load.is_none() {
        let mut sections: Vec<_> =
            logged::logged(&report.logged, &report.logged_other).into_iter().collect();
        if let Some(net) = &report.net {
            sections.push(net::net(net));
            // Nothing was captured that could be covered.
            if report.coverage.is_empty() {
                return sections;
            }
        }
        sections.push(Section { id: "recording", ..coverage::coverage(report) });
        return sections;
    }
    let mut sections = Vec::new();
    let users = report.load.as_ref().filter(|load| !is_migration(load));
    if let Some(load) = users {
        sections.push(load::capacity(load));
    } else if report.load.is_some() {
        sections.extend(report.channels.as_ref().map(channels::channels));
    }
    sections.push(latency::overview(report));
    sections.extend(findings(report, meta));
    sections.extend(meta.diagnosis.as_ref().and_then(waits::waits));
    sections.extend(report.both_sides.as_ref().map(both_sides::both_sides));
    sections.extend(logged::logged(&report.logged, &report.logged_other));
    sections.extend(report.net.as_ref().map(net::net));
    sections.extend(meta.forecast.as_ref().map(forecast));
    sections.extend(users.map(load::scenarios));
    if users.is_some() || report.load.is_none() {
        sections.extend(report.channels.as_ref().map(channels::channels));
    }
    sections.push(work::series(report));
    sections.extend(report.server.as_ref().map(|it| server::server(report, it)));
    sections.extend([
        latency::commands(report),
        paths::paths(report),
        work::groups(report),
        latency::slowest(report),
        latency::errors(report),
        durability(report, meta),
        work::sizes(report),
        connections::compounds(report),
        connections::protection(report),
        connections::connections(report),
    ]);
    if let Some(load) = &report.load {
        sections.extend(counters::counters(load));
        sections.push(run::run(load));
    }
    sections.push(coverage::coverage(report));
    Section::worth_showing(sections)
}
