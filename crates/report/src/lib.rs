//! Summaries as text, as JSON with a published schema, and as one self-contained HTML file.
//!
//! Owns everything that is rendered, for people ([`text()`], [`html()`], [`table`]) and for other programs
//! ([`json()`], [`export`]). The title, unit and explanation of each field are defined once, in [`Fields`]. It
//! computes nothing but the layout; the numbers come from `analysis`.
//!
//! Four floors, of which each uses those below it: `value`, `document`, `render`, `answers`.

mod answers;
mod document;
pub mod export;
mod render;
mod value;

pub use answers::baseline::{
    BaselinePlan, CommandBlock, SearchPlan, baseline_facts, baseline_html, baseline_json,
    baseline_numbers, baseline_text,
};
pub use answers::comparison::page::comparison_html;
pub use answers::comparison::{comparison_text, comparison_warnings};
pub use answers::cores::{CoresPlan, cores_html, cores_json, cores_text};
pub use answers::cpu::{
    processors_beside_text, processors_comparison_html, processors_comparison_json,
    processors_comparison_text, processors_explain_json, processors_explain_text, processors_html,
    processors_json, processors_text,
};
pub use answers::diagnosis::explain_text;
pub use answers::namespace::{
    FindingSeverity, NamespaceFinding, NamespacePlan, namespace_html, namespace_json,
    namespace_text,
};
pub use answers::prediction::page::{prediction_html, profile_html};
pub use answers::prediction::{ChangeRow, Forecast, ForecastPart, ForecastRow};
pub use answers::recording::meta::{Meta, Selection};
pub use answers::recording::{html, json, text};
pub use answers::replication::{
    ReplicationPlan, replication_html, replication_json, replication_text,
};
pub use answers::why::{why_json, why_miss, why_text};
pub use answers::{ALL_FIELDS, durability, load, prediction};
pub use document::TextOptions;
pub use render::json::schema;
pub use render::table;
pub use render::text::FINDINGS_SHOWN;
pub use smbscope_analysis::summary::Report;
pub use value::clock::Clock;
pub use value::fields::{Field, Fields, Format as FieldFormat, Object, Presence};
pub use value::format;
