//! A finding and its parts as plain data. Names contain their units; `serde` gives the JSON of all commands.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// One thing that is wrong. `D` is what only one subject has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding<K, D = NoDetails> {
    /// What is wrong, of a closed list. Its key in JSON is older than the type.
    #[serde(rename = "trouble")]
    pub kind: K,
    /// A sentence for readers who do not know the protocol, with its numbers.
    pub what: String,
    /// How much it matters.
    #[serde(flatten)]
    pub weight: Weight,
    /// How sure it is; none for what is read from settings and cannot be wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub confidence: Option<Confidence>,
    /// What the confidence is based on; empty without one.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub because: String,
    /// The side that can change it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owner: Option<Owner>,
    /// Whom and what it concerns.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub about: Vec<Subject>,
    /// When it began, ns since 1970; none if that is not known.
    pub first_ns: Option<i64>,
    /// When it ended, ns since 1970.
    pub last_ns: Option<i64>,
    /// Numbers that prove it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub figures: Vec<Figure>,
    /// What to do, the most useful first.
    pub remedies: Vec<Remedy>,
    /// What only this subject has, with keys of its own.
    #[serde(flatten)]
    pub details: D,
}

/// For subjects whose findings have nothing more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoDetails {}

impl<K: Kind> Finding<K> {
    /// A finding with the default severity, owner and remedies of its kind.
    pub fn new(kind: K, what: impl Into<String>) -> Finding<K> {
        let info = kind.info();
        Finding {
            kind,
            what: what.into(),
            weight: Weight::Severity { severity: info.severity.unwrap_or(Severity::Medium) },
            confidence: None,
            because: String::new(),
            owner: info.actor.map(|actor| Owner { actor, names: Vec::new() }),
            about: Vec::new(),
            first_ns: None,
            last_ns: None,
            figures: Vec::new(),
            remedies: info.remedies.iter().copied().map(Remedy::from).collect(),
            details: NoDetails {},
        }
    }
}

impl<K, D> Finding<K, D> {
    /// Sets how much it matters.
    pub fn with_weight(mut self, weight: Weight) -> Self {
        self.weight = weight;
        self
    }

    /// Sets how sure it is, and why.
    pub fn with_confidence(mut self, confidence: Confidence, because: impl Into<String>) -> Self {
        (self.confidence, self.because) = (Some(confidence), because.into());
        self
    }

    /// Adds whom or what it concerns.
    pub fn about(mut self, role: &'static str, name: impl Into<String>) -> Self {
        self.about.push(Subject { role: Cow::Borrowed(role), name: name.into() });
        self
    }

    /// Adds numbers that prove it.
    pub fn with_figures(mut self, figures: impl IntoIterator<Item = Figure>) -> Self {
        self.figures.extend(figures);
        self
    }

    /// Replaces the remedies of its kind.
    pub fn with_remedies<R: Into<Remedy>>(mut self, remedies: impl IntoIterator<Item = R>) -> Self {
        self.remedies = remedies.into_iter().map(Into::into).collect();
        self
    }

    /// Sets when it began and ended, ns since 1970, as far as that is known.
    pub fn with_period(mut self, first_ns: Option<i64>, last_ns: Option<i64>) -> Self {
        (self.first_ns, self.last_ns) = (first_ns, last_ns);
        self
    }

    /// Adds what only this subject has.
    pub fn with_details<E>(self, details: E) -> Finding<K, E> {
        Finding {
            kind: self.kind,
            what: self.what,
            weight: self.weight,
            confidence: self.confidence,
            because: self.because,
            owner: self.owner,
            about: self.about,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            figures: self.figures,
            remedies: self.remedies,
            details,
        }
    }

    /// Time that would be saved without it, ns; 0 if it is not weighed by time.
    pub fn saved_ns(&self) -> i64 {
        match self.weight {
            Weight::Saved { saved_ns, .. } => saved_ns,
            _ => 0,
        }
    }

    /// Half of the 95 % interval of that, ns; none if it is not known.
    pub fn saved_error_ns(&self) -> Option<i64> {
        match self.weight {
            Weight::Saved { saved_error_ns, .. } => saved_error_ns,
            _ => None,
        }
    }

    /// CPU time that it costs, ns; none if it is not known, or not weighed by that.
    pub fn cost_ns(&self) -> Option<i64> {
        match self.weight {
            Weight::CpuTime { cost_ns } => cost_ns,
            _ => None,
        }
    }

    /// Its share of all waiting, from 0 to 1; 0 if it is not weighed by time.
    pub fn share(&self) -> f64 {
        match self.weight {
            Weight::Saved { share, .. } => share,
            _ => 0.0,
        }
    }

    /// How much it matters, if that is a severity.
    pub fn severity(&self) -> Option<Severity> {
        match self.weight {
            Weight::Severity { severity } => Some(severity),
            _ => None,
        }
    }

    /// The first subject of a role.
    pub fn subject(&self, role: &str) -> Option<&str> {
        self.about.iter().find(|one| one.role == role).map(|one| one.name.as_str())
    }

    /// The figure of a name, in its unit.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

/// How much a finding matters: what findings of one answer are ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Weight {
    /// Time that clients would not wait without it.
    Saved {
        /// The sum over all connections, ns.
        saved_ns: i64,
        /// Half of its 95 % interval, ns; none from too few operations.
        saved_error_ns: Option<i64>,
        /// Share of all time in which clients waited, from 0 to 1.
        share: f64,
    },
    /// How bad it is.
    Severity {
        /// As an administrator would sort it.
        severity: Severity,
    },
    /// How a check ended.
    Check {
        /// Passed, failed, or not known.
        outcome: Outcome,
    },
    /// CPU time that it costs. The last one: its key may be absent, so it would match every other.
    CpuTime {
        /// ns; none if it is not known.
        cost_ns: Option<i64>,
    },
}

