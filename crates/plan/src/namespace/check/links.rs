//! Paths of links: twice, below each other, with names that servers or tools refuse.

use std::collections::HashMap;

use smbscope_findings::KindInfo;

use super::super::form::{LEVELS_MAX, folded};
use super::super::model::State;
use super::{Evidence, FindingKind, Findings, Severity, Subject};

pub(super) const DUPLICATE_LINKS: KindInfo = KindInfo::new("duplicate-links", "Links are there twice")
    .with_severity(Severity::High)
    .with_remedies(&[("namespace", "keep one of them in the file: a live namespace has each path once, without regard to case, and an import stops or merges")]);
pub(super) const NESTED_LINKS: KindInfo = KindInfo::new("nested-links", "Links are below other links")
    .with_severity(Severity::High)
    .with_remedies(&[("namespace", "move the inner link to another path, or make the outer one a folder without targets: clients that follow the outer link never ask for the inner one")]);
pub(super) const EMPTY_LINKS: KindInfo = KindInfo::new("empty-links", "Links have no target")
    .with_severity(Severity::Medium)
    .with_remedies(&[("namespace", "remove the link, or add a target")]);
pub(super) const FORBIDDEN_NAMES: KindInfo = KindInfo::new("forbidden-names", "Names have characters that servers refuse")
    .with_severity(Severity::High)
    .with_remedies(&[("namespace", "rename the link: \" * / : < > ? | and control characters are refused, and parts may not be . or ..")]);
pub(super) const DIFFICULT_NAMES: KindInfo = KindInfo::new("difficult-names", "Names that tools break")
    .with_severity(Severity::Low)
    .with_remedies(&[("namespace", "test these links first after an import; quote them in every command ('...' in PowerShell, with -LiteralPath where it exists)")]);
pub(super) const AMPERSANDS: KindInfo = KindInfo::new("ampersands", "Names have &, which dfsutil writes as it is and cannot import")
    .with_severity(Severity::High)
    .with_remedies(&[("namespace", "import the rewritten export, in which it is &amp; of XML, or make these links with New-DfsnFolder")]);
pub(super) const OFFLINE_LINKS: KindInfo = KindInfo::new("offline-links", "Links are offline")
    .with_severity(Severity::Medium)
    .with_remedies(&[(
        "namespace",
        "remove them, or set them online: Set-DfsnFolder -State Online",
    )]);
pub(super) const UNKNOWN_STATES: KindInfo =
    KindInfo::new("unknown-states", "States are neither online nor offline")
        .with_severity(Severity::Medium)
        .with_remedies(&[(
            "namespace",
            "read the state again on the server: Get-DfsnFolder, Get-DfsnFolderTarget",
        )]);

/// Characters that Windows refuses in a part of a link's path (\[MS-DFSNM\] 3.1.4.1.3, behaviour note).
fn is_forbidden(c: char) -> bool {
    matches!(c, '"' | '*' | '/' | ':' | '<' | '>' | '?' | '|') || u32::from(c) < 0x20
}

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let links = &subject.namespace().links;
    let mut first: HashMap<String, usize> = HashMap::with_capacity(links.len());
    for (number, link) in links.iter().enumerate() {
        if let Some(before) = first.insert(folded(&link.path), number) {
            findings.add(FindingKind::DuplicateLinks, || {
                let other = &links[before].path;
                let how = if *other == link.path { "the same path" } else { "another case" };
                let place = subject.link_place(before);
                let detail = format!("also at {place} ({how})");
                // DFS compares without case: the live namespace has one of them, which a command would remove.
                let repair = format!(
                    "in the file: keep one of the two, with the targets that are meant ({place} and {})",
                    subject.link_place(number)
                );
                Evidence { repair: Some(repair), ..subject.link(number, detail) }
            });
        }
    }
    for (number, link) in links.iter().enumerate() {
        let path = folded(&link.path);
        for (at, _) in path.match_indices('\\').take(LEVELS_MAX) {
            let Some(above) = path.get(..at).and_then(|above| first.get(above)) else { continue };
            findings.add(FindingKind::NestedLinks, || {
                let outer = &links[*above].path;
                let place = subject.link_place(*above);
                subject.link(number, format!("below the link {outer} ({place})"))
            });
        }
        names(subject, findings, number, &link.path);
        match link.state {
            State::Online => {}
            State::Offline => findings.add(FindingKind::OfflineLinks, || Evidence {
                repair: Some(format!(
                    "Set-DfsnFolder -Path {} -State Online",
                    crate::script::quote::powershell(&subject.link_path(number))
                )),
                ..subject.link(number, "offline: clients get no target")
            }),
            State::Other(code) => findings.add(FindingKind::UnknownStates, || {
                subject.link(number, format!("the link's state is {code}"))
            }),
        }
        if link.targets.is_empty() {
            findings.add(FindingKind::EmptyLinks, || subject.link(number, "no target"));
        }
    }
}

/// What is difficult about a name.
fn names(subject: &Subject<'_>, findings: &mut Findings, number: usize, path: &str) {
    if path
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'\\' | b'.'))
        && !path.split('\\').any(|part| matches!(part, "" | "." | ".."))
    {
        return;
    }
    let mut forbidden: Vec<char> = path.chars().filter(|c| is_forbidden(*c)).collect();
    forbidden.sort_unstable();
    forbidden.dedup();
    let has_bad_part = path.split('\\').any(|part| matches!(part, "" | "." | ".."));
    if !forbidden.is_empty() || has_bad_part {
        findings.add(FindingKind::ForbiddenNames, || {
            let detail = if has_bad_part {
                "a part of the path is empty, . or ..".to_owned()
            } else {
                let list: Vec<String> = forbidden.iter().map(|c| format!("{c:?}")).collect();
                format!("it has {}", list.join(", "))
            };
            subject.link(number, detail)
        });
    }
    if path.contains('&') {
        findings.add(FindingKind::Ampersands, || subject.link(number, "the link's name has &"));
    }
    let mut why = Vec::new();
    if path.split('\\').any(|part| part.trim() != part || part.ends_with('.')) {
        why.push("a part begins or ends with a space, or ends with a dot");
    }
    if path.contains(' ') {
        why.push("spaces (quotes in every command)");
    }
    if path.contains(['[', ']']) {
        why.push("brackets (wildcards of PowerShell)");
    }
    if path.contains(['%', '^', '!', '$', '`', '\'', ';', ',', '(', ')', '{', '}', '=', '@', '#']) {
        why.push("characters with a meaning for cmd or PowerShell");
    }
    if !path.is_ascii() {
        why.push("characters outside ASCII (dfsutil writes its output in the console's code page)");
    }
    if !why.is_empty() {
        // Spaces alone are usual.
        let severity = if why.len() == 1 && path.contains(' ') && !why[0].starts_with("a part") {
            Severity::Low
        } else {
            Severity::Medium
        };
        findings
            .add_as(FindingKind::DifficultNames, severity, || subject.link(number, why.join("; ")));
    }
}
