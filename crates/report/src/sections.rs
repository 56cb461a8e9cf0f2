//! What the report says, section by section, in the order in which it is read.

mod connections;
mod counters;
mod coverage;
mod forecast;
mod latency;
mod load;
mod run;
mod server;
mod work;

use smbscope_analysis::summary::Report;

use crate::Meta;
use crate::document::Section;

pub(crate) use load::figures as load_figures;

/// All sections.
pub(crate) fn sections(report: &Report, meta: &Meta) -> Vec<Section> {
    let mut sections = vec![coverage::coverage(report, meta)];
    if report.totals.tally.operations == 0 && report.load.is_none() {
        // Everything else would be empty.
        sections.extend(meta.forecast.as_ref().map(forecast::forecast));
        return sections;
    }
    if let Some(load) = &report.load {
        sections.push(run::run(load));
        sections.push(load::capacity(load));
        sections.push(load::scenarios(load));
        sections.extend(counters::counters(load));
    }
    sections.extend(meta.forecast.as_ref().map(forecast::forecast));
    sections.extend([
        latency::overview(report),
        latency::commands(report),
        latency::errors(report),
    ]);
    sections.extend(report.server.as_ref().map(|it| server::server(report, it)));
    sections.extend([
        work::groups(report),
        work::paths(report),
        work::series(report),
        work::sizes(report),
        connections::compounds(report),
        connections::protection(report),
        connections::connections(report),
        latency::slowest(report),
    ]);
    sections
}
