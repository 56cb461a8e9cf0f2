//! The judgement of a baseline: what changes for file serving, what it costs here, what is wrong with it, and the cheaper way
//! to the same protection.
//!
//! Owns the order: [`Assessment::new`] compares and says what must be predicted, [`Assessment::judge`] takes the answers.
//! It recommends nothing that weakens security without its price.

use serde::{Deserialize, Serialize};

use super::bisect::Suspects;
use super::catalogue::{self, CostKey, System};
use super::cost::questions::{Inquiry, questions};
use super::cost::{Answer, Cost, Facts, Question};
use super::difference::{Difference, Side, Unset, difference};
use super::protection::View;
use super::terms::Terms;

pub mod alternatives;
mod candidates;
pub mod findings;

#[cfg(test)]
mod tests;

use alternatives::{Alternative, PendingAlternative};
use findings::Finding;

/// A comparison that waits for its predictions.
#[derive(Clone, Debug)]
pub struct Assessment<'a> {
    before: Side<'a>,
    after: Side<'a>,
    unset: Unset,
    facts: Option<&'a Facts>,
    difference: Difference,
    inquiry: Inquiry,
    alternatives: Vec<PendingAlternative>,
}

/// A side in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideCounts {
    pub system: Option<System>,
    /// Settings that were read.
    pub settings: u64,
    /// Known ones, each once.
    pub known: u64,
    /// Known ones that have an effect on file serving.
    pub touching: u64,
    /// Other ones, each once.
    pub others: u64,
}

/// The judgement of a baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    pub before: SideCounts,
    pub after: SideCounts,
    pub difference: Difference,
    /// The largest first.
    pub costs: Vec<Cost>,
    pub findings: Vec<Finding>,
    /// Ways to the same protection, the largest saving first.
    pub alternatives: Vec<Alternative>,
}

impl<'a> Assessment<'a> {
    /// Compares a proposed baseline with what is there.
    pub fn new(
        before: Side<'a>,
        after: Side<'a>,
        unset: Unset,
        facts: Option<&'a Facts>,
    ) -> Assessment<'a> {
        let difference = difference(before, after, unset);
        let views = View::both(before, after, unset);
        let mut inquiry = questions(&difference, views, facts);
        let alternatives = alternatives::alternatives(&difference, views, facts, &mut inquiry);
        Assessment { before, after, unset, facts, difference, inquiry, alternatives }
    }

    /// What must be predicted, in the order of the answers.
    pub fn questions(&self) -> &[Question] {
        &self.inquiry.questions
    }

    /// The judgement with these answers; without any, it says what is missing.
    pub fn judge(&self, answers: &[Answer]) -> Judgement {
        let costs = self.inquiry.costs(answers);
        let mut alternatives: Vec<_> =
            self.alternatives.iter().filter_map(|one| one.answer(&self.inquiry, answers)).collect();
        let saved = |one: &Alternative| one.saved_ns.map_or(0.0, |saved| saved.value);
        alternatives.sort_by(|one, other| saved(other).total_cmp(&saved(one)));
        let findings = findings::findings(self.after, &self.difference, &costs, self.facts);
        Judgement {
            before: counts(self.before),
            after: counts(self.after),
            difference: self.difference.clone(),
            costs,
            findings,
            alternatives,
        }
    }

    /// What may be to blame if the baseline is slow, for [`super::bisect::State::new`]: what changes, can slow SMB 2
    /// and 3, and can be taken back by commands, weighted by its predicted cost. Settings that are one change together
    /// are one.
    pub fn suspects(&self, costs: &[Cost]) -> Suspects {
        candidates::suspects(self.before, self.after, self.unset, &self.difference, costs)
    }
}

fn counts(side: Side<'_>) -> SideCounts {
    SideCounts {
        system: side.system,
        settings: side.terms.settings,
        known: side.terms.known.len() as u64,
        touching: touching(side.terms),
        others: side.terms.unknown.len() as u64,
    }
}

/// Known settings of a baseline that have an effect on the speed of file serving.
fn touching(terms: &Terms) -> u64 {
    let touches = |id: &str| {
        catalogue::row(id).is_some_and(|row| {
            row.cost != CostKey::None && row.performance != "None" && row.no_effect.is_empty()
        })
    };
    terms.known.keys().filter(|key| touches(&key.id)).count() as u64
}
