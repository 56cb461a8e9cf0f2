//! What a recording is reduced to before anything is predicted from it: what one operation costs
//! the server, and how many of which one execution of a scenario needs.
//!
//! The same shape holds a published model's tables and what one's own recordings say. Times are
//! seconds, as the model's arithmetic is; what was not measured is not there, never zero. As a file
//! it is JSON, and holds no names of files, users or machines.

use serde::{Deserialize, Serialize};

use crate::slice::Kind;

/// Version of the file's shape.
pub const VERSION: u32 = 1;

/// A workload on a server over a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`VERSION`] when it was written.
    pub version: u32,
    /// What it is called.
    pub name: String,
    /// Where its figures come from, in a sentence.
    pub source: String,
    /// Round trip between client and server, s.
    pub rtt_s: f64,
    /// Bytes to the server and to the clients, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<[RateProfile; 2]>,
    /// What operations cost, by command.
    pub commands: Vec<CommandProfile>,
    /// What users do.
    pub scenarios: Vec<ScenarioProfile>,
}

/// How fast bytes went in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateProfile {
    /// Mean of the whole recording, bytes/s.
    pub mean: f64,
    /// Most in one second, bytes.
    pub most: f64,
}

/// What one operation of a command costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandProfile {
    /// As in the table of operations.
    pub command: String,
    /// What it costs.
    #[serde(flatten)]
    pub cost: Cost,
    /// The same for reads and writes by size, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeProfile>,
}

/// What operations of one kind cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Operations that were measured.
    pub count: u64,
    /// Parts of the time at the server; what was not measured is left out.
    pub parts: Vec<PartProfile>,
    /// What is neither the server's nor the network's distance: the client, and sending the bytes, s.
    pub constant_s: f64,
}

impl Cost {
    /// The server's time of an operation, s.
    pub fn server_s(&self) -> f64 {
        self.parts.iter().map(|part| part.mean_s).sum()
    }
}

/// What reads or writes of like size cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeProfile {
    /// Least that one moved, bytes.
    pub least_bytes: u64,
    /// Most that one moved, bytes.
    pub most_bytes: u64,
    /// What it costs.
    #[serde(flatten)]
    pub cost: Cost,
}

/// One part of an operation's time at the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartProfile {
    /// Which; none is the server's time that is in no slice.
    #[serde(with = "part")]
    pub part: Option<Kind>,
    /// Mean, s.
    pub mean_s: f64,
    /// Standard deviation, s.
    pub stddev_s: f64,
    /// 95th percentile of those that have it, s.
    pub p95_s: f64,
}

impl PartProfile {
    /// It takes so many times as long.
    pub fn scale(&mut self, factor: f64) {
        self.mean_s *= factor;
        self.stddev_s *= factor;
        self.p95_s *= factor;
    }
}

/// A part by its name.
mod part {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::slice::Kind;

    const SERVER: &str = "server";

    pub(super) fn serialize<S: Serializer>(kind: &Option<Kind>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.map_or(SERVER, Kind::name))
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Kind>, D::Error> {
        let name = String::deserialize(from)?;
        match Kind::from_name(&name) {
            None if name == SERVER => Ok(None),
            Some(kind) if kind.is_part() => Ok(Some(kind)),
            _ => Err(D::Error::custom(format!("`{name}` is no part of the server's time"))),
        }
    }
}

/// What one execution of a scenario needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioProfile {
    /// Its name.
    pub scenario: String,
    /// How often a user does it, 1/h.
    pub runs_per_hour: f64,
    /// In each of the ways that are known, today's first.
    pub variants: Vec<Variant>,
}

/// A scenario with one option of the protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Which.
    pub option: CacheOption,
    /// Round trips that it waits for, one after another.
    pub round_trips: f64,
    /// Operations, in the order of [`Profile::commands`]. Of a recording, a compound counts as its
    /// first one, which has the time of all.
    pub operations: Vec<f64>,
    /// What is left of its time, s: pauses between operations; below zero where they were under way
    /// side by side.
    #[serde(default)]
    pub between_s: f64,
}

impl Profile {
    /// What makes a file that was read unusable, in words.
    pub fn wrong(&self) -> Option<String> {
        if self.version != VERSION {
            return Some(format!("has version {}, and {VERSION} is understood", self.version));
        }
        let costs = self.commands.iter().flat_map(|command| {
            std::iter::once(&command.cost).chain(command.sizes.iter().map(|size| &size.cost))
        });
        let parts = costs.clone().flat_map(|cost| &cost.parts);
        let times = parts.flat_map(|part| [part.mean_s, part.stddev_s, part.p95_s]);
        let variants = self.scenarios.iter().flat_map(|scenario| &scenario.variants);
        let counts = variants
            .clone()
            .flat_map(|variant| variant.operations.iter().chain([&variant.round_trips]))
            .chain(self.scenarios.iter().map(|scenario| &scenario.runs_per_hour));
        let rates = self.rates.iter().flatten().flat_map(|rate| [rate.mean, rate.most]);
        let mut amounts = times.chain(counts.copied()).chain(rates).chain([self.rtt_s]);
        let mut residuals = costs
            .map(|cost| cost.constant_s)
            .chain(variants.clone().map(|variant| variant.between_s));
        let is_usual = |value: f64| value.is_finite() && value.abs() < 1e15;
        if !amounts.all(|value| is_usual(value) && value >= 0.0) || !residuals.all(is_usual) {
            return Some("holds a time or a number that cannot be".to_owned());
        }
        if variants.clone().any(|variant| variant.operations.len() != self.commands.len()) {
            return Some(
                "holds scenarios with other commands than it tells the costs of".to_owned(),
            );
        }
        if self.scenarios.iter().any(|scenario| scenario.variants.is_empty()) {
            return Some("holds a scenario without operations".to_owned());
        }
        None
    }
}

/// How much a client keeps of directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheOption {
    /// As the clients of a recording did.
    Recorded,
    /// SMB 2.1: opens are not shared among applications.
    Smb21,
    /// Opens that reach the client's own cache of ten seconds are collapsed into one.
    DirCache,
    /// Directory leases: the cache is coherent and lasts.
    DirLease,
}

impl CacheOption {
    /// All, from the least.
    pub const ALL: [CacheOption; 4] =
        [CacheOption::Recorded, CacheOption::Smb21, CacheOption::DirCache, CacheOption::DirLease];

    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            CacheOption::Recorded => "recorded",
            CacheOption::Smb21 => "smb21",
            CacheOption::DirCache => "dircache",
            CacheOption::DirLease => "dirlease",
        }
    }

    /// The words for people.
    pub fn title(self) -> &'static str {
        match self {
            CacheOption::Recorded => "as recorded",
            CacheOption::Smb21 => "SMB 2.1",
            CacheOption::DirCache => "directory cache",
            CacheOption::DirLease => "directory leases",
        }
    }
}
