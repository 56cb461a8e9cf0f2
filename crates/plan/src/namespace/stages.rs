//! The plan of a move: a domain-based namespace gets new servers and the 2008 mode while users work.
//!
//! Owns the stages with their commands, preconditions, gates, times and undo; [`waits`](super::waits) has the
//! arithmetic of the waiting times, [`gate`](super::gate) judges whether clients are ready. Executes nothing, and reads
//! nothing but the namespace.
//!
//! "Migrate a domain-based namespace to Windows Server 2008 mode" (windowsserverdocs) has the cut-over, Microsoft KB
//! 244380 the FQDNs, and "Migrating DFS Namespace from Windows 2000 Server mode to Windows Server 2008 mode" (Craig
//! F's blog, 2014) the move in stages during office hours. docs/method/namespace.md says which commands are from where.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::model::{Kind, Namespace};
use super::names::{Domains, is_qualified, normal};
use super::waits::{Assumptions, LINK_TTL_S, ROOT_TTL_S, Wait};
use crate::script::names::{check_path, check_server, check_verbatim};

mod assignment;
mod context;
mod cut_over;
mod finish;
mod lost;
mod prepare;
mod servers;

use assignment::{Assigned, Server, assigned, suffix};
pub use context::ADMIN;
use context::Context;
pub use lost::Lost;

/// The most servers of each side: a plan has commands for each of them.
pub const SERVERS_MAX: usize = 256;
/// A root's TTL above this is lowered first.
pub const LOWERED_ABOVE_S: u32 = 3_600;
/// The TTL while servers move.
pub const LOWERED_TO_S: u32 = 300;

/// What the move shall be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    pub to: Kind,
    /// The mode of today, if it is known better than the input says it.
    pub from: Option<Kind>,
    /// Namespace servers after the move. Those that the namespace has and that are not in `old_servers` stay.
    pub new_servers: Vec<String>,
    /// Namespace servers that leave; without any, all that are not among the new ones.
    pub old_servers: Vec<String>,
    /// The domain of short names; without one, that of the namespace.
    pub suffix: Option<String>,
    /// More names of domains: NetBIOS names, or those of other namespaces.
    pub domains: Vec<String>,
    /// What is wrong with the namespace and accepted, one sentence each: preconditions of the first stage.
    pub accepted: Vec<String>,
    /// The PDC emulator, if it is known.
    pub pdc: Option<String>,
    /// The local folder of the roots on the servers.
    pub root_folder: String,
    /// The folder for files of the move on the administrator's machine.
    pub work_folder: String,
    pub assumed: Assumptions,
    /// Links that an import creates in a second, to estimate how long it takes.
    pub import_links_per_s: f64,
    /// Clients whose caches the gates expect.
    pub clients: Vec<String>,
}

impl Default for Move {
    fn default() -> Move {
        Move {
            to: Kind::DomainV2,
            from: None,
            new_servers: Vec::new(),
            old_servers: Vec::new(),
            suffix: None,
            domains: Vec::new(),
            accepted: Vec::new(),
            pdc: None,
            root_folder: r"C:\DFSRoots".to_owned(),
            work_folder: r"C:\temp".to_owned(),
            assumed: Assumptions::default(),
            import_links_per_s: 20.0,
            clients: Vec::new(),
        }
    }
}

/// The stages, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageId {
    Save,
    LowerTtl,
    OldFqdn,
    Copy,
    NewFqdn,
    Export,
    Add,
    Refresh,
    WaitNew,
    Disable,
    WaitOld,
    Remove,
    CutOver,
    Restore,
    Verify,
    Settle,
    RaiseTtl,
}

impl StageId {
    pub const ALL: [StageId; 17] = [
        StageId::Save,
        StageId::LowerTtl,
        StageId::OldFqdn,
        StageId::Copy,
        StageId::NewFqdn,
        StageId::Export,
        StageId::Add,
        StageId::Refresh,
        StageId::WaitNew,
        StageId::Disable,
        StageId::WaitOld,
        StageId::Remove,
        StageId::CutOver,
        StageId::Restore,
        StageId::Verify,
        StageId::Settle,
        StageId::RaiseTtl,
    ];

