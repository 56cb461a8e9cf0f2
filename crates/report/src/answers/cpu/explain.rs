//! The causes alone, as `smbscope explain` shows them for a trace of processors.

use serde_json::{Value, json};
use smbscope_analysis::processors::Report;

use super::{causes, coverage, verdict};
use crate::answers::recording::meta::Meta;
use crate::document::{Document, Section, TextOptions};
use crate::render::text::document_text;

/// What holds the processors, as text.
pub fn processors_explain_text(report: &Report, meta: &Meta, options: &TextOptions) -> String {
    let sections: Vec<Section> = match report.findings.is_empty() {
        true => Vec::new(),
        false => vec![causes::section(report)],
    };
    let mut verdict = verdict::verdict(report);
    // The causes say the same, with their evidence.
    verdict.reasons.truncate(1);
    document_text(
        &Document {
            brand: "smbscope explain",
            title: meta.inputs.join(", "),
            span: super::span(report, meta),
            verdict,
            tiles: Vec::new(),
            notices: coverage::notices(report),
            sections,
            clock: meta.clock.clone(),
            inputs: meta.inputs.clone(),
            version: meta.version.clone(),
            schema: smbscope_tables::SCHEMA_VERSION,
        },
        // All causes fit on a screen or two.
        &TextOptions { all: true, ..*options },
    )
}

/// The same as a JSON value: the findings, and what they were derived from in numbers.
///
/// # Errors
///
/// Those of the conversion.
pub fn processors_explain_json(report: &Report, meta: &Meta) -> Result<Value, serde_json::Error> {
    let mut value = json!({
        "version": meta.version,
        "inputs": meta.inputs,
        "length_ns": report.length_ns,
        "possible_ns": report.possible_ns,
        "recorded": serde_json::to_value(&report.recorded)?,
        "findings": serde_json::to_value(&report.findings)?,
    });
    if let (Some(period), Some(object)) = (&meta.period, value.as_object_mut()) {
        object.insert("period".to_owned(), json!(period));
    }
    Ok(value)
}
