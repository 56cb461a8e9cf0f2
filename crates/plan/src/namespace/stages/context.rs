//! What all stages know, and how their steps are written.
//!
//! Owns the paths, quoted names and the pieces of commands that several stages have.

use std::collections::HashSet;

use super::{
    Assigned, Command, Estimate, GateRule, Impact, LOWERED_TO_S, Move, Server, Stage, StageId,
    Step, Tool, domains, suffix, ttls,
};
use crate::namespace::model::{Kind, Namespace};
use crate::namespace::names::{Domains, qualified};
use crate::script::quote::{distinguished, powershell as verbatim, word};

/// Where commands run that work from anywhere.
pub const ADMIN: &str = "the administrator's machine (Windows Server 2012 or later with the tools of DFS Namespaces, PowerShell as administrator)";
/// The rights of most stages.
pub(super) const DOMAIN_ADMIN: &str = "a domain administrator, or an account with delegated control of the namespace that is administrator of its servers";
/// Spelling that no published page confirms.
pub(super) const UNCONFIRMED: &str =
    "the exact spelling is not confirmed by a published page: compare with /? first";

/// What all stages know.
pub(super) struct Context<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) wanted: &'a Move,
    /// `\\contoso.com\Public`.
    pub(super) root: String,
    /// The domain of short names.
    pub(super) suffix: Option<&'a str>,
    pub(super) domains: Domains,
    /// Hosts of link targets, as written, that are domains.
    pub(super) domain_hosts: HashSet<&'a str>,
    /// The mode of today: as given, as the input says, or as something in it needs.
    pub(super) from: Option<Kind>,
    pub(super) new: Vec<Server>,
    pub(super) old: Vec<Server>,
    pub(super) kept: Vec<Server>,
    /// Whether the root is removed and created again.
    pub(super) is_rebuilt: bool,
    pub(super) root_ttl_s: u32,
    pub(super) link_ttl_s: u32,
    /// TTL of the root while servers move.
    pub(super) moving_ttl_s: u32,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        namespace: &'a Namespace,
        wanted: &'a Move,
        servers: Assigned,
    ) -> Context<'a> {
        let (root_ttl_s, link_ttl_s) = ttls(namespace);
        let is_lowered = root_ttl_s > super::LOWERED_ABOVE_S;
        let from = wanted.from.or(namespace.kind).or(namespace.needed_kind());
        let domains = domains(namespace, wanted);
        let targets = namespace.links.iter().flat_map(|link| &link.targets);
        let mut domain_hosts: HashSet<&str> = targets.map(|one| one.server.as_str()).collect();
        domain_hosts.retain(|host| domains.contains(host));
        Context {
            namespace,
            wanted,
            root: format!(r"\\{}\{}", namespace.host, namespace.name),
            suffix: suffix(namespace, wanted),
            domain_hosts,
            domains,
            from,
            new: servers.new,
            old: servers.old,
            kept: servers.kept,
            is_rebuilt: from != Some(wanted.to),
            root_ttl_s,
            link_ttl_s,
            moving_ttl_s: if is_lowered { LOWERED_TO_S } else { root_ttl_s },
        }
    }

    /// The root as a word of a command.
    pub(super) fn root_word(&self) -> String {
        word(&self.root)
    }

    /// The root behind an option, as one word.
    pub(super) fn option(&self, option: &str) -> String {
        let root = self.root_word();
        if root == self.root {
            format!("{option}{root}")
        } else {
            word(&format!("{option}{}", self.root))
        }
    }

    /// All links, for `-Path`.
    pub(super) fn all_links(&self) -> String {
        verbatim(&format!(r"{}\*", self.root))
    }

    /// A file of the move, as a word: `C:\temp\Public.original.xml`.
    pub(super) fn file(&self, ending: &str) -> String {
        word(&format!(r"{}\{}.{ending}", self.wanted.work_folder, self.namespace.name))
    }

    /// `\\server\share` of a root target, as a word.
    pub(super) fn target(&self, server: &Server) -> String {
        word(&target_path(server))
    }

    /// Servers of the namespace after the move.
    pub(super) fn remaining(&self) -> impl Iterator<Item = &Server> {
        self.new.iter().chain(&self.kept)
    }

    /// Servers of the namespace after the move, as referrals then have them: a root that is created again gets FQDNs. One that
    /// is online comes first: it holds the new root.
    pub(super) fn finally(&self) -> Vec<Server> {
        let name = |server: &Server| {
            if self.is_rebuilt { qualified(&server.name, self.suffix) } else { server.name.clone() }
        };
        let server = |server: &Server| Server { name: name(server), ..server.clone() };
        let mut all: Vec<_> = self.remaining().map(server).collect();
        all.sort_by_key(Server::is_offline);
        all
    }

    /// TTL of a root that is created: short, whatever it was, until the move is over.
    pub(super) fn creation_ttl_s(&self) -> u32 {
        self.root_ttl_s.min(LOWERED_TO_S)
    }

    /// TTL of the root before the last stage.
    pub(super) fn last_ttl_s(&self) -> u32 {
        if self.is_rebuilt { self.creation_ttl_s() } else { self.moving_ttl_s }
    }

    /// Sets the TTL of the root.
    pub(super) fn set_ttl(&self, seconds: u32, does: &str) -> Step {
        let root = self.root_word();
        step(
            does,
            vec![
                dfsutil(vec![format!("dfsutil property ttl {root} {seconds}")]).note(UNCONFIRMED),
                powershell(vec![format!("Set-DfsnRoot -Path {root} -TimeToLiveSec {seconds}")]),
            ],
        )
    }

    /// What must be true of a mode that the input does not say.
    pub(super) fn mode_condition(&self) -> Option<String> {
        let is_said = self.wanted.from.or(self.namespace.kind).is_some();
        let (shown, other, flag) = match self.from {
            Some(Kind::DomainV2) => ("Domain V2", "Domain V1", "v1"),
            _ => ("Domain V1", "Domain V2", "v2"),
        };
        (!is_said).then(|| {
            format!("Get-DfsnRoot shows Type {shown}; if it shows {other}, plan again with --from {flag}")
        })
    }

    /// Names of the move's servers as they are saved: those of today and the new ones.
    pub(super) fn everyone(&self) -> impl Iterator<Item = &Server> {
        self.old.iter().chain(&self.kept).chain(&self.new)
    }

    /// `CN=Public,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com`, as a word of PowerShell; none for a short domain.
    pub(super) fn distinguished_name(&self) -> Option<String> {
        let host = self.namespace.host.trim_end_matches('.');
        let domain = if host.contains('.') { Some(host) } else { self.wanted.suffix.as_deref() };
        let labels = domain?.split('.').map(|label| format!("DC={}", distinguished(label)));
        let labels: Vec<_> = labels.collect();
        let name = distinguished(&self.namespace.name);
        Some(format!("CN={name},CN=Dfs-Configuration,CN=System,{}", labels.join(",")))
    }

    /// The PDC emulator as a word: its name, or the variable that [`find_pdc`](Self::find_pdc) sets.
    pub(super) fn pdc(&self) -> String {
        self.wanted.pdc.as_deref().map_or_else(|| "$pdc".to_owned(), word)
    }

    /// Sets `$pdc`, unless the PDC emulator is known: for programs, and for PowerShell with the module ActiveDirectory.
    pub(super) fn find_pdc(&self) -> [Vec<String>; 2] {
        if self.wanted.pdc.is_some() {
            return [Vec::new(), Vec::new()];
        }
        let host = word(&self.namespace.host);
        let ask = "$pdc = Read-Host 'Name of the DC in that output, without backslashes'";
        [
            vec![format!("nltest.exe /dsgetdc:{host} /pdc"), ask.to_owned()],
            vec![format!("$pdc = (Get-ADDomain -Identity {host}).PDCEmulator")],
        ]
    }

    /// Lines that need the PDC emulator, in both dialects where it must be found first.
    pub(super) fn with_pdc(&self, lines: &[String]) -> Vec<Command> {
        if self.wanted.pdc.is_some() {
            return vec![any(lines.to_vec())];
        }
        let [programs, cmdlets] = self.find_pdc();
        let both = |find: Vec<String>| find.into_iter().chain(lines.iter().cloned()).collect();
        vec![dfsutil(both(programs)), powershell(both(cmdlets))]
    }

    /// Makes all servers read the namespace again.
    pub(super) fn synchronise(&self, servers: &[&Server]) -> Vec<Step> {
        let pdc = self.pdc();
        let mut steps = vec![
            step(
                "Replicate the directory from the PDC emulator, which keeps the namespace, to all domain controllers",
                self.with_pdc(&[format!("repadmin.exe /syncall {pdc} /APed")]),
            )
            .shows("SyncAll terminated with no errors."),
        ];
        let lines =
            servers.iter().map(|server| format!("dfsutil root forcesync {}", self.target(server)));
        steps.push(step(
            "Make the namespace servers read the namespace from the PDC emulator",
            vec![
                dfsutil(lines.collect()).note(UNCONFIRMED),
                powershell(servers.iter().map(|server| restart_cmdlet(&server.name)).collect())
                    .note("restarts the service instead, which interrupts referrals of each server for seconds"),
            ],
        ));
        steps
    }
}

