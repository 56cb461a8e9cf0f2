//! A possible finding: what was observed, before its share of the time is known. Candidates that
//! cost no time are dropped; the others become [`Finding`]s.

use hashbrown::HashSet;
use smbscope_findings::{Actor, Confidence, Figure, Owner, Remedy, Weight};

use super::attribution::Attribution;
use super::connections::Connections;
use super::data::{Contributor, Effect, Explained, Finding, FindingKind};
use super::savings::Savings;
use crate::predict::changes::Change;

/// Names of those who should act.
const OWNERS: usize = 3;

/// A finding, and how much less time its operations would take without the trouble.
pub(super) struct Candidate {
    pub(super) finding: Finding,
    /// Connections, their operations, and time saved there, ns.
    connections: Vec<((u32, u64), u64, i64)>,
    pub(super) savings: Savings,
    /// The most time that would be saved in one burst of a connection, ns, as part of `saved_ns` of
    /// each operation by itself.
    burst: (i64, i64),
    /// Numbers of the examples among the operations that are kept for replaying.
    examples: Vec<Option<u32>>,
    /// Findings of these kinds do not count operations with these numbers, which this one explains.
    pub(super) explains: (&'static [FindingKind], HashSet<u32>),
    /// Time that clients waited in addition to the busy time of connections, ns.
    pub(super) beyond_busy_ns: i64,
    /// Remedies that a replay can compute.
    pub(super) changes: Vec<Change>,
}

impl Candidate {
    /// A finding without figures.
    pub(super) fn new(
        kind: FindingKind,
        what: impl Into<String>,
        attribution: Attribution,
        confidence: Confidence,
        because: impl Into<String>,
    ) -> Candidate {
        let (saved_ns, saved_error_ns) = (attribution.saved_ns, attribution.error_ns());
        let (operations, period) = (attribution.operations, attribution.period);
        let ranking = attribution.finish();
        let (numbers, examples) = ranking.examples.into_iter().unzip();
        let finding = smbscope_findings::Finding::new(kind, what)
            .with_weight(Weight::Saved { saved_ns, saved_error_ns, share: 0.0 })
            .with_confidence(confidence, because)
            .with_period(period.map(|(first, _)| first), period.map(|(_, last)| last))
            .with_details(Explained {
                operations,
                times: ranking.times,
                clients: ranking.clients,
                servers: ranking.servers,
                shares: ranking.shares,
                paths: ranking.paths,
                examples,
                ..Explained::default()
            });
        Candidate {
            finding,
            connections: ranking.connections,
            burst: (ranking.burst_ns, saved_ns),
            savings: ranking.savings,
            examples: numbers,
            explains: Default::default(),
            beyond_busy_ns: 0,
            changes: Vec::new(),
        }
    }

    /// Each operation is evidence by itself: a few of them are not chance.
    pub(super) fn of_events(mut self) -> Candidate {
        self.finding.details.is_of_events = true;
        self
    }

    /// Something hangs or fails: users notice it whatever it costs.
    pub(super) fn broken(mut self) -> Candidate {
        self.finding.details.effect = Effect::Broken;
        self
    }

    /// Clients waited for it while no operation was in flight.
    pub(super) fn beyond_busy(mut self, ns: i64) -> Candidate {
        self.beyond_busy_ns = ns;
        self
    }

    /// Adds remedies that a replay can compute.
    pub(super) fn with_changes(mut self, changes: impl IntoIterator<Item = Change>) -> Candidate {
        self.changes.extend(changes);
        self
    }

    /// Notes the longest burst for readers, once other findings were subtracted.
    pub(super) fn note_burst(&mut self) {
        self.finding.details.burst_ns = self.burst_ns();
    }

    /// The most time that would be saved in one burst of a connection, ns: what a person would notice.
    pub(super) fn burst_ns(&self) -> i64 {
        let (burst_ns, of_ns) = self.burst;
        let left = self.finding.saved_ns() as f64 / of_ns.max(1) as f64;
        (burst_ns as f64 * left) as i64
    }

