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
    /// Operations of the inputs.
    pub operations_all: u64,
}

impl Selection {
    /// For example `only share docs: 10 of 1,200 operations`.
    pub fn text(&self) -> String {
        let (some, all) = (count(self.operations), count(self.operations_all));
        format!("only {}: {some} of {all} operations", self.filter)
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
