//! The manifest of a run folder (`manifest.json`): what was run or imported, the clocks, and the
//! complete Parquet files with their rows.
//!
//! It is replaced after each completed file, so it never names an incomplete one. It is only an
//! index: a folder without it, or with files that it does not name yet, is still readable. `store`
//! owns the files. Unknown fields are ignored; `fix_up` converts manifests of older schemas.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::anonymize::Tokenizer;
use crate::column::Sensitivity;
use crate::description::RunDescription;
use crate::tables::Coverage;
use crate::version::SCHEMA_VERSION;

/// The manifest's file name in the run folder.
pub const FILE_NAME: &str = "manifest.json";

/// Why a manifest could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not JSON, or not a manifest.
    #[error("not a valid manifest: {0}")]
    Json(#[from] serde_json::Error),
    /// Written by a newer smbscope.
    #[error(
        "written with schema version {found}, but this smbscope reads only versions up to {SCHEMA_VERSION}: use a newer smbscope"
    )]
    Newer {
        /// The version that it says.
        found: u64,
    },
    /// No schema version: a file of another program.
    #[error("not a manifest of smbscope: schema_version is missing")]
    NoVersion,
}

/// Words of a filter whose values may be names, which are replaced.
pub const HIDDEN_FILTER: &str = "what a filter kept that may contain names";

/// How the folder was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Captures were imported.
    #[default]
    Import,
    /// Simulated users ran against a server.
    Load,
    /// A running server was recorded.
    Record,
    /// The network was measured without SMB (`smbscope net send`).
    Net,
    /// A kind that this version does not know.
    #[serde(other)]
    Other,
}

/// One input of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputFile {
    /// Its name, as given.
    pub name: String,
    /// Its size; unknown for a stream.
    pub size_bytes: Option<u64>,
    /// Its format: pcap, pcapng, dataset ...
    pub format: String,
}

/// A clock that time stamps were taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// Its name: the recording's, or a machine's.
    pub name: String,
    /// Offset ahead of the folder's first clock.
    pub offset_ns: i64,
    /// Drift against the first clock, in parts per billion; positive if it runs faster.
    pub drift_ppb: i64,
    /// Uncertainty of the offset; null if it was not measured.
    pub error_ns: Option<u64>,
    /// Resolution of its time stamps.
    pub resolution_ns: Option<u64>,
}

/// One complete Parquet file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartFile {
    /// Its path in the folder, with forward slashes.
    pub file: String,
    /// Its rows.
    pub rows: u64,
    /// Its size.
    pub size_bytes: u64,
    /// Earliest value of the table's time column; null if no row has one.
    pub time_min: Option<i64>,
    /// Latest value of the table's time column.
    pub time_max: Option<i64>,
}

/// The manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// Version of all schemas.
    pub schema_version: u32,
    /// Version of the smbscope that wrote it.
    pub smbscope_version: String,
    /// When the folder was created: nanoseconds since 1970-01-01 00:00 UTC.
    pub created_at: i64,
    /// How it was created.
    pub kind: Kind,
    /// Whether writing was finished; false while it is being written and after a kill.
    pub complete: bool,
    /// Imported files.
    pub inputs: Vec<InputFile>,
    /// The filter with which it was recorded, in words; null if all operations were kept.
    pub filter: Option<String>,
    /// The load runs whose rows the folder contains; several after an import of several runs.
    pub runs: Vec<RunDescription>,
    /// Clocks.
    pub clocks: Vec<Clock>,
    /// Parts of each table, in the order in which they were written.
    pub tables: BTreeMap<String, Vec<PartFile>>,
    /// Coverage of each recording.
    pub coverage: Vec<Coverage>,
}

impl Manifest {
    /// An empty manifest of the current version.
    pub fn new(kind: Kind, created_at: i64) -> Manifest {
        Manifest {
            schema_version: SCHEMA_VERSION,
            smbscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at,
            kind,
            ..Manifest::default()
        }
    }

    /// Reads a manifest of this or an older version.
    pub fn from_json(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let mut value: Value = serde_json::from_slice(bytes)?;
        let found =
            value.get("schema_version").and_then(Value::as_u64).ok_or(ManifestError::NoVersion)?;
        if found > u64::from(SCHEMA_VERSION) {
            return Err(ManifestError::Newer { found });
        }
        for version in found..u64::from(SCHEMA_VERSION) {
            fix_up(version, &mut value);
        }
        Ok(serde_json::from_value(value)?)
    }

