//! What differs between two namespaces.
//!
//! Links and targets are the same if their paths are, without regard to case; a target that has another path at the place
//! of one that is gone is a change of it.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::form::folded;
use super::model::{Flags, Link, Namespace, State, Target};

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Domain or name of the root.
    Path,
    Kind,
    LinkAdded,
    LinkRemoved,
    Target,
    TargetState,
    Priority,
    State,
    Ttl,
    Comment,
    Flags,
    Permissions,
    Other,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Path of the link; none for the root.
    pub link: Option<String>,
    pub what: What,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// All changes: those of the root, then those of links in the order of `after`, then removed links.
pub fn difference(before: &Namespace, after: &Namespace) -> Vec<Change> {
    let mut changes = Changes { all: Vec::new(), link: None };
    let path = |namespace: &Namespace| format!("\\\\{}\\{}", namespace.host, namespace.name);
    changes.texts(What::Path, &path(before), &path(after));
    let kind = |namespace: &Namespace| namespace.kind.map(|kind| format!("{kind:?}"));
    changes.options(What::Kind, kind(before), kind(after));
    changes.texts(What::State, &state(before.state), &state(after.state));
    let ttl = |ttl_s: Option<u32>| ttl_s.map(|ttl_s| format!("{ttl_s} s"));
    changes.options(What::Ttl, ttl(before.ttl_s), ttl(after.ttl_s));
    changes.options(What::Comment, before.comment.clone(), after.comment.clone());
    changes.texts(What::Flags, &flags(&before.flags), &flags(&after.flags));
    changes.others(&before.other, &after.other);
    changes.targets(&before.targets, &after.targets);
    // Several links may have one path: each is used once.
    let mut old: HashMap<String, Vec<&Link>> = HashMap::with_capacity(before.links.len());
    for link in before.links.iter().rev() {
        old.entry(folded(&link.path)).or_default().push(link);
    }
    for link in &after.links {
        changes.link = Some(link.path.clone());
        let Some(other) = old.get_mut(&folded(&link.path)).and_then(Vec::pop) else {
            changes.options(What::LinkAdded, None, Some(targets(&link.targets)));
            continue;
        };
        changes.texts(What::Path, &other.path, &link.path);
        changes.texts(What::State, &state(other.state), &state(link.state));
        changes.options(What::Ttl, ttl(other.ttl_s), ttl(link.ttl_s));
        if other.comment != link.comment {
            changes.options(What::Comment, other.comment.clone(), link.comment.clone());
        }
        changes.texts(What::Flags, &flags(&other.flags), &flags(&link.flags));
        if other.security != link.security {
            let bytes =
                |link: &Link| link.security.as_ref().map(|bytes| format!("{} bytes", bytes.len()));
            changes.push(What::Permissions, bytes(other), bytes(link));
        }
        changes.others(&other.other, &link.other);
        changes.targets(&other.targets, &link.targets);
    }
    for link in &before.links {
        let left = old.get_mut(&folded(&link.path));
        if left.is_some_and(|left| left.pop().is_some()) {
            changes.link = Some(link.path.clone());
            changes.options(What::LinkRemoved, Some(targets(&link.targets)), None);
        }
    }
    changes.all
}

/// The changes as lines that begin with `-` and `+` below the path of each link.
pub fn text(changes: &[Change]) -> String {
    let mut out = String::new();
    let mut last: Option<&Option<String>> = None;
    for change in changes {
        if last != Some(&change.link) {
            let _ = writeln!(out, "  {}", change.link.as_deref().unwrap_or("(root)"));
            last = Some(&change.link);
        }
        let what = match change.what {
            What::Target => "",
            What::Path => "path ",
            What::Kind => "mode ",
            What::LinkAdded | What::LinkRemoved => "link ",
            What::TargetState => "target ",
            What::Priority => "priority ",
            What::State => "state ",
            What::Ttl => "TTL ",
            What::Comment => "comment ",
            What::Flags => "flags ",
            What::Permissions => "permissions ",
            What::Other => "",
        };
        for (sign, value) in [('-', &change.before), ('+', &change.after)] {
            if let Some(value) = value {
                let _ = writeln!(out, "{sign}   {what}{value}");
            }
        }
    }
    out
}

