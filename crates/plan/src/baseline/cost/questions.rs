//! Which change of `smbscope predict` a changed setting is.
//!
//! Owns the mapping, and what needs no prediction: a protection that the recording has already, a limit that no recorded
//! request reaches, a setting that another one overrides. Settings that are one change together (signing by the server, by
//! the client, its algorithm) get one cost.

use super::super::catalogue::{self, CostKey, Role};
use super::super::difference::{Change, Difference, Shown};
use super::super::hardened::{Demands, matches};
use super::super::protection::View;
use super::super::terms::SettingKey;
use super::predicted::Predicted;
use super::{Answer, Cost, CostOutcome, Facts, Question, reasons};

/// Share of operations from which a recording counts as protected.
const PROTECTED_SHARE: f64 = 0.5;
/// Size of requests without large MTU, and with it, by Windows clients.
const SMALL: u64 = 65_536;
const LARGE: u64 = 1_048_576;

/// A cost that waits for its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Pending {
    /// The number of the question, and the experiment if it has no answer.
    Asked {
        settings: Vec<SettingKey>,
        what: String,
        question: usize,
        experiment: String,
    },
    Known(Cost),
}

/// The questions to predict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inquiry {
    pub questions: Vec<Question>,
    pending: Vec<Pending>,
}

impl Inquiry {
    /// The number of a question; the same one is asked once.
    pub fn ask(&mut self, changes: &[&str], shares: Vec<String>) -> usize {
        let changes = changes.iter().map(|one| (*one).to_owned()).collect();
        let question = Question { changes, shares };
        let known = self.questions.iter().position(|one| *one == question);
        known.unwrap_or_else(|| {
            self.questions.push(question);
            self.questions.len() - 1
        })
    }

    /// Costs, the largest first, with the answers in the order of the questions.
    pub fn costs(&self, answers: &[Answer]) -> Vec<Cost> {
        let mut costs: Vec<_> = self
            .pending
            .iter()
            .map(|one| match one {
                Pending::Known(cost) => cost.clone(),
                Pending::Asked { settings, what, question, experiment } => Cost {
                    settings: settings.clone(),
                    what: what.clone(),
                    outcome: match self.predicted(*question, answers) {
                        Ok(predicted) => CostOutcome::Predicted(Box::new(predicted)),
                        Err(because) => {
                            CostOutcome::Unknown { because, experiment: experiment.clone() }
                        }
                    },
                },
            })
            .collect();
        super::rank(&mut costs);
        costs
    }

    /// The numbers of a question, or why there are none.
    pub fn predicted(&self, question: usize, answers: &[Answer]) -> Result<Predicted, String> {
        let asked = self
            .questions
            .get(question)
            .cloned()
            .unwrap_or(Question { changes: Vec::new(), shares: Vec::new() });
        match answers.get(question) {
            Some(Ok(numbers)) => Ok(Predicted::from_question(asked, numbers)),
            Some(Err(because)) => Err(because.clone()),
            None => Err("There is no recording: give one with --recording.".to_owned()),
        }
    }

    fn known(&mut self, settings: Vec<SettingKey>, what: String, outcome: CostOutcome) {
        self.pending.push(Pending::Known(Cost { settings, what, outcome }));
    }

    fn nothing(&mut self, settings: Vec<SettingKey>, what: String, because: impl Into<String>) {
        self.known(settings, what, CostOutcome::Nothing { because: because.into() });
    }
}

/// The questions about a difference. Without a recording there are no `facts`.
pub fn questions(difference: &Difference, views: [View<'_>; 2], facts: Option<&Facts>) -> Inquiry {
    let mut inquiry = Inquiry::default();
    let role = views[1].side.role;
    let (own, others): (Vec<_>, Vec<_>) =
        difference.changes.iter().cloned().partition(|change| {
            catalogue::row(&change.key.id).is_none_or(|row| role.has(row.role))
        });
    let difference = &Difference { changes: own, ..difference.clone() };
    let asked = Asking { difference, before: views[0], after: views[1], facts };
    others.iter().for_each(|change| asked.outgoing(change, &mut inquiry));
    let has_dialects = asked.signing(&mut inquiry);
    asked.encryption(&mut inquiry);
    asked.paths(&mut inquiry);
    let rest = difference.changes.iter().filter(|change| match change.cost {
        CostKey::Signing | CostKey::Encryption | CostKey::Hardened => false,
        CostKey::Dialect => !has_dialects || change.key.of.is_some(),
        _ => true,
    });
    rest.for_each(|change| asked.other(change, &mut inquiry));
    inquiry
}

struct Asking<'a> {
    difference: &'a Difference,
    before: View<'a>,
    after: View<'a>,
    facts: Option<&'a Facts>,
}

