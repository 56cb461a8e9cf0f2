//! Samba's msdfs: a list of links, a script that makes them, and the share in `smb.conf`.
//!
//! `smb.conf(5)` (`msdfs root`, `msdfs proxy`), `symlink(7)`. The list is the form that is read again; the script does the
//! same as the list for a person who has only a shell.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::model::{Link, Namespace, Target};
use super::super::read::{CONF_HEADER, MSDFS_HEADER};
use super::WrittenFile;
use crate::script::quote::sh;

/// The text of a link's symbolic link.
pub fn link_text(link: &Link) -> String {
    format!("msdfs:{}", list(&link.targets))
}

fn list(targets: &[Target]) -> String {
    let targets = targets.iter().map(|target| format!("{}\\{}", target.server, target.share));
    targets.collect::<Vec<_>>().join(",")
}

/// Each link's path on Linux and the text of its symbolic link.
pub fn links(namespace: &Namespace) -> impl Iterator<Item = (String, String)> {
    namespace.links.iter().map(|link| (link.path.replace('\\', "/"), link_text(link)))
}

pub(super) fn write(namespace: &Namespace, name: &str) -> Vec<WrittenFile> {
    let path = format!("\\\\{}\\{}", namespace.host, namespace.name);
    let heading = format!("{MSDFS_HEADER}{path}\n");
    let mut text = heading.clone();
    let mut script = String::from("#!/bin/sh\n");
    script.push_str(&heading);
    script.push_str(
        "# Makes the links in the folder of the share: sh SCRIPT FOLDER\nset -eu\ncd -- \"$1\"\n",
    );
    let folders: BTreeSet<String> = links(namespace)
        .filter_map(|(path, _)| path.rsplit_once('/').map(|(folder, _)| folder.to_owned()))
        .collect();
    for folder in folders {
        let _ = writeln!(script, "mkdir -p -- {}", sh(&folder));
    }
    for (path, target) in links(namespace) {
        let _ = writeln!(text, "{path}\t{target}");
        let _ = writeln!(script, "ln -sfn -- {} {}", sh(&target), sh(&path));
    }
    let mut conf = format!("{CONF_HEADER}{path}\n[{}]\n", namespace.name);
    let _ = writeln!(conf, "    path = /srv/msdfs/{name}\n    msdfs root = yes");
    if let Some(comment) = &namespace.comment {
        let _ = writeln!(conf, "    comment = {comment}");
    }
    if namespace.other.contains_key("msdfs:proxy") {
        let _ = writeln!(conf, "    msdfs proxy = \\{}", list(&namespace.targets));
    }
    let file = |name: String, text: String| WrittenFile { name, bytes: text.into_bytes() };
    let conf = file(format!("{name}.smb.conf"), conf);
    if namespace.other.contains_key("msdfs:proxy") {
        return vec![conf];
    }
    vec![file(format!("{name}.links"), text), conf, file(format!("{name}.sh"), script)]
}