    /// Its name in JSON and on the command line: `wait-new`.
    pub fn name(self) -> &'static str {
        match self {
            StageId::Save => "save",
            StageId::LowerTtl => "lower-ttl",
            StageId::OldFqdn => "old-fqdn",
            StageId::Copy => "copy",
            StageId::NewFqdn => "new-fqdn",
            StageId::Export => "export",
            StageId::Add => "add",
            StageId::Refresh => "refresh",
            StageId::WaitNew => "wait-new",
            StageId::Disable => "disable",
            StageId::WaitOld => "wait-old",
            StageId::Remove => "remove",
            StageId::CutOver => "cut-over",
            StageId::Restore => "restore",
            StageId::Verify => "verify",
            StageId::Settle => "settle",
            StageId::RaiseTtl => "raise-ttl",
        }
    }

    /// The stage of a name.
    pub fn from_name(name: &str) -> Option<StageId> {
        StageId::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

/// What the caches of clients must show before the next stage may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateRule {
    /// No list has a longer TTL than the lowered one.
    ShortTtl,
    /// Each list of namespace servers has a new one.
    NewListed,
    /// No list of namespace servers has an old one.
    OldGone,
    /// No list of a link has the targets from before the cut-over.
    LinksRewritten,
}

/// A tool whose commands are alternatives of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// The same lines for everyone.
    Any,
    /// dfsutil and other programs of the command prompt, from PowerShell.
    Dfsutil,
    /// Cmdlets of PowerShell (module DFSN, Windows Server 2012 and later).
    PowerShell,
}

/// Lines of one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub tool: Tool,
    pub lines: Vec<String>,
    /// Something to know before it is run; empty without.
    pub note: String,
}

/// One thing to do, in one or two dialects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub does: String,
    /// Where it is run.
    pub place: String,
    /// Alternatives: one of them is run.
    pub commands: Vec<Command>,
    /// What shows that it worked; empty without.
    pub shows: String,
}

/// How long a stage takes, without its wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    pub least_s: u64,
    pub most_s: u64,
    pub because: String,
}

/// What users notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Impact {
    Nothing,
    /// Some requests wait for seconds.
    Pause,
    /// Some accesses fail for a while.
    Failures,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    pub id: StageId,
    pub title: String,
    pub why: String,
    /// The rights that its commands need.
    pub who: String,
    /// What must be true before it begins.
    pub requires: Vec<String>,
    pub steps: Vec<Step>,
    pub takes: Estimate,
    pub impact: Impact,
    /// What users notice, in a sentence.
    pub users: String,
    pub wait: Option<Wait>,
    /// The change since which is waited: the stage that made it.
    pub since: Option<StageId>,
    pub gate: Option<GateRule>,
    pub undo: Vec<Step>,
    /// How to go back where commands are not enough.
    pub undo_note: String,
}

/// The plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovePlan {
    /// `\\contoso.com\Public`.
    pub root: String,
    pub host: String,
    pub name: String,
    /// Names of the domain, and of other domains that links lead to.
    #[serde(default)]
    pub domains: Vec<String>,
    pub from: Option<Kind>,
    pub to: Kind,
    /// Servers that join, as in referrals after the move.
    pub new_servers: Vec<String>,
    /// Servers that leave, as the namespace has them.
    pub old_servers: Vec<String>,
    /// Servers that stay.
    pub kept_servers: Vec<String>,
    /// Short names of link targets, which the rewrite makes FQDNs.
    pub rewritten_servers: Vec<String>,
    pub links: u64,
    pub targets: u64,
    pub root_ttl_s: u32,
    /// The longest TTL of a link.
    pub link_ttl_s: u32,
    pub assumed: Assumptions,
    /// Clients whose caches the gates expect.
    pub clients: Vec<String>,
    pub stages: Vec<Stage>,
    /// What the export does not carry.
    pub lost: Vec<Lost>,
    /// Things to know before the first stage.
    pub notes: Vec<String>,
}

impl MovePlan {
    pub fn stage(&self, id: StageId) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.id == id)
    }

    /// The stage whose gate lets a stage begin: itself if it has a gate, or the last one before it that has.
    pub fn gate_of(&self, id: StageId) -> Option<StageId> {
        let place = self.stages.iter().position(|stage| stage.id == id)?;
        let before = self.stages.iter().take(place + 1).rev();
        before.into_iter().find(|stage| stage.gate.is_some()).map(|stage| stage.id)
    }

    /// Seconds of all waits together, if no gate says go earlier.
    pub fn waits_s(&self) -> u64 {
        let waits = self.stages.iter().filter_map(|stage| stage.wait.as_ref());
        // The plan can be from a file.
        waits.map(|wait| wait.total_s).fold(0, u64::saturating_add)
    }
}

/// Why there is no plan: what is wrong with the input, one sentence each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub Vec<String>);

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for PlanError {}

