//! Finds the setting that makes a server slow, in few tries: which settings to take back now, and what the result says.
//!
//! Owns the search and its state, which is stored as JSON between the tries. A try takes back the values of some
//! settings (to those before the baseline) and measures again.
//!
//! All settings are taken back first. If it stays slow, none of them is the cause, and only the network is left to measure.
//! Otherwise settings are put in force in the order of their weight, and the shortest slow beginning of that order is
//! looked for by bisection: its last setting is part of a cause. If it is slow with this setting alone, that is the cause; if
//! not, it acts only together with one before it, which is looked for in the same way (QuickXplain, Junker 2004). Then
//! one setting of the cause is left out, and what is still slow has another cause.
//!
//! What holds is one rule: with more settings in force a server is not faster. From it follows what is known
//! ([`State::known`]), so the search is the same function before each try, and a try that breaks the rule is named and
//! measured again. One cause among n settings is named after at most 2 + log2(n) tries; one more shows that there is no other.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::setting::Setting;

mod order;
#[cfg(test)]
mod tests;

/// Version of the file.
const VERSION: u32 = 2;
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

/// A setting that may slow file serving, and that the search leaves in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftInForce {
    pub title: String,
    pub why: String,
}

/// The changed settings of a baseline, as far as a search can take them back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Suspects {
    pub candidates: Vec<Candidate>,
    pub by_hand: Vec<LeftInForce>,
    /// Number of settings by which SMB 2 and 3 cannot become slow.
    pub harmless: u64,
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
    #[serde(flatten)]
    pub suspects: Suspects,
    /// In the order in which they were made.
    pub tries: Vec<Try>,
    /// Candidates in force on the machine, after the last try.
    now: BTreeSet<usize>,
    /// Tries that contradict each other, the older and the newer: the newer one is made again.
    contradiction: Option<(usize, usize)>,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The network is slow without SMB.
    Network,
    /// It is slow without all candidates.
    NoSetting,
    /// The causes are known.
    Found,
}

/// Settings that are slow together, and fast without any one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// One, or several that act only together.
    pub members: Vec<usize>,
    /// The member to take back: the one with the largest weight.
    pub back: usize,
}

/// Why a try is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Whether any setting is to blame.
    AllBack,
    /// Which one is.
    Narrow,
    /// Whether these are slow without any other.
    Alone(Vec<usize>),
    /// Whether there is another cause.
    Others,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure the network without SMB.
    Network,
    /// Apply these settings, and measure.
    Try(Change, Purpose),
    /// Nothing: the search has ended. The settings bring the baseline back, without one member of each cause.
    Done { outcome: Outcome, rest: Change },
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

/// What is missing to continue.
struct Missing {
    /// None for the network.
    in_force: Option<BTreeSet<usize>>,
    purpose: Purpose,
    /// Suspects of a bisection, in their order.
    suspects: Vec<usize>,
}

/// Why a search cannot begin or continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BisectError {
    /// With the number of settings that are left in force.
    NoCandidates {
        by_hand: usize,
        harmless: u64,
    },
    TooMany(usize),
    /// The file is not a search: what is wrong.
    Damaged(String),
    /// It has ended.
    Ended,
}

