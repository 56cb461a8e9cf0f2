//! What a report says besides its numbers: which inputs, and which part of them it covers.

use serde_json::{Value, json};

use smbscope_analysis::explain::Diagnosis;

use crate::answers::prediction::Forecast;
use crate::value::{Clock, format::count};

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
    /// Whether the inputs also have a CPU trace, which this report does not show.
    pub has_processors: bool,
    /// Which period of a CPU trace it covers, in words; `None` for all.
    pub period: Option<String>,
    /// How times of day are shown.
    pub clock: Clock,
}

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

/// Adds to an answer for programs which part of the inputs it covers, and which part was recorded.
pub(crate) fn insert_selections(
    value: &mut Value,
    selection: Option<&Selection>,
    recorded: Option<&Selection>,
) {
    if let Some(object) = value.as_object_mut() {
        for (name, selection) in [("selection", selection), ("recorded", recorded)] {
            object.extend(selection.map(|one| (name.to_owned(), one.json())));
        }
    }
}
