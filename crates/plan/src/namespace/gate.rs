//! Gates: whether clients are ready for the next stage of a move, from their referral caches and from captures.
//!
//! Owns the verdict: go or no-go, who holds it up, why, and until when. Reads nothing itself: caches come from the
//! readers or from [`collected`], captured referrals from the caller.
//!
//! A verdict is about lists that clients hold. A list that was read before the change was known everywhere proves
//! little, because the client can get the old one again; a client that is missing, or whose answer was not understood,
//! proves nothing; an entry that may be the namespace's and cannot be placed holds the gate. All are named.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{CachedReferral, ClientCache};
use super::names::{Domains, Servers, normal, same_server};
use super::stages::{GateRule, LOWERED_TO_S, MovePlan, StageId};

pub mod collected;
mod lists;
mod verdict;

use lists::{as_cached, is_dead, merged, not_read, reason};
pub use verdict::{
    CapturedReferral, ClientVerdict, Evidence, Reason, ReasonKind, StaleAnswer, Unread, Verdict,
};

/// Names that a verdict lists for one client or answerer.
const NAMES_MAX: usize = 8;

/// Judges a gate. A stage without a gate is go.
pub fn judge(stage: StageId, plan: &MovePlan, evidence: &Evidence<'_>) -> Verdict {
    let of_plan = plan.stage(stage);
    let rule = of_plan.and_then(|stage| stage.gate);
    let wait = of_plan.and_then(|stage| stage.wait.as_ref());
    let mut verdict = Verdict {
        stage,
        rule,
        at_s: evidence.now_s,
        is_go: true,
        judged: 0,
        ready: 0,
        held: Vec::new(),
        ready_clients: Vec::new(),
        missing: Vec::new(),
        has_expected: !plan.clients.is_empty(),
        undated: 0,
        stale_answers: Vec::new(),
        until_s: None,
        waited_until_s: evidence.changed_at_s.zip(wait).map(|(at, wait)| after(at, wait.total_s)),
        because: Vec::new(),
    };
    let Some(rule) = rule else {
        let why = match of_plan {
            Some(_) => "this stage has no gate",
            None => "the plan does not have this stage",
        };
        verdict.because.push(why.to_owned());
        verdict.is_go = of_plan.is_some();
        return verdict;
    };
    let judge = Judge {
        rule,
        plan,
        evidence,
        old: Servers::new(plan.old_servers.iter().map(String::as_str)),
        // Servers that stay serve as well as new ones.
        new: Servers::new(plan.new_servers.iter().chain(&plan.kept_servers).map(String::as_str)),
        domains: Domains::new(
            plan.domains.iter().chain([&plan.host]).chain(evidence.domains).map(String::as_str),
        ),
        others: Servers::new(evidence.other_hosts.iter().map(String::as_str)),
        rewritten: plan.rewritten_servers.iter().map(|name| normal(name)).collect(),
        known_at_s: evidence.changed_at_s.map(|at| after(at, wait.map_or(0, |wait| wait.known_s))),
        ttl_s: wait.map_or(plan.root_ttl_s, |wait| wait.ttl_s),
    };
    judge.clients(&mut verdict);
    judge.answerers(&mut verdict);
    judge.conclude(&mut verdict);
    verdict
}

fn after(at_s: i64, seconds: u64) -> i64 {
    at_s.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX))
}

struct Judge<'a> {
    rule: GateRule,
    plan: &'a MovePlan,
    evidence: &'a Evidence<'a>,
    old: Servers,
    new: Servers,
    /// Names of the namespace's domain.
    domains: Domains,
    /// Hosts whose share of the same name is another one.
    others: Servers,
    /// Names of link targets that the rewrite replaces.
    rewritten: BTreeSet<String>,
    /// When everyone knows the change, at the latest.
    known_at_s: Option<i64>,
    ttl_s: u32,
}

/// What an entry of a cache is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Root,
    Link,
    /// A share of the namespace's name on a host that is not known, with servers that are not known.
    Unclear,
    /// Another namespace or share.
    Other,
}

