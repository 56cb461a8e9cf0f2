//! Summaries as text, as JSON with a published schema, and as one self-contained HTML file.
//!
//! Owns everything that is rendered, for people ([`text()`], [`html()`], [`table`]) and for other programs
//! ([`json()`], [`export`]). The title, unit and explanation of each field are defined once, in [`fields`]. It
//! computes nothing but the layout; the numbers come from `analysis`.
//!
//! Four floors, each of which uses those below it: `value` (fields, units, numbers as text), `document` (sections, tables,
//! charts), `render` (text, HTML, JSON), `answers` (a folder for each subject). An answer implements [`Answer`]; the
//! renderers know nothing else of it:
//!
//! ```
//! use smbscope_report::{Answer, TextOptions, text};
//!
//! struct Greeting(&'static str);
//!
//! impl Answer for Greeting {
//!     fn text(&self, _: &TextOptions) -> String {
//!         format!("{} took {}\n", self.0, smbscope_report::format::duration(21_100_000))
//!     }
//! }
//!
//! assert_eq!(text(&Greeting("a read"), &TextOptions::new(80, false)), "a read took 21.1 ms\n");
//! ```

// Some parts of a document are only in the answers of the planners.
#![cfg_attr(not(feature = "plan"), allow(dead_code))]

mod answers;
mod document;
pub mod export;
mod render;
mod value;

pub use answers::recording::meta::{Meta, Selection};
pub use answers::{
    ALL_FIELDS, comparison, cpu, diagnosis, durability, load, prediction, recording, why,
};
#[cfg(feature = "plan")]
pub use answers::{baseline, cores, namespace, replication};
pub use document::TextOptions;
pub use render::json::{escaped as escaped_json, schema, text as json_text};
pub use render::text::FINDINGS_SHOWN;
pub use render::{Answer, SCRIPT, STYLE, fragment, html, json, table, text};
pub use smbscope_analysis::summary::Report;
pub use value::clock::Clock;
pub use value::{fields, format};
