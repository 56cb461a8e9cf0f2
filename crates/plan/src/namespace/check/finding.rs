//! The closed list of kinds, a finding with its places, and findings while they are collected.

use std::collections::BTreeMap;

use serde::Serialize;
use smbscope_findings::{Kind, Severity, Weight, kinds};

use super::{caches, compare, limits, links, names, paths, referrals, targets};

/// Evidence of one finding that is kept; the rest is counted.
const EVIDENCE_MAX: usize = 100;

kinds! {
    /// What can be wrong with a namespace.
    pub enum FindingKind {
        MixedNames = names::MIXED_NAMES,
        ShortNames = names::SHORT_NAMES,
        Addresses = names::ADDRESSES,
        UnresolvedNames = names::UNRESOLVED_NAMES,
        DifferentAddresses = names::DIFFERENT_ADDRESSES,
        Aliases = names::ALIASES,
        DuplicateLinks = links::DUPLICATE_LINKS,
        NestedLinks = links::NESTED_LINKS,
        EmptyLinks = links::EMPTY_LINKS,
        ForbiddenNames = links::FORBIDDEN_NAMES,
        DifficultNames = links::DIFFICULT_NAMES,
        Ampersands = links::AMPERSANDS,
        SingleTarget = targets::SINGLE_TARGET,
        SingleServer = targets::SINGLE_SERVER,
        OfflineTargets = targets::OFFLINE_TARGETS,
        OfflineLinks = links::OFFLINE_LINKS,
        NothingOnline = targets::NOTHING_ONLINE,
        UnknownStates = links::UNKNOWN_STATES,
        DuplicateTargets = targets::DUPLICATE_TARGETS,
        TargetsDifferInCase = targets::TARGETS_DIFFER_IN_CASE,
        TrailingParts = targets::TRAILING_PARTS,
        MissingShares = targets::MISSING_SHARES,
        Interlinks = paths::INTERLINKS,
        Loops = paths::LOOPS,
        RootShareNames = targets::ROOT_SHARE_NAMES,
        StaleSites = targets::STALE_SITES,
        TtlTooLong = limits::TTL_TOO_LONG,
        LongTtl = limits::LONG_TTL,
        ZeroTtl = limits::ZERO_TTL,
        TooManyLinks = limits::TOO_MANY_LINKS,
        BlobTooLarge = limits::BLOB_TOO_LARGE,
        ExportLoses = compare::EXPORT_LOSES,
        OrphanedLinks = compare::ORPHANED_LINKS,
        MissingInDirectory = compare::MISSING_IN_DIRECTORY,
        DiffersFromDirectory = compare::DIFFERS_FROM_DIRECTORY,
        OrphanedObjects = compare::ORPHANED_OBJECTS,
        RootServersDiffer = compare::ROOT_SERVERS_DIFFER,
        FirstTargetFails = caches::FIRST_TARGET_FAILS,
        CacheDiffers = caches::CACHE_DIFFERS,
        ReferralsDiffer = referrals::REFERRALS_DIFFER,
        ReferralsLack = referrals::REFERRALS_LACK,
        UnknownReferrals = referrals::UNKNOWN_REFERRALS,
        NeverNewServers = referrals::NEVER_NEW_SERVERS,
        ReferralStorms = referrals::REFERRAL_STORMS,
        SysvolTtl = caches::SYSVOL_TTL,
        ReferralCost = referrals::REFERRAL_COST,
    }
}

/// One kind with all places.
pub type Finding = smbscope_findings::Finding<FindingKind, Places>;

/// Where something is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Places {
    /// How many places there are.
    pub count: u64,
    /// The first 100.
    pub evidence: Vec<Evidence>,
}

/// One place where something is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Path of the link below the root; none for the root.
    pub link: Option<String>,
    /// `\\server\share`.
    pub target: Option<String>,
    /// `FILE:LINE`.
    pub place: Option<String>,
    pub detail: String,
    /// The command that repairs this one.
    pub repair: Option<String>,
}

#[derive(Default)]
pub(super) struct Findings(BTreeMap<FindingKind, (Severity, Places)>);

impl Findings {
    /// Adds a place with the usual severity. The evidence is made only if it is kept.
    pub(super) fn add(&mut self, kind: FindingKind, evidence: impl FnOnce() -> Evidence) {
        self.add_as(kind, kind.info().severity.unwrap_or(Severity::Medium), evidence);
    }

    /// Adds a place whose severity depends on more than the kind; the highest counts.
    pub(super) fn add_as(
        &mut self,
        kind: FindingKind,
        severity: Severity,
        evidence: impl FnOnce() -> Evidence,
    ) {
        let first = || (severity, Places { count: 0, evidence: Vec::new() });
        let (most, places) = self.0.entry(kind).or_insert_with(first);
        *most = severity.min(*most);
        places.count += 1;
        if places.evidence.len() < EVIDENCE_MAX {
            places.evidence.push(evidence());
        }
    }

    /// All findings, the most severe first.
    pub(super) fn finish(self) -> Vec<Finding> {
        let finding = |(kind, (severity, places)): (FindingKind, (Severity, Places))| {
            let what = format!("{}: {}", kind.title(), places.count);
            smbscope_findings::Finding::new(kind, what)
                .with_weight(Weight::Severity { severity })
                .with_details(places)
        };
        let mut all: Vec<Finding> = self.0.into_iter().map(finding).collect();
        all.sort_by_key(Finding::severity);
        all
    }
}
