//! The causes alone, as `smbscope explain` shows them for a CPU trace.

use serde_json::{Value, json};
use smbscope_analysis::processors::Report;

use super::{causes, coverage, verdict};
use crate::answers::recording::meta::Meta;
use crate::document::{Document, Section, TextOptions};
use crate::render::{Answer, text::document_text};

/// What holds the CPUs, and what it was derived from in numbers.
#[derive(Clone, Copy, Debug)]
pub struct CpuExplanation<'a> {
    pub report: &'a Report,
    pub meta: &'a Meta,
}

impl Answer for CpuExplanation<'_> {
    fn document(&self) -> Option<Document> {
        let CpuExplanation { report, meta } = *self;
        let sections: Vec<Section> =
            if report.findings.is_empty() { Vec::new() } else { vec![causes::section(report)] };
        let mut verdict = verdict::verdict(report);
        // The causes say the same, with their evidence.
        verdict.reasons.truncate(1);
        Some(Document {
            brand: "smbscope explain",
            title: meta.inputs.join(", "),
            span: super::span(report, meta),
            verdict,
            notices: coverage::notices(report),
            sections,
            clock: meta.clock.clone(),
            inputs: meta.inputs.clone(),
            version: meta.version.clone(),
            ..Document::default()
        })
    }

    fn json(&self) -> serde_json::Result<Value> {
        let CpuExplanation { report, meta } = *self;
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

    /// All causes fit on a screen or two.
    fn text(&self, options: &TextOptions) -> String {
        let document = self.document();
        let options = TextOptions { all: true, ..*options };
        document.map_or_else(String::new, |document| document_text(&document, &options))
    }
}