/// How sure a finding is: the only scale, in the words that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Another cause is possible.
    Possible,
    /// The figures agree, but a part is estimated.
    Likely,
    /// It was measured.
    Measured,
}

impl Confidence {
    /// The scale, from the lowest to the highest.
    pub const ALL: [Confidence; 3] =
        [Confidence::Possible, Confidence::Likely, Confidence::Measured];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Confidence::Possible => "possible",
            Confidence::Likely => "likely",
            Confidence::Measured => "measured",
        }
    }
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Users lose access, work is limited, or the change fails.
    High,
    /// It costs time, or works for some.
    Medium,
    /// Worth knowing.
    Low,
}

impl Severity {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        }
    }
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not hold.
    Failed,
    /// It holds narrowly, or something must be watched.
    Warning,
    /// The input does not decide it; `because` says how to find out.
    ToBeMade,
}

/// The side that can change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    /// The client computer: its SMB client, its settings, its load.
    Client,
    /// The server: its settings, its load, its storage.
    Server,
    /// The network between them.
    Network,
    /// The program that uses the files.
    Application,
    /// A program between client and server that forwards their messages.
    Proxy,
    /// What finds addresses and gives tickets: DNS, domain controllers.
    #[serde(rename = "name-service")]
    NameService,
}

/// The side that is responsible for a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The side.
    pub actor: Actor,
    /// Addresses or names, most time first; at most three.
    pub names: Vec<String>,
}

/// Something that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// What it is, in one word: adapter, server, client, share, link, setting, session ...
    pub role: Cow<'static, str>,
    /// Its name, as the input has it.
    pub name: String,
}

/// A number that supports a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name, for programs.
    pub name: Cow<'static, str>,
    /// What a person reads: a phrase in which `{}` is the value with its unit. Empty if the sentence of the
    /// finding has the number.
    #[serde(skip)]
    pub phrase: &'static str,
    /// The value, in `unit`.
    pub value: f64,
    /// Half of the 95 % interval, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<f64>,
    /// ns, bytes, bits/s, share (from 0 to 1), or empty for a plain number.
    pub unit: Cow<'static, str>,
}

impl Figure {
    /// A figure without an interval.
    pub const fn new(
        name: &'static str,
        value: f64,
        unit: &'static str,
        phrase: &'static str,
    ) -> Figure {
        Figure { name: Cow::Borrowed(name), phrase, value, error: None, unit: Cow::Borrowed(unit) }
    }

    /// Sets half of its 95 % interval, if it is known.
    pub fn with_error(self, error: Option<f64>) -> Figure {
        Figure { error, ..self }
    }
}

/// What to do, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Remedy {
    /// Where: Samba, Windows, client, application, network ...
    pub at: Cow<'static, str>,
    /// What to do, as exactly as possible.
    pub action: Cow<'static, str>,
}

impl Remedy {
    /// A remedy whose words are always the same.
    pub const fn fixed(at: &'static str, action: &'static str) -> Remedy {
        Remedy { at: Cow::Borrowed(at), action: Cow::Borrowed(action) }
    }

    /// A remedy with names or numbers of the input.
    pub fn new(at: &'static str, action: impl Into<String>) -> Remedy {
        Remedy { at: Cow::Borrowed(at), action: Cow::Owned(action.into()) }
    }
}

impl From<(&'static str, &'static str)> for Remedy {
    fn from((at, action): (&'static str, &'static str)) -> Remedy {
        Remedy::fixed(at, action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KindInfo, kinds};

    const SMALL_READS: KindInfo = KindInfo::new("small-reads", "small sequential reads")
        .with_actor(Actor::Application)
        .with_remedies(&[("application", "read larger blocks")]);

    kinds! {
        /// For tests.
        enum Problem {
            SmallReads = SMALL_READS,
            Loss = KindInfo::new("loss", "lost packets"),
        }
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Details {
        frames: Vec<u64>,
    }

    #[test]
    fn json_has_the_weight_and_the_details_next_to_the_sentence() {
        let found = Finding::new(Problem::SmallReads, "Reads of 4 KiB go one at a time")
            .with_weight(Weight::Saved { saved_ns: 7, saved_error_ns: None, share: 0.5 })
            .with_confidence(Confidence::Likely, "the round trip is measured")
            .about("share", "projects")
            .with_figures([Figure::new("block", 4096.0, "bytes", "blocks of {}")])
            .with_details(Details { frames: vec![3] });
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["trouble"], "small-reads");
        assert_eq!((&json["saved_ns"], &json["share"]), (&7.into(), &0.5.into()));
        assert_eq!(json["confidence"], "likely");
        assert_eq!(json["owner"]["actor"], "application");
        assert_eq!(json["frames"][0], 3);
        assert!(json["figures"][0].get("phrase").is_none());

        let mut back: Finding<Problem, Details> = serde_json::from_value(json).unwrap();
        back.figures[0].phrase = "blocks of {}";
        assert_eq!(back, found);
    }

    #[test]
    fn a_finding_without_details_reads_back() {
        let found = Finding::new(Problem::Loss, "Packets were lost");
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Finding<Problem>>(&json).unwrap(), found, "{json}");
    }

    #[test]
    fn an_unknown_kind_is_named_in_the_error() {
        let error = serde_json::from_str::<Problem>("\"lost\"").unwrap_err();
        assert!(error.to_string().contains("unknown kind `lost`"), "{error}");
        assert_eq!(Problem::from_id("loss"), Some(Problem::Loss));
        assert_eq!(Problem::ALL.len(), 2);
    }
}
