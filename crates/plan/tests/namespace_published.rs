//! Genuine files of namespaces, read in place: published exports, outputs of dfsutil and of PowerShell.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use smbscope_plan::namespace::form::Form;
use smbscope_plan::namespace::model::{Kind, State};
use smbscope_plan::namespace::read::{Reading, read};
use smbscope_plan::namespace::write::{Allowed, write};

/// A file of the shared data; none, with a message, where it is missing.
fn bytes(path: &str) -> Option<Vec<u8>> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or_else(default, PathBuf::from);
    let path = shared.join(path);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        smbscope_testing::skip!("{} is not there (set SMBSCOPE_SHARED)", path.display());
    }
    bytes
}

fn reading(paths: &[&str]) -> Option<Reading> {
    let files = paths.iter().map(|path| Some(((*path).to_owned(), bytes(path)?)));
    Some(read(&files.collect::<Option<Vec<_>>>()?).unwrap())
}

#[test]
fn the_published_export_is_read_and_written_as_it_was() {
    let path = "dfs/export-2003-format.xml";
    let (Some(text), Some(reading)) = (bytes(path), reading(&[path])) else { return };
    let namespace = &reading.namespaces[0].namespace;
    assert_eq!((namespace.host.as_str(), namespace.links.len()), ("CONTOSO", 3));
    let written = write(namespace, Form::Export2003, &Allowed::default()).unwrap();
    assert_eq!(written.files[0].bytes, text);
}

#[test]
fn the_published_lines_of_2008_and_a_view_are_read() {
    let Some(lines) = reading(&["dfs/export-2008-fragment.xml"]) else { return };
    let target = &lines.namespaces[0].namespace.links[0].targets[0];
    assert_eq!((target.server.as_str(), target.state), ("FileServer-NetBIOS", State::Online));
    let Some(view) = reading(&["dfs/view-2003-2008.txt"]) else { return };
    assert_eq!((view.unknown.count(), view.namespaces[0].blob_bytes), (0, Some(704)));
    assert_eq!(view.namespaces[0].namespace.kind, Some(Kind::DomainV1));
}

#[test]
fn a_users_cache_and_documented_objects_are_read() {
    let Some(cache) = reading(&["dfs/pktinfo.txt"]) else { return };
    let first = &cache.caches[0].referrals[0];
    let statuses: Vec<_> = first.targets.iter().map(|target| target.access_status).collect();
    assert_eq!(statuses, [None, Some(0xc000_00be), Some(0)]);
    let paths = ["outputs/windows/Get-DfsnRoot.txt", "outputs/windows/Get-DfsnFolderTarget.txt"];
    let Some(objects) = reading(&paths) else { return };
    assert_eq!((objects.unknown.count(), objects.namespaces.len()), (0, 1));
    assert_eq!(objects.namespaces[0].namespace.links[0].path, "LegacySoftware");
}
