//! A namespace with other names, servers, times and states.
//!
//! Owns the rules and their order: servers are renamed first, then short names become FQDN. Domains are not servers: they
//! keep their name, because a suffix would end every path below them. What becomes equal by that is merged. The result is compared with the input by [`super::difference`]; writing it in a form is [`super::write`].

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::difference::{Change, difference};
use super::form::folded;
use super::model::{Namespace, State, Target};
use super::names::{Domains, same_server};
use super::resolution::{Resolution, Resolved};

#[cfg(test)]
mod tests;

/// A short name becomes an FQDN by a suffix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuffixRule {
    /// Short names that it is for; `*` at the end matches any letters. Empty: all.
    pub names: String,
    /// `contoso.com`.
    pub suffix: String,
}

/// Targets on one server move to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerRule {
    pub from_server: String,
    /// Only this share and what is below it; none for all shares.
    pub from_share: Option<String>,
    pub to_server: String,
    /// The share that takes the place of `from_share`; none to keep it.
    pub to_share: Option<String>,
}

/// Targets of a server, or of one link, become online or offline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateRule {
    pub subject: StateSubject,
    pub state: State,
}

/// What a state is set of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StateSubject {
    /// All targets on a server.
    Server(String),
    /// A link itself.
    Link(String),
}

/// What changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Names to FQDN, by their first label or as a whole.
    pub fqdn: BTreeMap<String, String>,
    pub suffixes: Vec<SuffixRule>,
    /// Names of domains, in addition to the namespace's host and the suffixes.
    pub domains: Vec<String>,
    /// DNS: a short name becomes the only full name that begins with it.
    pub resolution: Option<Resolution>,
    pub servers: Vec<ServerRule>,
    /// Whether targets of the root change like those of links.
    pub includes_root: bool,
    pub root_ttl_s: Option<u32>,
    pub link_ttl_s: Option<u32>,
    pub states: Vec<StateRule>,
    /// Domain in the root's path.
    pub host: Option<String>,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rewritten {
    pub namespace: Namespace,
    pub changes: Vec<Change>,
    /// Short names that no rule makes an FQDN, although there are rules for that.
    pub short_names: Vec<String>,
    /// Hosts that keep their short name because they are domains.
    pub domains: Vec<String>,
    /// Short names of hosts that may be a domain or a server: their share has the name of the namespace.
    pub unclear: Vec<String>,
    /// Short names for which DNS has several full names.
    pub ambiguous: BTreeMap<String, Vec<String>>,
    /// Targets that were merged with another one of their link.
    pub merged: u64,
    /// Rules for servers and states that matched nothing.
    pub unused: Vec<String>,
}

impl ServerRule {
    /// `OLD=NEW`, or `\\OLD\share=\\NEW\share`.
    pub fn parse(text: &str) -> Result<ServerRule, String> {
        let wrong = || format!("{text:?} is not OLD=NEW or \\\\OLD\\share=\\\\NEW\\share");
        let (from, to) = text.split_once('=').ok_or_else(wrong)?;
        let split = |side: &str| -> Option<(String, Option<String>)> {
            let side = side.trim();
            match side.strip_prefix("\\\\") {
                None => (!side.is_empty() && !side.contains('\\')).then(|| (side.to_owned(), None)),
                Some(path) => {
                    let (server, share) = path.split_once('\\').unwrap_or((path, ""));
                    let share = share.trim_matches('\\');
                    (!server.is_empty())
                        .then(|| (server.to_owned(), (!share.is_empty()).then(|| share.to_owned())))
                }
            }
        };
        let (from_server, from_share) = split(from).ok_or_else(wrong)?;
        let (to_server, to_share) = split(to).ok_or_else(wrong)?;
        if to_share.is_some() && from_share.is_none() {
            return Err(format!("{text:?}: a new share needs the old one it takes the place of"));
        }
        Ok(ServerRule { from_server, from_share, to_server, to_share })
    }
}

impl SuffixRule {
    /// `contoso.com`, or `fs-*=emea.contoso.com`.
    pub fn parse(text: &str) -> Result<SuffixRule, String> {
        let (names, suffix) = text.split_once('=').unwrap_or(("", text));
        let suffix = suffix.trim().trim_matches('.');
        let is_suffix = !suffix.is_empty()
            && suffix.split('.').all(|label| {
                !label.is_empty()
                    && label
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            });
        if !is_suffix {
            return Err(format!("{suffix:?} is not a suffix such as contoso.com"));
        }
        Ok(SuffixRule { names: names.trim().to_owned(), suffix: suffix.to_owned() })
    }

