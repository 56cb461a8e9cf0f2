//! Which part of its inputs an answer covers.

use serde_json::{Value, json};

use crate::format::count;

/// What a filter left of the inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The filter in words.
    pub filter: String,
    /// Operations that met the filter.
    pub operations: u64,
    /// Operations of the inputs; `None` if they were not counted.
    pub operations_all: Option<u64>,
}

impl Selection {
    /// For example `only share docs: 10 of 1,200 operations`.
    pub fn text(&self) -> String {
        let some = count(self.operations);
        let of = self.operations_all.map_or(String::new(), |all| format!(" of {}", count(all)));
        format!("only {}: {some}{of} operations", self.filter)
    }

    /// The same about a filter with which the inputs were recorded.
    pub fn recorded_text(&self) -> String {
        format!("the recording kept {}", self.text())
    }

    /// As an object.
    pub fn json(&self) -> Value {
        json!({
            "filter": self.filter,
            "operations": self.operations,
            "operations_all": self.operations_all,
        })
    }
}
