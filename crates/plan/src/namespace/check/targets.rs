//! Targets: how many, online or not, twice, written differently, and whether their shares exist.

use std::collections::HashMap;

use super::super::form::folded;
use super::super::model::{Kind, State, Target};
use super::super::read::ShareList;
use super::{Evidence, Findings, Subject, Trouble, is_same_host, label, unc};
use crate::quote::powershell;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    root(subject, findings);
    let mut lists: HashMap<String, Vec<&ShareList>> = HashMap::new();
    for list in &subject.reading.shares {
        lists.entry(label(&list.server)).or_default().push(list);
    }
    for (number, link) in subject.namespace().links.iter().enumerate() {
        let targets = link.targets.as_slice();
        if let [only] = targets {
            findings.add(Trouble::SingleTarget, || of(subject, number, only, "the only target"));
        }
        states(subject, findings, number, targets);
        if targets.len() > 1 {
            spelling(subject, findings, number, targets);
        }
        for target in targets {
            trailing(subject, findings, number, target);
            if target.share.contains('&') {
                findings
                    .add(Trouble::Ampersands, || of(subject, number, target, "the target has &"));
            }
            if let Some(known) = lists.get(&label(&target.server))
                && let Some(detail) = missing(known, target)
            {
                findings.add(Trouble::MissingShares, || of(subject, number, target, detail));
            }
        }
    }
    for target in &subject.namespace().targets {
        if let Some(detail) =
            lists.get(&label(&target.server)).and_then(|known| missing(known, target))
        {
            findings.add(Trouble::MissingShares, || Evidence {
                target: Some(unc(target)),
                ..subject.root(detail)
            });
        }
    }
}

/// Evidence about a target of a link.
fn of(subject: &Subject<'_>, link: usize, target: &Target, detail: impl Into<String>) -> Evidence {
    Evidence { target: Some(unc(target)), ..subject.link(link, detail) }
}

fn root(subject: &Subject<'_>, findings: &mut Findings) {
    let namespace = subject.namespace();
    if let [only] = namespace.targets.as_slice()
        && matches!(namespace.kind, None | Some(Kind::DomainV1 | Kind::DomainV2))
    {
        findings.add(Trouble::SingleServer, || Evidence {
            target: Some(unc(only)),
            ..subject.root("without it no client gets a referral")
        });
    }
    for target in &namespace.targets {
        if target.state != State::Online {
            findings.add(Trouble::OfflineTargets, || Evidence {
                target: Some(unc(target)),
                repair: Some(format!(
                    "Set-DfsnRootTarget -Path {} -TargetPath {} -State Online",
                    powershell(&subject.path()),
                    powershell(&unc(target))
                )),
                ..subject.root("a namespace server")
            });
        }
        let is_domain = matches!(namespace.kind, Some(Kind::DomainV1 | Kind::DomainV2))
            || (namespace.kind.is_none() && namespace.targets.len() > 1);
        if is_domain && folded(&target.share) != folded(&namespace.name) {
            findings.add(Trouble::RootShareNames, || Evidence {
                target: Some(unc(target)),
                ..subject.root(format!("the namespace is {}", namespace.name))
            });
        }
    }
}

fn states(subject: &Subject<'_>, findings: &mut Findings, number: usize, targets: &[Target]) {
    let mut online = 0;
    for target in targets {
        match target.state {
            State::Online => online += 1,
            State::Offline => findings.add(Trouble::OfflineTargets, || Evidence {
                repair: Some(format!(
                    "Set-DfsnFolderTarget -Path {} -TargetPath {} -State Online",
                    powershell(&subject.link_path(number)),
                    powershell(&unc(target))
                )),
                ..of(subject, number, target, "offline")
            }),
            State::Other(code) => findings.add(Trouble::UnknownStates, || {
                of(subject, number, target, format!("the target's state is {code}"))
            }),
        }
    }
    if online == 0 && !targets.is_empty() {
        findings.add(Trouble::NothingOnline, || {
            subject.link(number, format!("{} targets, none is online", targets.len()))
        });
    }
}

/// Targets of one link that are the same, or nearly.
fn spelling(subject: &Subject<'_>, findings: &mut Findings, number: usize, targets: &[Target]) {
    for (at, target) in targets.iter().enumerate() {
        for other in targets.iter().take(at) {
            let is_same_server = is_same_host(&target.server, &other.server);
            let (share, before) = (folded(&target.share), folded(&other.share));
            if is_same_server && share == before {
                findings.add(Trouble::DuplicateTargets, || Evidence {
                    repair: Some(format!(
                        "Remove-DfsnFolderTarget -Path {} -TargetPath {}",
                        powershell(&subject.link_path(number)),
                        powershell(&unc(target))
                    )),
                    ..of(subject, number, target, format!("also {}", unc(other)))
                });
            } else if share == before && target.share != other.share {
                findings.add(Trouble::TargetsDifferInCase, || {
                    of(subject, number, target, format!("the other target is {}", unc(other)))
                });
            } else if is_below(&share, &before) || is_below(&before, &share) {
                findings.add(Trouble::TrailingParts, || {
                    let detail = format!("another depth than {}", unc(other));
                    of(subject, number, target, detail)
                });
            }
        }
    }
}

fn is_below(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('\\'))
}

fn trailing(subject: &Subject<'_>, findings: &mut Findings, number: usize, target: &Target) {
    let share = &target.share;
    if share.ends_with([' ', '.', '\\'])
        || share.contains("\\\\")
        || target.server.trim() != target.server
    {
        findings.add(Trouble::TrailingParts, || {
            of(
                subject,
                number,
                target,
                format!("{:?} ends in a space, a dot or a backslash, or has two", unc(target)),
            )
        });
    }
}

/// Why the share of a target does not exist, if lists of shares say so.
fn missing(lists: &[&ShareList], target: &Target) -> Option<String> {
    let share = target.share.split('\\').next().unwrap_or_default();
    let mut known = lists.iter().filter(|list| is_same_host(&list.server, &target.server));
    let mut detail = None;
    for list in known.by_ref() {
        match list.has(share) {
            Some(true) => return None,
            Some(false) => {
                let message = list.failures.iter().find(|(name, _)| folded(name) == folded(share));
                detail = Some(match message {
                    Some((_, message)) => format!("robocopy: {message}"),
                    None => format!("{} has no share {share}", list.server),
                });
            }
            None => {}
        }
    }
    detail
}