impl Asking<'_> {
    fn keys(&self, cost: CostKey) -> Vec<SettingKey> {
        let of = self.difference.changes.iter().filter(|change| change.cost == cost);
        of.filter(|change| change.key.of.is_none()).map(|change| change.key.clone()).collect()
    }

    /// The dialect after the change, and what recorded connections of the newest dialect negotiated.
    fn dialect(&self, view: View<'_>) -> Option<u16> {
        view.dialect(self.facts.and_then(|facts| facts.dialect))
    }

    fn algorithm(&self, view: View<'_>) -> &'static str {
        let facts = self.facts.filter(|facts| facts.dialect == Some(785));
        let negotiated = facts.and_then(|facts| facts.signing_algorithm.as_deref());
        view.signing_algorithm(self.dialect(view), negotiated)
    }

    fn cipher(&self, view: View<'_>) -> String {
        let negotiated = self.facts.and_then(|facts| facts.cipher.as_deref());
        view.cipher(self.dialect(view), negotiated)
    }

    fn is_recorded(&self, of: fn(&Facts) -> u64) -> bool {
        self.facts.is_some_and(|facts| {
            of(facts) as f64 > PROTECTED_SHARE * facts.operations.max(1) as f64
        })
    }

    /// Signing; true if with the dialects, which then decide its algorithm.
    fn signing(&self, inquiry: &mut Inquiry) -> bool {
        let mut settings = self.keys(CostKey::Signing);
        let algorithms = [self.algorithm(self.before), self.algorithm(self.after)];
        let has_dialects = self.after.signs() == Some(true) && algorithms[0] != algorithms[1];
        if has_dialects {
            settings.extend(self.keys(CostKey::Dialect));
        }
        if !settings.is_empty() {
            self.signing_of(settings, algorithms[1], inquiry);
        }
        has_dialects
    }

    fn signing_of(
        &self,
        settings: Vec<SettingKey>,
        algorithm: &'static str,
        inquiry: &mut Inquiry,
    ) {
        let target = match self.after.signs() {
            Some(true) => algorithm,
            Some(false) => "off",
            None => {
                let because = "Neither side is known to require signing.";
                return inquiry.nothing(settings, "Signing".to_owned(), because);
            }
        };
        let what = match target {
            "off" => "No message is signed".to_owned(),
            name => format!("All messages are signed with {name}"),
        };
        let recorded = match (self.facts, self.is_recorded(|facts| facts.signed)) {
            (None, _) => None,
            (Some(facts), true) => Some(facts.signing_algorithm.as_deref().unwrap_or("unknown")),
            (Some(_), false) => Some("off"),
        };
        if self.after.encrypts() == Some(true) || self.is_recorded(|facts| facts.encrypted) {
            return inquiry.nothing(settings, what, "Encrypted messages are not signed as well.");
        }
        if recorded == Some(target) {
            let because = match target {
                "off" => "The recorded messages are not signed either.".to_owned(),
                name => format!("The recorded messages are already signed with {name}."),
            };
            return inquiry.nothing(settings, what, because);
        }
        let question = inquiry.ask(&[&format!("signing={target}")], Vec::new());
        let experiment = reasons::experiment(CostKey::Signing);
        inquiry.pending.push(Pending::Asked { settings, what, question, experiment });
    }

    fn encryption(&self, inquiry: &mut Inquiry) {
        let settings = self.keys(CostKey::Encryption);
        let cipher = self.cipher(self.after);
        let is_recorded = self.is_recorded(|facts| facts.encrypted);
        if !settings.is_empty() {
            let target = if self.after.encrypts() == Some(true) { &cipher } else { "off" };
            let what = match target {
                "off" => "Not all messages are encrypted".to_owned(),
                name => format!("All messages are encrypted with {name}"),
            };
            let recorded = if is_recorded {
                self.facts.and_then(|facts| facts.cipher.as_deref())
            } else {
                self.facts.map(|_| "off")
            };
            if recorded == Some(target) {
                let because = match target {
                    "off" => "The recorded messages are not encrypted either.".to_owned(),
                    name => format!("The recorded messages are already encrypted with {name}."),
                };
                inquiry.nothing(settings, what, because);
            } else if self.facts.is_none()
                && target == "off"
                && self.before.encrypts() != Some(true)
            {
                inquiry.nothing(settings, what, "No message is encrypted before and after.");
            } else {
                let question = inquiry.ask(&[&format!("encryption={target}")], Vec::new());
                let experiment = reasons::experiment(CostKey::Encryption);
                inquiry.pending.push(Pending::Asked { settings, what, question, experiment });
            }
        }
        for change in self.of_shares(CostKey::Encryption) {
            let share = change.key.of.clone().unwrap_or_default();
            let is_on = |shown: &Option<Shown>| {
                shown.as_ref().is_some_and(|one| matches!(one.value.as_str(), "1" | "2"))
            };
            let (target, what) = if is_on(&change.to) {
                (cipher.as_str(), format!("{share} is encrypted with {cipher}"))
            } else {
                ("off", format!("{share} is not encrypted"))
            };
            let of = format!(r"\\*\{share}");
            self.of_paths(inquiry, change, what, &of, "encryption", target, is_recorded);
        }
    }

    fn of_shares(&self, cost: CostKey) -> impl Iterator<Item = &Change> {
        let of = self.difference.changes.iter().filter(move |change| change.cost == cost);
        of.filter(|change| change.key.of.is_some())
    }

    /// Hardened paths: what their demands add on the paths of the recording that match.
    fn paths(&self, inquiry: &mut Inquiry) {
        let cipher = self.cipher(self.after);
        let algorithm = self.algorithm(self.after);
        for change in self.of_shares(CostKey::Hardened) {
            let pattern = change.key.of.clone().unwrap_or_default();
            let demands = |shown: &Option<Shown>| {
                shown.as_ref().map(|one| Demands::parse(&one.value)).unwrap_or_default()
            };
            let (from, to) = (demands(&change.from), demands(&change.to));
            let (kind, target, is_recorded) = match (to.privacy, to.integrity) {
                (true, _) if !from.privacy => {
                    ("encryption", cipher.as_str(), self.is_recorded(|facts| facts.encrypted))
                }
                (false, _) if from.privacy => ("encryption", "off", false),
                (_, true) if !from.integrity => {
                    ("signing", algorithm, self.is_recorded(|facts| facts.signed + facts.encrypted))
                }
                (_, false) if from.integrity => {
                    ("signing", "off", self.after.signs() == Some(true))
                }
                _ => {
                    let because =
                        "It decides how servers are authenticated, not how messages are protected.";
                    inquiry.nothing(vec![change.key.clone()], format!("{pattern}: {to}"), because);
                    continue;
                }
            };
            let what = match target {
                "off" => format!("{pattern} demands no {kind} any more"),
                name => format!("{pattern} demands {kind} ({name})"),
            };
            self.of_paths(inquiry, change, what, &pattern, kind, target, is_recorded);
        }
    }

    /// A change of the protection of the paths that match.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of one sentence")]
    fn of_paths(
        &self,
        inquiry: &mut Inquiry,
        change: &Change,
        what: String,
        pattern: &str,
        kind: &str,
        target: &str,
        is_recorded: bool,
    ) {
        let settings = vec![change.key.clone()];
        let shares = self.facts.into_iter().flat_map(|facts| &facts.shares);
        let matching: Vec<_> =
            shares.map(|share| share.unc.clone()).filter(|unc| matches(pattern, unc)).collect();
        let of_all = match kind {
            "signing" => self.after.signs(),
            _ => self.after.encrypts(),
        };
        if of_all == Some(true) {
            let because = match kind {
                "signing" => "All messages are signed anyway.",
                _ => "All messages are encrypted anyway.",
            };
            return inquiry.nothing(settings, what, because);
        }
        if self.facts.is_some() && matching.is_empty() {
            let because = format!("No share of the recording matches {pattern}.");
            return inquiry.nothing(settings, what, because);
        }
        if is_recorded && target != "off" {
            return inquiry.nothing(
                settings,
                what,
                "The recorded messages are already protected so.",
            );
        }
        let question = inquiry.ask(&[&format!("{kind}={target}")], matching);
        let experiment = reasons::experiment(CostKey::Hardened);
        inquiry.pending.push(Pending::Asked { settings, what, question, experiment });
    }

    /// A setting of the side that this machine does not have in the connections in question.
    fn outgoing(&self, change: &Change, inquiry: &mut Inquiry) {
        let Some(row) = catalogue::row(&change.key.id) else { return };
        let because = match row.role {
            Role::Client => {
                "It is about connections that this machine makes itself: those of its clients stay as they are."
            }
            _ => "It is about clients of this machine, not about the servers that it uses.",
        };
        inquiry.nothing(vec![change.key.clone()], row.meaning.clone(), because);
    }

    /// A setting that is a change by itself.
    fn other(&self, change: &Change, inquiry: &mut Inquiry) {
        let Some(row) = catalogue::row(&change.key.id) else { return };
        let settings = vec![change.key.clone()];
        let of = change.key.of.as_ref().map_or(String::new(), |of| format!(" ({of})"));
        let what = format!("{}{of}", row.meaning);
        if let Some(why) = &change.no_effect {
            return inquiry.nothing(settings, what, format!("It has no effect: {why}."));
        }
        if row.cost != CostKey::Smb1 && !row.can_slow() {
            let because = match row.performance.as_str() {
                "None" => "It does not touch the speed of file serving.".to_owned(),
                words => format!("{words}."),
            };
            return inquiry.nothing(settings, what, because);
        }
        let recorded = self.facts.and_then(|facts| facts.dialect);
        if row.cost == CostKey::Dialect
            && recorded.is_some()
            && self.dialect(self.after) == recorded
        {
            return inquiry.nothing(settings, what, "Recorded connections keep their dialect.");
        }
        let to = change.to.as_ref().map(|one| one.value.as_str());
        let number = to.and_then(|text| text.parse::<u64>().ok());
        let shares = self.shares_of(change);
        let ask = |inquiry: &mut Inquiry, changes: &[&str]| {
            let question = inquiry.ask(changes, shares.clone());
            let experiment = reasons::experiment(row.cost);
            let (settings, what) = (settings.clone(), what.clone());
            inquiry.pending.push(Pending::Asked { settings, what, question, experiment });
        };
        match (row.id.as_str(), to, self.facts) {
            ("sync-always" | "share-continuously-available", Some("1"), _) => {
                if self.after.value("strict-sync") == Some("0") && row.id == "sync-always" {
                    let because = "It has no effect without strict sync.";
                    return inquiry.nothing(settings, what, because);
                }
                ask(inquiry, &["write-through=on"]);
            }
            ("smb1-server" | "smb1-client", _, _) => {
                let because = "Clients and servers that speak SMB 2 and later do not use it.";
                inquiry.nothing(settings, what, because);
            }
            ("client-large-mtu", Some(value), _) => {
                let block = if value == "0" { SMALL } else { LARGE };
                let changes = [format!("max-read={block}B"), format!("max-write={block}B")];
                ask(inquiry, &[&changes[0], &changes[1]]);
            }
            ("max-read" | "max-write", Some(_), facts) => {
                let Some(bytes) = number else { return self.unknown(change, what, inquiry) };
                let most = facts.and_then(|facts| match row.id.as_str() {
                    "max-read" => facts.read_most_bytes,
                    _ => facts.write_most_bytes,
                });
                if most.is_some_and(|most| most <= bytes) {
                    let because = "No recorded request is larger.";
                    return inquiry.nothing(settings, what, because);
                }
                ask(inquiry, &[&format!("{}={bytes}B", row.id)]);
            }
            ("server-directory-leases" | "share-directory-leases", Some("1"), _) => {
                ask(inquiry, &["dirlease"]);
            }
            ("server-multichannel" | "client-multichannel", Some(value), Some(facts)) => {
                match (value, facts.has_channels) {
                    ("0", false) => {
                        let because = "The recorded sessions have one connection each.";
                        inquiry.nothing(settings, what, because);
                    }
                    ("1", false) => {
                        let channels = self.after.value("channels-rss").unwrap_or("4");
                        ask(inquiry, &[&format!("channels={channels}")]);
                    }
                    ("1", true) => {
                        let because = "The recorded sessions use several connections already.";
                        inquiry.nothing(settings, what, because);
                    }
                    _ => self.unknown(change, what, inquiry),
                }
            }
            ("credits-most", Some(_), Some(facts)) => match (number, facts.outstanding_most) {
                (Some(limit), Some(most)) if most <= limit => {
                    let because = format!("At most {most} are in use on a recorded connection.");
                    inquiry.nothing(settings, what, because);
                }
                _ => self.unknown(change, what, inquiry),
            },
            _ => self.unknown(change, what, inquiry),
        }
    }

    /// The shares of the recording that a change is about; empty for all.
    fn shares_of(&self, change: &Change) -> Vec<String> {
        let Some(share) = &change.key.of else { return Vec::new() };
        let all = self.facts.into_iter().flat_map(|facts| &facts.shares);
        let pattern = format!(r"\\*\{share}");
        let of: Vec<_> =
            all.map(|one| one.unc.clone()).filter(|unc| matches(&pattern, unc)).collect();
        // Without a recording there is no answer either.
        if of.is_empty() { vec![pattern] } else { of }
    }

    fn unknown(&self, change: &Change, what: String, inquiry: &mut Inquiry) {
        let Some(row) = catalogue::row(&change.key.id) else { return };
        let (because, experiment) = reasons::unknown(row);
        let outcome = CostOutcome::Unknown { because, experiment };
        inquiry.known(vec![change.key.clone()], what, outcome);
    }
}

/// Predicted weight of a cost for the search for the setting to blame: added time, with a little for what is not known, and less
/// for what costs nothing. `most` is the largest added time.
pub fn weight(cost: &Cost, most: f64) -> f64 {
    let base = if most > 0.0 { most } else { 1.0 };
    match &cost.outcome {
        CostOutcome::Predicted(one) => one.added_ns.value.max(0.0),
        CostOutcome::Unknown { .. } => 0.05 * base,
        CostOutcome::Nothing { .. } => 0.001 * base,
    }
}