/// `\\server\share`.
pub(super) fn target_path(server: &Server) -> String {
    format!(r"\\{}\{}", server.name, server.share)
}

/// Restarts DFS Namespaces of another machine by its service manager.
pub(super) fn restart_sc(server: &str) -> Vec<String> {
    let machine = word(&format!(r"\\{server}"));
    vec![
        format!("sc.exe {machine} stop Dfs"),
        "timeout.exe /t 5".to_owned(),
        format!("sc.exe {machine} start Dfs"),
    ]
}

/// Restarts DFS Namespaces of another machine by WinRM.
pub(super) fn restart_cmdlet(server: &str) -> String {
    let machine = word(server);
    format!(
        "Invoke-Command -ComputerName {machine} -ScriptBlock {{ Restart-Service -Name Dfs -Force }}"
    )
}

/// A step of the administrator's machine.
pub(super) fn step(does: impl Into<String>, commands: Vec<Command>) -> Step {
    let commands = commands.into_iter().filter(|command| !command.lines.is_empty()).collect();
    Step { does: does.into(), place: ADMIN.to_owned(), commands, shows: String::new() }
}

impl Step {
    pub(super) fn shows(mut self, shows: impl Into<String>) -> Step {
        self.shows = shows.into();
        self
    }

    pub(super) fn at(mut self, place: impl Into<String>) -> Step {
        self.place = place.into();
        self
    }
}

