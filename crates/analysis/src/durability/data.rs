//! What was acknowledged without being stable, as plain data. Names contain their units.

use serde::Serialize;

use crate::stats::latency::Distribution;

/// How the writes of an open become stable. Names are those of the JSON report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The open requests write-through (FILE_WRITE_THROUGH).
    WriteThroughOpen,
    /// Each write requests it (SMB2_WRITEFLAG_WRITE_THROUGH).
    WriteThroughFlag,
    /// The share is continuously available, or the handle persistent: the server makes each write stable.
    Available,
    /// All writes were followed by a Flush before the Close.
    Flushed,
    /// Some writes were followed by a Flush or were write-through.
    Partly,
    /// Writes bypass the server's cache, and nothing makes the disk's own cache stable.
    Unbuffered,
    /// None of these.
    Nothing,
}

impl Way {
    /// All, the surest first.
    pub const ALL: [Way; 7] = [
        Way::WriteThroughOpen,
        Way::WriteThroughFlag,
        Way::Available,
        Way::Flushed,
        Way::Partly,
        Way::Unbuffered,
        Way::Nothing,
    ];

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Way::WriteThroughOpen => "write-through open",
            Way::WriteThroughFlag => "write-through writes",
            Way::Available => "continuously available share or persistent handle",
            Way::Flushed => "Flush before Close",
            Way::Partly => "partly flushed or write-through",
            Way::Unbuffered => "unbuffered, without Flush",
            Way::Nothing => "none",
        }
    }

    /// Whether all data is stable before the Close is answered.
    pub fn is_stable(self) -> bool {
        self <= Way::Flushed
    }
}

/// Opens with writes, of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpenTally {
    /// Opens with at least one acknowledged write.
    pub opens: u64,
    /// Acknowledged writes.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Bytes that were acknowledged before they were stable, for however short a time.
    pub acknowledged_bytes: u64,
    /// Bytes that nothing had made stable when the open or the recording ended.
    pub unflushed_bytes: u64,
}

impl OpenTally {
    pub(super) fn add(&mut self, other: &OpenTally) {
        self.opens += other.opens;
        self.writes += other.writes;
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
        self.acknowledged_bytes = self.acknowledged_bytes.saturating_add(other.acknowledged_bytes);
        self.unflushed_bytes = self.unflushed_bytes.saturating_add(other.unflushed_bytes);
    }
}

/// How writes become stable, in total.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WayRow {
    pub way: Way,
    #[serde(flatten)]
    pub tally: OpenTally,
}

/// A share or a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DurabilityGroup {
    pub name: Option<String>,
    #[serde(flatten)]
    pub tally: OpenTally,
    /// Most bytes at risk at any moment.
    pub most_bytes: u64,
    /// When that was, ns since 1970.
    pub most_at_ns: Option<i64>,
    /// Whether it may have been less, because shares were known to be continuously available only afterwards.
    pub is_bound: bool,
}

/// A file with data that nothing made stable.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DurabilityFile {
    pub share: Option<String>,
    pub path: String,
    pub application: &'static str,
    pub way: Option<Way>,
    #[serde(flatten)]
    pub tally: OpenTally,
}

/// Files of one kind of application.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DurabilityKind {
    pub application: &'static str,
    #[serde(flatten)]
    pub tally: OpenTally,
    /// Opens whose data was stable before the Close was answered.
    pub stable_opens: u64,
    /// One sentence; none for files that need not survive a power failure.
    pub verdict: Option<String>,
}

/// Which acknowledged writes were stable.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Durability {
    /// Acknowledged writes to files.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Writes that request write-through by their own flag.
    pub write_through_writes: u64,
    /// Writes on opens that request it.
    pub write_through_open_writes: u64,
    /// Writes that request to bypass the cache, by flag or by open.
    pub unbuffered_writes: u64,
    /// Flushes that succeeded.
    pub flushes: u64,
    /// Flushes among them that had nothing to do.
    pub idle_flushes: u64,
    /// From the acknowledgement of the oldest write to that of the Flush that made it stable.
    pub until_flush: Distribution,
    /// Data without a Flush counts as at risk for this long, ns.
    pub window_ns: i64,
    /// Most bytes at risk at any moment, over all files.
    pub most_bytes: u64,
    /// When that was, ns since 1970.
    pub most_at_ns: Option<i64>,
    /// Whether it may have been less, because shares were known to be continuously available only afterwards.
    pub is_bound: bool,
    /// Opens with data and without write-through on continuously available shares, or with a persistent handle; null
    /// where no such open and its handle is known.
    pub available_opens: Option<u64>,
    /// Opens among them to which the server granted no persistent handle.
    pub not_persistent_opens: Option<u64>,
    /// What follows from these; none if all have persistent handles.
    pub not_persistent: Option<String>,
    /// How writes become stable.
    pub ways: Vec<WayRow>,
    /// By kind of application, those that must survive a power failure first.
    pub applications: Vec<DurabilityKind>,
    /// By share, the most at risk first.
    pub shares: Vec<DurabilityGroup>,
    /// By client, the most at risk first.
    pub clients: Vec<DurabilityGroup>,
    /// Files with the most bytes that nothing made stable.
    pub files: Vec<DurabilityFile>,
    /// Begin of the bins over time, ns since 1970.
    pub series_start_ns: i64,
    /// Their width, ns.
    pub series_bin_ns: i64,
    /// Most bytes at risk in each.
    pub series_bytes: Vec<u64>,
    /// Opens that were forgotten because there were too many, and count as they were then.
    pub forgotten_opens: u64,
    /// Shares, clients and files beyond the limits on their numbers.
    pub beyond_limits: u64,
}