    fn is_for(&self, name: &str) -> bool {
        match self.names.strip_suffix('*') {
            _ if self.names.is_empty() => true,
            Some(start) => folded(name).starts_with(&folded(start)),
            None => self.names.eq_ignore_ascii_case(name),
        }
    }
}

/// Reads a map of names: lines `short fqdn`, `short=fqdn` or `short,fqdn`; `#` begins a comment.
pub fn read_map(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut map = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut words = line.split(['=', ',', ';', ' ', '\t']).filter(|word| !word.is_empty());
        match (words.next(), words.next(), words.next()) {
            (Some(short), Some(full), None) if full.contains('.') => {
                map.insert(folded(short), full.to_owned());
            }
            _ => return Err(format!("line {}: {line:?} is not SHORT FQDN", number + 1)),
        }
    }
    Ok(map)
}

/// Applies rules to a namespace.
pub fn rewrite(namespace: &Namespace, rules: &Rules) -> Rewritten {
    let mut work = Work {
        rules,
        namespace,
        domains: domains(namespace, rules),
        kept: BTreeSet::new(),
        unclear: BTreeSet::new(),
        short_names: BTreeSet::new(),
        ambiguous: BTreeMap::new(),
        merged: 0,
        used: BTreeSet::new(),
    };
    let mut out = namespace.clone();
    if let Some(host) = &rules.host {
        out.host.clone_from(host);
        // Distinguished names follow from the domain.
        for key in ["v1:dn", "v2:dn"] {
            out.other.remove(key);
            out.links.iter_mut().for_each(|link| drop(link.other.remove(key)));
        }
    }
    if let Some(ttl_s) = rules.root_ttl_s {
        out.ttl_s = Some(ttl_s);
    }
    if rules.includes_root {
        work.targets(&mut out.targets);
    }
    for link in &mut out.links {
        if let Some(ttl_s) = rules.link_ttl_s {
            link.ttl_s = Some(ttl_s);
        }
        for (number, rule) in rules.states.iter().enumerate() {
            if let StateSubject::Link(path) = &rule.subject
                && folded(path.trim_matches('\\')) == folded(&link.path)
            {
                link.state = rule.state;
                link.other.remove(super::form::STATE_DETAIL);
                work.used.insert(rules.servers.len() + number);
            }
        }
        work.targets(&mut link.targets);
    }
    let unused = work.unused();
    Rewritten {
        changes: difference(namespace, &out),
        namespace: out,
        short_names: work.short_names.into_iter().collect(),
        domains: work.kept.into_iter().collect(),
        unclear: work.unclear.into_iter().collect(),
        ambiguous: work.ambiguous,
        merged: work.merged,
        unused,
    }
}

/// What is known to be a domain: the host, the suffixes of all names, and what the rules name.
fn domains(namespace: &Namespace, rules: &Rules) -> Domains {
    let suffixes = rules.suffixes.iter().map(|rule| rule.suffix.as_str());
    let mut domains = Domains::new(suffixes.chain(rules.domains.iter().map(String::as_str)));
    domains.add_namespace(namespace);
    domains
}

struct Work<'a> {
    rules: &'a Rules,
    namespace: &'a Namespace,
    domains: Domains,
    /// Domains that some target names.
    kept: BTreeSet<String>,
    unclear: BTreeSet<String>,
    short_names: BTreeSet<String>,
    ambiguous: BTreeMap<String, Vec<String>>,
    merged: u64,
    /// Numbers of rules that matched: of servers, then of states.
    used: BTreeSet<usize>,
}

fn is_short(server: &str) -> bool {
    !server.contains('.') && server.parse::<std::net::IpAddr>().is_err()
}

/// Whether a rule's name is a target's server: as a whole, or one of them is short and begins the other.
fn is_named(rule: &str, server: &str) -> bool {
    rule.eq_ignore_ascii_case(server)
        || ((is_short(rule) || is_short(server)) && {
            let label = |name: &str| folded(name.split('.').next().unwrap_or(name));
            label(rule) == label(server)
        })
}

