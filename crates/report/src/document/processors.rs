//! Charts of what processors did, as data.

/// What processors did over time: a row for each, and a share for each bin.
#[derive(Clone, Debug)]
pub(crate) struct Strip {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) bin_ns: i64,
    /// Part of the first bin that is before the beginning.
    pub(crate) before_ns: i64,
    /// The time from the beginning to the end; 0 without an axis.
    pub(crate) whole_ns: i64,
    /// NUMA nodes or sockets, and their processors.
    pub(crate) groups: Vec<(String, Vec<StripRow>)>,
}

#[derive(Clone, Debug)]
pub(crate) struct StripRow {
    pub(crate) label: String,
    /// Stands next to it.
    pub(crate) words: String,
    /// From 0 to 1.
    pub(crate) shares: Vec<f64>,
}

/// A tree of calls, as a flame graph and as a list that unfolds.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) samples: u64,
    pub(crate) nodes: Vec<Call>,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// What it is in the receive path, in words; empty for the rest.
    pub(crate) role: &'static str,
    pub(crate) samples: u64,
    pub(crate) own_samples: u64,
    pub(crate) calls: Vec<Call>,
}

/// Durations in order of size against their number, both on logarithmic axes.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    pub(crate) caption: String,
    pub(crate) help: String,
    /// Number of durations that are at least as long, and that duration.
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
    pub(crate) limits: Vec<(String, f64)>,
}

/// A cause of lost time that is not an operation's.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    pub(crate) title: &'static str,
    /// What it costs, in words.
    pub(crate) cost: String,
    pub(crate) what: String,
    /// Titles with their lines.
    pub(crate) rows: Vec<(&'static str, Vec<String>)>,
    pub(crate) is_open: bool,
}