/// Plans the move of a namespace.
///
/// # Errors
///
/// All that makes a plan impossible: a namespace that is not in the directory, missing or contradictory servers, names
/// that cannot be in a command.
pub fn plan(namespace: &Namespace, wanted: &Move) -> Result<MovePlan, PlanError> {
    let mut errors = refusals(namespace, wanted);
    let servers = assigned(namespace, wanted, &mut errors);
    if !errors.is_empty() {
        return Err(PlanError(errors));
    }
    let context = Context::new(namespace, wanted, servers);
    let mut stages = vec![prepare::save(&context)];
    stages.extend(prepare::lower_ttl(&context));
    stages.push(prepare::old_fqdn(&context));
    stages.extend(prepare::copy(&context));
    stages.extend(prepare::new_fqdn(&context));
    stages.push(prepare::export(&context));
    stages.extend(servers::stages(&context));
    if context.is_rebuilt {
        stages.push(cut_over::cut_over(&context));
        stages.push(cut_over::restore(&context));
    }
    stages.push(finish::verify(&context));
    stages.extend(finish::settle(&context));
    stages.extend(finish::raise_ttl(&context));
    let root = context.root.clone();
    Ok(MovePlan {
        root,
        host: namespace.host.clone(),
        name: namespace.name.clone(),
        domains: domain_names(&context),
        from: context.from,
        to: wanted.to,
        new_servers: context.new.iter().map(|server| server.name.clone()).collect(),
        old_servers: context.old.iter().map(|server| server.name.clone()).collect(),
        kept_servers: context.kept.iter().map(|server| server.name.clone()).collect(),
        rewritten_servers: rewritten(&context),
        links: namespace.links.len() as u64,
        targets: namespace.links.iter().map(|link| link.targets.len() as u64).sum(),
        root_ttl_s: context.root_ttl_s,
        link_ttl_s: context.link_ttl_s,
        assumed: wanted.assumed.clone(),
        clients: wanted.clients.clone(),
        lost: if context.is_rebuilt { lost::lost(&context, wanted.to) } else { Vec::new() },
        notes: finish::notes(&context),
        stages,
    })
}

/// What is wrong regardless of the servers.
fn refusals(namespace: &Namespace, wanted: &Move) -> Vec<String> {
    let mut errors = Vec::new();
    if matches!(namespace.kind, Some(Kind::Standalone | Kind::Samba)) {
        errors.push(
            "the namespace is not in a directory: only domain-based namespaces have several servers and modes".to_owned(),
        );
    }
    if !matches!(wanted.to, Kind::DomainV1 | Kind::DomainV2) {
        errors.push("the target must be a domain-based namespace (v1 or v2)".to_owned());
    }
    errors.extend(check_server(&namespace.host).err());
    errors.extend(check_verbatim("namespace", &namespace.name).err());
    errors.extend(check_path("folder of the roots", &wanted.root_folder).err());
    errors.extend(check_path("folder for files", &wanted.work_folder).err());
    errors.extend(wanted.suffix.as_deref().and_then(|suffix| check_server(suffix).err()));
    errors.extend(wanted.domains.iter().filter_map(|domain| check_server(domain).err()));
    errors.extend(wanted.pdc.as_deref().and_then(|pdc| check_server(pdc).err()));
    if !wanted.import_links_per_s.is_finite() || wanted.import_links_per_s <= 0.0 {
        errors.push("the rate of the import must be above 0 links a second".to_owned());
    }
    errors
}

/// The TTLs of the root, and of the link that has the longest.
fn ttls(namespace: &Namespace) -> (u32, u32) {
    let link = namespace.links.iter().map(|link| link.ttl_s.unwrap_or(LINK_TTL_S)).max();
    (namespace.ttl_s.unwrap_or(ROOT_TTL_S), link.unwrap_or(LINK_TTL_S))
}

/// Short names of link targets, if there is a domain to make them FQDNs. Domains keep theirs.
fn rewritten(context: &Context<'_>) -> Vec<String> {
    if context.suffix.is_none() || !context.is_rebuilt {
        return Vec::new();
    }
    let targets = context.namespace.links.iter().flat_map(|link| &link.targets);
    let names: HashSet<&str> = targets.map(|target| target.server.as_str()).collect();
    let is_short = |name: &&str| !is_qualified(name) && !context.domain_hosts.contains(*name);
    names.into_iter().filter(is_short).map(normal).collect::<BTreeSet<_>>().into_iter().collect()
}

/// All names of domains that are known: of the namespace, of the command line, of the suffix.
fn domain_names(context: &Context<'_>) -> Vec<String> {
    let given = context.wanted.domains.iter().chain(&context.wanted.suffix);
    let all = given.chain([&context.namespace.host]).filter(|name| context.domains.contains(name));
    all.map(|name| normal(name)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The domains of a move.
fn domains(namespace: &Namespace, wanted: &Move) -> Domains {
    let names = wanted.domains.iter().chain(&wanted.suffix).map(String::as_str);
    let mut domains = Domains::new(names);
    domains.add_namespace(namespace);
    domains
}

#[cfg(test)]
mod tests;
