//! Finds the setting that makes a server slow, in few tries: which settings to take back now, and what the result says.
//!
//! Owns the search and its state, which is stored as JSON between the tries. A try takes back the values of some
//! settings (to those before the baseline) and measures again. The first try is the network without SMB
//! (`smbscope net`): if that is slow, no setting is the cause.
//!
//! A group of settings is slow if one of them is to blame. Suspects are split as Huffman (1952) builds his code: with
//! one culprit and any groups allowed, no other order needs fewer tries on average. Weights are the predicted costs; a
//! share of them is spread evenly, because a prediction can be wrong, and bounds the number of tries. One more suspect
//! is that no setting is to blame. Only what was slow together is split further, so that the answers stay valid with
//! several culprits: of these one is found, then the others are tried without it. A group that is slow, and part of one
//! that was fast, is a contradiction: it is named, and measured again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::setting::Setting;

mod split;
#[cfg(test)]
mod tests;

use split::split;

/// Share of the weight that is spread evenly over all suspects.
const EVEN_SHARE: f64 = 0.1;
/// Weight of the suspect that no setting is to blame, as a share of all.
const NONE_SHARE: f64 = 0.02;
/// Version of the file.
const VERSION: u32 = 1;
/// Most candidates that are searched.
pub const CANDIDATES_MAX: usize = 10_000;

/// A setting that may be to blame, or several that only make sense together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The catalogue's identifier, or the place of an unknown setting.
    pub id: String,
    pub title: String,
    /// How likely it is to blame, in any unit: the predicted cost.
    pub weight: f64,
    /// The values of the baseline.
    pub baseline: Vec<Setting>,
    /// The values before it.
    pub former: Vec<Setting>,
}

/// What a try showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speed {
    Slow,
    Fast,
}

/// A try that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Try {
    /// Candidates in force; none for the network.
    pub in_force: Option<BTreeSet<usize>>,
    pub speed: Speed,
}

/// The search, as it is stored: what follows from the tries is computed again each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    version: u32,
    pub candidates: Vec<Candidate>,
    /// In the order in which they were made.
    pub tries: Vec<Try>,
    /// Tries that contradict each other, the older and the newer: the newer one is made again.
    contradiction: Option<(usize, usize)>,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The network is slow without SMB.
    Network,
    /// No setting: it is slow without all of them.
    NoSetting,
    /// The culprits are known.
    Found,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure the network without SMB.
    Network,
    /// Apply these settings, and measure.
    Try(Change),
    /// Nothing: the search has ended. The settings bring the baseline back, without the culprits.
    Done { outcome: Outcome, found: Vec<usize>, rest: Change },
}

/// What comes next, by numbers of candidates.
enum Next {
    Network,
    /// With these in force.
    Try(BTreeSet<usize>),
    Done(Outcome, Vec<usize>),
}

/// What the tries say.
struct Known {
    found: Vec<usize>,
    /// Whether it is possible that no setting is to blame: nothing was fast yet.
    is_none_possible: bool,
    goal: Goal,
}

enum Goal {
    /// One of the suspects is to blame; it is slow with these in force.
    Search {
        suspects: BTreeSet<usize>,
        slow: BTreeSet<usize>,
    },
    /// Whether it is fast with these in force, which are all but the culprits.
    Confirm(BTreeSet<usize>),
    Nothing,
}

/// Settings to apply, and how to come back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    pub apply: Vec<Setting>,
    pub undo: Vec<Setting>,
    /// Candidates that are then taken back, of all.
    pub without: Vec<usize>,
    /// Earlier tries that this one repeats, because they contradict each other: their numbers, from 1.
    pub contradiction: Option<(usize, usize)>,
}

/// Why a search cannot begin or continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BisectError {
    NoCandidates,
    TooMany(usize),
    /// The file is not a search: what is wrong.
    Damaged(String),
    /// It has ended.
    Ended,
}

impl std::fmt::Display for BisectError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BisectError::NoCandidates => {
                to.write_str("no setting changes, so there is nothing to search: give the baseline of before with --against")
            }
            BisectError::TooMany(count) => {
                write!(to, "{count} settings change; at most {CANDIDATES_MAX} can be searched")
            }
            BisectError::Damaged(why) => write!(
                to,
                "the state of the search is damaged: {why}; delete the file to begin again"
            ),
            BisectError::Ended => to.write_str(
                "the search has ended; delete the file of its state to begin another one",
            ),
        }
    }
}

impl std::error::Error for BisectError {}

impl State {
    /// A search among these, with the baseline in force and slow.
    ///
    /// # Errors
    ///
    /// None or too many candidates.
    pub fn new(mut candidates: Vec<Candidate>) -> Result<State, BisectError> {
        match candidates.len() {
            0 => return Err(BisectError::NoCandidates),
            count if count > CANDIDATES_MAX => return Err(BisectError::TooMany(count)),
            _ => {}
        }
        // Few digits are the same again when they are read from the file.
        for one in &mut candidates {
            one.weight = format!("{:.5e}", one.weight).parse().unwrap_or(0.0);
        }
        Ok(State { version: VERSION, candidates, tries: Vec::new(), contradiction: None })
    }

