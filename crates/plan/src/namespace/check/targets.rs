//! Targets: how many, online or not, twice, written differently, and whether their shares exist.

use std::collections::HashMap;

use smbscope_findings::KindInfo;

use super::super::form::folded;
use super::super::model::{Kind, State, Target};
use super::super::read::ShareList;
use super::{Evidence, FindingKind, Findings, Severity, Subject, is_same_host, label, unc};
use crate::script::quote::powershell;

pub(super) const SINGLE_TARGET: KindInfo = KindInfo::new("single-target", "Links have one target")
    .with_severity(Severity::Low)
    .with_remedies(&[(
        "namespace",
        "nothing takes over when its server fails: decide whether that is meant",
    )]);
pub(super) const SINGLE_SERVER: KindInfo =
    KindInfo::new("single-server", "The namespace has one namespace server")
        .with_severity(Severity::Medium)
        .with_remedies(&[("namespace", "add a second one: New-DfsnRootTarget")]);
pub(super) const OFFLINE_TARGETS: KindInfo = KindInfo::new("offline-targets", "Targets are offline")
    .with_severity(Severity::Medium)
    .with_remedies(&[("namespace", "remove them, or set them online (Set-DfsnFolderTarget -State Online) before the move: they are moved as they are")]);
pub(super) const NOTHING_ONLINE: KindInfo =
    KindInfo::new("nothing-online", "No target of a link is online")
        .with_severity(Severity::High)
        .with_remedies(&[("namespace", "set a target online, or remove the link")]);
pub(super) const DUPLICATE_TARGETS: KindInfo =
    KindInfo::new("duplicate-targets", "A link has one target twice")
        .with_severity(Severity::Medium)
        .with_remedies(&[(
            "namespace",
            "remove one of them: clients that fail over try the same server again",
        )]);
pub(super) const TARGETS_DIFFER_IN_CASE: KindInfo =
    KindInfo::new("targets-differ-in-case", "Targets of a link differ in case only")
        .with_severity(Severity::Low)
        .with_remedies(&[(
            "namespace",
            "write them alike: servers that are not Windows may distinguish case",
        )]);
pub(super) const TRAILING_PARTS: KindInfo = KindInfo::new(
    "trailing-parts",
    "Targets end in a space, a dot or a backslash, or lead to different depths of one share",
)
.with_severity(Severity::Medium)
.with_remedies(&[(
    "namespace",
    "write the path as the server has it: clients that fail over see another folder",
)]);
pub(super) const MISSING_SHARES: KindInfo =
    KindInfo::new("missing-shares", "Shares of targets do not exist")
        .with_severity(Severity::High)
        .with_remedies(&[(
            "namespace",
            "share the folder, or correct the target; clients get STATUS_BAD_NETWORK_NAME",
        )]);
