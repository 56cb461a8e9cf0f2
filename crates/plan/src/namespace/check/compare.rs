//! An export compared with the directory, and what an export does not have.

use std::collections::HashMap;

use smbscope_findings::KindInfo;

use super::super::form::{Form, folded};
use super::super::model::{Link, State};
use super::super::read::{ReadNamespace, Reading};
use super::super::write::express;
use super::{Evidence, FindingKind, Findings, Severity, Subject, is_same_host, unc};

pub(super) const EXPORT_LOSES: KindInfo = KindInfo::new(
    "export-loses",
    "The export does not have everything",
)
.with_severity(Severity::Medium)
.with_remedies(&[(
    "namespace",
    "export the directory objects too (ldifde), or note these by hand before the root is removed",
)]);
pub(super) const ORPHANED_LINKS: KindInfo =
    KindInfo::new("orphaned-links", "The directory has links that the export does not have")
        .with_severity(Severity::Medium)
        .with_remedies(&[(
            "namespace",
            "delete the objects after a backup (dfsutil diag clean for roots), or export again",
        )]);
pub(super) const MISSING_IN_DIRECTORY: KindInfo =
    KindInfo::new("missing-in-directory", "The export has links that the directory does not have")
        .with_severity(Severity::High)
        .with_remedies(&[("namespace", "export again: one of the two files is old")]);
pub(super) const DIFFERS_FROM_DIRECTORY: KindInfo = KindInfo::new(
    "differs-from-directory",
    "Links of the export and of the directory lead to different targets",
)
.with_severity(Severity::Medium)
.with_remedies(&[("namespace", "export again: one of the two files is old")]);
pub(super) const ORPHANED_OBJECTS: KindInfo =
    KindInfo::new("orphaned-objects", "Link objects of the directory have no namespace")
        .with_severity(Severity::Medium)
        .with_remedies(&[(
            "namespace",
            "delete the objects after a backup, or export their namespace too",
        )]);
pub(super) const ROOT_SERVERS_DIFFER: KindInfo = KindInfo::new(
    "root-servers-differ",
    "The directory's list of namespace servers differs from the blob",
)
.with_severity(Severity::Medium)
.with_remedies(&[(
    "namespace",
    "remove the stale server: dfsutil diag unmapdomroot, or dfsutil target remove",
)]);

/// Whether a form is the directory itself.
fn is_directory(form: Form) -> bool {
    matches!(form, Form::DirectoryV1 | Form::DirectoryV2)
}

fn is_export(form: Form) -> bool {
    matches!(form, Form::Export2003 | Form::Export2008 | Form::View)
}

fn is_same(one: &ReadNamespace, other: &ReadNamespace) -> bool {
    folded(&one.namespace.name) == folded(&other.namespace.name)
        && is_same_host(&one.namespace.host, &other.namespace.host)
}

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let read = subject.read;
    for server in &read.root_servers_differ {
        findings.add(FindingKind::RootServersDiffer, || Evidence {
            target: Some(server.clone()),
            ..subject.root("in one of remoteServerName and the blob")
        });
    }
    if is_directory(read.form) || read.form == Form::Msdfs {
        return;
    }
    let directory = subject
        .reading
        .namespaces
        .iter()
        .find(|other| is_directory(other.form) && is_same(read, other));
    if let Some(directory) = directory {
        differences(subject, findings, directory);
    }
    if is_export(read.form) {
        loses(subject, findings, directory);
    }
}