    /// Reads a stored search.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<State, BisectError> {
        let damaged = |why: String| BisectError::Damaged(why);
        let state: State =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if state.version != VERSION {
            return Err(damaged(format!("version {} is not known", state.version)));
        }
        if state.is_whole() {
            Ok(state)
        } else {
            Err(damaged("it names a setting or a try that it does not have".to_owned()))
        }
    }

    /// Whether every number is one of a candidate or of a try.
    fn is_whole(&self) -> bool {
        let (count, tries) = (self.candidates.len(), self.tries.len());
        let is_repeated =
            self.contradiction.is_none_or(|(one, other)| one < other && other < tries);
        let mut numbers = self.tries.iter().filter_map(|one| one.in_force.as_ref()).flatten();
        is_repeated
            && (1..=CANDIDATES_MAX).contains(&count)
            && numbers.all(|&number| number < count)
    }

    /// The search as it is stored.
    ///
    /// # Errors
    ///
    /// Those of `serde_json`, which this data does not cause.
    pub fn write(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// What to do now.
    pub fn step(&self) -> Step {
        match self.next() {
            Next::Network => Step::Network,
            Next::Try(in_force) => Step::Try(self.change_to(&in_force)),
            Next::Done(outcome, found) => {
                // Nothing was gained by taking others back.
                let rest = (0..self.candidates.len()).filter(|one| !found.contains(one)).collect();
                Step::Done { outcome, rest: self.change_to(&rest), found }
            }
        }
    }

    /// The most tries that are still needed, and the expected number, if one setting is to blame: without those that
    /// look for more culprits.
    pub fn tries_left(&self) -> (usize, f64) {
        let network = usize::from(self.tries.is_empty());
        let known = self.known();
        match (self.next(), known.goal) {
            (Next::Done(..), _) => (0, 0.0),
            (_, Goal::Search { suspects, .. }) if self.contradiction.is_none() => {
                let depths = split::depths(&self.weights(&suspects, known.is_none_possible));
                let most = depths.iter().map(|one| one.1).max().unwrap_or(0);
                let all: f64 = depths.iter().map(|one| one.0).sum();
                let mean: f64 = depths.iter().map(|one| one.0 * one.1 as f64).sum();
                (most + network, mean / all.max(f64::MIN_POSITIVE) + network as f64)
            }
            _ => (1, 1.0),
        }
    }

    /// Continues with what the step showed.
    ///
    /// # Errors
    ///
    /// The search has ended.
    pub fn result(&mut self, speed: Speed) -> Result<(), BisectError> {
        match (self.next(), self.contradiction.take()) {
            (Next::Done(..), _) => return Err(BisectError::Ended),
            (Next::Network, _) => self.tries.push(Try { in_force: None, speed }),
            (Next::Try(tried), None) => self.tries.push(Try { in_force: Some(tried), speed }),
            (Next::Try(_), Some((older, newer))) => {
                let is_same = self.tries.get(newer).is_some_and(|one| one.speed == speed);
                // Twice the same: the older one was wrong.
                self.tries.remove(if is_same { older } else { newer });
            }
        }
        self.contradiction = self.contradicting();
        Ok(())
    }

    fn next(&self) -> Next {
        match self.tries.first() {
            None => return Next::Network,
            Some(Try { in_force: None, speed: Speed::Slow }) => {
                return Next::Done(Outcome::Network, Vec::new());
            }
            Some(_) => {}
        }
        if let Some((_, newer)) = self.contradiction {
            let tried = self.tries.get(newer).and_then(|one| one.in_force.clone());
            return Next::Try(tried.unwrap_or_default());
        }
        let known = self.known();
        match known.goal {
            Goal::Search { suspects, slow } => {
                let [one, other] = split(&self.weights(&suspects, known.is_none_possible));
                // Whether no setting is to blame shows when settings are taken back.
                let numbers = |part: &[Option<usize>]| part.iter().flatten().count();
                let taken = match (one.contains(&None), other.contains(&None)) {
                    (true, _) => other,
                    (_, true) => one,
                    // Less is changed.
                    _ if numbers(&one) <= numbers(&other) => one,
                    _ => other,
                };
                Next::Try(slow.into_iter().filter(|one| !taken.contains(&Some(*one))).collect())
            }
            Goal::Confirm(rest) => Next::Try(rest),
            Goal::Nothing if known.found.is_empty() => Next::Done(Outcome::NoSetting, known.found),
            Goal::Nothing => Next::Done(Outcome::Found, known.found),
        }
    }

    /// What follows from all tries, in whatever order they were made.
    fn known(&self) -> Known {
        let all: BTreeSet<_> = (0..self.candidates.len()).collect();
        let harmless: BTreeSet<_> =
            self.of(Speed::Fast).flat_map(|(_, tried)| tried).copied().collect();
        let is_none_possible = self.of(Speed::Fast).next().is_none();
        // The baseline is slow, or there would be no search.
        let slow: Vec<_> =
            std::iter::once(&all).chain(self.of(Speed::Slow).map(|one| one.1)).collect();
        let left = |tried: &BTreeSet<usize>| -> BTreeSet<usize> {
            tried.difference(&harmless).copied().collect()
        };
        // Slow with one that is not harmless.
        let mut found: Vec<_> = slow
            .iter()
            .map(|tried| left(tried))
            .filter(|suspects| suspects.len() == 1 && !is_none_possible)
            .flatten()
            .collect();
        found.sort_unstable();
        found.dedup();
        let unexplained = slow.iter().filter(|tried| found.iter().all(|one| !tried.contains(one)));
        let closest = unexplained.min_by_key(|tried| left(tried).len());
        let goal = match closest {
            Some(tried) => {
                let suspects = left(tried);
                if suspects.is_empty() {
                    Goal::Nothing
                } else {
                    Goal::Search { suspects, slow: (*tried).clone() }
                }
            }
            None => {
                let rest: BTreeSet<_> =
                    all.iter().copied().filter(|one| !found.contains(one)).collect();
                if self.of(Speed::Fast).any(|(_, tried)| rest.is_subset(tried)) {
                    Goal::Nothing
                } else {
                    // Whether no other one is to blame.
                    Goal::Confirm(rest)
                }
            }
        };
        Known { found, is_none_possible, goal }
    }

    fn of(&self, wanted: Speed) -> impl Iterator<Item = (usize, &BTreeSet<usize>)> {
        let tries = self.tries.iter().enumerate().filter(move |(_, one)| one.speed == wanted);
        tries.filter_map(|(at, one)| Some((at, one.in_force.as_ref()?)))
    }

    /// Two tries that cannot both be right, the older and the newer one: one is slow with settings that were all fast.
    fn contradicting(&self) -> Option<(usize, usize)> {
        let harmless: BTreeSet<_> = self.of(Speed::Fast).flat_map(|(_, tried)| tried).collect();
        self.of(Speed::Fast).next()?;
        let (at, slow) = self
            .of(Speed::Slow)
            .find(|(_, tried)| tried.iter().all(|one| harmless.contains(one)))?;
        let (other, _) =
            self.of(Speed::Fast).max_by_key(|(_, fast)| slow.intersection(fast).count())?;
        Some((at.min(other), at.max(other)))
    }

    /// Suspects with their weights; none is the suspect that no setting is to blame.
    fn weights(
        &self,
        suspects: &BTreeSet<usize>,
        is_none_possible: bool,
    ) -> Vec<(Option<usize>, f64)> {
        let weight = |one: &usize| {
            let weight = self.candidates.get(*one).map_or(0.0, |one| one.weight);
            if weight.is_finite() { weight.max(0.0) } else { 0.0 }
        };
        // Shares of all candidates: then what is left of a split is split as it was planned.
        let all: f64 = (0..self.candidates.len()).map(|one| weight(&one)).sum();
        let count = self.candidates.len() as f64;
        let even = if all > 0.0 { EVEN_SHARE } else { 1.0 };
        let share = |one: &usize| {
            let own = if all > 0.0 { weight(one) / all } else { 0.0 };
            (1.0 - even) * own + even / count
        };
        let mut weights: Vec<_> = suspects.iter().map(|one| (Some(*one), share(one))).collect();
        if is_none_possible {
            weights.push((None, NONE_SHARE));
        }
        weights
    }

    /// From what the last try left on the machine to these in force.
    fn change_to(&self, next: &BTreeSet<usize>) -> Change {
        let all = (0..self.candidates.len()).collect();
        let last = self.tries.iter().rev().find_map(|one| one.in_force.as_ref());
        let now = last.unwrap_or(&all);
        let contradiction = self.contradiction.map(|(older, newer)| (older + 1, newer + 1));
        let mut change = Change { contradiction, ..Change::default() };
        for (number, candidate) in self.candidates.iter().enumerate() {
            let (is_now, is_next) = (now.contains(&number), next.contains(&number));
            if !is_next {
                change.without.push(number);
            }
            let (apply, undo) = match (is_now, is_next) {
                (true, false) => (&candidate.former, &candidate.baseline),
                (false, true) => (&candidate.baseline, &candidate.former),
                _ => continue,
            };
            change.apply.extend_from_slice(apply);
            change.undo.extend_from_slice(undo);
        }
        change
    }
}