impl std::fmt::Display for BisectError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BisectError::NoCandidates { by_hand: 0, harmless: 0 } => {
                to.write_str("no setting changes, so there is nothing to search: give the baseline of before with --against")
            }
            BisectError::NoCandidates { by_hand, harmless } => write!(
                to,
                "none of the settings that change can be searched: {harmless} cannot slow SMB 2 and 3, and {by_hand} can only be taken back by hand"
            ),
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
    pub fn new(mut suspects: Suspects) -> Result<State, BisectError> {
        match suspects.candidates.len() {
            0 => {
                let (by_hand, harmless) = (suspects.by_hand.len(), suspects.harmless);
                return Err(BisectError::NoCandidates { by_hand, harmless });
            }
            count if count > CANDIDATES_MAX => return Err(BisectError::TooMany(count)),
            _ => {}
        }
        // Few digits are the same again when they are read from the file.
        for one in &mut suspects.candidates {
            one.weight = format!("{:.5e}", one.weight).parse().unwrap_or(0.0);
        }
        let now = (0..suspects.candidates.len()).collect();
        Ok(State { version: VERSION, suspects, tries: Vec::new(), now, contradiction: None })
    }

    /// Reads a stored search.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<State, BisectError> {
        let damaged = |why: String| BisectError::Damaged(why);
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            version => {
                let version = version.map_or("none".to_owned(), |version| version.to_string());
                return Err(damaged(format!("its version is {version}, and {VERSION} is known")));
            }
        }
        let state: State =
            serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        if state.is_whole() {
            Ok(state)
        } else {
            Err(damaged("it names a setting or a try that it does not have".to_owned()))
        }
    }

    /// Whether every number is one of a candidate or of a try.
    fn is_whole(&self) -> bool {
        let (count, tries) = (self.suspects.candidates.len(), self.tries.len());
        let is_repeated =
            self.contradiction.is_none_or(|(one, other)| one < other && other < tries);
        let tried = self.tries.iter().filter_map(|one| one.in_force.as_ref()).flatten();
        let mut numbers = tried.chain(&self.now);
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
            Err(Missing { in_force: Some(in_force), purpose, .. }) => {
                Step::Try(self.change_to(&in_force), purpose)
            }
            Err(_) => Step::Network,
            Ok(outcome) => {
                let back: BTreeSet<_> = self.causes().iter().map(|cause| cause.back).collect();
                // Nothing was gained by taking others back.
                let rest = self.all().difference(&back).copied().collect();
                Step::Done { outcome, rest: self.change_to(&rest) }
            }
        }
    }

    /// The causes that are known by now.
    pub fn causes(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        // What is missing is the step.
        let _ = self.follow(&mut causes);
        causes
    }

    /// The most tries until the next cause is named or there is known to be none, and the expected number, if one
    /// setting is to blame.
    pub fn tries_left(&self) -> (usize, f64) {
        match self.next() {
            Ok(_) => (0, 0.0),
            Err(missing) if self.contradiction.is_none() && !missing.suspects.is_empty() => {
                let (most, mean) = order::effort(&self.shares(&missing.suspects));
                let all_back = usize::from(missing.purpose == Purpose::AllBack);
                // The last one shows that it is slow with this setting alone.
                (most + all_back + 1, mean + all_back as f64 + 1.0)
            }
            Err(_) => (1, 1.0),
        }
    }

    /// Continues with what the step showed.
    ///
    /// # Errors
    ///
    /// The search has ended.
    pub fn result(&mut self, speed: Speed) -> Result<(), BisectError> {
        let Err(Missing { in_force, .. }) = self.next() else { return Err(BisectError::Ended) };
        if let Some(tried) = &in_force {
            self.now.clone_from(tried);
        }
        match self.contradiction.take() {
            None => self.tries.push(Try { in_force, speed }),
            Some((older, newer)) => {
                let is_same = self.tries.get(newer).is_some_and(|one| one.speed == speed);
                // Twice the same: the older one was wrong.
                self.tries.remove(if is_same { older } else { newer });
            }
        }
        self.contradiction = self.contradicting();
        Ok(())
    }

    /// How the search ended, or the try that is missing.
    fn next(&self) -> Result<Outcome, Missing> {
        if let Some((_, newer)) = self.contradiction {
            let in_force = self.tries.get(newer).and_then(|one| one.in_force.clone());
            return Err(Missing { in_force, purpose: Purpose::Narrow, suspects: Vec::new() });
        }
        self.follow(&mut Vec::new())
    }

    /// Goes through the search with what is known.
    fn follow(&self, causes: &mut Vec<Cause>) -> Result<Outcome, Missing> {
        let mut rest = order::by_weight(&self.suspects.candidates);
        if self.ask(&[], &rest, Purpose::AllBack)? == Speed::Slow {
            let network = self.tries.iter().rev().find(|one| one.in_force.is_none());
            return match network.map(|one| one.speed) {
                Some(Speed::Slow) => Ok(Outcome::Network),
                Some(Speed::Fast) => Ok(Outcome::NoSetting),
                None => {
                    let (purpose, suspects) = (Purpose::AllBack, Vec::new());
                    Err(Missing { in_force: None, purpose, suspects })
                }
            };
        }
        while self.ask(&rest, &[], Purpose::Others)? == Speed::Slow {
            let cause = self.members(&rest)?;
            rest.retain(|one| *one != cause.back);
            causes.push(cause);
        }
        Ok(Outcome::Found)
    }

    /// Settings among these, which are slow together, of which each is needed for that.
    fn members(&self, suspects: &[usize]) -> Result<Cause, Missing> {
        let mut suspects = suspects;
        let mut members = Vec::new();
        while let Some((&first, _)) = suspects.split_first() {
            // Slow with `slow` of them, fast with `fast`.
            let (mut fast, mut slow) = (0, suspects.len());
            while slow - fast > 1 {
                let open = suspects.get(fast..slow).unwrap_or_default();
                let middle = fast + order::split(&self.shares(open));
                let (tried, _) = suspects.split_at(middle);
                match self.ask(&[&members[..], tried].concat(), open, Purpose::Narrow)? {
                    Speed::Slow => slow = middle,
                    Speed::Fast => fast = middle,
                }
            }
            members.push(suspects.get(fast).copied().unwrap_or(first));
            suspects = suspects.get(..fast).unwrap_or_default();
            if self.ask(&members, &[], Purpose::Alone(members.clone()))? == Speed::Slow {
                break;
            }
        }
        let weight = |one: &usize| self.suspects.candidates.get(*one).map_or(0.0, |it| it.weight);
        let heaviest =
            members.iter().copied().max_by(|one, other| weight(one).total_cmp(&weight(other)));
        Ok(Cause { back: heaviest.unwrap_or_default(), members })
    }

    /// Whether it is slow with these in force; if that is not known, the try that shows it.
    fn ask(
        &self,
        in_force: &[usize],
        suspects: &[usize],
        purpose: Purpose,
    ) -> Result<Speed, Missing> {
        let in_force: BTreeSet<_> = in_force.iter().copied().collect();
        self.known(&in_force).ok_or_else(|| Missing {
            in_force: Some(in_force),
            purpose,
            suspects: suspects.to_vec(),
        })
    }

    /// What tries say about these: slow if it was slow with some of them, fast if it was fast with more.
    fn known(&self, in_force: &BTreeSet<usize>) -> Option<Speed> {
        // The baseline is slow, or there would be no search.
        if in_force.len() == self.suspects.candidates.len()
            || self.of(Speed::Slow).any(|(_, tried)| tried.is_subset(in_force))
        {
            return Some(Speed::Slow);
        }
        let is_fast = self.of(Speed::Fast).any(|(_, tried)| in_force.is_subset(tried));
        is_fast.then_some(Speed::Fast)
    }

    fn all(&self) -> BTreeSet<usize> {
        (0..self.suspects.candidates.len()).collect()
    }

    fn of(&self, wanted: Speed) -> impl Iterator<Item = (usize, &BTreeSet<usize>)> {
        let tries = self.tries.iter().enumerate().filter(move |(_, one)| one.speed == wanted);
        tries.filter_map(|(at, one)| Some((at, one.in_force.as_ref()?)))
    }

    /// Two tries that cannot both be right, the older and the newer one: slow with some, fast with these and more.
    fn contradicting(&self) -> Option<(usize, usize)> {
        self.of(Speed::Slow).find_map(|(at, slow)| {
            let (other, _) = self.of(Speed::Fast).find(|(_, fast)| slow.is_subset(fast))?;
            Some((at.min(other), at.max(other)))
        })
    }

    /// The shares of these in the weight of all candidates: then a part is split as it was planned.
    fn shares(&self, suspects: &[usize]) -> Vec<f64> {
        let all = order::shares(&self.suspects.candidates);
        suspects.iter().filter_map(|&one| all.get(one).copied()).collect()
    }

    /// From what is on the machine now to these in force.
    fn change_to(&self, next: &BTreeSet<usize>) -> Change {
        let contradiction = self.contradiction.map(|(older, newer)| (older + 1, newer + 1));
        let mut change = Change { contradiction, ..Change::default() };
        for (number, candidate) in self.suspects.candidates.iter().enumerate() {
            let (is_now, is_next) = (self.now.contains(&number), next.contains(&number));
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
