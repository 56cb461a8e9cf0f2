//! A profile: the summary of a recording that predictions start from. It has the server's cost of one
//! operation, and the operations of one execution of a scenario.
//!
//! Published models and own recordings have the same form. Times are seconds, the unit of the
//! model's arithmetic. Values that were not measured are absent, never zero. The file format is
//! JSON, without names of files, users or machines.

use serde::{Deserialize, Serialize};

use crate::slice::Kind;

/// Version of the file format.
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
    /// Bytes to the server and to the clients, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<[RateProfile; 2]>,
    /// Cost of operations by command.
    pub commands: Vec<CommandProfile>,
    /// Scenarios of the users.
    pub scenarios: Vec<ScenarioProfile>,
}

/// Throughput in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateProfile {
    /// Mean of the whole recording, bytes/s.
    pub mean: f64,
    /// Maximum in one second, bytes.
    pub most: f64,
}

/// Cost of one operation of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandProfile {
    /// Its name, as in the table `operations`.
    pub command: String,
    /// What it costs.
    #[serde(flatten)]
    pub cost: Cost,
    /// Cost by size, for reads and writes of several sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeProfile>,
}

/// Cost of operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Number of measured operations.
    pub count: u64,
    /// Parts of the server time; parts that were not measured are left out.
    pub parts: Vec<PartProfile>,
    /// Time that is neither server time nor round trip: the client, and transferring the bytes, s.
    pub constant_s: f64,
}

impl Cost {
    /// The server's time of an operation, s.
    pub fn server_s(&self) -> f64 {
        self.parts.iter().map(|part| part.mean_s).sum()
    }
}

/// Cost of reads or writes of similar size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeProfile {
    /// Smallest transfer, bytes.
    pub least_bytes: u64,
    /// Largest transfer, bytes.
    pub most_bytes: u64,
    /// What it costs.
    #[serde(flatten)]
    pub cost: Cost,
}

/// One part of an operation's time at the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartProfile {
    /// The kind of slice; `None` for server time outside of slices.
    #[serde(with = "part")]
    pub part: Option<Kind>,
    /// Mean, s.
    pub mean_s: f64,
    /// Standard deviation, s.
    pub stddev_s: f64,
    /// 95th percentile of the operations with this part, s.
    pub p95_s: f64,
}

impl PartProfile {
    /// Multiplies its times by `factor`.
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
            _ => Err(D::Error::custom(format!("`{name}` is not a part of the server time"))),
        }
    }
}

/// Operations of one execution of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioProfile {
    /// Its name.
    pub scenario: String,
    /// Executions per user, 1/h.
    pub runs_per_hour: f64,
    /// Known variants, the recorded one first.
    pub variants: Vec<Variant>,
}

/// A scenario with one directory caching mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Which.
    pub option: CacheOption,
    /// Round trips that it waits for, one after another.
    pub round_trips: f64,
    /// Operations, in the order of [`Profile::commands`]. A compound in a recording counts as its
    /// first operation, which has the time of the whole chain.
    pub operations: Vec<f64>,
    /// Remaining time, s: pauses between operations; negative if operations overlapped.
    #[serde(default)]
    pub between_s: f64,
}

impl Profile {
    /// The reason why a profile that was read cannot be used, in words.
    pub fn wrong(&self) -> Option<String> {
        if self.version != VERSION {
            return Some(format!(
                "has version {}; this smbscope reads version {VERSION}",
                self.version
            ));
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
            return Some("contains an impossible time or number".to_owned());
        }
        if variants.clone().any(|variant| variant.operations.len() != self.commands.len()) {
            return Some("contains scenarios with commands whose cost it does not list".to_owned());
        }
        if self.scenarios.iter().any(|scenario| scenario.variants.is_empty()) {
            return Some("contains a scenario without operations".to_owned());
        }
        None
    }
}

/// How a client caches directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheOption {
    /// As recorded.
    Recorded,
    /// SMB 2.1: opens are not shared among applications.
    Smb21,
    /// Opens that reach the client's own cache of ten seconds are collapsed into one.
    DirCache,
    /// Directory leases: the cache is coherent and lasts.
    DirLease,
}

impl CacheOption {
    /// All modes, from the least caching to the most.
    pub const ALL: [CacheOption; 4] =
        [CacheOption::Recorded, CacheOption::Smb21, CacheOption::DirCache, CacheOption::DirLease];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            CacheOption::Recorded => "recorded",
            CacheOption::Smb21 => "smb21",
            CacheOption::DirCache => "dircache",
            CacheOption::DirLease => "dirlease",
        }
    }

    /// The name in reports.
    pub fn title(self) -> &'static str {
        match self {
            CacheOption::Recorded => "as recorded",
            CacheOption::Smb21 => "SMB 2.1",
            CacheOption::DirCache => "directory cache",
            CacheOption::DirLease => "directory leases",
        }
    }
}
