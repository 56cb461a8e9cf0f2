//! Summaries as text, as JSON with a published schema, and as one self-contained HTML file.
//!
//! Owns everything that is rendered, for people ([`text()`], [`html()`], [`pages`], [`table`]) and for other programs
//! ([`json()`], [`export`]). The title, unit and explanation of each field are defined once, in [`fields`]. It
//! computes nothing but the layout; the numbers come from `analysis`.

mod baseline;
mod bottleneck;
mod clock;
mod comparison;
mod document;
mod evidence;
pub mod export;
pub mod fields;
pub mod forecast;
pub mod format;
mod html;
mod json;
mod namespace;
pub mod pages;
mod prediction;
mod processors;
mod replication;
mod sections;
mod selection;
pub mod table;
mod text;
mod ticks;
mod verdict;
mod waterfall;

pub use baseline::{
    BaselinePlan, CommandBlock, SearchPlan, baseline_facts, baseline_html, baseline_json,
    baseline_numbers, baseline_text,
};
pub use clock::Clock;
pub use comparison::comparison_html;
pub use forecast::{ChangeRow, Forecast, ForecastPart, ForecastRow};
pub use html::html;
pub use json::{
    baseline_schema, cores_schema, explain_schema, json, namespace_schema,
    processors_explain_schema, processors_schema, replication_schema, schema, why_schema,
};
pub use namespace::{
    FindingSeverity, NamespaceFinding, NamespacePlan, namespace_html, namespace_json,
    namespace_text,
};
pub use pages::comparison::{comparison_text, comparison_warnings};
pub use pages::cores::{CoresPlan, cores_html, cores_json, cores_text};
pub use pages::findings::{FINDINGS_SHOWN, Look, explain_text};
pub use pages::why::{why_json, why_miss, why_text};
pub use prediction::{prediction_html, profile_html};
pub use processors::{
    processors_beside_text, processors_comparison_html, processors_comparison_json,
    processors_comparison_text, processors_explain_json, processors_explain_text, processors_html,
    processors_json, processors_text,
};
pub use replication::{ReplicationPlan, replication_html, replication_json, replication_text};
pub use selection::Selection;
use smbscope_analysis::explain::Diagnosis;
pub use smbscope_analysis::summary::Report;
pub use text::{TextLook, text};

/// What a report has in addition to the summary.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    /// Version of smbscope.
    pub version: String,
    /// Names of the inputs, as the user gave them.
    pub inputs: Vec<String>,
    /// What changes would bring, if requested.
    pub forecast: Option<Forecast>,
    /// What makes it slow: the verdict and the findings.
    pub diagnosis: Option<Diagnosis>,
    /// Which part of the inputs it covers; `None` for all.
    pub selection: Option<Selection>,
    /// Which part was kept when the inputs were recorded; `None` for all.
    pub recorded: Option<Selection>,
    /// Whether the inputs also have a trace of processors, which this report does not show.
    pub has_processors: bool,
    /// Which period of a trace of processors it covers, in words; `None` for all.
    pub period: Option<String>,
    /// How times of day are shown.
    pub clock: Clock,
}