impl Work<'_> {
    fn targets(&mut self, targets: &mut Vec<Target>) {
        let mut is_changed = false;
        for target in targets.iter_mut() {
            is_changed |= self.rename(target);
            is_changed |= self.full_name(target);
        }
        for target in targets.iter_mut() {
            for (number, rule) in self.rules.states.iter().enumerate() {
                if let StateSubject::Server(server) = &rule.subject
                    && is_named(server, &target.server)
                {
                    target.state = rule.state;
                    target.other.remove(super::form::STATE_DETAIL);
                    self.used.insert(self.rules.servers.len() + number);
                }
            }
        }
        if is_changed {
            self.merge(targets);
        }
    }

    fn rename(&mut self, target: &mut Target) -> bool {
        for (number, rule) in self.rules.servers.iter().enumerate() {
            if !is_named(&rule.from_server, &target.server) {
                continue;
            }
            if let Some(from) = &rule.from_share {
                let share = folded(&target.share);
                let Some(rest) = share
                    .strip_prefix(&folded(from))
                    .filter(|rest| rest.is_empty() || rest.starts_with('\\'))
                else {
                    continue;
                };
                if let Some(to) = &rule.to_share {
                    // The rest as it was written: case folding may change lengths, but not the number of characters.
                    let kept = rest.chars().count();
                    let skipped = target.share.chars().count().saturating_sub(kept);
                    let rest: String = target.share.chars().skip(skipped).collect();
                    target.share = format!("{to}{rest}");
                }
            }
            target.server.clone_from(&rule.to_server);
            self.used.insert(number);
            return true;
        }
        false
    }

    fn full_name(&mut self, target: &mut Target) -> bool {
        let rules = self.rules;
        let name = folded(&target.server);
        if let Some(full) = rules.fqdn.get(&name) {
            let is_new = *full != target.server;
            target.server.clone_from(full);
            return is_new;
        }
        if !is_short(&target.server)
            || (rules.fqdn.is_empty() && rules.suffixes.is_empty() && rules.resolution.is_none())
        {
            return false;
        }
        if self.domains.contains(&name) {
            self.kept.insert(target.server.clone());
            return false;
        }
        if let Some(rule) = rules.suffixes.iter().find(|rule| rule.is_for(&name)) {
            let full = format!("{}.{}", target.server, rule.suffix);
            match rules.resolution.as_ref().map(|known| known.resolve(&folded(&full))) {
                // DNS may know it in another domain.
                Some(Resolved::Nothing) => {}
                None if self.may_be_domain(target) => {
                    self.unclear.insert(target.server.clone());
                    return false;
                }
                _ => {
                    target.server = full;
                    return true;
                }
            }
        }
        if let Some(resolution) = &rules.resolution {
            let mut all: Vec<&str> = resolution.full_names(&name).collect();
            all.sort_unstable();
            all.dedup();
            match all.as_slice() {
                [only] => {
                    target.server = (*only).to_owned();
                    return true;
                }
                [] => {}
                several => {
                    let several = several.iter().map(|name| (*name).to_owned()).collect();
                    self.ambiguous.insert(target.server.clone(), several);
                }
            }
        }
        self.short_names.insert(target.server.clone());
        false
    }

    /// Whether a path can be one of this namespace with a NetBIOS name of its domain that nothing mentions.
    fn may_be_domain(&self, target: &Target) -> bool {
        let share = target.share.split('\\').next().unwrap_or_default();
        folded(share) == folded(&self.namespace.name)
            && !self.namespace.targets.iter().any(|root| same_server(&root.server, &target.server))
    }

    /// Targets that became the same: one of them stays, online if one of them was.
    fn merge(&mut self, targets: &mut Vec<Target>) {
        let mut kept: Vec<Target> = Vec::with_capacity(targets.len());
        for target in targets.drain(..) {
            let same = kept.iter_mut().find(|other| {
                other.server.eq_ignore_ascii_case(&target.server)
                    && folded(&other.share) == folded(&target.share)
            });
            match same {
                Some(other) => {
                    if target.state == State::Online {
                        other.state = State::Online;
                    }
                    self.merged += 1;
                }
                None => kept.push(target),
            }
        }
        *targets = kept;
    }

    fn unused(&self) -> Vec<String> {
        let servers = self.rules.servers.iter().map(|rule| match &rule.from_share {
            Some(share) => format!("\\\\{}\\{share}", rule.from_server),
            None => rule.from_server.clone(),
        });
        let states = self.rules.states.iter().map(|rule| match &rule.subject {
            StateSubject::Server(name) | StateSubject::Link(name) => name.clone(),
        });
        servers
            .chain(states)
            .enumerate()
            .filter(|(number, _)| !self.used.contains(number))
            .map(|(_, name)| name)
            .collect()
    }
}