pub(super) const STALE_SITES: KindInfo = KindInfo::new(
    "stale-sites",
    "One server has different sites in the namespace",
)
.with_severity(Severity::Medium)
.with_remedies(&[(
    "namespace",
    "see in which site the server is (nltest /server:SERVER /dsgetsite), and remove and add the targets with the other one, or let old roots read all sites again: dfsutil /root:ROOT /updatewin2kstaticsitetable (Microsoft KB 260857); until then clients get targets in the wrong order",
)]);
pub(super) const ROOT_SHARE_NAMES: KindInfo =
    KindInfo::new("root-share-names", "Namespace servers share the root under another name")
        .with_severity(Severity::High)
        .with_remedies(&[(
            "namespace",
            "a domain-based namespace requires a share with its own name on every namespace server",
        )]);

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    root(subject, findings);
    sites(subject, findings);
    let mut lists: HashMap<String, Vec<&ShareList>> = HashMap::new();
    for list in &subject.reading.shares {
        lists.entry(label(&list.server)).or_default().push(list);
    }
    for (number, link) in subject.namespace().links.iter().enumerate() {
        let targets = link.targets.as_slice();
        if let [only] = targets {
            findings
                .add(FindingKind::SingleTarget, || of(subject, number, only, "the only target"));
        }
        states(subject, findings, number, targets);
        if targets.len() > 1 {
            spelling(subject, findings, number, targets);
        }
        for target in targets {
            trailing(subject, findings, number, target);
            if target.share.contains('&') {
                findings.add(FindingKind::Ampersands, || {
                    of(subject, number, target, "the target has &")
                });
            }
            if let Some(known) = lists.get(&label(&target.server))
                && let Some(detail) = missing(known, target)
            {
                findings.add(FindingKind::MissingShares, || of(subject, number, target, detail));
            }
        }
    }
    for target in &subject.namespace().targets {
        if let Some(detail) =
            lists.get(&label(&target.server)).and_then(|known| missing(known, target))
        {
            findings.add(FindingKind::MissingShares, || Evidence {
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

/// The site that is stored with a target, by the key of the reader of `dfsutil /view`.
const SITE: &str = "view:site";

/// Servers with several sites: some target was added before the server moved.
fn sites(subject: &Subject<'_>, findings: &mut Findings) {
    let namespace = subject.namespace();
    let roots = namespace.targets.iter().map(|target| (None, target));
    let of_links = namespace.links.iter().enumerate();
    let of_links =
        of_links.flat_map(|(at, link)| link.targets.iter().map(move |target| (Some(at), target)));
    // Where each server is first, and whether another site was found.
    let mut first: HashMap<String, (Option<usize>, &Target, &str)> = HashMap::new();
    for (link, target) in roots.chain(of_links) {
        let Some(site) = target.other.get(SITE).filter(|site| !site.is_empty()) else { continue };
        let known = first.entry(label(&target.server)).or_insert((link, target, site));
        if !is_same_host(&known.1.server, &target.server) || known.2.eq_ignore_ascii_case(site) {
            continue;
        }
        findings.add(FindingKind::StaleSites, || {
            let place = known.0.map_or_else(|| subject.path(), |at| subject.link_path(at));
            let detail = format!("site {site} here, site {} at {place}", known.2);
            match link {
                Some(at) => of(subject, at, target, detail),
                None => Evidence { target: Some(unc(target)), ..subject.root(detail) },
            }
        });
    }
}

fn root(subject: &Subject<'_>, findings: &mut Findings) {
    let namespace = subject.namespace();
    if let [only] = namespace.targets.as_slice()
        && matches!(namespace.kind, None | Some(Kind::DomainV1 | Kind::DomainV2))
    {
        findings.add(FindingKind::SingleServer, || Evidence {
            target: Some(unc(only)),
            ..subject.root("without it no client gets a referral")
        });
    }
    for target in &namespace.targets {
        if target.state != State::Online {
            findings.add(FindingKind::OfflineTargets, || Evidence {
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
            findings.add(FindingKind::RootShareNames, || Evidence {
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
            State::Offline => findings.add(FindingKind::OfflineTargets, || Evidence {
                repair: Some(format!(
                    "Set-DfsnFolderTarget -Path {} -TargetPath {} -State Online",
                    powershell(&subject.link_path(number)),
                    powershell(&unc(target))
                )),
                ..of(subject, number, target, "offline")
            }),
            State::Other(code) => findings.add(FindingKind::UnknownStates, || {
                of(subject, number, target, format!("the target's state is {code}"))
            }),
        }
    }
    if online == 0 && !targets.is_empty() {
        findings.add(FindingKind::NothingOnline, || {
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
                findings.add(FindingKind::DuplicateTargets, || Evidence {
                    repair: Some(duplicate_repair(subject, number, target, other)),
                    ..of(subject, number, target, format!("also {}", unc(other)))
                });
            } else if share == before && target.share != other.share {
                findings.add(FindingKind::TargetsDifferInCase, || {
                    of(subject, number, target, format!("the other target is {}", unc(other)))
                });
            } else if is_below(&share, &before) || is_below(&before, &share) {
                findings.add(FindingKind::TrailingParts, || {
                    let detail = format!("another depth than {}", unc(other));
                    of(subject, number, target, detail)
                });
            }
        }
    }
}

/// How one of two equal targets is removed. Targets that differ in case only are one in the live namespace: a command would
/// remove it.
fn duplicate_repair(subject: &Subject<'_>, link: usize, target: &Target, other: &Target) -> String {
    if folded(&unc(target)) == folded(&unc(other)) {
        let place = subject.link_place(link);
        return format!("in the file: keep one of the two targets ({place})");
    }
    format!(
        "Remove-DfsnFolderTarget -Path {} -TargetPath {}",
        powershell(&subject.link_path(link)),
        powershell(&unc(target))
    )
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
        findings.add(FindingKind::TrailingParts, || {
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
