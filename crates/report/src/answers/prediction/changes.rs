//! The list of the changes that can be predicted, as text and as flat records.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::error::ArrowError;
use smbscope_analysis::predict::changes::{REGISTRY, Spec};

use crate::document::TextOptions;
use crate::render::table::{Column, lines};

/// A table for people.
pub(crate) fn text(options: &TextOptions) -> String {
    let body = REGISTRY.iter().map(|entry| {
        let Spec { example, meaning, needs, .. } = entry.spec;
        [example, meaning, needs].map(str::to_owned).to_vec()
    });
    let columns = ["example", "meaning", "needs"].map(Column::left);
    lines(&columns, &body.collect::<Vec<_>>(), options.bold, options.width)
}

/// Flat records: one for each change.
pub fn batch() -> Result<RecordBatch, ArrowError> {
    let words = |of: fn(&Spec) -> &'static str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(REGISTRY.iter().map(|entry| of(&entry.spec))))
    };
    RecordBatch::try_from_iter_with_nullable([
        ("change", words(|spec| spec.name), false),
        ("example", words(|spec| spec.example), false),
        ("meaning", words(|spec| spec.meaning), false),
        ("needs", words(|spec| spec.needs), false),
    ])
}