impl Judge<'_> {
    /// Judges the latest evidence of each client.
    fn clients(&self, verdict: &mut Verdict) {
        let mut latest: BTreeMap<String, (&ClientCache, i64)> = BTreeMap::new();
        for cache in self.evidence.caches {
            if cache.read_at_s.is_none() {
                verdict.undated += 1;
            }
            let read_at = cache.read_at_s.unwrap_or(self.evidence.now_s);
            let entry = latest.entry(normal(&cache.client)).or_insert((cache, read_at));
            if read_at >= entry.1 {
                *entry = (cache, read_at);
            }
        }
        let mut seen = BTreeSet::new();
        let mut judged = Vec::new();
        let captured = self.captured_caches();
        for (name, (cache, read_at)) in &latest {
            seen.insert(name.clone());
            let one = match captured.get(name).filter(|(_, at)| at > read_at) {
                Some((wire, at)) => self.client(&merged(cache, *read_at, wire, *at), *at),
                None => self.client(cache, *read_at),
            };
            judged.push(one);
        }
        for (name, (cache, at)) in &captured {
            if seen.insert(name.clone()) {
                let mut one = self.client(cache, *at);
                one.is_captured = true;
                judged.push(one);
            }
        }
        let known = Servers::new(seen.iter().map(String::as_str));
        // A client without a list is not judged by its files; it holds the gate up if it uses an old server.
        for cache in self.evidence.uncollected {
            let read_at = cache.read_at_s.unwrap_or(self.evidence.now_s);
            let is_using = cache.open_files.iter().any(|file| self.is_in_old_root(file));
            if is_using && self.rule == GateRule::OldGone && !known.contains(&cache.client) {
                judged.push(self.client(cache, read_at));
            }
        }
        let unread = self.evidence.unread.iter();
        let unread: Vec<_> =
            unread.filter(|one| !one.is_server && !known.contains(&one.name)).collect();
        judged.extend(unread.iter().map(|one| not_read(one)));
        let asked = Servers::new(unread.iter().map(|one| one.name.as_str()));
        let is_missing = |name: &&String| !known.contains(name) && !asked.contains(name);
        verdict.missing = self.plan.clients.iter().filter(is_missing).cloned().collect();
        verdict.judged = judged.len() as u64;
        let (ready, mut held): (Vec<_>, Vec<_>) = judged.into_iter().partition(|one| one.is_ready);
        held.sort_by_key(|one| {
            (std::cmp::Reverse(one.ready_at_s.unwrap_or(i64::MAX)), one.client.clone())
        });
        verdict.ready = ready.len() as u64;
        (verdict.ready_clients, verdict.held) = (ready, held);
    }

    /// The last captured lists of each client, as a cache.
    fn captured_caches(&self) -> BTreeMap<String, (ClientCache, i64)> {
        let mut by_client: BTreeMap<String, BTreeMap<String, &CapturedReferral>> = BTreeMap::new();
        for one in self.evidence.captured {
            if self.entry(&one.path, one.servers.iter().map(String::as_str)) == Entry::Other {
                continue;
            }
            let name = self.evidence.aliases.get(&normal(&one.client));
            let name = normal(name.unwrap_or(&one.client));
            let last = by_client.entry(name).or_default().entry(normal(&one.path)).or_insert(one);
            if one.at_s >= last.at_s {
                *last = one;
            }
        }
        let caches = by_client.into_iter().map(|(name, paths)| {
            let at = paths.values().map(|one| one.at_s).max().unwrap_or(0);
            let referrals = paths.values().map(|one| as_cached(one, at)).collect();
            let client = paths.values().next().map_or_else(String::new, |one| one.client.clone());
            (
                name,
                (
                    ClientCache {
                        client,
                        read_at_s: Some(at),
                        referrals,
                        ..ClientCache::default()
                    },
                    at,
                ),
            )
        });
        caches.collect()
    }

    /// Which kind of entry a path with these servers is.
    fn entry<'n>(&self, path: &str, mut servers: impl Iterator<Item = &'n str>) -> Entry {
        let mut parts = path.trim_matches('\\').splitn(3, '\\');
        let (Some(host), Some(name)) = (parts.next(), parts.next()) else { return Entry::Other };
        if name.to_lowercase() != self.plan.name.to_lowercase() {
            return Entry::Other;
        }
        if self.others.contains(host) {
            return Entry::Other;
        }
        let is_member = |name: &str| self.old.contains(name) || self.new.contains(name);
        let rest = parts.next().is_some_and(|rest| !rest.is_empty());
        let is_domain = same_server(host, &self.plan.host) || self.domains.contains(host);
        // The NetBIOS name of a domain can be any name: its list shows whether it is this namespace.
        match is_domain || is_member(host) || servers.any(is_member) {
            // A link is judged by its own servers, whichever namespace it is of.
            _ if rest => Entry::Link,
            true => Entry::Root,
            false => Entry::Unclear,
        }
    }

    fn client(&self, cache: &ClientCache, read_at: i64) -> ClientVerdict {
        let mut one = ClientVerdict {
            client: cache.client.clone(),
            is_ready: true,
            reasons: Vec::new(),
            ready_at_s: None,
            lists_new: Vec::new(),
            lists_old: Vec::new(),
            uses: None,
            open_files: cache.open_files.len() as u64,
            read_at_s: Some(read_at),
            is_captured: false,
        };
        let mut ready_at = None;
        let mut is_expired = false;
        let (mut has_root, mut is_pinned) = (false, false);
        for referral in &cache.referrals {
            let servers = || referral.targets.iter().map(|target| target.server.as_str());
            let entry = self.entry(&referral.entry, servers());
            // An entry that has expired and is not in use is not given to anyone.
            if entry == Entry::Other || is_dead(referral) {
                continue;
            }
            has_root |= entry == Entry::Root;
            if entry == Entry::Root {
                push(&mut one.lists_new, servers().filter(|name| self.new.contains(name)));
                push(&mut one.lists_old, servers().filter(|name| self.old.contains(name)));
                let used = referral.targets.iter().find(|target| target.active);
                one.uses = one.uses.or_else(|| used.map(|target| target.server.clone()));
            }
            let Some(kind) = self.fault(entry, referral) else { continue };
            let expires_at = after(read_at, referral.expires_s.unwrap_or(u64::from(self.ttl_s)));
            is_expired |= expires_at <= self.evidence.now_s;
            // A list that expires before everyone knows the change can come again.
            let at = match self.known_at_s {
                Some(known) if expires_at < known => after(known, u64::from(self.ttl_s)),
                _ => expires_at,
            };
            ready_at = ready_at.max(Some(at));
            match one.reasons.iter_mut().find(|reason| reason.kind == kind) {
                Some(reason) => reason.count += 1,
                None => {
                    let is_meant =
                        |name: &&str| kind != ReasonKind::HoldsOld || self.old.contains(name);
                    let meant = servers().filter(is_meant).take(NAMES_MAX);
                    one.reasons.push(Reason {
                        kind,
                        entry: referral.entry.clone(),
                        servers: meant.map(str::to_owned).collect(),
                        count: 1,
                    });
                }
            }
        }
        // Its mounts stay with the server that they have, whatever its list says. Without a mount it has no entry.
        if cache.is_without_failover && self.rule == GateRule::OldGone && has_root {
            one.reasons.push(reason(ReasonKind::NoFailover, "", 1));
            is_pinned = true;
        }
        // An unclear entry can come again as it is.
        if is_pinned || one.reasons.iter().any(|reason| reason.kind == ReasonKind::Unclear) {
            ready_at = None;
        }
        // Whatever its list says: it has files of an old server's root open.
        let in_use = cache.open_files.iter().find(|file| self.is_in_old_root(file));
        let is_used = self.rule == GateRule::OldGone && in_use.is_some();
        one.is_ready = one.reasons.is_empty() && !is_used;
        if let (true, Some(file)) = (is_used, in_use) {
            one.reasons.push(reason(ReasonKind::OpenFiles, file, one.open_files));
        } else if !one.is_ready {
            one.ready_at_s = ready_at;
            if let Some(file) = cache.open_files.first() {
                one.ready_at_s = None;
                one.reasons.push(reason(ReasonKind::OpenFiles, file, one.open_files));
            } else if is_expired {
                one.reasons.push(reason(ReasonKind::ReadTooLongAgo, "", 1));
            }
        } else if self.known_at_s.is_some_and(|known| read_at < known) {
            one.is_ready = false;
            one.ready_at_s = self.known_at_s;
            one.reasons.push(reason(ReasonKind::ReadTooEarly, "", 1));
        }
        one
    }

    /// Whether a file is below the root's share of an old server: `\\FILE1\Public\a.txt` as clients name it, or
    /// `FILE1: C:\DFSRoots\Public\a.txt` as its server does.
    fn is_in_old_root(&self, file: &str) -> bool {
        let (server, path) = match file.strip_prefix(r"\\") {
            Some(path) => path.split_once('\\').unwrap_or((path, "")),
            None => file.split_once(": ").unwrap_or(("", file)),
        };
        let path = path.split_once(": ").map_or(path, |(path, _)| path);
        let name = self.plan.name.to_lowercase();
        self.old.contains(server) && path.split('\\').any(|part| part.to_lowercase() == name)
    }

    /// What is wrong with a list.
    fn fault(&self, entry: Entry, referral: &CachedReferral) -> Option<ReasonKind> {
        let servers = || referral.targets.iter().map(|target| target.server.as_str());
        let is_empty = referral.targets.is_empty();
        match (self.rule, entry) {
            (_, Entry::Other) => None,
            (_, Entry::Unclear) => Some(ReasonKind::Unclear),
            (GateRule::NewListed, Entry::Root) => {
                (!servers().any(|name| self.new.contains(name))).then_some(ReasonKind::LacksNew)
            }
            (GateRule::OldGone | GateRule::LinksRewritten, Entry::Root) => {
                let is_unknown = |name: &str| !self.new.contains(name);
                match servers().any(|name| self.old.contains(name)) {
                    true => Some(ReasonKind::HoldsOld),
                    // An old server can be listed by its address or an alias.
                    false => (is_empty || servers().any(is_unknown)).then_some(ReasonKind::Unclear),
                }
            }
            (GateRule::ShortTtl, Entry::Root) => match referral.expires_s {
                Some(expires) => (expires > u64::from(LOWERED_TO_S)).then_some(ReasonKind::LongTtl),
                None => Some(ReasonKind::Unclear),
            },
            (GateRule::LinksRewritten, Entry::Link) => {
                match servers().any(|name| self.rewritten.contains(&normal(name))) {
                    true => Some(ReasonKind::OldLink),
                    false => is_empty.then_some(ReasonKind::Unclear),
                }
            }
            (GateRule::NewListed | GateRule::OldGone | GateRule::ShortTtl, Entry::Link) => None,
        }
    }

    /// Servers that answer with the list from before the change, although they should know better.
    fn answerers(&self, verdict: &mut Verdict) {
        let Some(known) = self.known_at_s else { return };
        let mut last: BTreeMap<String, &CapturedReferral> = BTreeMap::new();
        for one in self.evidence.captured {
            let kind = self.entry(&one.path, one.servers.iter().map(String::as_str));
            if kind != Entry::Root || one.at_s < known {
                continue;
            }
            let entry = last.entry(normal(&one.answered_by)).or_insert(one);
            if one.at_s >= entry.at_s {
                *entry = one;
            }
        }
        let stale = last.values().filter(|one| {
            let fault = self.fault(Entry::Root, &as_cached(one, one.at_s));
            // A short remaining time is the client's, not the answer's.
            fault.is_some_and(|fault| fault != ReasonKind::Unclear)
        });
        let stale = stale.map(|one| StaleAnswer {
            answered_by: one.answered_by.clone(),
            at_s: one.at_s,
            servers: one.servers.iter().take(NAMES_MAX).cloned().collect(),
        });
        verdict.stale_answers = stale.collect();
    }

    fn conclude(&self, verdict: &mut Verdict) {
        let now = self.evidence.now_s;
        let count = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let mut because = Vec::new();
        if !verdict.held.is_empty() {
            because.push(format!(
                "{} of {} not ready",
                count(verdict.held.len(), "client"),
                verdict.judged
            ));
        }
        if !verdict.missing.is_empty() {
            because.push(format!(
                "{} expected and missing in the collection",
                count(verdict.missing.len(), "client")
            ));
        }
        if !verdict.stale_answers.is_empty() {
            because.push(format!(
                "{} still answered with the list from before the change",
                count(verdict.stale_answers.len(), "server")
            ));
        }
        let old = self.evidence.unread.iter().filter(|one| one.is_server);
        let old: Vec<_> = old.filter(|one| self.old.contains(&one.name)).collect();
        if let (GateRule::OldGone, [first, ..]) = (self.rule, &old[..]) {
            because.push(format!(
                "open files of {} not read: {}: {}",
                count(old.len(), "old server"),
                first.name,
                first.why
            ));
        }
        if verdict.judged == 0 {
            because.push("there is no cache and no captured referral of the namespace".to_owned());
        }
        verdict.is_go = because.is_empty();
        let all = verdict.held.iter().map(|one| one.ready_at_s);
        let until = all.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        let is_known = verdict.missing.is_empty() && !verdict.is_go;
        verdict.until_s = until.filter(|until| is_known && *until > now);
        if verdict.is_go && !verdict.has_expected {
            let waited = verdict.waited_until_s.is_some_and(|until| now >= until);
            because.push(if waited { "there is no list of expected clients, but the waiting time of the plan is over".to_owned() } else { "there is no list of expected clients: clients that were not collected are not judged".to_owned() });
        }
        if verdict.undated > 0 {
            because.push(format!(
                "{} without a time, taken to be read now",
                count(usize::try_from(verdict.undated).unwrap_or(usize::MAX), "cache")
            ));
        }
        verdict.because = because;
    }
}

/// Adds names that are not there yet, up to a limit.
fn push<'a>(list: &mut Vec<String>, names: impl Iterator<Item = &'a str>) {
    for name in names {
        if list.len() < NAMES_MAX && !list.iter().any(|known| same_server(known, name)) {
            list.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
