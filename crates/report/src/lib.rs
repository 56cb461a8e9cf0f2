//! Summaries as text, as JSON with a published schema, and as one self-contained HTML file.
//!
//! Owns how things are shown: every field's title, unit and explanation stand once, in
//! [`fields`]. It computes nothing but the layout; the numbers come from `model`.

mod catalogue;
mod catalogue_load;
mod catalogue_server;
mod document;
pub mod fields;
pub mod format;
mod html;
mod json;
mod sections;
mod text;

pub use html::html;
pub use json::{json, schema};
pub use smbscope_model::summary::Report;
pub use text::text;

/// What a report says about itself.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    /// Version of smbscope.
    pub version: String,
    /// Names of the inputs, as the user gave them.
    pub inputs: Vec<String>,
}