    /// The file's text.
    pub fn to_json(&self) -> Result<String, ManifestError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Replaces names in inputs, clocks and descriptions of runs by tokens. Coverage is copied from
    /// rows, which already contain tokens.
    pub fn anonymize(&mut self, tokenizer: &Tokenizer) {
        let names = self.inputs.iter_mut().map(|input| &mut input.name);
        for name in names.chain(self.clocks.iter_mut().map(|clock| &mut clock.name)) {
            *name = tokenizer.text("recording", Sensitivity::Machine, name);
        }
        self.runs.iter_mut().for_each(|run| run.anonymize(tokenizer));
        self.filter = self.filter.take().map(|_| HIDDEN_FILTER.to_owned());
    }

    /// Adds the description of a run, or replaces that of the same recording.
    pub fn describe(&mut self, run: RunDescription) {
        match self.runs.iter_mut().find(|known| known.recording == run.recording) {
            Some(known) => *known = run,
            None => self.runs.push(run),
        }
    }

    /// Rows of a table in all complete parts.
    pub fn rows(&self, table: &str) -> u64 {
        let parts = self.tables.get(table).map_or(&[][..], Vec::as_slice);
        parts.iter().map(|part| part.rows).sum()
    }
}

/// Brings a manifest from `version` to the next. Version 1 is the first, so nothing is older yet.
fn fix_up(_version: u64, _manifest: &mut Value) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let mut manifest = Manifest::new(Kind::Import, 17);
        manifest.inputs.push(InputFile {
            name: "a.pcap".into(),
            size_bytes: Some(24),
            format: "pcap".into(),
        });
        manifest.tables.insert(
            "operations".into(),
            vec![PartFile {
                file: "operations/part-000000.parquet".into(),
                rows: 5,
                time_min: Some(-1),
                ..PartFile::default()
            }],
        );
        manifest.coverage.push(Coverage { frames: 9, ..Coverage::default() });
        manifest
    }

    #[test]
    fn survives_the_way_through_json() {
        let manifest = sample();
        let text = manifest.to_json().unwrap();
        assert_eq!(Manifest::from_json(text.as_bytes()).unwrap(), manifest);
        assert_eq!((manifest.rows("operations"), manifest.rows("x")), (5, 0));
    }

    #[test]
    fn unknown_fields_and_kinds_are_tolerated_newer_versions_are_not() {
        let text = sample().to_json().unwrap();
        let other = text.replace("\"import\"", "\"replay\"").replacen('{', "{\"novelty\": [1],", 1);
        let read = Manifest::from_json(other.as_bytes()).unwrap();
        assert_eq!((read.kind, read.inputs.len()), (Kind::Other, 1));
        let newer = text
            .replace(&format!("\"schema_version\": {SCHEMA_VERSION}"), "\"schema_version\": 99");
        let error = Manifest::from_json(newer.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("schema version 99"), "{error}");
        for text in ["", "[]", "{}", "{\"schema_version\": \"1\"}"] {
            assert!(Manifest::from_json(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn names_of_inputs_and_runs_become_tokens() {
        let mut manifest = sample();
        manifest.describe(RunDescription { server: "fs1".into(), ..RunDescription::default() });
        manifest.filter = Some("user alice".into());
        manifest.anonymize(&Tokenizer::new([1; 32]));
        assert!(manifest.inputs[0].name.starts_with("recording-"));
        assert!(manifest.runs[0].server.starts_with("host-"));
        assert_eq!(manifest.filter.as_deref(), Some(HIDDEN_FILTER));
        // Nothing was left out of the other.
        let mut manifest = sample();
        manifest.anonymize(&Tokenizer::new([1; 32]));
        assert_eq!(manifest.filter, None);
    }

    #[test]
    fn a_run_is_described_anew_at_its_end() {
        let mut manifest = sample();
        let run = |recording: &str, seed| RunDescription {
            recording: recording.into(),
            seed,
            ..RunDescription::default()
        };
        for run in [run("a", 1), run("b", 2), run("a", 3)] {
            manifest.describe(run);
        }
        let seeds: Vec<_> = manifest.runs.iter().map(|run| run.seed).collect();
        assert_eq!(seeds, [3, 2]);
        // Manifests from before runs were described are read.
        let mut value = serde_json::to_value(sample()).unwrap();
        value.as_object_mut().unwrap().remove("runs");
        let read = Manifest::from_json(value.to_string().as_bytes()).unwrap();
        assert!(read.runs.is_empty());
    }
}
