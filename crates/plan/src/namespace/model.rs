//! One namespace: its root, links and targets, and what clients hold of it.
//!
//! Owns the vocabulary between the readers, the checks, the writers and the planner. The facts are of \[MS-DFSNM\],
//! \[MS-DFSC\] and the directory's schema.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a namespace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Standalone,
    /// In the directory as one blob (Windows 2000 Server mode).
    DomainV1,
    /// In the directory as one object for each link (Windows Server 2008 mode).
    DomainV2,
    /// A share of Samba whose links are symbolic links.
    Samba,
}

/// State of a root, link or target.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum State {
    #[default]
    Online,
    Offline,
    /// Another value of the input: that value.
    Other(u32),
}

/// Referral order of a target, most preferred first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PriorityClass {
    GlobalHigh,
    SiteCostHigh,
    #[default]
    SiteCostNormal,
    SiteCostLow,
    GlobalLow,
}

/// Flags of a root or link; none where the input does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flags {
    pub site_costing: Option<bool>,
    pub insite_referrals: Option<bool>,
    pub root_scalability: Option<bool>,
    pub access_based_enumeration: Option<bool>,
    pub target_failback: Option<bool>,
}

/// Where a root or link leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The server as written: a short name, an FQDN or an address.
    pub server: String,
    /// Share and folders below it, with backslashes, as written.
    pub share: String,
    pub state: State,
    pub priority_class: Option<PriorityClass>,
    /// 0 to 31, the lowest first.
    pub priority_rank: Option<u32>,
    /// Attributes of the input without a field here, kept and written back.
    pub other: BTreeMap<String, String>,
}

/// One link (a folder with targets).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Path below the root, with backslashes, none at either end.
    pub path: String,
    pub state: State,
    pub ttl_s: Option<u32>,
    pub comment: Option<String>,
    pub flags: Flags,
    pub targets: Vec<Target>,
    /// Security descriptor for access-based enumeration, as the directory has it.
    pub security: Option<Vec<u8>>,
    pub other: BTreeMap<String, String>,
}

/// One namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Domain or server of the root path: `contoso.com` of `\\contoso.com\Public`.
    pub host: String,
    /// Name of the namespace: `Public`.
    pub name: String,
    pub kind: Option<Kind>,
    pub state: State,
    pub ttl_s: Option<u32>,
    pub comment: Option<String>,
    pub flags: Flags,
    /// Namespace servers.
    pub targets: Vec<Target>,
    pub links: Vec<Link>,
    pub other: BTreeMap<String, String>,
}

impl Namespace {
    /// The mode that something in it needs, where the input does not say it: only Windows Server 2008 mode and stand-alone
    /// namespaces have access-based enumeration and permissions of links.
    pub fn needed_kind(&self) -> Option<Kind> {
        let is_needed = self.flags.access_based_enumeration == Some(true)
            || self.links.iter().any(|link| link.security.is_some());
        (self.kind.is_none() && is_needed).then_some(Kind::DomainV2)
    }
}

/// One target in a client's cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedTarget {
    pub server: String,
    pub share: String,
    /// The result of the last access; none if there was no access.
    pub access_status: Option<u32>,
    pub active: bool,
    /// First of a set of targets of equal cost.
    pub target_set: bool,
}

/// One referral that a client holds (`dfsutil cache referral`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedReferral {
    /// The path without its first backslash: `contoso.com\Public\Accounting`.
    pub entry: String,
    pub short_entry: Option<String>,
    /// Seconds until it expires, when the cache was printed.
    pub expires_s: Option<u64>,
    pub use_count: Option<u64>,
    /// Type bits as printed.
    pub kind: Option<u32>,
    pub targets: Vec<CachedTarget>,
}

/// The referral cache of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCache {
    pub client: String,
    /// When it was printed, in seconds since 1970 (UTC), if the input says so.
    pub read_at_s: Option<i64>,
    pub referrals: Vec<CachedReferral>,
    /// Names of files that the client has open through the namespace, if the collected output lists them.
    pub open_files: Vec<String>,
    /// Whether its kernel is one of Linux that stays with a server until the share is mounted again.
    #[serde(default)]
    pub is_without_failover: bool,
}
