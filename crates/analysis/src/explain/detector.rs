//! What finds something: the interface of detectors, and what they share at the end.
//!
//! The list of them, in the order in which they claim time, is in [`findings`](super::findings).

use super::candidate::Candidate;
use super::connections::Connections;
use super::data::{FindingKind, Note, Pauses, Whole};
use super::operation::Operation;

/// Watches operations in the order in which they ended, in bounded memory, and says at the end what it found.
pub(super) trait Detector: Default {
    /// The finding that explains the operation's time by itself, so that findings that only say that something is slow leave it
    /// out. Each operation passes through the `claim` of all detectors before any `see`; `explained` has the
    /// claim of those before.
    fn claim(&mut self, _: &Operation) -> Option<FindingKind> {
        None
    }

    /// An operation of which it is known whether a finding explains it.
    fn see(&mut self, _: &Operation) {}

    /// What was found. Findings without enough time are dropped later.
    fn finish(self, context: &mut Context) -> Vec<Candidate>;
}

/// What detectors need when all operations were seen, and what they leave apart from findings.
pub(super) struct Context<'a> {
    pub(super) connections: &'a Connections,
    pub(super) whole: Whole,
    /// Whether the time of cryptography was measured inside the server.
    pub(super) has_crypto_slices: bool,
    /// Facts worth knowing that are not findings.
    pub(super) notes: Vec<Note>,
    pub(super) pauses: Option<Pauses>,
    /// What is known of the cost of signing and encryption, if it is not a finding.
    pub(super) protection_cost: Option<String>,
}
