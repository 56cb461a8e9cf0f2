//! What a gate is judged from, and what it says.
//!
//! Owns the data; [`super::judge`] makes a verdict from the evidence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::namespace::model::ClientCache;
use crate::namespace::stages::{GateRule, StageId};

/// A referral for a root or link in a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedReferral {
    /// Name or address of the client.
    pub client: String,
    /// Name or address of the server that answered.
    pub answered_by: String,
    /// When it was answered, in seconds since 1970 (UTC).
    pub at_s: i64,
    /// The path that it is for, as requested.
    pub path: String,
    pub ttl_s: Option<u32>,
    /// Servers in their order.
    pub servers: Vec<String>,
}

/// A client or server whose answer says nothing: it failed, is empty, or was not understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    pub name: String,
    pub why: String,
    pub is_server: bool,
}

/// What a gate is judged from.
#[derive(Clone, Debug, Default)]
pub struct Evidence<'a> {
    pub caches: &'a [ClientCache],
    /// Open files of clients without a cache, as servers report them.
    pub uncollected: &'a [ClientCache],
    pub captured: &'a [CapturedReferral],
    /// Clients and servers that were asked in vain.
    pub unread: &'a [Unread],
    /// More names of the namespace's domain.
    pub domains: &'a [String],
    /// Hosts whose share of the same name is not this namespace.
    pub other_hosts: &'a [String],
    /// Names of clients by their addresses or other names, to match captures with caches.
    pub aliases: BTreeMap<String, String>,
    /// When the stage that made the change was done; none if it is not known.
    pub changed_at_s: Option<i64>,
    /// The present time, in seconds since 1970 (UTC).
    pub now_s: i64,
}

/// Why a client holds up a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonKind {
    /// A list of namespace servers without a new one.
    LacksNew,
    /// A list of namespace servers with an old one.
    HoldsOld,
    /// A list whose remaining time is longer than the lowered TTL.
    LongTtl,
    /// A link's list from before the cut-over.
    OldLink,
    /// Files are open: the list stays until they are closed.
    OpenFiles,
    /// The cache was read before the change was known everywhere.
    ReadTooEarly,
    /// The list has expired since the cache was read: the cache must be collected again.
    ReadTooLongAgo,
    /// The entry may be the namespace's: its host, its servers or its time are not known.
    Unclear,
    /// A client of Linux whose kernel does not go to another server: it needs the share mounted again.
    NoFailover,
    /// The answer of the client says nothing.
    NotRead,
}

/// One reason with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub kind: ReasonKind,
    /// The entry of the cache, the path of a captured referral, an open file, or why nothing was read; empty without.
    pub entry: String,
    /// Servers of the list; of a list with old servers, these only.
    pub servers: Vec<String>,
    /// How many lists or files.
    pub count: u64,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientVerdict {
    pub client: String,
    pub is_ready: bool,
    pub reasons: Vec<Reason>,
    /// When it is ready at the latest, in seconds since 1970; none if it is ready or if open files decide.
    pub ready_at_s: Option<i64>,
    /// New servers that it lists.
    pub lists_new: Vec<String>,
    /// Old servers that it lists.
    pub lists_old: Vec<String>,
    /// The server that it uses for the root.
    pub uses: Option<String>,
    pub open_files: u64,
    /// When its cache was read, or the last referral captured.
    pub read_at_s: Option<i64>,
    /// Whether it is known from a capture only.
    pub is_captured: bool,
}

/// A server that still answers with the list from before the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleAnswer {
    pub answered_by: String,
    pub at_s: i64,
    pub servers: Vec<String>,
}

/// Whether the next stage may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub stage: StageId,
    pub rule: Option<GateRule>,
    pub at_s: i64,
    pub is_go: bool,
    /// Clients that were judged.
    pub judged: u64,
    pub ready: u64,
    /// Clients that hold it up, the latest first.
    pub held: Vec<ClientVerdict>,
    /// Clients that are ready.
    pub ready_clients: Vec<ClientVerdict>,
    /// Expected clients without a cache or captured referral.
    pub missing: Vec<String>,
    /// Whether there is a list of expected clients.
    pub has_expected: bool,
    /// Caches without a time: they were taken to be read now.
    pub undated: u64,
    pub stale_answers: Vec<StaleAnswer>,
    /// When the last client that holds it up is ready; none if open files or missing clients decide.
    pub until_s: Option<i64>,
    /// When the waiting time of the plan is over; none if the change's time is not known.
    pub waited_until_s: Option<i64>,
    /// Why it is no-go, or what limits a go: one sentence each.
    pub because: Vec<String>,
}