    /// Subtracts operations that another finding explains, by their numbers among those that are kept
    /// for replaying. The same share of the other operations is subtracted.
    pub(super) fn without(&mut self, numbers: &HashSet<u32>) {
        let sampled_ns = self.savings.sampled_ns;
        let (operations, removed_ns) = self.savings.remove(numbers);
        if operations == 0 {
            return;
        }
        let share = removed_ns as f64 / sampled_ns.max(1) as f64;
        let all_ns = self.finding.saved_ns();
        self.scale_part(0.0, (share * all_ns as f64) as i64);
        self.savings.all_ns = self.finding.saved_ns();
        let details = &mut self.finding.details;
        details.operations = details.operations.saturating_sub(operations);
        let mut numbered = self.examples.iter();
        details.examples.retain(|_| {
            let number = numbered.next().copied().flatten();
            number.is_none_or(|number| !numbers.contains(&number))
        });
        self.examples.retain(|number| number.is_none_or(|number| !numbers.contains(&number)));
    }

    /// Says who should act, if that is not who usually should. Without names, they are those of the
    /// clients or servers with most of the time.
    pub(super) fn with_owner(mut self, actor: Actor, names: Vec<String>) -> Candidate {
        self.finding.owner = Some(Owner { actor, names });
        self
    }

    /// Adds figures: name, value, unit and phrase.
    pub(super) fn with_figures(
        mut self,
        figures: impl IntoIterator<Item = (&'static str, f64, &'static str, &'static str)>,
    ) -> Candidate {
        let figures = figures.into_iter();
        let figures =
            figures.map(|(name, value, unit, phrase)| Figure::new(name, value, unit, phrase));
        self.finding = self.finding.with_figures(figures);
        self
    }

    /// Replaces the remedies of its kind.
    pub(super) fn with_remedies(mut self, remedies: &[(&'static str, &'static str)]) -> Candidate {
        self.finding.remedies = remedies.iter().copied().map(Remedy::from).collect();
        self
    }

    /// The connections that it is about, those with most of the time.
    pub(super) fn connection_keys(&self) -> Vec<(u32, u64)> {
        self.connections.iter().map(|(key, ..)| *key).collect()
    }

    /// Looks up the names of its connections and of its owner.
    pub(super) fn name_connections(&mut self, connections: &Connections) {
        let ends = self.connections.iter().filter_map(|(key, ..)| connections.ends(*key));
        let ends: Vec<_> = ends.take(OWNERS).collect();
        let named = self.connections.drain(..).map(|(key, operations, saved_ns)| Contributor {
            name: connections.name(key),
            operations,
            saved_ns,
        });
        let Finding { owner, details, .. } = &mut self.finding;
        details.connections = named.collect();
        if let Some(owner) = owner.as_mut().filter(|owner| owner.names.is_empty()) {
            let names = |list: &[Contributor]| {
                let names = list.iter().map(|one| one.name.clone());
                names.filter(|name| !name.is_empty()).take(OWNERS).collect()
            };
            owner.names = match owner.actor {
                Actor::Client | Actor::Application => names(&details.clients),
                Actor::Server => names(&details.servers),
                Actor::Network => ends,
                Actor::Proxy | Actor::NameService => Vec::new(),
            };
            owner.names.dedup();
        }
    }

    /// Scales the part `part_ns` of what is saved by `factor`, and all its breakdowns accordingly.
    pub(super) fn scale_part(&mut self, factor: f64, part_ns: i64) {
        let Finding { weight: Weight::Saved { saved_ns, saved_error_ns, .. }, details, .. } =
            &mut self.finding
        else {
            return;
        };
        let whole_ns = (*saved_ns).max(1) as f64;
        let share = (whole_ns - part_ns as f64 * (1.0 - factor)).max(0.0) / whole_ns;
        let contributors = [
            &mut details.clients,
            &mut details.servers,
            &mut details.connections,
            &mut details.shares,
            &mut details.paths,
        ];
        let times = contributors.into_iter().flatten().map(|one| &mut one.saved_ns);
        for ns in times.chain([saved_ns]).chain(saved_error_ns) {
            *ns = (*ns as f64 * share) as i64;
        }
    }
}