impl Command {
    pub(super) fn note(mut self, note: &str) -> Command {
        self.note = note.to_owned();
        self
    }
}

fn command(tool: Tool, lines: Vec<String>) -> Command {
    Command { tool, lines, note: String::new() }
}

pub(super) fn any(lines: Vec<String>) -> Command {
    command(Tool::Any, lines)
}

pub(super) fn dfsutil(lines: Vec<String>) -> Command {
    command(Tool::Dfsutil, lines)
}

pub(super) fn powershell(lines: Vec<String>) -> Command {
    command(Tool::PowerShell, lines)
}

/// A stage without wait, gate and undo.
pub(super) fn stage(id: StageId, title: &str, why: &str) -> Stage {
    Stage {
        id,
        title: title.to_owned(),
        why: why.to_owned(),
        who: DOMAIN_ADMIN.to_owned(),
        requires: Vec::new(),
        steps: Vec::new(),
        takes: Estimate { least_s: 60, most_s: 300, because: "a few commands".to_owned() },
        impact: Impact::Nothing,
        users: "Users notice nothing.".to_owned(),
        wait: None,
        since: None,
        gate: None,
        undo: Vec::new(),
        undo_note: String::new(),
    }
}

impl Stage {
    pub(super) fn takes(mut self, least_s: u64, most_s: u64, because: impl Into<String>) -> Stage {
        self.takes = Estimate { least_s, most_s, because: because.into() };
        self
    }

    pub(super) fn impact(mut self, impact: Impact, users: impl Into<String>) -> Stage {
        (self.impact, self.users) = (impact, users.into());
        self
    }

    pub(super) fn gated(mut self, rule: GateRule, since: StageId) -> Stage {
        (self.gate, self.since) = (Some(rule), Some(since));
        self
    }
}

/// A number of things: `1 server`, `3 servers`.
pub(super) fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// A mode as `Get-DfsnRoot` shows it.
pub(super) fn cmdlet_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::DomainV1 => "Domain V1",
        Kind::DomainV2 => "Domain V2",
        Kind::Standalone | Kind::Samba => "Standalone",
    }
}

/// `Domain (Windows Server 2008 mode)`.
pub(super) fn mode(kind: Kind) -> &'static str {
    match kind {
        Kind::Standalone => "stand-alone",
        Kind::DomainV1 => "Windows 2000 Server mode",
        Kind::DomainV2 => "Windows Server 2008 mode",
        Kind::Samba => "Samba",
    }
}
