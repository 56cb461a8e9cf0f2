//! Targets that are DFS paths themselves, and loops among them.
//!
//! \[MS-DFSC\] 3.1.5.4.5: a client that finds a DFS path as a target asks for another referral.

use std::collections::{HashMap, HashSet};

use smbscope_findings::KindInfo;

use super::super::form::{LEVELS_MAX, folded, split_unc};
use super::super::model::{Namespace, Target};
use super::{Evidence, FindingKind, Findings, Severity, Subject, is_same_host, unc};

pub(super) const INTERLINKS: KindInfo = KindInfo::new("interlinks", "Targets are DFS paths themselves")
    .with_severity(Severity::Low)
    .with_remedies(&[("namespace", "name the server behind the path: each such link costs another referral, and the other namespace must be there during the move")]);
pub(super) const LOOPS: KindInfo = KindInfo::new("loops", "Links lead back to themselves")
    .with_severity(Severity::High)
    .with_remedies(&[("namespace", "name a server and share as the target")]);

/// Links that one path may pass; \[MS-DFSC\] leaves the limit to the client.
const STEPS_MAX: usize = 16;

/// Namespaces and their links by path.
struct Tree<'a> {
    namespaces: Vec<(&'a Namespace, HashMap<String, usize>)>,
    /// Numbers of namespaces by name in lower case.
    by_name: HashMap<String, Vec<usize>>,
}

/// What a path leads to.
enum Step<'a> {
    /// A link, and the rest of the path below it.
    Link(usize, usize, String),
    /// The namespace itself, or a folder above links.
    Folder(&'a Namespace),
    /// A server.
    Server,
}

impl<'a> Tree<'a> {
    fn new(subject: &Subject<'a>) -> Self {
        let mut tree = Tree { namespaces: Vec::new(), by_name: HashMap::new() };
        // The namespace itself first: another form of it says the same.
        tree.add(subject.namespace());
        for read in &subject.reading.namespaces {
            let is_known = tree.namespaces.iter().any(|(known, _)| {
                folded(&known.name) == folded(&read.namespace.name)
                    && is_same_host(&known.host, &read.namespace.host)
            });
            if !is_known {
                tree.add(&read.namespace);
            }
        }
        tree
    }

    fn add(&mut self, namespace: &'a Namespace) {
        self.by_name.entry(folded(&namespace.name)).or_default().push(self.namespaces.len());
        // Links are put into a map only when a target leads here.
        self.namespaces.push((namespace, HashMap::new()));
    }

    /// The number of the namespace that a path begins with.
    fn namespace(&self, host: &str, name: &str) -> Option<usize> {
        let named = self.by_name.get(&folded(name))?;
        named.iter().copied().find(|number| {
            let namespace = self.namespaces[*number].0;
            is_same_host(host, &namespace.host)
                || namespace.targets.iter().any(|root| {
                    is_same_host(host, &root.server) && folded(&root.share) == folded(name)
                })
        })
    }

    fn step(&mut self, path: &str) -> Step<'a> {
        let Some((host, name, below)) = split_unc(path) else { return Step::Server };
        let Some(number) = self.namespace(host, name) else { return Step::Server };
        let (namespace, links) = &mut self.namespaces[number];
        if links.is_empty() {
            links.extend(
                namespace.links.iter().enumerate().map(|(at, link)| (folded(&link.path), at)),
            );
        }
        let path = folded(below);
        // The longest link that is the path or above it.
        let ends = path.match_indices('\\').take(LEVELS_MAX).map(|(at, _)| at).chain([path.len()]);
        let mut ends: Vec<usize> = ends.collect();
        ends.reverse();
        for end in ends {
            if let Some(link) = path.get(..end).and_then(|above| links.get(above)) {
                return Step::Link(number, *link, path.get(end..).unwrap_or_default().to_owned());
            }
        }
        Step::Folder(namespace)
    }
}

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let names: HashSet<String> =
        subject.reading.namespaces.iter().map(|read| folded(&read.namespace.name)).collect();
    let mut tree = None;
    for (number, link) in subject.namespace().links.iter().enumerate() {
        for target in &link.targets {
            let share = target.share.split('\\').next().unwrap_or_default();
            if !names.contains(&folded(share)) && !is_domain(subject, target) {
                continue;
            }
            let tree = tree.get_or_insert_with(|| Tree::new(subject));
            follow(subject, findings, tree, number, target);
        }
    }
}

/// Whether a target's server is the domain of the namespace: then it is a path of a namespace that was not read.
fn is_domain(subject: &Subject<'_>, target: &Target) -> bool {
    subject.domains.contains(&target.server)
}

fn follow(
    subject: &Subject<'_>,
    findings: &mut Findings,
    tree: &mut Tree<'_>,
    number: usize,
    target: &Target,
) {
    let evidence =
        |detail: String| Evidence { target: Some(unc(target)), ..subject.link(number, detail) };
    let mut path = unc(target);
    let mut passed = vec![(0_usize, number)];
    let mut trail = vec![subject.link_path(number)];
    loop {
        match tree.step(&path) {
            Step::Server => {
                let is_other = passed.len() == 1 && is_domain(subject, target);
                if passed.len() > 1 || is_other {
                    findings.add(FindingKind::Interlinks, || {
                        let detail = if is_other {
                            "a path of a namespace that was not read".to_owned()
                        } else {
                            format!("leads to {path} over {}", trail[1..].join(", "))
                        };
                        evidence(detail)
                    });
                }
                return;
            }
            Step::Folder(namespace) => {
                // The folder has the link itself below it, if it is one of this namespace.
                let is_own = std::ptr::eq(namespace, subject.namespace());
                let below = folded(split_unc(&path).map_or("", |parts| parts.2));
                let own = folded(&subject.namespace().links[number].path);
                let holds = is_own
                    && (below.is_empty() || own == below || own.starts_with(&format!("{below}\\")));
                let trouble = if holds { FindingKind::Loops } else { FindingKind::Interlinks };
                findings.add(trouble, || {
                    evidence(format!(
                        "leads to the folder {path} of the namespace {}",
                        namespace.name
                    ))
                });
                return;
            }
            Step::Link(at, link, rest) => {
                if passed.contains(&(at, link)) || passed.len() >= STEPS_MAX {
                    findings.add(FindingKind::Loops, || evidence(trail.join(" -> ")));
                    return;
                }
                passed.push((at, link));
                trail.push(path.clone());
                let targets = &tree.namespaces[at].0.links[link].targets;
                let Some(next) = targets.first() else { return };
                path = format!("{}{rest}", unc(next));
            }
        }
    }
}
