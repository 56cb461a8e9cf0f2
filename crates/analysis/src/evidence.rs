//! What findings of all kinds consist of: confidence, figures, remedies.

use serde::Serialize;

/// How much evidence there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Another cause is possible.
    Low,
    /// The figures agree, but a part is estimated.
    Medium,
    /// It was measured.
    High,
}

/// A number that supports a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name, for programs.
    pub name: &'static str,
    /// The value, in `unit`.
    pub value: f64,
    /// Half of the 95 % interval, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// ns, bytes, bits/s, share (from 0 to 1), or empty for a plain number.
    pub unit: &'static str,
}

/// What to do, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Where: Samba, Windows, client, application, network ...
    pub at: &'static str,
    /// What to do, as exactly as possible.
    pub action: &'static str,
}
