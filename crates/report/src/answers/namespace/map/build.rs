//! The drawing of a namespace as data: what fits, the most used first.

use std::collections::{BTreeMap, HashMap};

use smbscope_plan::namespace::model::{Link, Namespace, State};
use smbscope_plan::namespace::names::{Servers, normal};
use smbscope_plan::namespace::stages::MovePlan;

use crate::answers::namespace::map::{MapLink, MapServer, MapTarget, NamespaceMap, Role};

/// Links, servers of the namespace and of targets that are drawn.
const LINKS_DRAWN: usize = 40;
const SERVERS_DRAWN: usize = 16;
const TARGETS_DRAWN: usize = 24;

/// Servers of link targets with the number of targets, the most used first.
pub(crate) fn target_servers(namespace: &Namespace) -> Vec<(String, u64)> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for target in namespace.links.iter().flat_map(|link| &link.targets) {
        *counts.entry(target.server.as_str()).or_default() += 1;
    }
    // Names that differ in case are one server.
    let mut servers: BTreeMap<String, (String, u64)> = BTreeMap::new();
    let mut names: Vec<_> = counts.into_iter().collect();
    names.sort_unstable();
    for (name, count) in names {
        servers.entry(normal(name)).or_insert_with(|| (name.to_owned(), 0)).1 += count;
    }
    let mut servers: Vec<_> = servers.into_values().collect();
    servers.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    servers
}

/// What is drawn of a namespace, with the roles that a plan gives its servers.
pub(crate) fn map(namespace: &Namespace, plan: Option<&MovePlan>) -> NamespaceMap {
    let servers = servers(namespace, plan);
    let all = target_servers(namespace);
    let old = Servers::new(plan.iter().flat_map(|plan| &plan.old_servers).map(String::as_str));
    let new = Servers::new(plan.iter().flat_map(|plan| &plan.new_servers).map(String::as_str));
    let role = |name: &str| match (old.contains(name), new.contains(name)) {
        (true, _) => Some(Role::Leaves),
        (_, true) => Some(Role::Joins),
        _ => None,
    };
    let targets = all.iter().take(TARGETS_DRAWN).map(|(name, targets)| MapTarget {
        name: name.clone(),
        targets: *targets,
        role: role(name),
    });
    let places = all.iter().take(TARGETS_DRAWN).enumerate();
    let places: HashMap<String, usize> =
        places.map(|(place, (name, _))| (normal(name), place)).collect();
    let (links, undrawn_links) = links(namespace, &places);
    NamespaceMap {
        root: format!(r"\\{}\{}", namespace.host, namespace.name),
        undrawn_servers: servers.len().saturating_sub(SERVERS_DRAWN) as u64,
        servers: servers.into_iter().take(SERVERS_DRAWN).collect(),
        links,
        undrawn_links,
        undrawn_targets: all.len().saturating_sub(TARGETS_DRAWN) as u64,
        targets: targets.collect(),
    }
}

/// Namespace servers: those that leave, stay and join.
fn servers(namespace: &Namespace, plan: Option<&MovePlan>) -> Vec<MapServer> {
    let old = Servers::new(plan.iter().flat_map(|plan| &plan.old_servers).map(String::as_str));
    let present = namespace.targets.iter().map(|target| MapServer {
        name: target.server.clone(),
        role: if old.contains(&target.server) { Role::Leaves } else { Role::Stays },
        is_offline: target.state == State::Offline,
    });
    let joining = plan.iter().flat_map(|plan| &plan.new_servers).map(|name| MapServer {
        name: name.clone(),
        role: Role::Joins,
        is_offline: false,
    });
    present.chain(joining).collect()
}

/// Links by path if they fit, else by their first folder, the largest first.
fn links(namespace: &Namespace, places: &HashMap<String, usize>) -> (Vec<MapLink>, u64) {
    let mut known: HashMap<&str, Option<usize>> = HashMap::new();
    let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
    let is_each = namespace.links.len() <= LINKS_DRAWN;
    for link in &namespace.links {
        let first = link.path.split('\\').next().unwrap_or(&link.path);
        let group = groups.entry(if is_each { &link.path } else { first }).or_default();
        group.links += 1;
        group.online += u64::from(link.state != State::Offline);
        add(group, link, places, &mut known);
    }
    let mut drawn: Vec<_> = groups.into_iter().collect();
    if drawn.len() > LINKS_DRAWN {
        drawn.sort_by(|a, b| b.1.links.cmp(&a.1.links).then_with(|| a.0.cmp(b.0)));
    }
    let left_out = drawn.iter().skip(LINKS_DRAWN).map(|(_, group)| group.links).sum();
    let drawn = drawn.into_iter().take(LINKS_DRAWN).map(|(path, group)| MapLink {
        path: path.to_owned(),
        links: group.links,
        is_offline: group.online == 0,
        to: group.to.into_iter().map(|(place, online)| (place, online == 0)).collect(),
        undrawn: group.undrawn,
    });
    (drawn.collect(), left_out)
}

#[derive(Default)]
struct Group {
    links: u64,
    online: u64,
    /// Targets that are online, by the place of their server.
    to: BTreeMap<usize, u64>,
    undrawn: u64,
}

fn add<'a>(
    group: &mut Group,
    link: &'a Link,
    places: &HashMap<String, usize>,
    known: &mut HashMap<&'a str, Option<usize>>,
) {
    for target in &link.targets {
        let name = target.server.as_str();
        let place = *known.entry(name).or_insert_with(|| places.get(&normal(name)).copied());
        match place {
            Some(place) => {
                *group.to.entry(place).or_default() += u64::from(target.state != State::Offline);
            }
            None => group.undrawn += 1,
        }
    }
}