/// Links of the directory and of the export, and their targets.
fn differences(subject: &Subject<'_>, findings: &mut Findings, directory: &ReadNamespace) {
    let own: HashMap<String, usize> = subject
        .namespace()
        .links
        .iter()
        .enumerate()
        .map(|(number, link)| (folded(&link.path), number))
        .collect();
    let mut theirs: HashMap<String, &Link> = HashMap::new();
    for (number, link) in directory.namespace.links.iter().enumerate() {
        let path = folded(&link.path);
        if !own.contains_key(&path) {
            findings.add(FindingKind::OrphanedLinks, || {
                let place =
                    directory.link_places.get(number).map(|place| subject.reading.place(*place));
                let targets: Vec<String> = link.targets.iter().map(unc).collect();
                Evidence {
                    link: Some(link.path.clone()),
                    target: None,
                    place,
                    detail: format!("only in the directory: {}", targets.join(", ")),
                    repair: None,
                }
            });
        }
        theirs.insert(path, link);
    }
    for (number, link) in subject.namespace().links.iter().enumerate() {
        let Some(other) = theirs.get(&folded(&link.path)) else {
            findings.add(FindingKind::MissingInDirectory, || {
                subject.link(number, "only in the export")
            });
            continue;
        };
        let paths = |link: &Link| {
            let mut all: Vec<(String, State)> =
                link.targets.iter().map(|target| (folded(&unc(target)), target.state)).collect();
            all.sort();
            all
        };
        if paths(link) != paths(other) {
            findings.add(FindingKind::DiffersFromDirectory, || {
                let list =
                    |link: &Link| link.targets.iter().map(unc).collect::<Vec<_>>().join(", ");
                subject.link(
                    number,
                    format!("the export has {}, the directory has {}", list(link), list(other)),
                )
            });
        }
    }
}

/// What the export does not have: what the directory shows, or what no export has.
fn loses(subject: &Subject<'_>, findings: &mut Findings, directory: Option<&ReadNamespace>) {
    let read = subject.read;
    let form = if read.form == Form::View { Form::Export2003 } else { read.form };
    if let Some(directory) = directory {
        for loss in express(&directory.namespace, form).1 {
            if loss.lost == super::super::write::Lost::OtherAttributes {
                continue;
            }
            findings.add(FindingKind::ExportLoses, || {
                let examples = loss.examples.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
                subject.root(format!("{}: {} ({examples})", loss.lost.title(), loss.count))
            });
        }
    }
    let path = subject.path();
    let quoted = crate::script::quote::powershell(&path);
    let mut add = |detail: &str, command: String| {
        let severity = if directory.is_some() { Severity::Low } else { Severity::Medium };
        findings.add_as(FindingKind::ExportLoses, severity, || Evidence {
            repair: Some(command),
            ..subject.root(detail)
        });
    };
    add(
        "priorities of targets",
        format!(
            "Get-DfsnFolder -Path {} | Get-DfsnFolderTarget | ConvertTo-Json",
            crate::script::quote::powershell(&format!("{path}\\*"))
        ),
    );
    add(
        "permissions: of managers of the namespace, and of viewers of each link",
        format!("dfsutil root sddl \"{path}\""),
    );
    let servers: Vec<String> = subject.namespace().targets.iter().map(unc).collect();
    add(
        &format!(
            "namespace servers are in the export and are not imported: {}",
            if servers.is_empty() { "none".to_owned() } else { servers.join(", ") }
        ),
        format!("Get-DfsnRootTarget -Path {quoted}"),
    );
    if form == Form::Export2003 {
        add("access-based enumeration", format!("dfsutil property abe \"{path}\""));
    } else {
        add(
            "in-site referrals and target failback of the root and of links",
            format!("Get-DfsnRoot -Path {quoted} | Select-Object Flags"),
        );
    }
    add(
        "settings of namespace servers: FQDN in referrals, synchronisation",
        "Get-DfsnServerConfiguration -ComputerName SERVER".to_owned(),
    );
}

/// Objects that belong to no namespace of the files.
pub(super) fn orphans(reading: &Reading, findings: &mut Findings) {
    for orphan in &reading.orphans {
        findings.add(FindingKind::OrphanedObjects, || Evidence {
            link: Some(orphan.link.path.clone()),
            target: orphan.link.targets.first().map(unc),
            place: Some(reading.place(orphan.place)),
            detail: orphan.dn.clone(),
            repair: None,
        });
    }
}
