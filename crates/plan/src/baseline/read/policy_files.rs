//! Which group policies an input has: Backup.xml, bkupInfo.xml, manifest.xml and gpreport.xml.
//!
//! A file belongs to the policy whose Backup.xml, bkupInfo.xml or gpreport.xml is in the nearest folder above it. Names of
//! folders are compared without case: `DomainSysvol/GPO/Machine` is written in every one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::sink::{Output, Sink};
use super::{Format, Item};
use crate::input::text::{decode, repair};
use crate::input::xml::{self, Node};

/// A group policy that the input names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub name: String,
    /// GUID of the policy, in braces.
    pub guid: Option<String>,
    /// GUID of the backup, in braces.
    pub backup: Option<String>,
    pub domain: Option<String>,
    /// Where it is linked, if a report says so.
    pub links: Vec<Link>,
    /// The folder in the input that has its files; empty for the top.
    pub folder: String,
}

/// A link of a policy to a domain, site or organisational unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub place: String,
    /// 1 is applied last, and wins. Only reports of a result (RSoP) have it.
    pub order: Option<u32>,
    pub is_enabled: bool,
    pub is_enforced: bool,
}

/// Policies by the folder of their files, in lower case.
#[derive(Debug, Default)]
pub(super) struct Policies {
    by_folder: BTreeMap<String, Policy>,
    /// Formats of all files below these folders.
    formats: BTreeMap<String, BTreeSet<Format>>,
    /// Those that only a list names.
    others: Vec<Policy>,
}

pub(super) fn collect(items: &[Item<'_>], output: &mut Output) -> Policies {
    let mut policies = Policies::default();
    for item in items {
        if !matches!(
            item.format,
            Format::GroupPolicyBackup | Format::BackupInfo | Format::GroupPolicyReport
        ) {
            continue;
        }
        let document = xml::parse(&decode(&item.bytes).text);
        if let Some((line, message)) = document.damage {
            output.damage(&item.name, line, message);
        }
        let folder = folder_of(&item.name);
        let root = document.root;
        match root.name.as_str() {
            "Backups" => {
                policies
                    .others
                    .extend(root.children.iter().map(|node| from_info(node, &item.name)));
            }
            "GPOS" | "report" | "Rsop" => {
                let reports = root.below("GPO");
                policies.others.extend(reports.into_iter().map(|node| from_report(node, folder)));
            }
            "GPO" => policies.merge(from_report(&root, folder)),
            "BackupInst" => policies.merge(from_info(&root, folder)),
            _ => policies.merge(from_backup(&root, folder)),
        }
    }
    for item in items {
        let lower = item.name.to_lowercase();
        for folder in folders_above(&lower) {
            if policies.by_folder.contains_key(folder) {
                policies.formats.entry(folder.to_owned()).or_default().insert(item.format);
            }
        }
    }
    policies
}

impl Policies {
    fn merge(&mut self, found: Policy) {
        let known = self
            .by_folder
            .entry(found.folder.to_lowercase())
            .or_insert_with(|| Policy { folder: found.folder.clone(), ..Policy::default() });
        if known.name.is_empty() {
            known.name = found.name;
        }
        known.guid = known.guid.take().or(found.guid);
        known.backup = known.backup.take().or(found.backup);
        known.domain = known.domain.take().or(found.domain);
        known.links.extend(found.links);
    }

    /// Name of the policy that a file belongs to.
    pub(super) fn of_file(&self, name: &str) -> Option<&str> {
        let lower = name.to_lowercase();
        let policy = folders_above(&lower).find_map(|folder| self.by_folder.get(folder))?;
        Some(policy.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Formats of the files below the folder of a file.
    pub(super) fn files_next_to(&self, name: &str) -> Option<&BTreeSet<Format>> {
        self.formats.get(&folder_of(name).to_lowercase())
    }

    pub(super) fn only_name(&self) -> Option<String> {
        let mut policies = self.by_folder.values().chain(&self.others).map(|policy| &policy.name);
        let first = policies.next().filter(|name| !name.is_empty())?;
        policies.all(|name| name == first).then(|| first.clone())
    }

    /// All of them; those of a list only if no backup describes them.
    pub(super) fn take(self) -> Vec<Policy> {
        let mut policies: Vec<Policy> = self.by_folder.into_values().collect();
        for other in self.others {
            let is_known = policies.iter().any(|known| {
                known.guid.is_some() && known.guid == other.guid && known.name == other.name
            });
            if !is_known {
                policies.push(other);
            }
        }
        policies
    }
}

/// What stands before the last slash.
pub(super) fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// All folders above a file, the nearest one first and the top (empty) last.
fn folders_above(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder_of(name)), |folder| {
        (!folder.is_empty()).then(|| folder_of(folder))
    })
}

fn word(node: &Node, name: &str) -> Option<String> {
    node.word_of(name).map(repair)
}

/// `<BackupInst>` of bkupInfo.xml and manifest.xml.
fn from_info(node: &Node, folder: &str) -> Policy {
    Policy {
        name: word(node, "GPODisplayName").unwrap_or_default(),
        guid: word(node, "GPOGuid"),
        backup: word(node, "ID"),
        domain: word(node, "GPODomain"),
        links: Vec::new(),
        folder: folder.to_owned(),
    }
}

/// `<GroupPolicyCoreSettings>` of Backup.xml.
fn from_backup(root: &Node, folder: &str) -> Policy {
    let core = root.below("GroupPolicyCoreSettings").into_iter().next();
    let word = |name: &str| core.and_then(|core| word(core, name));
    Policy {
        name: word("DisplayName").unwrap_or_default(),
        guid: word("ID"),
        backup: None,
        domain: word("Domain"),
        links: Vec::new(),
        folder: folder.to_owned(),
    }
}

/// `<GPO>` of gpreport.xml, or of a report of the resulting set.
fn from_report(root: &Node, folder: &str) -> Policy {
    let identifier = root.child("Identifier");
    let guid = identifier.or_else(|| root.child("Path")).and_then(|node| word(node, "Identifier"));
    let is_true = |node: &Node, name: &str, otherwise: bool| {
        node.word_of(name).map_or(otherwise, |text| text.eq_ignore_ascii_case("true"))
    };
    let links = root.children.iter().filter(|node| node.name == "LinksTo" || node.name == "Link");
    let links = links.map(|node| Link {
        place: word(node, "SOMPath").or_else(|| word(node, "SOMName")).unwrap_or_default(),
        order: ["LinkOrder", "SOMOrder", "AppliedOrder"]
            .iter()
            .find_map(|name| node.word_of(name)?.parse().ok()),
        is_enabled: is_true(node, "Enabled", true),
        is_enforced: is_true(node, "NoOverride", false),
    });
    Policy {
        name: word(root, "Name").unwrap_or_default(),
        guid,
        backup: None,
        domain: identifier.and_then(|node| word(node, "Domain")),
        links: links.collect(),
        folder: folder.to_owned(),
    }
}

/// Lists what Backup.xml and bkupInfo.xml have in addition to the names: nothing of it is a setting.
pub(super) fn list_rest(text: &str, format: Format, sink: &mut Sink<'_>) {
    if format == Format::BackupInfo {
        return sink.unknown(0, "", "describes the backup");
    }
    let document = xml::parse(text);
    let extensions = document.root.below("GroupPolicyExtension");
    for extension in extensions {
        let name = extension.attribute("DescName").or_else(|| extension.attribute("ID"));
        sink.unknown(
            extension.line,
            name.unwrap_or_default(),
            "names an extension whose files the backup has",
        );
    }
    sink.unknown(0, "", "describes the backup");
}
