//! The closed list of findings: names, severities, sentences and repairs.

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Users lose access, or the move fails.
    High,
    /// It costs time, or works for some.
    Medium,
    /// Worth knowing.
    Low,
}

macro_rules! troubles {
    ($($(#[$doc:meta])* $variant:ident $id:literal $severity:ident $title:literal, $repair:literal;)*) => {
        /// What is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Trouble {
            $($(#[$doc])* #[serde(rename = $id)] $variant,)*
        }

        impl Trouble {
            pub const ALL: &'static [Trouble] = &[$(Trouble::$variant,)*];

            /// The name in JSON.
            pub fn id(self) -> &'static str {
                match self { $(Trouble::$variant => $id,)* }
            }

            /// How much it matters.
            pub fn severity(self) -> Severity {
                match self { $(Trouble::$variant => Severity::$severity,)* }
            }

            /// What it is, in one sentence without numbers.
            pub fn title(self) -> &'static str {
                match self { $(Trouble::$variant => $title,)* }
            }

            /// What to do about it.
            pub fn repair(self) -> &'static str {
                match self { $(Trouble::$variant => $repair,)* }
            }
        }
    };
}

troubles! {
    /// A server has targets under its short name and under its FQDN.
    MixedNames "mixed-names" Medium
        "Servers are named by their short name and by their FQDN",
        "write all targets with FQDN: plan namespace rewrite --fqdn; clients take the two names for two servers, with two logons and two caches";
    /// Targets with short names only.
    ShortNames "short-names" Low
        "Targets have short names",
        "write FQDN (plan namespace rewrite --fqdn), and let namespace servers answer them: Set-DfsnServerConfiguration -UseFqdn $true; clients of other domains and without the suffix do not find short names";
    /// A target is an address.
    Addresses "addresses" Medium
        "Targets are addresses instead of names",
        "write the server's FQDN: Kerberos needs a name, and a logon by NTLM may be refused";
    UnresolvedNames "unresolved-names" High
        "Names of servers do not resolve",
        "correct the name, or add it to DNS; clients wait for the failure before they try the next target";
    DifferentAddresses "different-addresses" High
        "A short name and its FQDN resolve to different addresses",
        "find out which server is meant before names are rewritten";
    Aliases "aliases" Low
        "Targets name an alias",
        "register the alias with netdom computername /add or name the server itself: Kerberos needs a service principal name for the alias";
    DuplicateLinks "duplicate-links" High
        "Links are there twice",
        "keep one of them: a namespace has each path once, without regard to case, and an import stops or merges";
    NestedLinks "nested-links" High
        "Links are below other links",
        "move the inner link to another path, or make the outer one a folder without targets: clients that follow the outer link never ask for the inner one";
    EmptyLinks "empty-links" Medium
        "Links have no target",
        "remove the link, or add a target";
    ForbiddenNames "forbidden-names" High
        "Names have characters that servers refuse",
        "rename the link: \" * / : < > ? | and control characters are refused, and parts may not be . or ..";
    DifficultNames "difficult-names" Low
        "Names that tools break",
        "test these links first after an import; quote them in every command ('...' in PowerShell, with -LiteralPath where it exists)";
    /// A bare ampersand in an export stops the import.
    Ampersands "ampersands" High
        "Names have &, which dfsutil writes as it is and cannot import",
        "import the rewritten export, in which it is &amp; of XML, or make these links with New-DfsnFolder";
    SingleTarget "single-target" Low
        "Links have one target",
        "nothing takes over when its server fails: decide whether that is meant";
    SingleServer "single-server" Medium
        "The namespace has one namespace server",
        "add a second one: New-DfsnRootTarget";
    OfflineTargets "offline-targets" Medium
        "Targets are offline",
        "remove them, or set them online (Set-DfsnFolderTarget -State Online) before the move: they are moved as they are";
    OfflineLinks "offline-links" Medium
        "Links are offline",
        "remove them, or set them online: Set-DfsnFolder -State Online";
    /// No target of a link is online.
    NothingOnline "nothing-online" High
        "No target of a link is online",
        "set a target online, or remove the link";
    UnknownStates "unknown-states" Medium
        "States are neither online nor offline",
        "read the state again on the server: Get-DfsnFolder, Get-DfsnFolderTarget";
    DuplicateTargets "duplicate-targets" Medium
        "A link has one target twice",
        "remove one of them: clients that fail over try the same server again";
    TargetsDifferInCase "targets-differ-in-case" Low
        "Targets of a link differ in case only",
        "write them alike: servers that are not Windows may distinguish case";
    TrailingParts "trailing-parts" Medium
        "Targets end in a space, a dot or a backslash, or lead to different depths of one share",
        "write the path as the server has it: clients that fail over see another folder";
    MissingShares "missing-shares" High
        "Shares of targets do not exist",
        "share the folder, or correct the target; clients get STATUS_BAD_NETWORK_NAME";
    Interlinks "interlinks" Low
        "Targets are DFS paths themselves",
        "name the server behind the path: each such link costs another referral, and the other namespace must be there during the move";
    Loops "loops" High
        "Links lead back to themselves",
        "name a server and share as the target";
    RootShareNames "root-share-names" High
        "Namespace servers share the root under another name",
        "a domain-based namespace requires a share with its own name on every namespace server";
    TtlTooLong "ttl-too-long" High
        "Clients keep referrals longer than the cut-over allows",
        "shorten the TTLs now, and wait for the old ones before the old servers go";
    LongTtl "long-ttl" Low
        "Referrals are kept for more than a day",
        "shorten the TTL before a move: Set-DfsnFolder -TimeToLiveSec 1800";
    ZeroTtl "zero-ttl" Medium
        "Referrals are not kept",
        "set a TTL: clients ask before every access (300 s for roots, 1800 s for links)";
    TooManyLinks "too-many-links" High
        "More links than Windows 2000 mode carries",
        "move to Windows Server 2008 mode, which keeps each link in an object of its own";
    BlobTooLarge "blob-too-large" High
        "The blob is larger than the directory keeps well",
        "move to Windows Server 2008 mode, or shorten comments and paths: every change replicates the whole blob";
    ExportLoses "export-loses" Medium
        "The export does not have everything",
        "export the directory objects too (ldifde), or note these by hand before the root is removed";
    OrphanedLinks "orphaned-links" Medium
        "The directory has links that the export does not have",
        "delete the objects after a backup (dfsutil diag clean for roots), or export again";
    MissingInDirectory "missing-in-directory" High
        "The export has links that the directory does not have",
        "export again: one of the two files is old";
    DiffersFromDirectory "differs-from-directory" Medium
        "Links of the export and of the directory lead to different targets",
        "export again: one of the two files is old";
    OrphanedObjects "orphaned-objects" Medium
        "Link objects of the directory have no namespace",
        "delete the objects after a backup, or export their namespace too";
    RootServersDiffer "root-servers-differ" Medium
        "The directory's list of namespace servers differs from the blob",
        "remove the stale server: dfsutil diag unmapdomroot, or dfsutil target remove";
    FirstTargetFails "first-target-fails" Medium
        "Clients try a target first that fails",
        "remove or correct this target, or lower its priority: each client waits for the failure again when its referral expires";
    CacheDiffers "cache-differs" Medium
        "Clients hold targets that the namespace does not have",
        "wait until these referrals expire, or flush them: dfsutil cache referral flush";
    ReferralsDiffer "referrals-differ" High
        "Servers answer targets that the export does not have",
        "find the server with the old data: dfsutil root forcesync on each namespace server, or export again";
    ReferralsLack "referrals-lack" Medium
        "Servers leave out targets that the export has",
        "check the state of these targets and the sites: in-site referrals leave out targets of other sites";
    UnknownReferrals "unknown-referrals" Medium
        "Clients get referrals for links that the export does not have",
        "export again, or find the server that still has the link";
    NeverNewServers "never-new-servers" High
        "Clients never get the new servers",
        "see which server answers them, and whether it has read the change: dfsutil root forcesync";
    ReferralStorms "referral-storms" Medium
        "Clients ask for the same referral again and again",
        "check the TTL, and whether the first target answers: a client whose targets all fail asks again";
    SysvolTtl "sysvol-ttl" Medium
        "Referrals of SYSVOL or NETLOGON are not kept for 900 s",
        "dfsdiag /TestReferral expects 900 s, the default of domain controllers: compare the settings of the domain controllers; with a longer one clients stay on a domain controller that is gone";
    ReferralCost "referral-cost" Low
        "Referrals cost round trips",
        "a longer TTL after the move, and no interlinks, save them";
}

impl Trouble {
    /// What it is, with how often it was found.
    pub fn sentence(self, count: u64) -> String {
        format!("{}: {count}", self.title())
    }
}
