//! What the report says, section by section, in the order in which it is read.

mod connections;
mod coverage;
mod latency;
mod work;

use smbscope_model::summary::Report;

use crate::document::Section;

/// All sections.
pub(crate) fn sections(report: &Report) -> Vec<Section> {
    vec![
        coverage::coverage(report),
        latency::overview(report),
        latency::commands(report),
        latency::errors(report),
        work::groups(report),
        work::paths(report),
        work::series(report),
        work::sizes(report),
        connections::compounds(report),
        connections::protection(report),
        connections::connections(report),
        latency::slowest(report),
    ]
}
