//! Documents as text, as one HTML file, and as JSON with its schema.

pub(crate) mod html;
pub(crate) mod json;
pub mod table;
pub(crate) mod text;

use serde_json::Value;

use crate::document::{Document, TextOptions};

pub use html::{SCRIPT, STYLE};

/// What a command answers, in the forms in which it is shown.
pub trait Answer {
    /// All of it, for a page and for a terminal; none if it has only a text of its own.
    fn document(&self) -> Option<Document> {
        None
    }

    /// All of it for programs; null if they read its rows.
    ///
    /// # Errors
    ///
    /// Returns the error of `serde_json`, which this data does not cause.
    fn json(&self) -> serde_json::Result<Value> {
        Ok(Value::Null)
    }

    /// For a terminal: the document, unless the answer has a text of its own.
    fn text(&self, options: &TextOptions) -> String {
        let document = self.document();
        document.map_or_else(String::new, |document| text::document_text(&document, options))
    }
}

/// An answer for a terminal.
pub fn text(answer: &dyn Answer, options: &TextOptions) -> String {
    answer.text(options)
}

/// An answer as one HTML file that needs nothing else.
pub fn html(answer: &dyn Answer) -> String {
    answer.document().as_ref().map_or_else(String::new, html::page)
}

/// The head of an answer's page and some of its sections, by their ids, for a live page with [`STYLE`] and
/// [`SCRIPT`]. `window.smbscope.enliven(element)` of the script makes its tables and charts react.
pub fn fragment(answer: &dyn Answer, sections: &[&str]) -> String {
    let document = answer.document();
    document.as_ref().map_or_else(String::new, |document| html::fragment(document, sections))
}

/// An answer for programs; [`schema`](json::schema) describes it.
///
/// # Errors
///
/// Returns the error of `serde_json`, which this data does not cause.
pub fn json(answer: &dyn Answer) -> serde_json::Result<Value> {
    answer.json()
}