fn state(state: State) -> String {
    match state {
        State::Online => "online".to_owned(),
        State::Offline => "offline".to_owned(),
        State::Other(code) => format!("{code}"),
    }
}

fn flags(flags: &Flags) -> String {
    let names = [
        ("site costing", flags.site_costing),
        ("in-site referrals", flags.insite_referrals),
        ("root scalability", flags.root_scalability),
        ("access-based enumeration", flags.access_based_enumeration),
        ("target failback", flags.target_failback),
    ];
    let set = names.iter().filter(|(_, flag)| *flag == Some(true)).map(|(name, _)| *name);
    let set: Vec<&str> = set.collect();
    if set.is_empty() { "none".to_owned() } else { set.join(", ") }
}

fn unc(target: &Target) -> String {
    format!("\\\\{}\\{}", target.server, target.share)
}

fn targets(targets: &[Target]) -> String {
    targets.iter().map(unc).collect::<Vec<_>>().join(", ")
}

struct Changes {
    all: Vec<Change>,
    link: Option<String>,
}

impl Changes {
    fn push(&mut self, what: What, before: Option<String>, after: Option<String>) {
        self.all.push(Change { link: self.link.clone(), what, before, after });
    }

    fn options(&mut self, what: What, before: Option<String>, after: Option<String>) {
        if before != after {
            self.push(what, before, after);
        }
    }

    fn texts(&mut self, what: What, before: &str, after: &str) {
        if before != after {
            self.push(what, Some(before.to_owned()), Some(after.to_owned()));
        }
    }

    fn others(
        &mut self,
        before: &std::collections::BTreeMap<String, String>,
        after: &std::collections::BTreeMap<String, String>,
    ) {
        if before == after {
            return;
        }
        for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
            let value = |other: &std::collections::BTreeMap<String, String>| {
                other.get(key).map(|value| format!("{key} = {value}"))
            };
            self.options(What::Other, value(before), value(after));
        }
    }

    fn targets(&mut self, before: &[Target], after: &[Target]) {
        if before == after {
            return;
        }
        let is_same = |one: &Target, other: &Target| {
            one.server.eq_ignore_ascii_case(&other.server)
                && folded(&one.share) == folded(&other.share)
        };
        let mut gone: Vec<Option<&Target>> = before.iter().map(Some).collect();
        let mut pairs: Vec<(Option<&Target>, &Target)> = Vec::new();
        for target in after {
            let same = gone
                .iter()
                .position(|old| old.is_some_and(|old| is_same(old, target)))
                .and_then(|at| gone[at].take());
            pairs.push((same, target));
        }
        // What has no counterpart is a change of the one at its place, if that is gone.
        for (at, (old, _)) in pairs.iter_mut().enumerate() {
            if old.is_none() {
                *old = gone.get_mut(at).and_then(Option::take);
            }
        }
        for (old, target) in pairs {
            let Some(old) = old else {
                self.push(What::Target, None, Some(unc(target)));
                continue;
            };
            self.texts(What::Target, &unc(old), &unc(target));
            let named = |target: &Target, value: String| format!("{} {value}", unc(target));
            if old.state != target.state {
                self.push(
                    What::TargetState,
                    Some(named(old, state(old.state))),
                    Some(named(target, state(target.state))),
                );
            }
            let priority = |target: &Target| {
                (target.priority_class.unwrap_or_default(), target.priority_rank.unwrap_or(0))
            };
            if priority(old) != priority(target) {
                let text = |target: &Target| {
                    let (class, rank) = priority(target);
                    named(target, format!("{class:?} {rank}"))
                };
                self.push(What::Priority, Some(text(old)), Some(text(target)));
            }
            self.others(&old.other, &target.other);
        }
        for old in gone.into_iter().flatten() {
            self.push(What::Target, Some(unc(old)), None);
        }
    }
}
