//! A possible finding: what was observed, before its share of the time is known. Candidates that
//! cost no time are dropped; the others become [`Finding`]s.

use super::attribution::Attribution;
use super::connections::Connections;
use super::data::{Confidence, Contributor, Figure, Finding, Trouble};
use super::savings::Savings;

/// A finding, and how much less time its operations would take without the trouble.
pub(super) struct Candidate {
    pub(super) finding: Finding,
    /// Connections, their operations, and time saved there, ns.
    connections: Vec<((u32, u64), u64, i64)>,
    pub(super) savings: Savings,
}

impl Candidate {
    /// A finding without figures.
    pub(super) fn new(
        trouble: Trouble,
        what: impl Into<String>,
        attribution: Attribution,
        confidence: Confidence,
        because: &str,
    ) -> Candidate {
        let (saved_ns, saved_error_ns) = (attribution.saved_ns, attribution.error_ns());
        let operations = attribution.operations;
        let period = attribution.period;
        let ranking = attribution.finish();
        let finding = Finding {
            trouble,
            what: what.into(),
            saved_ns,
            saved_error_ns,
            share: 0.0,
            confidence,
            because: because.to_owned(),
            operations,
            first_ns: period.map(|(first, _)| first),
            last_ns: period.map(|(_, last)| last),
            times: ranking.times,
            figures: Vec::new(),
            clients: ranking.clients,
            connections: Vec::new(),
            shares: ranking.shares,
            paths: ranking.paths,
            examples: ranking.examples,
            remedies: trouble.remedies().to_vec(),
            gains: Vec::new(),
            replayed: 0,
        };
        Candidate { finding, connections: ranking.connections, savings: ranking.savings }
    }

    /// Adds figures: name, value and unit.
    pub(super) fn with_figures(
        mut self,
        figures: impl IntoIterator<Item = (&'static str, f64, &'static str)>,
    ) -> Candidate {
        let figures = figures.into_iter();
        let figures = figures.map(|(name, value, unit)| Figure { name, value, error: None, unit });
        self.finding.figures.extend(figures);
        self
    }

    /// Looks up the names of its connections.
    pub(super) fn name_connections(&mut self, connections: &Connections) {
        let named = self.connections.drain(..).map(|(key, operations, saved_ns)| Contributor {
            name: connections.name(key),
            operations,
            saved_ns,
        });
        self.finding.connections = named.collect();
    }
}

impl Finding {
    /// Scales the part `part_ns` of what is saved by `factor`, and all its breakdowns accordingly.
    pub(super) fn scale_part(&mut self, factor: f64, part_ns: i64) {
        let whole_ns = self.saved_ns.max(1) as f64;
        let share = (whole_ns - part_ns as f64 * (1.0 - factor)).max(0.0) / whole_ns;
        let contributors =
            [&mut self.clients, &mut self.connections, &mut self.shares, &mut self.paths];
        let times = contributors.into_iter().flatten().map(|one| &mut one.saved_ns);
        for ns in times.chain([&mut self.saved_ns, &mut self.saved_error_ns]) {
            *ns = (*ns as f64 * share) as i64;
        }
    }
}
